"""What is shown of a request for approval, and which decisions on it are taken."""

from collections.abc import Callable
from typing import Any

import pytest

from edge_agent.core import keys
from edge_agent.core.approval import Decision
from edge_agent.core.errors import Refusal
from edge_agent.core.events import (
    RunCompleted,
)
from edge_agent.core.state import RunState, fold
from edge_agent.loop import decisions
from edge_agent.loop.inbox import Inbox
from tests.unit.approval_kit import C0, C1, Made, Refused, decides, lived
from tests.unit.loop_kit import Act, Lived, cancels


def run_with_decision(act: Callable[[Inbox], object], **more: Any) -> Lived:
    return lived([], (f"{C0}/approval", act), **more)


def refusal(act: Callable[[Inbox], object], refused: Refused) -> Act:
    def tried(inbox: Inbox) -> None:
        with pytest.raises(Refusal) as no:
            act(inbox)
        assert no.value.message.endswith(".")
        refused.append((no.value.status, no.value.code))
        inbox.cancel()

    return tried


def test_a_decision_about_no_request_or_other_arguments_is_refused() -> None:
    call_id = keys.call_id("run-1", C0)
    refused: Refused = []
    yes = Decision(approved=True)
    run_with_decision(refusal(lambda inbox: inbox.decide("nobody", yes), refused))
    run_with_decision(refusal(lambda inbox: inbox.decide(call_id, yes, arguments_hash="0" * 64), refused))
    pattern = Decision(approved=True, remember=True, pattern={"to": "*"})
    run_with_decision(refusal(lambda inbox: inbox.decide(call_id, pattern), refused))
    assert refused == [(404, "unknown_approval"), (409, "arguments_changed"), (422, "invalid_request")]


def test_the_first_decision_stands_an_equal_one_finds_it_and_another_is_refused() -> None:
    call_id = keys.call_id("run-1", C0)

    def both(inbox: Inbox) -> None:
        first = inbox.decide(call_id, Decision(approved=True, reason="fine"))
        assert inbox.decide(call_id, Decision(approved=True, reason="me too")) == first
        for other in (Decision(approved=False), Decision(approved=True, remember=True)):
            with pytest.raises(Refusal) as no:
                inbox.decide(call_id, other)
            assert (no.value.code, no.value.more["decision"]["approved"]) == ("already_decided", True)
        with pytest.raises(Refusal) as used:
            inbox.decide(call_id, Decision(approved=True), once=True)
        assert used.value.code == "link_used"

    assert isinstance(run_with_decision(both).end, RunCompleted)


def test_a_request_answered_by_memory_takes_an_equal_decision_only() -> None:
    made: Made = []
    calls = [("pay", {"amount": 1}), ("pay", {"amount": 2})]

    def both(inbox: Inbox) -> None:
        inbox.decide(keys.call_id("run-1", C0), Decision(approved=True, remember=True))
        inbox.decide(keys.call_id("run-1", C1), Decision(approved=True))
        with pytest.raises(Refusal, match="first decision"):
            inbox.decide(keys.call_id("run-1", C1), Decision(approved=False))

    lived(made, (f"{C1}/approval", both), calls=calls)
    assert len(made) == 2


def test_the_state_lists_what_waits_for_a_person() -> None:
    made: Made = []
    states: list[RunState] = []

    def note(inbox: Inbox) -> None:
        states.append(fold("run-1", inbox.journal.in_order()))
        inbox.cancel()

    lived(made, ("wait/7", note))
    (state,) = states
    assert state.waiting_for
    assert (state.status, state.approval_mode, state.waiting_for.reasons) == ("waiting", "ask-writes", ("approval",))
    (open_,) = state.approvals
    assert state.spent.tool_calls == 1, "reserved with the question"
    assert (open_.name, open_.status, open_.arguments) == ("pay", "pending", {"amount": 5})


def test_a_request_is_shown_with_what_became_of_it() -> None:
    acts: dict[str, Act] = {
        "approved": decides(C0, approved=True),
        "denied": decides(C0, approved=False),
        "withdrawn": cancels,
        "expired": lambda _: None,
    }
    for status, act in acts.items():
        run = lived([], (f"{C0}/approval", act))
        shown = decisions.shown(run.object.instance.journal, keys.call_id("run-1", C0))
        assert (shown.status, shown.decision is not None) == (status, True)
