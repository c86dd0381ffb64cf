"""What every `Tool` and every `Tools` must do, whoever made them: functions, and servers of both generations."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from edge_agent.core.errors import InvalidArguments
from edge_agent.core.tooling import Tool, ToolContext, ToolOutput, Tools
from edge_agent.tool import McpServer, ToolError, tool
from edge_agent.tools.mcp_source import McpSource
from edge_agent.tools.names import NAME
from edge_agent.tools.toolbox import Toolbox
from tests.servers.mcp_server import mcp_server


@tool
async def echo(text: str) -> str:
    """The tool echo."""
    return text


@tool(read_only=True)
async def lookup(q: str) -> str:
    """The tool lookup."""
    return f"found {q}"


@tool
async def charge(amount: int) -> str:
    """The tool charge."""
    return f"charged {amount}"


@tool
async def fail() -> ToolOutput:
    """The tool fail."""
    return ToolOutput(text="boom", ok=False)


@tool
async def structured() -> dict[str, int]:
    """The tool structured."""
    return {"n": 1}


@tool
async def slow(context: ToolContext, steps: int = 1000) -> str:
    """The tool slow."""
    for step in range(steps):
        context.progress(step, steps, f"step {step}")
        await asyncio.sleep(0.02)
    return "slept"


class Bench:
    """The tools under test, found by the name both kinds share."""

    def __init__(self, box: Toolbox, prefix: str) -> None:
        self.box, self.prefix = box, prefix

    def find(self, name: str) -> Tool:
        found = self.box.find(self.prefix + name)
        assert found is not None
        return found


@pytest.fixture(params=["functions", "mcp-2026", "mcp-2025"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        if request.param == "functions":
            yield Bench(Toolbox([echo, lookup, charge, fail, structured, slow]), "")
            return
        server = await stack.enter_async_context(mcp_server(legacy=request.param == "mcp-2025"))
        box = Toolbox(sources=[McpSource("docs", McpServer(url=server.url))])
        stack.push_async_callback(box.close)
        assert await box.refresh() == ()
        yield Bench(box, "docs__")


def unheard(_done: float, _total: float | None, _message: str | None) -> None: ...


def context(report: Callable[[float, float | None, str | None], None] = unheard) -> ToolContext:
    return ToolContext(run_id="r1", call_id="abc123def", step=1, idempotency_key="key-1", report=report)


def test_what_is_offered_is_found_and_what_is_not_is_none(bench: Bench) -> None:
    box: Tools = bench.box
    for spec in box.offered():
        found = box.find(spec.name)
        assert found is not None
        assert found.spec == spec
    assert box.find("no_such_tool") is None


async def test_the_offer_does_not_change_between_refreshes(bench: Bench) -> None:
    before = bench.box.offered()
    await bench.find("echo").run({"text": "x"}, context())
    assert bench.box.offered() == before
    assert await bench.box.refresh() == ()
    assert bench.box.offered() == before


def test_every_spec_can_be_told_to_a_model(bench: Bench) -> None:
    for spec in bench.box.offered():
        assert NAME.fullmatch(spec.name)
        assert spec.description
        assert spec.parameters["type"] == "object"
        assert isinstance(spec.parameters["properties"], dict)


def test_what_a_call_promises_is_known_before_it(bench: Bench) -> None:
    assert (bench.find("lookup").read_only, bench.find("lookup").safe_to_repeat) == (True, True)
    assert (bench.find("charge").read_only, bench.find("charge").safe_to_repeat) == (False, False)
    assert (bench.find("charge").on_unknown, bench.find("charge").timeout) == ("report", 30)


async def test_a_call_is_answered(bench: Bench) -> None:
    assert await bench.find("echo").run({"text": "hi"}, context()) == ToolOutput(text="hi")
    assert (await bench.find("charge").run({"amount": 3}, context())).text == "charged 3"


async def test_a_tool_that_says_it_failed_is_no_exception(bench: Bench) -> None:
    assert await bench.find("fail").run({}, context()) == ToolOutput(text="boom", ok=False)


async def test_a_structured_result_is_told_as_text_too(bench: Bench) -> None:
    output = await bench.find("structured").run({}, context())
    assert output.structured == {"n": 1}
    assert output.text.replace(" ", "") == '{"n":1}'


@pytest.mark.parametrize(
    "arguments", [{}, {"text": 5}, {"text": None}, {"text": ["a"]}, {"text": "\ud800"}, {"text": float("nan")}]
)
async def test_invalid_arguments_name_the_field_and_are_never_sent(bench: Bench, arguments: dict[str, Any]) -> None:
    for _ in range(2):
        with pytest.raises(InvalidArguments, match="text"):
            bench.find("echo").check(arguments)
    with pytest.raises(ToolError):
        await bench.find("echo").run(arguments, context())


def test_valid_arguments_pass_any_number_of_times(bench: Bench) -> None:
    for _ in range(3):
        bench.find("charge").check({"amount": 3})


async def test_progress_reaches_whoever_watches(bench: Bench) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    def report(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    await bench.find("slow").run({"steps": 2}, context(report))
    assert heard == [(0, 2, "step 0"), (1, 2, "step 1")]


async def test_a_call_can_be_cancelled_while_it_runs_and_the_next_one_works(bench: Bench) -> None:
    started = asyncio.Event()

    def report(_done: float, _total: float | None, _message: str | None) -> None:
        started.set()

    call = asyncio.ensure_future(bench.find("slow").run({}, context(report)))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await bench.find("echo").run({"text": "next"}, context())).text == "next"


async def test_calls_beside_each_other_do_not_mix(bench: Bench) -> None:
    answers = await asyncio.gather(*(bench.find("echo").run({"text": str(number)}, context()) for number in range(10)))
    assert [answer.text for answer in answers] == [str(number) for number in range(10)]


async def test_a_closed_box_still_answers_calls_and_closes_again(bench: Bench) -> None:
    await bench.box.close()
    assert (await bench.find("echo").run({"text": "again"}, context())).text == "again"
    await bench.box.close()
