"""What a tool gives back: what of it is recorded, what the model sees, and what nobody does."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from edge_agent import Hooks, ToolContext, ToolFile, ToolOutput, tool
from edge_agent.core.compaction import Compaction
from edge_agent.core.errors import OutcomeUnknown
from edge_agent.core.events import (
    RunCompleted,
    ToolCalled,
    ToolProgress,
    ToolRejected,
    ToolResult,
    ToolUnknown,
)
from edge_agent.core.messages import JsonObject
from edge_agent.loop.outcomes import model_view
from edge_agent.wire import codec
from tests.unit.loop_kit import Raw, Setting, asks, live, live_call, shown


# -- what a tool gives back
def test_a_tool_meets_its_context_and_a_copy_of_its_arguments() -> None:
    met: list[ToolContext] = []

    @tool(idempotent=True)
    async def book(context: ToolContext, where: dict[str, Any]) -> str:
        """Book."""
        met.append(context)
        context.progress(1, 2, "half")
        where["changed"] = True
        context.metadata["changed"] = True
        return context.secret("KEY")

    lived = live_call(book, {"where": {"a": 1}}, secrets={"KEY": "shh"}, metadata={"user": 7})
    called = lived.of(ToolCalled)[0]
    assert called.arguments == {"where": {"a": 1}}
    assert (met[0].run_id, met[0].step, met[0].call_id) == ("run-1", 1, called.call_id)
    assert met[0].idempotency_key == called.idempotency_key
    progress = lived.passing(ToolProgress)[0]
    assert (progress.progress, progress.total, progress.message) == (1, 2, "half")
    assert [r.event for r in lived.object.instance.journal.in_order()] == [r.event for r in lived.records]


def test_an_exception_is_told_by_its_message_never_by_a_traceback() -> None:
    @tool
    async def broken() -> str:
        """Break."""
        raise ValueError

    lived = live_call(broken)
    assert [(r.ok, r.output) for r in lived.of(ToolResult)] == [(False, "broken failed: ValueError")]


SEVEN: Any = 7  # what a tool of one's own may give back, whatever its type says


def raw(given: object) -> Any:
    return Raw(given)


@pytest.mark.parametrize("given,named", [("text", "str"), (None, "NoneType"), ({"a": 1}, "dict")])
def test_what_is_no_tool_output_is_a_failed_call(given: object, named: str) -> None:
    lived = live_call(raw(given))
    said = f"raw failed: it ran to its end, but gave back a {named}, not a ToolOutput"
    assert [(r.ok, r.output) for r in lived.of(ToolResult)] == [(False, said)]


@pytest.mark.parametrize(
    "output,text,structured",
    [
        (ToolOutput(text="", structured={"a": 1}), '{"a":1}', {"a": 1}),
        (ToolOutput(text="as told", structured={"a": math.nan}), "as told", None),
        (ToolOutput(text="", structured={"a": object()}), "", None),
        (ToolOutput(text="half \ud800", structured={"k\ud800": "v\ud800"}), "half \ufffd", {"k\ufffd": "v\ufffd"}),
        (ToolOutput(text=SEVEN), "7", None),
    ],
)
def test_what_json_cannot_say_breaks_nothing(output: ToolOutput, text: str, structured: JsonObject | None) -> None:
    result = live_call(raw(output)).of(ToolResult)[0]
    assert (result.ok, result.output, result.structured) == (True, text, structured)


def test_a_long_output_is_whole_in_a_file_and_the_model_sees_both_ends() -> None:
    text = "begin" + "x" * 5_000_000 + "end"

    @tool(read_only=True)
    async def big() -> ToolOutput:
        """Give a lot."""
        return ToolOutput(text=text, structured={"long": "y" * 70_000})

    model = asks(("big", {}))
    lived = live_call(big, model=model)
    result = lived.of(ToolResult)[0]
    assert result.output == model_view(text, Compaction().max_tool_output_chars, result.call_id)
    assert result.model_chars == len(result.output) <= Compaction().max_tool_output_chars
    assert result.output.startswith("begin")
    assert result.output.endswith("end")
    assert result.structured is None
    names = [file.name for file in result.files]
    assert names == [f"{result.call_id}.txt", f"{result.call_id}.json"]
    file = lived.object.log.file(names[0])
    assert file is not None
    assert file.content.decode() == text
    assert result.files[0].bytes == len(text)
    assert shown(model)[0].text == result.output


def test_an_output_between_the_two_sizes_is_whole_on_record_and_cut_for_the_model() -> None:
    @tool(read_only=True)
    async def medium() -> str:
        """Give much."""
        return "m" * 30_000

    model = asks(("medium", {}))
    lived = live_call(medium, model=model)
    result = lived.of(ToolResult)[0]
    assert len(result.output) == 30_000
    assert len(shown(model)[0].text) == result.model_chars <= Compaction().max_tool_output_chars


def test_files_have_names_an_address_can_hold_and_none_replaces_another() -> None:
    @tool(read_only=True)
    async def draw() -> ToolOutput:
        """Draw."""
        image = ToolFile(name="../a b/é.png", media_type="image/png", content=b"\x89PNG")
        return ToolOutput(text="two", files=(image, ToolFile(name="a b/é.png", media_type="image/png", content=b"2")))

    lived = live_call(draw)
    result = lived.of(ToolResult)[0]
    assert [file.name for file in result.files] == [
        f"{result.call_id}-.._a_b_.png",
        f"{result.call_id}-a_b_.png",
    ]

    @tool(read_only=True, name="draw")
    async def twice() -> ToolOutput:
        """Draw."""
        image = ToolFile(name="a.png", media_type="image/png", content=b"1")
        return ToolOutput(text="two", files=(image, ToolFile(name="a.png", media_type="image/png", content=b"2")))

    lived = live_call(twice)
    result = lived.of(ToolResult)[0]
    contents = [lived.object.log.file(file.name) for file in result.files]
    assert [content and content.content for content in contents] == [b"1", b"2"]


# -- secrets and sanitizers
def test_a_secret_a_tool_gives_back_is_in_no_record_file_frame_or_prompt() -> None:
    @tool(read_only=True)
    async def leak(context: ToolContext, long: bool = False) -> ToolOutput:
        """Leak."""
        context.progress(1, None, "hunter22")
        file = ToolFile(name="f", media_type="text/plain", content=b"hunter22")
        return ToolOutput(text="hunter22 " + "x" * 70_000 * long, structured={"hunter22": "hunter22"}, files=(file,))

    model = asks(("leak", {}), ("leak", {"long": True}))
    mask: Callable[[str], str] = lambda text: text.replace("hunter22", "[secret]")  # noqa: E731
    lived = live(Setting(model=model, tools=[leak], mask=lambda event: codec.masked(event, mask)))
    assert "hunter22" not in repr(lived.items)
    assert "hunter22" not in repr(model.requests[-1].messages)
    files = [lived.object.log.file(file.name) for r in lived.of(ToolResult) for file in r.files]
    assert len(files) == 3
    assert not any(file and b"hunter22" in file.content for file in files)


def test_sanitizers_see_everything_before_it_is_recorded() -> None:
    @tool
    async def pay(card: str) -> ToolOutput:
        """Pay."""
        if card == "***":
            raise OutcomeUnknown("4111 4111 timed out")
        return ToolOutput(text="x")

    hooks = Hooks(
        sanitize_input=lambda name, arguments: {**arguments, "card": "***"},
        sanitize_output=lambda name, text: text.replace("4111", "****"),
    )
    lived = live_call(pay, {"card": "4111"}, hooks=hooks)
    assert "4111" not in repr(lived.items)
    assert lived.of(ToolCalled)[0].arguments == {"card": "***"}
    assert lived.of(ToolUnknown)[0].message.endswith("**** **** timed out")


@pytest.mark.parametrize("given", [None, 7, [1], {"when": object()}, {"n": math.inf}])
def test_an_input_sanitizer_that_fails_or_gives_no_json_makes_the_call_invalid(given: Any) -> None:
    @tool
    async def pay(card: str = "") -> str:
        """Pay."""
        return "x"

    def sanitize(name: str, arguments: JsonObject) -> JsonObject:
        if given is None:
            raise RuntimeError("4111")
        return given

    lived = live_call(pay, {"card": "4111"}, hooks=Hooks(sanitize_input=sanitize))
    assert "4111" not in repr(lived.items)
    assert [r.reason for r in lived.of(ToolRejected)] == ["invalid-arguments"]
    lived = live_call(pay, "{4111", hooks=Hooks(sanitize_input=sanitize))
    assert "4111" not in repr(lived.items)


@pytest.mark.parametrize("raising", [True, False])
def test_an_output_sanitizer_that_fails_leaves_the_output_and_the_files_out(raising: bool) -> None:
    @tool(read_only=True)
    async def look() -> ToolOutput:
        """Look."""
        file = ToolFile(name="f", media_type="text/plain", content=b"4111")
        return ToolOutput(text="4111", structured={"a": "4111"}, files=(file,))

    def sanitize(name: str, text: str) -> Any:
        if raising:
            raise RuntimeError(text)
        return None  # as a hook may do that forgets to return

    lived = live_call(look, hooks=Hooks(sanitize_output=sanitize))
    result = lived.of(ToolResult)[0]
    assert (result.ok, result.output) == (False, "(left out: the output sanitizer failed on it)")
    assert (result.structured, result.files) == (None, ())
    assert isinstance(lived.end, RunCompleted)
