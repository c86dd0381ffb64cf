"""Whoever joins is told everything once: what was, what open parts have said, what comes."""

from collections.abc import Sequence

import pytest

from edge_agent.core.events import (
    Fault,
    ModelAnswered,
    ModelFailed,
    RunStarted,
    StepReasoningDelta,
    StepTextDelta,
    ToolProgress,
)
from edge_agent.core.hub import Hub, Item
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import AssistantMessage
from edge_agent.core.ports import Record
from edge_agent.core.usage import Usage
from edge_agent.testing import Follower, in_memory_log
from tests.contracts.log_contract import created


class Clock:
    def now(self) -> int:
        return 1_000_000


def begun() -> tuple[Hub, Journal]:
    hub = Hub()
    journal = Journal(in_memory_log(), Clock(), hub)
    journal.append("note", Draft(key="run", event=created()))
    journal.append("note", Draft(key="life/0", event=RunStarted(reason="created")))
    return hub, journal


def text(delta: str, offset: int, part: str = "s1/r1/a0") -> StepTextDelta:
    return StepTextDelta(part=part, offset=offset, delta=delta, step=1)


def thought(delta: str, offset: int) -> StepReasoningDelta:
    return StepReasoningDelta(part="s1/r1/a0", offset=offset, delta=delta, step=1)


def answered(said: str) -> ModelAnswered:
    return ModelAnswered(
        stage="round",
        message=AssistantMessage(text=said),
        finish_reason="stop",
        usage=Usage(),
        estimated=False,
        latency_ms=1,
    )


def keys(items: Sequence[Item]) -> list[str]:
    return [item.key if isinstance(item, Record) else item.type for item in items]


def test_a_late_joiner_is_told_what_it_missed_then_what_open_parts_said_then_what_comes() -> None:
    hub, journal = begun()
    hub.passing(thought("Let me", 0))
    hub.passing(text("Sun", 0))
    hub.passing(text("ny", 3))
    told: list[Item] = []
    leave = hub.join(journal, 1, told.extend)
    assert keys(told) == ["life/0", "step.reasoning-delta", "step.text-delta"]
    assert told[-1] == text("Sunny", 0)
    hub.passing(text(".", 5))
    assert told[-1] == text(".", 5)
    journal.append("loop", Draft(key="s1/r1/a0/end", event=answered("Sunny.")))
    assert hub.open_parts() == []
    leave()
    leave()
    hub.passing(text("more", 0, "s1/r2/a0"))
    assert keys(told)[-1] == "s1/r1/a0/end"


def test_a_failed_attempt_tells_clients_to_clear_its_part() -> None:
    hub, journal = begun()
    told: list[Item] = []
    hub.follow(told.extend)
    hub.passing(text("half", 0))
    failed = ModelFailed(stage="round", attempt=0, error="stalled", message="", retryable=True, usage=Usage())
    journal.append("loop", Draft(key="s1/r1/a0/end", event=failed))
    assert keys(told) == ["step.text-delta", "s1/r1/a0/end", "retry"]
    assert hub.open_parts() == []


def test_progress_passes_and_is_not_kept() -> None:
    hub, _ = begun()
    told: list[Item] = []
    hub.follow(told.extend)
    hub.passing(ToolProgress(call_id="c", progress=1, step=1, round=1))
    assert keys(told) == ["tool.progress"]
    assert hub.open_parts() == []


def test_a_follower_who_raises_harms_nobody() -> None:
    hub, journal = begun()
    told: list[Item] = []

    def broken(items: Sequence[Item]) -> None:
        raise BrokenPipeError

    hub.follow(broken)
    hub.follow(told.extend)
    journal.append("note", Draft(key="note", event=Fault(kind="tool", message="", action="continued")))
    assert keys(told) == ["note"]


def test_one_who_leaves_while_being_told_disturbs_nobody() -> None:
    hub, journal = begun()
    told: list[Item] = []

    def once(items: Sequence[Item]) -> None:
        if told:
            leave()

    leave = hub.join(journal, 0, once)
    hub.follow(told.extend)
    hub.passing(text("a", 0))
    hub.passing(text("b", 1))
    hub.passing(text("c", 2))
    assert len(told) == 3


# -- the follower of tests itself
def test_a_follower_says_what_it_missed_and_what_it_heard_wrongly() -> None:
    hub, journal = begun()
    follower = Follower(after=1)
    follower.join(hub, journal)
    hub.passing(text("Sun", 0))
    hub.passing(text("y", 4))
    journal.append("loop", Draft(key="s1/r1/a0/end", event=answered("Sunny")))
    with pytest.raises(AssertionError, match="a gap in s1/r1/a0: 4 after 3; the text of s1/r1/a0 differs"):
        follower.assert_heard_all(journal.in_order())
    deaf = Follower()
    deaf.tell(journal.in_order()[1:])
    with pytest.raises(AssertionError, match="record 2 after 0"):
        deaf.assert_heard_all(journal.in_order())
    with pytest.raises(AssertionError, match="heard up to 0 of 3"):
        Follower().assert_heard_all(journal.in_order())


def test_a_follower_hears_a_whole_part_and_clears_one_that_failed() -> None:
    hub, journal = begun()
    follower = Follower()
    follower.join(hub, journal)
    hub.passing(thought("Hm", 0))
    hub.passing(text("half", 0))
    failed = ModelFailed(stage="round", attempt=0, error="stalled", message="", retryable=True, usage=Usage())
    journal.append("loop", Draft(key="s1/r1/a0/end", event=failed))
    hub.passing(text("Sunny", 0, "s1/r1/a1"))
    journal.append("loop", Draft(key="s1/r1/a1/end", event=answered("Sunny")))
    follower.assert_heard_all(journal.in_order())
    assert follower.whole == 1
