"""What a model is not shown of a result can be read on, for as long as the run lives."""

from typing import Any

import pytest

from edge_agent import Compaction, Limits, ToolContext, ToolOutput, tool
from edge_agent.core.events import Boundary, ToolResult
from edge_agent.core.messages import ToolMessage
from edge_agent.core.model import ModelRequest
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.tools.read_result import read_result_tool
from tests.unit.loop_kit import Lived, Setting, live

LONG = "".join(f"line {number:06}\n" for number in range(40_000))  # 480 000 characters


@tool(read_only=True)
async def book() -> str:
    """Give all of it."""
    return LONG


@tool(read_only=True)
async def note() -> str:
    """Give a little."""
    return "little"


@tool(read_only=True)
async def save(context: ToolContext, media_type: str) -> str:
    """Save a file."""
    return context.files.save("../my report?.csv", "a,b\n1,2\n", media_type)


def lived_with(*answers: Any, **more: Any) -> Lived:
    model = ScriptedModel(answers=[*answers, "done"])
    return live(Setting(model=model, tools=[book, note, save, read_result_tool()], **more))


def reads(**arguments: Any) -> Any:
    """Reads on in the result of the first call, or where it is told to."""

    def says(request: ModelRequest) -> Answer:
        first = next(message for message in request.messages if isinstance(message, ToolMessage))
        told = arguments if "file" in arguments or "call_id" in arguments else {"call_id": first.call_id, **arguments}
        return Answer(calls=(("read_result", told),))

    return says


def reads_the_saved(request: ModelRequest) -> Answer:
    name = next(message.text for message in request.messages if isinstance(message, ToolMessage))
    return called("read_result", file=name)


def called(name: str, **arguments: Any) -> Answer:
    return Answer(calls=((name, arguments),))


def page(lived: Lived) -> ToolResult:
    return next(result for result in lived.of(ToolResult) if result.name == "read_result")


def offered(lived: Lived) -> list[bool]:
    return ["read_result" in boundary.tools.names for boundary in lived.of(Boundary)]


def test_it_is_offered_from_the_round_after_the_first_cut_on_and_never_counts() -> None:
    lived = lived_with(called("note"), called("book"), reads(call_id="x"), called("note"))
    assert offered(lived) == [False, False, True, True, True]
    assert lived.state.spent.tool_calls == 3


def test_the_mark_names_how_to_read_on_and_that_gives_what_was_left_out() -> None:
    lived = lived_with(called("book"), reads(offset=15_000, limit=5_000))
    first = lived.of(ToolResult)[0]
    assert f'read_result(call_id="{first.call_id}", offset=15000)' in first.output
    assert first.output.startswith(LONG[:15_000] + "\n[… ")
    heading, _, text = page(lived).output.partition("\n")
    assert text == LONG[15_000:20_000]
    assert heading == f"[characters 15000 to 20000 of {len(LONG)}; the rest begins at offset 20000]"


@pytest.mark.parametrize("most", [1_000, 20_000])
def test_a_page_is_never_cut_itself(most: int) -> None:
    model = ScriptedModel(answers=[called("book"), reads(limit=50_000), "done"])
    compaction = Compaction(max_tool_output_chars=most)
    live(Setting(model=model, tools=[book, read_result_tool()], compaction=compaction))
    shown = model.requests[-1].messages[-1].text
    assert most - 100 <= len(shown) <= most
    assert "left out" not in shown


def test_all_pages_together_are_the_whole_text() -> None:
    def next_page(request: ModelRequest) -> Any:
        first, *pages = [message for message in request.messages if isinstance(message, ToolMessage)]
        at = sum(len(_text(message.text)) for message in pages)
        return "done" if at == len(LONG) else called("read_result", call_id=first.call_id, offset=at, limit=50_000)

    model = ScriptedModel(answers=[called("book"), *[next_page] * 10])
    limits = Limits(max_steps=None)
    shown = Compaction(max_tool_output_chars=60_000, clear_tool_results_after=0)
    live(Setting(model=model, tools=[book, read_result_tool()], compaction=shown, window=2_000_000, limits=limits))
    results = [message.text for message in model.requests[-1].messages if isinstance(message, ToolMessage)]
    assert "".join(map(_text, results[1:])) == LONG


def _text(page: str) -> str:
    return page.partition("\n")[2]


@pytest.mark.parametrize(
    "arguments, fault",
    [
        ({"call_id": "nobody"}, "No call 'nobody' has ended in this run."),
        ({"call_id": "a", "file": "b"}, "Give either call_id or file."),
        ({"call_id": "", "file": ""}, "Give either call_id or file."),
        ({"file": "../secret"}, "This run has no file '../secret'."),
        ({"offset": 10**9}, "nothing begins at offset 1000000000."),
    ],
)
def test_a_wrong_page_says_what_is_wrong(arguments: Any, fault: str) -> None:
    result = page(lived_with(called("book"), reads(**arguments)))
    assert not result.ok
    assert fault in result.output


def test_a_text_a_tool_has_saved_can_be_read_by_its_name() -> None:
    lived = lived_with(called("save", media_type="text/csv"), reads_the_saved)
    saved = lived.of(ToolResult)[0]
    assert [file.name for file in saved.files] == [saved.output] == [f"{saved.call_id}-.._my_report_.csv"]
    assert page(lived).output.endswith("a,b\n1,2\n")
    assert offered(lived)[:2] == [False, True]


def test_a_file_that_is_no_text_is_not_read_and_not_a_reason_to_offer_it() -> None:
    lived = lived_with(called("save", media_type="image/png"), called("book"), reads_the_saved)
    assert offered(lived) == [False, False, True, True]
    assert "is no text but image/png, 8 bytes" in page(lived).output


def test_a_media_type_that_could_not_be_a_header_is_not_kept() -> None:
    saved = lived_with(called("save", media_type="text/csv\r\nset-cookie: a=b")).of(ToolResult)[0]
    assert [file.media_type for file in saved.files] == ["application/octet-stream"]


def test_a_tool_with_a_smaller_cap_is_cut_there_and_whole_in_a_file() -> None:
    @tool(read_only=True, max_output=1_000)
    async def terse() -> ToolOutput:
        """Give more than it should."""
        return ToolOutput(text=LONG[:5_000])

    model = ScriptedModel(answers=[called("terse"), reads(offset=750, limit=400), "done"])
    lived = live(Setting(model=model, tools=[terse, read_result_tool()]))
    cut, read_on = lived.of(ToolResult)
    assert cut.model_chars == len(cut.output) <= 1_000
    assert [file.name for file in cut.files] == [f"{cut.call_id}.txt"]
    assert read_on.output.partition("\n")[2] == LONG[750:1_150]
