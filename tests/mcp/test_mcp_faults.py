"""Servers that are down, slow, silent, forgetful or broken: each has a clear sentence, and no effect happens twice."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from edge_agent.core.errors import OutcomeUnknown, ToolError
from edge_agent.tools.mcp_faults import Unreachable
from edge_agent.tools.toolbox import Toolbox
from tests.mcp.conftest import Desk, our_tasks, tool_of
from tests.servers.mcp_door import Fault
from tests.servers.mcp_server import McpTestServer, served

pytestmark = pytest.mark.mcp


@pytest.fixture(params=["2026", "2025"])
async def server(request: pytest.FixtureRequest, desk: Desk) -> McpTestServer:
    return await desk.server(legacy=request.param == "2025")


@dataclass(slots=True)
class Silent:
    """A server that takes connections and never says a word. `most`: connections that were open at a time."""

    url: str = ""
    open: int = 0
    most: int = 0
    met: asyncio.Event = field(default_factory=asyncio.Event)

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met.set()
        self.open += 1
        self.most = max(self.most, self.open)
        await reader.read()
        self.open -= 1
        writer.close()


@asynccontextmanager
async def silent() -> AsyncGenerator[Silent]:
    server = Silent()
    async with await asyncio.start_server(server.hear, "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
        yield server


class HurriedLoop(asyncio.SelectorEventLoop):
    """Its clock can be set forward, by so many seconds: what is due until then is due at once."""

    forward = 0.0

    def time(self) -> float:
        return super().time() + self.forward


def hurried(main: Callable[[Desk, HurriedLoop], Coroutine[Any, Any, None]]) -> None:
    """Lives through it in such a loop."""

    async def lived(loop: HurriedLoop) -> None:
        async with AsyncExitStack() as stack:
            await main(Desk(stack), loop)

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, HurriedLoop)
        runner.run(lived(loop))


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


# -- connecting
async def test_a_server_that_is_down_is_told_with_origin_cause_and_way_out(desk: Desk) -> None:
    port = closed_port()
    (said,) = await desk.source(f"http://127.0.0.1:{port}/mcp?key=s3cret").refresh()
    assert said.startswith(f"The MCP server docs (http://127.0.0.1:{port}) took no connection (")
    assert said.endswith("Check that it runs and that its url is right. Its tools are left out.")
    assert "s3cret" not in said


async def test_a_server_that_never_answers_is_given_up_after_the_connect_timeout(desk: Desk) -> None:
    async with silent() as server:
        source = desk.source(server.url, connect_timeout=0.2)
        (said,) = await source.refresh()
        assert "did not answer within 0.2 s. Look at it, or raise connect_timeout." in said
        await source.close()
        assert our_tasks() == []


def test_a_server_too_slow_to_list_its_tools_is_given_up_and_tried_again() -> None:
    async def lists(desk: Desk, loop: HurriedLoop) -> None:
        server = await desk.server(page_delay=3_600)
        source = desk.source(server.url, connect_timeout=30)
        refreshing = asyncio.ensure_future(source.refresh())
        await server.logged("page", 0)
        loop.forward += 30
        (said,) = await refreshing
        assert "did not list its tools within 30 s" in said
        server.page_delay = 0
        assert await source.refresh() == ()
        assert len(source.tools()) == 165

    hurried(lists)


@pytest.mark.parametrize("legacy", [False, True])
async def test_refused_credentials_are_told_and_never_shown(desk: Desk, *, legacy: bool) -> None:
    server = await desk.server(token="right", legacy=legacy)
    (said,) = await desk.source(server.url, headers={"authorization": "Bearer wrong"}).refresh()
    assert "refused our credentials (HTTP 401). Check the server's headers or get_headers." in said
    assert "wrong" not in said


async def test_a_path_without_mcp_is_told(desk: Desk) -> None:
    server = await desk.server()
    (said,) = await desk.source(server.url.replace("/mcp", "/nothing")).refresh()
    assert "has nothing at this path (HTTP 404). Check the path of its url, often /mcp." in said


async def test_get_headers_that_fails_is_told(desk: Desk) -> None:
    server = await desk.server()

    def broken() -> dict[str, str]:
        raise RuntimeError("the vault is closed")

    (said,) = await desk.source(server.url, get_headers=broken).refresh()
    assert "the vault is closed" in said


@pytest.mark.parametrize(
    "fault, words",
    [
        ("circle", "runs in a circle"),
        ("endless", "goes on after 100 pages"),
        ("broken", "answered with something that is not MCP ("),
    ],
)
async def test_a_list_that_cannot_be_had_is_an_error_of_that_server(desk: Desk, fault: str, words: str) -> None:
    server = await desk.server(list_fault=fault)
    (said,) = await desk.source(server.url).refresh()
    assert words in said, said
    assert said.endswith("Its tools are left out.")


async def test_a_redirect_within_the_origin_is_followed_and_to_another_never(desk: Desk) -> None:
    server, other = await desk.server(), await desk.server()
    here = desk.source(server.url.replace("/mcp", "/moved"), headers={"x-secret": "s3cret"})
    assert await here.refresh() == ()
    (said,) = await desk.source(
        server.url.replace("/mcp", f"/moved-away?127.0.0.1:{other.port}"), headers={"x-secret": "s3cret"}
    ).refresh()
    assert f"Redirect to http://127.0.0.1:{other.port}/mcp not followed" in said
    assert other.seen == []


async def test_servers_connect_at_once_and_one_that_fails_takes_no_other_down(desk: Desk) -> None:
    server = await desk.server()
    async with silent() as mute:
        sources = [
            desk.source(mute.url, name="mute", connect_timeout=0.5),
            desk.source(server.url, name="up"),
            desk.source(f"http://127.0.0.1:{closed_port()}/mcp", name="down"),
            desk.source(mute.url, name="mute2", connect_timeout=0.5),
        ]
        box = Toolbox([], sources)
        said = await box.refresh()
        assert mute.most == 2, "not one after the other"
    assert [sentence.split()[3] for sentence in said] == ["mute", "down", "mute2"]
    assert {spec.name.split("__")[0] for spec in box.offered()} == {"up"}
    await box.close()


async def test_a_server_that_was_down_is_there_after_the_next_refresh(desk: Desk) -> None:
    port = closed_port()
    source = desk.source(f"http://127.0.0.1:{port}/mcp")
    assert len(await source.refresh()) == 1
    await desk.server(port=port)
    assert await source.refresh() == ()
    assert len(source.tools()) == 165


# -- in the middle of work
async def test_a_restarted_server_is_connected_to_again_and_the_call_made_once(desk: Desk) -> None:
    for legacy in (False, True):
        port = closed_port()
        first = McpTestServer(port=port, legacy=legacy)
        source = desk.source(first.url, name=f"legacy-{legacy}")
        async with served(first):
            await source.refresh()
        second = await desk.server(port=port, legacy=legacy)
        output = await tool_of(source, "charge").run({"amount": 1}, desk.context())
        assert output.text == "charged 1"
        assert sum(second.charges.values()) == 1


async def test_a_forgotten_session_is_opened_again_and_an_unsafe_call_runs_once(desk: Desk) -> None:
    server = await desk.server(legacy=True)
    find = await desk.tools(server)
    server.forget()
    answers = await asyncio.gather(*(desk.run(find("charge"), amount=number) for number in range(4)))
    assert [answer.text for answer in answers] == [f"charged {number}" for number in range(4)]
    assert sum(server.charges.values()) == 4


@pytest.mark.parametrize("fault", ["drop", "500", "garbage"])
async def test_an_unsafe_call_whose_answer_is_lost_has_an_unknown_outcome_and_ran_once(
    desk: Desk, server: McpTestServer, fault: Fault
) -> None:
    find = await desk.tools(server)
    server.fault = fault
    with pytest.raises(OutcomeUnknown, match="so the call may have been made"):
        await desk.run(find("charge"), amount=5)
    assert sum(server.charges.values()) == 1
    assert (await desk.run(find("charge"), amount=6)).text == "charged 6"  # the session goes on


@pytest.mark.parametrize("fault", ["drop", "500"])
async def test_a_safe_call_whose_answer_is_lost_is_made_again(desk: Desk, server: McpTestServer, fault: Fault) -> None:
    find = await desk.tools(server)
    server.fault = fault
    assert (await desk.run(find("lookup"), q="x")).text == "found x"
    assert server.count("call", "lookup") == 2


async def test_a_lost_answer_leaves_the_calls_beside_it_alone(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    beside = asyncio.ensure_future(desk.run(find("slow"), steps=20))
    await server.logged("call", "slow")
    server.fault = "drop"
    with pytest.raises(OutcomeUnknown):
        await desk.run(find("charge"), amount=5)
    assert (await beside).text == "slept"


async def test_a_call_that_is_turned_away_is_made_again_with_fresh_headers(desk: Desk) -> None:
    server = await desk.server(token="t1")
    tokens = ["t1", "t2"]
    source = desk.source(server.url, get_headers=lambda: {"authorization": f"Bearer {tokens.pop(0)}"})
    await source.refresh()
    server.token = "t2"  # the first has expired
    assert (await tool_of(source, "charge").run({"amount": 1}, desk.context())).text == "charged 1"
    assert tokens == []


async def test_a_call_to_a_server_that_is_gone_was_not_made(desk: Desk) -> None:
    server = McpTestServer(port=closed_port())
    source = desk.source(server.url)
    async with served(server):
        await source.refresh()
    with pytest.raises(Unreachable, match="took no connection"):
        await tool_of(source, "charge").run({"amount": 1}, desk.context())


async def test_an_html_page_in_place_of_an_answer_is_an_error(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    server.fault = "html"
    with pytest.raises(ToolError, match="text/html"):
        await desk.run(find("lookup"), q="x")


# -- cancelling and closing
async def test_a_cancel_reaches_the_server_and_the_session_goes_on(desk: Desk, server: McpTestServer) -> None:
    find = await desk.tools(server)
    call = asyncio.ensure_future(desk.run(find("slow"), steps=1000))
    await server.logged("call", "slow")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await server.logged("cancel noted")
    assert (await desk.run(find("echo"), text="still here")).text == "still here"


async def _over_when_it_hangs(server: McpTestServer, limit: asyncio.Timeout) -> None:
    await server.logged("hanging")
    limit.reschedule(asyncio.get_running_loop().time())


@pytest.mark.parametrize("fault", ["hang", "mute"])
async def test_a_call_that_is_never_answered_ends_at_its_timeout_and_frees_its_connection(
    desk: Desk, server: McpTestServer, fault: Fault
) -> None:
    find = await desk.tools(server)
    server.fault = fault
    limit = asyncio.timeout(None)
    over = asyncio.ensure_future(_over_when_it_hangs(server, limit))
    with pytest.raises(TimeoutError):
        async with limit:
            await desk.run(find("charge"), amount=1)
    await over
    await server.logged("gone")
    assert (await desk.run(find("echo"), text="still here")).text == "still here"


@pytest.mark.parametrize("legacy", [False, True])
def test_a_server_that_stays_silent_beyond_the_timeout_is_given_up_even_if_nobody_cancels(*, legacy: bool) -> None:
    async def calls(desk: Desk, loop: HurriedLoop) -> None:
        server = await desk.server(legacy=legacy)
        find = await desk.tools(server, silence=5.0, timeout=30)
        server.fault = "hang"
        call = asyncio.ensure_future(desk.run(find("charge"), amount=1))
        await server.logged("hanging")
        loop.forward += 35
        with pytest.raises(OutcomeUnknown, match="was silent for 30 s"):
            await call

    hurried(calls)


async def test_closing_ends_every_task_and_says_goodbye(desk: Desk, server: McpTestServer) -> None:
    source = desk.source(server.url)
    await source.refresh()
    await desk.run(tool_of(source, "echo"), text="x")
    assert our_tasks() != []
    await source.close()
    assert our_tasks() == []
    if server.legacy:
        assert server.count("DELETE") == 1
    assert (await desk.run(tool_of(source, "echo"), text="again")).text == "again"  # connects by itself
    await source.close()
    await source.close()
    assert our_tasks() == []


async def test_closing_while_a_call_runs_ends_the_call_as_unknown(desk: Desk, server: McpTestServer) -> None:
    source = desk.source(server.url)
    await source.refresh()
    call = asyncio.ensure_future(desk.run(tool_of(source, "slow"), steps=1000))
    await server.logged("call", "slow")
    await source.close()
    with pytest.raises(OutcomeUnknown):
        await call
    assert our_tasks() == []


async def test_a_refresh_that_is_cancelled_leaves_nothing_behind(desk: Desk) -> None:
    async with silent() as server:
        source = desk.source(server.url)
        refreshing = asyncio.ensure_future(source.refresh())
        await server.met.wait()
        refreshing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await refreshing
        await source.close()
        assert our_tasks() == []
