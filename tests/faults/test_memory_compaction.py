"""Runs that outgrow their window, killed and cancelled at each of their records: no summary is paid for twice."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from edge_agent.core.compaction import Compaction
from edge_agent.core.errors import ModelError
from edge_agent.core.events import ContextCompacted, ModelAnswered
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage, Turn
from edge_agent.core.model import ModelRequest
from edge_agent.loop import prompts
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from edge_agent.testing import Kill
from tests.conftest import Figure
from tests.faults.memory_laws import check, compare, told
from tests.faults.memory_world import Person, Scenario, World

WINDOW = 2_400
SAID = "nets, ropes, a barge and an anchor of the harbour " * 8
HISTORY = tuple(Turn(role="user" if n % 2 == 0 else "assistant", text=f"turn {n}: {SAID}") for n in range(12))
MOST = 11  # rounds


def says(request: ModelRequest) -> Answer:
    """Says in each round how far it is: read off what it is shown, so that any difference in that shows."""
    shown = "\n".join(message.text for message in request.messages)
    if request.system == prompts.SUMMARISER:
        return Answer(text=f"summed up until round {max([0, *_rounds(shown)])}")
    at = max([0, *_rounds(shown)]) + 1
    if at > MOST or not request.tools:
        return Answer(text=f"done after {at - 1} rounds of {shown.count('turn ')} turns")
    return Answer(text=f"round {at} {SAID}", calls=(("pay" if at % 3 == 0 else "read", {"q": str(at)}),))


def _rounds(shown: str) -> list[int]:
    return [int(number) for number in re.findall(r"round (\d+)", shown)]


def plans(request: ModelRequest) -> Answer:
    shown, stage = "\n".join(message.text for message in request.messages), (request.metadata or {}).get("stage", "")
    if stage == "plan":
        names = [f"part {letter} {SAID[:80]}" for letter in "abcde"]
        return Answer(text=json.dumps({"thought": "", "steps": [{"id": n[:6], "description": n} for n in names]}))
    if stage == "compact":
        found = sorted(set(re.findall(r"part [a-e] is done", shown)))
        return Answer(text=f"so far: {', '.join(found)}")
    if stage == "final":
        return Answer(text=f"answered from {len(set(re.findall(r'part [a-e] is done', shown)))} parts")
    part = re.findall(r"# Your step \(\d+\)\n(part [a-e])", shown)[-1]
    if not any(isinstance(message, AssistantMessage) for message in request.messages[-2:]):
        return Answer(calls=(("read", {"q": part}),))
    return Answer(text=f"{part} is done. {SAID * 2}")


def blocked(request: ModelRequest) -> Answer:
    """Every step ends blocked with a long report, which the replanner sees first."""
    if (request.metadata or {}).get("stage") == "replan":
        return Answer(text=json.dumps({"mode": "continue", "reason": "the next one may do"}))
    answer = plans(request)
    return Answer(text=f"{answer.text} {SAID * 5}{prompts.BLOCKED}") if " is done. " in answer.text else answer


DIRECT = Scenario(
    name="rounds and a history that outgrow the window",
    says=says,
    limits=Limits(max_steps=20),
    window=WINDOW,
    history=HISTORY,
    compaction=Compaction(keep_recent_steps=2, keep_recent_turns=2, summary_max_tokens=64),
)
PLANNED = Scenario(
    name="steps that outgrow the window",
    mode="planned",
    says=plans,
    window=1_800,
    compaction=Compaction(keep_recent_steps=1, summary_max_tokens=64),
)
REPLANNED = replace(PLANNED, name="steps that outgrow the window of the replanner", says=blocked, window=2_400)
DOWN = ModelError("unavailable", "the model is down", retryable=True)
RETRIED = replace(
    REPLANNED,
    name="a replanner that is down after it was folded for",
    failing={f"s{number}/replan/a0": DOWN for number in range(1, 6)},
)
TOO_LONG = ModelError("context-overflow", "the prompt is too long", retryable=False)
OVERFLOWING = Scenario(
    name="a provider that says too long",
    says=says,
    limits=Limits(max_steps=20),
    window=20_000,
    history=HISTORY,
    failing={"s1/r5/a0": TOO_LONG, "s1/r8/a0": TOO_LONG},
    same_when_lost=False,  # the next attempt is not too long
)
DROPPING = Scenario(
    name="summaries that cannot be had",
    says=says,
    limits=Limits(max_steps=20),
    window=WINDOW,
    compaction=Compaction(keep_recent_steps=2, summary_max_tokens=64),
    same_when_lost=False,
    failing={f"s1/r{number}/compact/a0": ModelError("refused", "no", retryable=False) for number in range(1, MOST + 2)},
)


def scopes(world: World) -> Counter[str]:
    return Counter(record.event.scope for record in world.records if isinstance(record.event, ContextCompacted))


def test_the_scenarios_fold_what_they_are_about() -> None:
    direct, planned, overflowing = (World(scenario).lived() for scenario in (DIRECT, PLANNED, OVERFLOWING))
    assert scopes(direct)["rounds"] >= 2
    assert scopes(direct)["history"] >= 1
    assert scopes(planned)["trace"] >= 2
    assert scopes(overflowing)["overflow"] == 2
    assert direct.state.text == f"done after {MOST} rounds of 2 turns"
    assert planned.state.text == "answered from 5 parts"
    reasons = [r.event.reason for r in World(DROPPING).lived().records if isinstance(r.event, ContextCompacted)]
    assert any(reasons)
    for scenario in (REPLANNED, RETRIED):
        assert any("/replan/compacted" in record.key for record in World(scenario).lived().records)


@pytest.mark.parametrize(
    "scenario", [DIRECT, PLANNED, REPLANNED, RETRIED, OVERFLOWING, DROPPING], ids=lambda scenario: scenario.name
)
def test_killed_at_every_record_it_folds_the_same_and_ends_the_same(scenario: Scenario, figure: Figure) -> None:
    calm = World(scenario, followers=True).lived()
    check(calm)
    assert calm.records[-1].type == "run.completed"
    points = unknown = 0
    for append in range(1, calm.appends + 1):
        for when in ("before", "after"):
            points += 1
            world = World(scenario, [Kill(append, when)]).lived()
            unknown += compare(calm, world)
            assert _summaries(world) <= _summaries(calm) + 1
    figure(f"{scenario.name}: {points} kills, {unknown} with an unknown outcome; folded {dict(scopes(calm))}")


def _summaries(world: World) -> int:
    return sum(isinstance(r.event, ModelAnswered) and r.event.stage == "compact" for r in world.records)


def cancels(inbox: Inbox) -> object:
    return inbox.cancel("enough")


def resumes(inbox: Inbox) -> object:
    return inbox.resume()


@pytest.mark.parametrize("scenario", [DIRECT, PLANNED], ids=lambda scenario: scenario.name)
def test_cancelled_at_every_record_and_resumed_it_goes_on_and_pays_for_no_summary_twice(scenario: Scenario) -> None:
    calm = World(scenario).lived()
    for seq in range(2, len(calm.records), 3):
        world = World(scenario, people=[Person(seq, cancels, 0.05), Person("end/0", resumes, 1.0)]).lived()
        check(world)
        assert world.records[-1].type == "run.completed", (seq, world.records[-1].event)
        made = Counter(record.key for record in world.records if isinstance(record.event, ContextCompacted))
        assert set(made.values()) <= {1}
        assert told(world).keys() >= {key for key in told(calm) if "/compacted" in key} or world.state.life == 1
