"""What a server's tools become, and what comes of calling them. Real servers, both generations of the protocol."""

import asyncio
from dataclasses import replace

import pytest

from edge_agent.core.errors import InvalidArguments, NeedsAnswer, ToolError
from edge_agent.core.tooling import Answers
from edge_agent.tools.mcp_import import types
from tests.mcp.conftest import Desk
from tests.servers.mcp_server import McpTestServer

pytestmark = pytest.mark.mcp
GENERATIONS = [
    pytest.param({}, id="2026"),
    pytest.param({"json_response": True}, id="2026-json"),
    pytest.param({"legacy": True}, id="2025"),
    pytest.param({"legacy": True, "json_response": True}, id="2025-json"),
]


@pytest.fixture(params=GENERATIONS)
async def server(request: pytest.FixtureRequest, desk: Desk) -> McpTestServer:
    return await desk.server(**request.param)


async def test_all_pages_are_listed_and_a_session_lists_once(desk: Desk, server: McpTestServer) -> None:
    source = desk.source(server.url)
    assert await source.refresh() == ()
    assert len(source.tools()) == 165
    assert source.tools()[0].spec.name == "docs__echo"
    assert server.count("POST", "tools/list") == 4
    tool = source.tools()[-1]  # on the last page: the SDK's own call_tool would list again before each call
    for _ in range(3):
        await desk.run(tool)
    assert await source.refresh() == ()
    assert server.count("POST", "tools/list") == 4


async def test_a_tool_carries_the_servers_schema_promises_and_name(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server, timeout=7)
    lookup, charge, fail = find("lookup"), find("charge"), find("fail")
    assert lookup.spec.description == "The tool lookup."
    assert lookup.spec.parameters["required"] == ["q"]
    assert (lookup.read_only, lookup.safe_to_repeat, lookup.server, lookup.timeout) == (True, True, "docs", 7)
    assert (charge.read_only, charge.safe_to_repeat, charge.on_unknown) == (False, False, "report")
    assert fail.spec.parameters == {"type": "object", "properties": {}}


async def test_a_strange_name_is_mapped_and_the_call_uses_the_original(desk: Desk, server: McpTestServer) -> None:
    source = desk.source(server.url)
    await source.refresh()
    strange = next(tool for tool in source.tools() if "strange" in tool.spec.name)
    assert len(strange.spec.name) == 64
    output = await desk.run(strange, a={"anything": 1})  # its schema refers to another host, which is never asked
    assert output.text.startswith("strange.näme/with spaces")


