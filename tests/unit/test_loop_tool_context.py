"""What a tool sees of its run: its files, whether it is cancelled, and how much of its result is seen."""

import asyncio

import pytest

from edge_agent import Hooks, ToolContext, ToolError, ToolFile, ToolOutput, tool
from edge_agent.core.events import ToolResult
from edge_agent.core.tooling import FilesInMemory
from edge_agent.models.scripted import Answer, ScriptedModel
from tests.unit.loop_kit import Lived, Setting, cancels_after, live


@tool(read_only=True)
async def draw(context: ToolContext, fails: bool = False) -> ToolOutput:
    """Draw something."""
    first = context.files.save("a b.txt", "some words", "text/plain")
    second = context.files.save("a?b.txt", b"\x89PNG\xff", "image/png")
    if fails:
        raise ToolError("out of ink")
    more = ToolFile(name="a b.txt", media_type="text/plain", content=b"third")
    return ToolOutput(text=f"{first} {second} {len(context.files.read(first).content)}", files=(more,))


def drawn(*, fails: bool = False, hooks: Hooks | None = None) -> Lived:
    model = ScriptedModel(answers=[Answer(calls=(("draw", {"fails": fails}),)), "done"])
    return live(Setting(model=model, tools=[draw], hooks=hooks or Hooks()))


def test_files_of_a_call_have_safe_names_of_their_own_and_come_with_its_result() -> None:
    lived = drawn()
    result = lived.of(ToolResult)[0]
    own = [f"{result.call_id}-a_b.txt", f"2-{result.call_id}-a_b.txt", f"3-{result.call_id}-a_b.txt"]
    assert [file.name for file in result.files] == own
    assert result.output == f"{own[0]} {own[1]} 10"
    kept = [lived.object.log.file(name) for name in own]
    assert [file.content for file in kept if file] == [b"some words", b"\x89PNG\xff", b"third"]


def test_what_a_call_saved_before_it_failed_is_kept() -> None:
    result = drawn(fails=True).of(ToolResult)[0]
    assert (result.ok, len(result.files)) == (False, 2)


def test_files_are_dropped_where_the_output_sanitizer_fails() -> None:
    def broken(name: str, text: str) -> str:
        raise ValueError(name + text)

    result = drawn(hooks=Hooks(sanitize_output=broken)).of(ToolResult)[0]
    assert (result.ok, result.files) == (False, ())


def test_a_tool_that_holds_off_its_cancellation_sees_that_it_is_cancelled() -> None:
    seen: list[bool] = []

    @tool
    async def stubborn(context: ToolContext) -> str:
        """Clean up before it goes."""
        seen.append(context.cancelled)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(context.cancelled)
            raise
        return "never"

    model = ScriptedModel(answers=[Answer(calls=(("stubborn", {}),))])
    live(Setting(model=model, tools=[stubborn], acts={"s1/r1/c0/call": cancels_after(1)}))
    assert seen == [False, True]


@pytest.mark.parametrize("own, most", [(None, 20_000), (4_000, 4_000), (90_000, 20_000)])
def test_a_tool_knows_how_much_of_its_result_is_seen(own: int | None, most: int) -> None:
    @tool(max_output=own)
    async def told(context: ToolContext) -> int:
        """Tell it."""
        return context.max_output

    model = ScriptedModel(answers=[Answer(calls=(("told", {}),)), "done"])
    assert live(Setting(model=model, tools=[told])).of(ToolResult)[0].output == str(most)


async def test_in_a_test_of_its_own_a_tool_has_files_in_memory() -> None:
    files = FilesInMemory()
    context = ToolContext(run_id="r", call_id="c", step=1, idempotency_key="k", files=files)
    await draw(context)
    assert files.kept["a?b.txt"].media_type == "image/png"
    with pytest.raises(ToolError, match="no file nothing"):
        files.read("nothing")
    with pytest.raises(ToolError, match="no call x"):
        context.result("x")
    assert not context.cancelled
