"""A history folded on request: when, by whom, and what happens where nobody can."""

import asyncio
from typing import Any

import pytest

from edge_agent import Agent, Compaction, Turn
from edge_agent.core.errors import ModelError, Refusal
from edge_agent.core.history import SUMMARY
from edge_agent.loop import prompts
from edge_agent.models.scripted import Answer, ScriptedModel
from tests.unit.http_fakes import Api, problem
from tests.unit.test_content import image, text

LONG = [Turn(role="user" if n % 2 == 0 else "assistant", text=f"turn {n} " + "of nets " * 3_000) for n in range(40)]


def agent(*answers: Any, **more: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(answers=[*answers])
    return Agent(name="clerk", model=model, **more), model


async def test_a_history_that_is_too_long_gets_one_summary() -> None:
    clerk, model = agent("they spoke of nets")
    made = await clerk.compact(LONG)
    assert made.compacted
    assert made.history == (Turn(role="assistant", text=f"{SUMMARY}they spoke of nets"), *LONG[-4:])
    assert made.summary == "they spoke of nets"
    assert made.after_tokens < made.before_tokens / 5
    request = model.requests[0]
    assert request.system == prompts.SUMMARISER
    assert request.thinking == "none"
    assert request.max_output_tokens == 1_024
    assert "earlier entries are left out" in request.messages[0].text
    assert "turn 35" in request.messages[0].text


async def test_one_that_fits_is_left_alone_unless_it_is_forced() -> None:
    short = LONG[:6]
    clerk, model = agent("a summary", compaction=Compaction(keep_recent_turns=1))
    made = await clerk.compact(short)
    assert (made.compacted, made.history, made.summary) == (False, tuple(short), None)
    assert not model.requests
    forced = await clerk.compact(short, force=True)
    assert (forced.compacted, len(forced.history)) == (True, 2)
    again = await clerk.compact(forced.history, force=True)
    assert not again.compacted, "nothing is older than the summary"
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "answer", [ModelError("unavailable", "it is down", retryable=True), "  ", Answer(text="half a", cut=True)]
)
async def test_where_no_summary_is_written_nothing_is_changed(answer: Any) -> None:
    clerk, _ = agent(answer)
    with pytest.raises(Refusal, match="nothing was changed") as refused:
        await clerk.compact(LONG)
    assert (refused.value.status, refused.value.code) == (503, "no_summary")


def test_it_is_asked_for_over_http() -> None:
    async def asked(body: Any) -> Any:
        return await Api().post("/v1/compact", body)

    turns = [{"role": "user", "text": "a"}, {"role": "assistant", "text": "b"}]
    forced = asyncio.run(asked({"history": turns, "force": True})).json()
    assert forced == {
        "history": [{"role": "assistant", "text": f"{SUMMARY}they met"}, turns[1]],
        "summary": "they met",
        "before_tokens": 9,
        "after_tokens": 5,
        "compacted": True,
    }
    left = asyncio.run(asked({"history": turns})).json()
    assert left == {"history": turns, "before_tokens": 9, "after_tokens": 9, "compacted": False}
    pictured = {"role": "user", "parts": [text("see"), image()]}
    kept = asyncio.run(asked({"history": [turns[0], turns[1], pictured], "force": True})).json()
    assert kept["history"] == [forced["history"][0], pictured], "in the form it was sent in, bytes included"
    tool_turn = {"role": "tool", "text": "x"}
    bodies: list[dict[str, Any]] = [{}, {"history": []}, {"history": turns, "force": "yes"}, {"history": [tool_turn]}]
    for wrong in bodies:
        problem(asyncio.run(asked(wrong)), 422, "invalid_request")
    problem(asyncio.run(asked({"history": [{"role": "user", "text": "down"}]})), 503, "no_summary")