async def test_text_failures_and_structured_results(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    assert (await desk.run(find("echo"), text="hi")).text == "hi"
    failed = await desk.run(find("fail"))
    assert (failed.ok, failed.text) == (False, "boom")
    structured = await desk.run(find("structured"))
    assert (structured.text, structured.structured) == ('{"n": 1}', {"n": 1})


async def test_a_result_that_misses_its_own_schema_keeps_its_content_and_warns(
    desk: Desk, server: McpTestServer
) -> None:
    find = await desk.tools(server)
    bad = await desk.run(find("bad_structured"))
    assert bad.ok
    assert bad.text.startswith('all of it\n{"n": "x"}\n[warning: ')
    assert "`n`: 'x' is not of type 'integer'" in bad.text
    assert bad.structured is None
    missing = await desk.run(find("nothing_structured"))
    assert missing.text.startswith("no number\n[warning: ")


async def test_pictures_and_blobs_become_files_and_links_stay_text(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    output = await desk.run(find("image"))
    assert [(file.name, file.media_type, len(file.content)) for file in output.files] == [
        ("image-1.png", "image/png", 32),
        ("report.pdf", "application/pdf", 32),
    ]
    assert output.text.splitlines() == [
        "a picture",
        "[image: file image-1.png, image/png, 32 bytes]",
        "[resource file:///data/report.pdf: file report.pdf, application/pdf, 32 bytes]",
        "[resource file:///notes.txt]",
        "some notes",
    ]
    linked = await desk.run(find("linked"))
    assert linked.text == "[link to https://example.com/manual: manual: The whole manual]"


async def test_an_answer_of_megabytes_arrives_and_one_beyond_all_bounds_is_an_error(
    desk: Desk, server: McpTestServer
) -> None:
    find = await desk.tools(server)
    assert len((await desk.run(find("big"), megabytes=3)).text) == 3_000_000
    with pytest.raises(ToolError, match="docs"):
        await desk.run(find("big"), megabytes=11)
    assert (await desk.run(find("echo"), text="still here")).text == "still here"


async def test_arguments_are_checked_against_the_servers_schema(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    with pytest.raises(InvalidArguments, match="'text' is a required property"):
        find("echo").check({})
    with pytest.raises(InvalidArguments, match="`text`: 5 is not of type 'string'"):
        await desk.run(find("echo"), text=5)
    with pytest.raises(InvalidArguments, match="nan is not a JSON number"):
        find("charge").check({"amount": float("nan")})
    assert server.count("call") == 0


async def test_the_idempotency_key_reaches_the_server(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    await find("charge").run({"amount": 3}, desk.context("key-7"))
    assert dict(server.charges) == {'key-7 {"amount": 3}': 1}
    assert server.meta[-1]["edge-agent/idempotency-key"] == "key-7"


async def test_an_error_the_server_answers_with_is_the_tools_error(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    server.fault = "error"
    with pytest.raises(ToolError, match="the database is down"):
        await desk.run(find("charge"), amount=1)


@pytest.mark.parametrize("legacy", [False, True])
async def test_progress_is_passed_on(desk: Desk, *, legacy: bool) -> None:
    find = await desk.tools(await desk.server(legacy=legacy))
    await desk.run(find("slow"), steps=3)
    assert desk.progress == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]


async def test_concurrent_calls_get_their_own_answers_in_whatever_order(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    slow = asyncio.ensure_future(desk.run(find("slow"), steps=10))
    answers = await asyncio.gather(*(desk.run(find("echo"), text=f"call {number}") for number in range(8)))
    assert [answer.text for answer in answers] == [f"call {number}" for number in range(8)]
    assert not slow.done()
    assert (await slow).text == "slept"


async def test_of_two_calls_that_an_older_server_keeps_open_each_is_asked_and_each_gets_its_answer(desk: Desk) -> None:
    book = (await desk.tools(await desk.server(legacy=True)))("book")
    both_asked = asyncio.Barrier(2)

    async def booked(number: int) -> str:
        async def ask(question: NeedsAnswer) -> Answers:
            await both_asked.wait()
            return Answers.to(question.requests, None, "accept", {"n": number})

        return (await book.run({}, replace(desk.context(f"key-{number}"), ask=ask))).text

    assert sorted(await asyncio.gather(booked(1), booked(2))) == ['accept {"n": 1}', 'accept {"n": 2}']
    let_go = await asyncio.gather(desk.run(book), desk.run(book), return_exceptions=True)
    assert [type(error) for error in let_go] == [NeedsAnswer, NeedsAnswer]


async def test_our_name_and_headers_are_sent_and_fresh_headers_asked_for(desk: Desk) -> None:
    server = await desk.server(token="t2")

    async def fresh() -> dict[str, str]:
        return {"authorization": "Bearer t2"}

    source = desk.source(server.url, client_name="my-agent", headers={"x-team": "blue"}, get_headers=fresh)
    assert await source.refresh() == ()
    assert {headers["user-agent"] for headers in server.seen} == {"my-agent"}
    assert {headers["x-team"] for headers in server.seen} == {"blue"}


async def test_a_servers_own_globs_choose_and_those_that_match_nothing_are_told_once(desk: Desk) -> None:
    server = await desk.server()
    source = desk.source(server.url, allow=("echo", "tool_00*", "serach"), deny=("tool_001",))
    (said,) = await source.refresh()
    assert "'serach'" in said
    assert [tool.spec.name for tool in source.tools()][:3] == ["docs__echo", "docs__tool_000", "docs__tool_002"]
    assert len(source.tools()) == 10
    assert await source.refresh() == ()


@pytest.mark.parametrize("legacy", [False, True])
async def test_a_changed_list_is_taken_in_by_the_next_refresh(desk: Desk, *, legacy: bool) -> None:
    server = await desk.server(legacy=legacy)
    source = desk.source(server.url)
    await source.refresh()
    await server.logged(*(("GET",) if legacy else ("POST", "subscriptions/listen")))
    async with asyncio.timeout(10):
        while len(source.tools()) == 165:
            await server.grow()
            await desk.run(source.tools()[0], text="x")
            await source.refresh()
    assert source.tools()[-1].spec.name.startswith("docs__tool_15")


async def test_a_tool_whose_schema_is_bottomless_is_left_out_and_told(desk: Desk) -> None:
    server = await desk.server()
    source = desk.source(server.url)
    deep: dict[str, object] = {"type": "object"}
    for _ in range(75):
        deep = {"type": "object", "properties": {"a": deep}}
    bad = types.Tool(name="deep", input_schema=deep)
    server.tools = lambda: [types.Tool(name="fine", input_schema={"type": "object"}), bad]
    (said,) = await source.refresh()
    assert "'deep'" in said
    assert "nested deeper than 100 levels" in said
    assert [tool.spec.name for tool in source.tools()] == ["docs__fine"]
