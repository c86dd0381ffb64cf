"""A request that is longer than the window of its model: folded harder, once, and then a failure that says so."""

import json
from typing import Any

import pytest

from edge_agent import Compaction, tool
from edge_agent.core.errors import ModelError
from edge_agent.core.events import Boundary, ContextCompacted, Mode, ModelFailed, ModelRefused, RunCompleted
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage, ToolMessage, Turn
from edge_agent.core.model import ModelRequest
from edge_agent.loop import prompts
from edge_agent.loop.estimates import estimated_input
from edge_agent.models.scripted import Answer, ScriptedModel
from tests.unit.loop_kit import Lived, Setting, live, resumes

WORDS = "the ledger of the harbour lists nets, ropes and a barge "


@tool(read_only=True)
async def read(page: int, times: int) -> str:
    """Read a page."""
    return f"page {page}: {WORDS * times}"


def reading(window: int, *pages: int, says: str = "that is all") -> ScriptedModel:
    """A model with a window of its own that reads pages of such lengths, and refuses what is too long for it."""

    def answer(request: ModelRequest) -> Any:
        if estimated_input(request) > window:
            return ModelError("context-overflow", "the prompt is too long", retryable=False)
        if request.system == prompts.SUMMARISER:
            return "a summary"
        done = answer_count(request)
        if done >= len(pages):
            return says
        return Answer(calls=(("read", {"page": done, "times": pages[done]}),))

    return ScriptedModel(answers=[answer] * 60)


def answer_count(request: ModelRequest) -> int:
    shown = sum(isinstance(m, AssistantMessage) for m in request.messages)
    return shown + (prompts.rounds_so_far("")[:20] in request.messages[0].text) * 3


def lived_with(model: ScriptedModel, **more: Any) -> Lived:
    return live(Setting(model=model, tools=[read], limits=Limits(max_steps=None), **more))


def test_a_provider_that_says_too_long_is_asked_once_more_with_less() -> None:
    lived = lived_with(reading(6_000, 100, 100, 100, 100, 100))
    assert lived.state.text == "that is all"
    assert [event.error for event in lived.of(ModelFailed)] == ["context-overflow"]
    told = [event for event in lived.of(ContextCompacted) if event.scope == "overflow"]
    assert len(told) == 1
    assert told[0].after_tokens < told[0].before_tokens
    keys = lived.all_keys()
    at = keys.index("s1/r5/overflow")
    assert keys[at - 1] == "s1/r5/a0/end"
    assert "s1/r5/compact/a0" in keys
    assert "s1/r5/compacted" in keys
    assert "s1/r5/a1" in keys
    assert "s1/r5/compacted1" not in keys


def test_where_it_is_still_too_long_the_run_fails_and_says_what_to_do() -> None:
    model = reading(6_000, 100, 100)
    lived = live(
        Setting(model=model, tools=[read], input=WORDS * 800, limits=Limits(max_steps=None)),
    )
    assert lived.error.code == "context-overflow"
    assert "larger context window" in lived.error.remedy
    assert len(model.requests) == 1, "nothing could be folded, so it was not asked again"


def test_a_request_that_is_known_to_be_too_long_is_never_sent() -> None:
    model = reading(8_000, 300, 900)
    lived = lived_with(model, window=8_000, compaction=Compaction(clear_tool_results_after=0))
    assert lived.state.text == "that is all"
    assert [event.stop for event in lived.of(ModelRefused)] == ["context-overflow"]
    assert not lived.of(ModelFailed)
    assert max(estimated_input(request) for request in model.requests) <= 8_000
    boundary = next(event for event in lived.of(Boundary) if event.clipped)
    shown = [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]
    assert all(len(text) <= (boundary.clipped or 0) + 60 for text in shown)


def test_a_request_that_nothing_can_shorten_fails_without_a_call() -> None:
    model = reading(8_000, 10)
    lived = lived_with(model, window=8_000, input=WORDS * 900)
    assert lived.error.code == "context-overflow"
    assert not model.requests


def test_a_failed_run_is_resumed_and_does_not_pay_for_its_summary_again() -> None:
    tried = 0

    def says(request: ModelRequest) -> Any:
        nonlocal tried
        if request.system == prompts.SUMMARISER:
            return "a summary"
        turn = sum(isinstance(m, AssistantMessage) for m in request.messages)
        if prompts.rounds_so_far("a summary") in request.messages[0].text:
            tried += 1
            return "done" if tried > 1 else ModelError("bad-request", "not today", retryable=False)
        return Answer(calls=(("read", {"page": turn, "times": 100}),))

    model = ScriptedModel(answers=[says] * 30)
    lived = lived_with(model, window=8_000, compaction=Compaction(clear_tool_results_after=0), acts={"end/0": resumes})
    assert lived.state.text == "done"
    assert lived.state.life == 1
    assert sum(request.system == prompts.SUMMARISER for request in model.requests) == 1


@pytest.mark.parametrize("stage", ["plan", "final"])
def test_a_stage_of_a_planned_run_is_folded_harder_too(stage: str) -> None:
    refused = 0

    def says(request: ModelRequest) -> Any:
        nonlocal refused
        mine = (request.metadata or {}).get("stage", "round")
        if mine == stage and not refused:
            refused += 1
            return ModelError("context-overflow", "the prompt is too long", retryable=False)
        if mine == "plan":
            return json.dumps({"thought": "", "steps": [{"id": "a", "description": "look"}]})
        return "a summary" if mine == "compact" else "done"

    history = tuple(Turn(role="user", text=f"{number} {WORDS}") for number in range(6))
    model = ScriptedModel(answers=[says] * 9)
    lived = live(Setting(model=model, mode="planned", history=history))
    assert lived.state.text == "done"
    assert lived.state.compacted_history is not None
    assert len(lived.state.compacted_history) == 1
    assert f"{stage}/overflow" in lived.all_keys()


@pytest.mark.parametrize("mode", ["direct", "planned"])
def test_an_answer_that_has_to_be_mended_is_asked_for_with_less_too(mode: Mode) -> None:
    """The call that mends it sends the answer and what is wrong with it on top of all the rest."""

    def says(request: ModelRequest) -> Any:
        stage = (request.metadata or {})["stage"]
        if stage == "plan":
            return json.dumps({"thought": "", "steps": [{"id": "a", "description": "look"}]})
        if stage == "compact":
            return "a summary"
        mended = "That could not be used" in request.messages[-1].text
        if mended and len(request.messages) > 6:
            return ModelError("context-overflow", "the prompt is too long", retryable=False)
        return json.dumps({"seats": 3}) if mended else "three seats"

    history = tuple(Turn(role="user", text=f"{number} {WORDS}") for number in range(8))
    schema = {"type": "object", "properties": {"seats": {"type": "integer"}}}
    model = ScriptedModel(answers=[says] * 20)
    lived = live(Setting(model=model, mode=mode, history=history, output_schema=schema))
    end = lived.end
    assert isinstance(end, RunCompleted), end
    assert end.output == {"seats": 3}
    scope = "output" if mode == "direct" else "final"
    assert {f"{scope}/mend0/overflow", f"{scope}/mend0/compacted", f"{scope}/mend0/a1"} <= {*lived.all_keys()}
    assert model.requests[-1].messages[-2].text == "three seats"
