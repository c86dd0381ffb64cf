"""Fitting the window: what is folded, when, and what every request looks like after it."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from edge_agent import Compaction, tool
from edge_agent.core.errors import ModelError
from edge_agent.core.events import (
    Boundary,
    ContextCompacted,
    ModelAnswered,
    ModelRefused,
    ModelRequested,
    StepCompleted,
)
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage, ToolMessage, Turn, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Usage
from edge_agent.loop import prompts
from edge_agent.loop.estimates import estimated_input
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.parts import Older
from edge_agent.loop.summary import summary_request
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill
from tests.conftest import Figure
from tests.unit.loop_kit import Lived, Setting, live

WINDOW = 8_000
NEVER_CLEARED = Compaction(clear_tool_results_after=0)
NOTES = "The ledger of the harbour lists nets, ropes and a barge; nothing else of note was found there. " * 30


@tool(read_only=True)
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: {NOTES}"


def is_summary(request: ModelRequest) -> bool:
    return request.system == prompts.SUMMARISER


def reads(pages: int, summary: Callable[[ModelRequest], Any] = lambda request: "a summary of it") -> ScriptedModel:
    """A model that reads page after page, and sums up where it is asked to."""
    at = 0

    def says(request: ModelRequest) -> Any:
        nonlocal at
        if is_summary(request):
            return summary(request)
        if not request.tools or at == pages:
            return "that is all"
        at += 1
        return Answer(calls=(("read", {"page": at}),))

    return ScriptedModel(answers=[says] * (3 * pages + 10))


def rounds_of(model: ScriptedModel) -> list[ModelRequest]:
    return [request for request in model.requests if not is_summary(request)]


def lived_with(model: ScriptedModel, **more: Any) -> Lived:
    fields: dict[str, Any] = {"limits": Limits(max_steps=None), "window": WINDOW, **more}
    return live(Setting(model=model, tools=[read], **fields))


def folds(lived: Lived, *scopes: str) -> list[ContextCompacted]:
    return [event for event in lived.of(ContextCompacted) if event.scope in scopes]


# -- rounds
def test_a_run_of_many_rounds_stays_within_its_window(figure: Figure) -> None:
    model = reads(60)
    lived = lived_with(model)
    assert lived.state.text == "that is all"
    assert max(estimated_input(request) for request in model.requests) <= WINDOW
    assert len(rounds_of(model)) == 61
    summaries = folds(lived, "rounds")
    figure(
        f"61 rounds in a window of {WINDOW}: {len(summaries)} summaries, {len(folds(lived, 'tool-results'))} clearings"
    )
    assert 1 <= len(summaries) <= 20
    assert all(event.after_tokens < event.before_tokens for event in summaries)
    replaced = [key for event in summaries for key in event.replaces]
    assert replaced == [f"s1/r{number}" for number in range(1, len(replaced) + 1)]


def test_the_prompt_begins_as_the_one_before_but_where_something_was_folded_or_cleared() -> None:
    model = reads(60)
    lived = lived_with(model)
    changed = 0
    requests = rounds_of(model)
    for before, after in itertools.pairwise(requests):
        assert after.system == before.system
        changed += after.messages[: len(before.messages)] != before.messages
    assert changed == len(folds(lived, "rounds")) + len(folds(lived, "tool-results")) < 30


def test_the_summary_takes_in_the_one_before_and_the_request_stays() -> None:
    shown: list[str] = []

    def sums_up(request: ModelRequest) -> str:
        shown.append(request.messages[-1].text)
        return f"summary number {len(shown)}"

    model = reads(60, sums_up)
    lived_with(model, input="what is in the ledger?", compaction=NEVER_CLEARED)
    assert len(shown) > 2
    assert all("what is in the ledger?" in text for text in shown)
    assert "summary number 1" in shown[1]
    assert "summary number 2" in shown[2]
    last = rounds_of(model)[-1].messages
    assert last[0].text.startswith("what is in the ledger?")
    assert f"summary number {len(shown)}" in last[0].text


def test_a_call_and_its_result_are_never_parted_and_the_newest_rounds_stay_whole() -> None:
    model = reads(40)
    lived_with(model, compaction=NEVER_CLEARED)
    for request in rounds_of(model):
        calls = [call.id for m in request.messages if isinstance(m, AssistantMessage) for call in m.calls]
        results = [m.call_id for m in request.messages if isinstance(m, ToolMessage)]
        assert calls == results
        assert len(calls) >= min(3, len(calls))
        assert all(NOTES in m.text for m in request.messages if isinstance(m, ToolMessage))


def test_a_run_that_never_compacts_has_the_prompts_it_would_have_had_without() -> None:
    runs = [reads(5), reads(5)]
    on = lived_with(runs[0], window=128_000)
    off = lived_with(runs[1], window=128_000, compaction=Compaction(auto=False))
    assert runs[0].requests == runs[1].requests
    assert [e.prompt_hash for e in on.of(ModelRequested)] == [e.prompt_hash for e in off.of(ModelRequested)]
    assert on.all_keys() == off.all_keys()


def test_a_summary_is_a_call_that_is_counted_and_written_by_the_synthesizers_model() -> None:
    model = reads(20, lambda request: Answer(text="a summary", usage=Usage(input=900, output=40)))
    lived = lived_with(model, compaction=NEVER_CLEARED)
    asked = [event for event in lived.of(ModelRequested) if event.stage == "compact"]
    answered = [event for event in lived.of(ModelAnswered) if event.stage == "compact"]
    assert asked
    assert lived.state.usage.output == 5 * len(rounds_of(model)) + 40 * len(answered)
    assert all(event.output_cap == 1_000 for event in asked)
    summaries = [request for request in model.requests if is_summary(request)]
    assert all(request.thinking == "none" and not request.tools for request in summaries)
    assert all(estimated_input(request) <= 0.6 * WINDOW for request in summaries)


@pytest.mark.parametrize("said", [ModelError("bad-request", "no", retryable=False), "", "   "])
def test_where_no_summary_can_be_had_the_rounds_are_dropped_and_a_marker_says_so(said: Any) -> None:
    model = reads(40, lambda request: said)
    lived = lived_with(model, compaction=NEVER_CLEARED)
    assert lived.state.text == "that is all"
    events = folds(lived, "rounds")
    assert events
    assert all(event.reason for event in events)
    assert "earlier rounds are left out here" in rounds_of(model)[-1].messages[0].text
    assert max(estimated_input(request) for request in model.requests) <= WINDOW


def test_nothing_is_summed_up_or_cleared_where_it_is_off() -> None:
    model = reads(40)
    lived = lived_with(model, compaction=Compaction(auto=False))
    assert not lived.of(ContextCompacted)
    assert lived.error.code == "context-overflow"
    assert "context window of 8000" in lived.error.message
    assert lived.of(ModelRefused)[-1].stop == "context-overflow"
    assert max(estimated_input(request) for request in model.requests) <= WINDOW


def test_what_people_said_in_rounds_that_are_folded_stays_word_for_word() -> None:
    model = reads(40)

    def writes(inbox: Inbox) -> None:
        inbox.message("m1", "mind the barge, please")

    lived = lived_with(model, acts={"s1/r2": writes}, compaction=NEVER_CLEARED)
    assert folds(lived, "rounds")
    requests = rounds_of(model)
    assert "mind the barge, please" in requests[2].messages[-1].text
    assert all(str(request.messages).count("mind the barge, please") == 1 for request in requests[2:])
    assert "# The user has said meanwhile\n- mind the barge" in requests[-1].messages[0].text


# -- results of tools
def test_older_results_become_lines_once_they_take_a_quarter_of_the_window() -> None:
    model = reads(9)
    lived = lived_with(model, window=16_000)
    clearings = folds(lived, "tool-results")
    assert clearings
    assert not folds(lived, "rounds")
    last = [m for m in rounds_of(model)[-1].messages if isinstance(m, ToolMessage)]
    stubs = [m for m in last if m.text.startswith("[the result of read, ")]
    assert len(stubs) == sum(len(event.replaces) for event in clearings) >= 3
    assert last[: len(stubs)] == stubs
    assert all(NOTES in m.text for m in last[-3:])
    boundary = next(event for event in lived.of(Boundary) if event.cleared)
    assert boundary.cleared[0] == "s1/r1/c0"


def test_results_that_no_model_has_seen_yet_are_not_cleared() -> None:
    def says(request: ModelRequest) -> Any:
        turn = sum(isinstance(m, AssistantMessage) for m in request.messages)
        return Answer(calls=tuple(("read", {"page": 10 * turn + n}) for n in range(6))) if turn < 2 else "done"

    model = ScriptedModel(answers=[says] * 10)
    lived_with(model, window=32_000, compaction=Compaction(clear_tool_results_after=0.05, keep_tool_results=1))
    results = [m for m in model.requests[2].messages if isinstance(m, ToolMessage)]
    assert [NOTES in m.text for m in results] == [False] * 6 + [True] * 6


def test_of_a_long_result_a_model_sees_head_and_tail_or_all_of_it() -> None:
    @tool(read_only=True)
    async def long() -> str:
        """Give much."""
        return "a" * 40_000 + "z" * 60_000

    def seen(most: int) -> str:
        model = ScriptedModel(answers=[Answer(calls=(("long", {}),)), "done"])
        live(Setting(model=model, tools=[long], compaction=Compaction(max_tool_output_chars=most)))
        return model.requests[1].messages[-1].text

    assert len(seen(0)) == 100_000
    assert 1_800 <= len(short := seen(2_000)) <= 2_000
    assert (short[0], short[-1]) == ("a", "z")
    assert "characters left out" in short


# -- the earlier conversation
HISTORY = tuple(
    Turn(role="user" if number % 2 == 0 else "assistant", text=f"turn {number}: {NOTES[:1_500]}")
    for number in range(30)
)


@pytest.mark.parametrize("mode", ["direct", "planned"])
def test_a_long_history_is_summed_up_before_the_first_call_and_the_state_shows_it(mode: Any) -> None:
    def says(request: ModelRequest) -> Any:
        stage = (request.metadata or {}).get("stage")
        if stage == "plan":
            return json.dumps({"thought": "", "steps": [{"id": "a", "description": "answer"}]})
        return "they spoke of ledgers" if is_summary(request) else "done"

    model = ScriptedModel(answers=[says] * 8)
    before = list(HISTORY)
    lived = live(Setting(model=model, window=WINDOW, history=HISTORY, mode=mode))
    assert lived.state.status == "completed"
    assert list(HISTORY) == before
    assert is_summary(model.requests[0])
    assert "turn 25" in model.requests[0].messages[-1].text
    summary = "Summary of the earlier conversation:\nthey spoke of ledgers"
    assert lived.state.compacted_history == (Turn(role="assistant", text=summary), *HISTORY[-4:])
    for request in rounds_of(model):
        assert request.messages[0] == AssistantMessage(text=summary)
        assert request.messages[1] == UserMessage(text=HISTORY[26].text)
    assert [event.turns for event in folds(lived, "history")] == [26]
    assert max(estimated_input(request) for request in model.requests) <= WINDOW


def test_a_history_that_fits_stays_as_it_is() -> None:
    model = ScriptedModel(answers=["done"])
    lived = live(Setting(model=model, history=HISTORY))
    assert lived.state.compacted_history is None
    assert len(model.requests[0].messages) == 31


def test_an_earlier_summary_is_folded_in_and_alone_it_stands() -> None:
    earlier = Turn(role="assistant", text="Summary of the earlier conversation:\nthey met in Rome")
    model = ScriptedModel(answers=["they met in Rome and spoke", "done"])
    live(Setting(model=model, window=WINDOW, history=(earlier, *HISTORY)))
    assert "they met in Rome" in model.requests[0].messages[-1].text or len(model.requests) == 2
    short = tuple(Turn(role=turn.role, text=turn.text * 4) for turn in HISTORY[:4])
    alone = ScriptedModel(answers=["done"])
    lived = live(Setting(model=alone, window=WINDOW, history=(earlier, *short)))
    assert not lived.of(ContextCompacted)


# -- the steps of a plan
def planning(steps: int, summary: str = "steps were made") -> ScriptedModel:
    def says(request: ModelRequest) -> Any:
        stage = (request.metadata or {}).get("stage", "round")
        if stage == "plan":
            entries = [{"id": f"p{n}", "description": f"look into part {n}"} for n in range(steps)]
            return json.dumps({"thought": "", "steps": entries})
        if stage == "round" and not isinstance(request.messages[-1], ToolMessage):
            return Answer(calls=(("read", {"page": 1}),))
        return {"compact": summary, "replan": '{"mode": "continue", "reason": "", "steps": []}'}.get(
            stage, f"found it. {NOTES[:900]}"
        )

    return ScriptedModel(answers=[says] * 200)


def stage_of(request: ModelRequest) -> str:
    return (request.metadata or {}).get("stage", "round")


@pytest.mark.parametrize("after", [0.2, None])
def test_a_step_that_is_cancelled_while_the_history_is_summed_up_drops_nothing_of_it(after: float | None) -> None:
    """Later steps, and the answer, begin with all of it; also where the object dies just after the cancel."""

    def says(request: ModelRequest) -> Any:
        stage = (request.metadata or {})["stage"]
        if stage == "plan":
            return json.dumps({"thought": "", "steps": [{"id": "a", "description": "look"}]})
        if stage == "compact":
            return Answer(text="a summary", delay=0.1)
        if stage == "replan":
            return json.dumps({"reason": "", "mode": "finish", "steps": []})
        return "the answer" if stage == "final" else Answer(calls=(("read", {"page": len(request.messages)}),))

    def cancels_the_step(inbox: Inbox) -> None:
        asyncio.get_running_loop().call_later(after or 0.0, inbox.cancel_step)

    history = tuple(Turn(role="user", text=f"turn {number}: {NOTES[:900]}") for number in range(16))
    model = ScriptedModel(answers=[says] * 30)
    asked = "s1/r4/compact/a0"
    lived = lived_with(
        model,
        mode="planned",
        history=history,
        compaction=Compaction(keep_recent_steps=9, clear_tool_results_after=0),
        acts={asked: cancels_the_step},
        kills=() if after else [Kill(24, "after")],
    )
    assert asked in lived.all_keys()
    assert not folds(lived, "history", "trace", "rounds")
    assert [event.stop for event in lived.of(StepCompleted)] == ["cancelled"]
    assert lived.state.text == "the answer"
    final = rounds_of(model)[-1].messages
    assert [message.text for message in final[:-1]] == [turn.text for turn in history]


@pytest.mark.parametrize("end", ["🚢", "\u6f22\u5b57", "aGk3Zx9Q", "harbour "])
@pytest.mark.parametrize("room", [500, 1_000, WINDOW])
def test_of_a_piece_that_is_too_long_the_summary_sees_the_end_however_dense_it_is(end: str, room: int) -> None:
    for piece in ("nets and ropes " * 9_000 + end * 4_000, end * 40_000):
        request = summary_request("what", Older(pieces=["before", piece], earlier=""), room)
        assert estimated_input(request) <= 0.6 * room
        assert request.messages[0].text.count(end.strip()) >= 1


def test_older_steps_are_summed_up_before_any_stage_and_the_newest_stay_in_full() -> None:
    model = planning(8)
    lived = lived_with(model, mode="planned", replan="always", window=7_000)
    assert lived.state.status == "completed"
    events = folds(lived, "trace")
    assert events
    assert [key for event in events for key in event.replaces] == [
        f"s{n}" for n in range(1, 1 + sum(len(event.replaces) for event in events))
    ]
    assert max(estimated_input(request) for request in model.requests) <= 7_000
    final = next(request for request in model.requests if stage_of(request) == "final").messages[-1].text
    assert "## Earlier steps, summed up\nsteps were made" in final
    assert "## Step 1:" not in final
    assert all(f"## Step {number}:" in final for number in (6, 7, 8))
    assert final.count("## Earlier steps") == 1
    assert all(step.summary.startswith("found it.") for step in lived.state.steps), "the log keeps everything"


def test_in_a_step_its_rounds_are_folded_first_and_the_briefing_stays() -> None:
    def says(request: ModelRequest) -> Any:
        if stage_of(request) == "plan":
            return json.dumps({"thought": "", "steps": [{"id": "a", "description": "read it all"}]})
        if stage_of(request) in ("compact", "final"):
            return "summed up"
        calls = [call for m in request.messages if isinstance(m, AssistantMessage) for call in m.calls]
        page = calls[-1].arguments["page"] + 1 if calls else 1
        return Answer(calls=(("read", {"page": page}),)) if page <= 20 else "done"

    model = ScriptedModel(answers=[says] * 60)
    limits = Limits(max_steps_per_task=30)
    lived = lived_with(model, mode="planned", limits=limits, compaction=NEVER_CLEARED)
    assert lived.state.text == "summed up"
    inside = [r.event for r in lived.records if isinstance(r.event, ContextCompacted) and r.key.startswith("s1/")]
    assert {event.scope for event in inside} == {"rounds"}
    assert "final/overflow" in lived.all_keys(), "a report of twenty findings is longer than the window"
    last = [request for request in model.requests if stage_of(request) == "round"][-1]
    assert "# Your step (1)\nread it all" in last.messages[0].text
    assert prompts.rounds_so_far("summed up") in last.messages[0].text
