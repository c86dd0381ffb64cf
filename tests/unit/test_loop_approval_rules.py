"""Rules and modes of a running run: they decide in the place of a person, at once and for what is open."""

import pytest

from edge_agent.core.errors import Refusal
from edge_agent.core.events import (
    ApprovalMode,
    ApprovalModeChanged,
    ApprovalRequested,
    ApprovalResolved,
    ToolRejected,
)
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from tests.unit.approval_kit import C0, MODES, Made, Refused, decides, lived, look, paying
from tests.unit.loop_kit import asks, shown


def test_automatic_denials_say_so_and_automatic_allows_say_nothing() -> None:
    made: Made = []
    model = asks(("pay", {"amount": 1}), ("look", {}), ("send", {"amount": 2}))
    tools = [paying(made), look, paying(made, name="send")]
    run = lived(made, model=model, tools=tools, approval="read-only", tool_rules={"send*": "deny", "pay": "allow"})
    resolved = run.of(ApprovalResolved)
    assert [(r.name, r.approved, r.by, r.automatic) for r in resolved] == [("send", False, "rule", True)]
    assert "by the rule send*" in shown(model)[2].text
    assert next(r for r in run.records if r.key == "s1/r1/c2/decision").by == "note"
    assert [arguments["amount"] for _, arguments in made] == [1]
    reading = lived(made, model=asks(("send", {"amount": 2})), tools=tools, approval="read-only")
    assert "may only read" in reading.of(ToolRejected)[0].message


def test_where_nobody_can_be_asked_to_ask_is_to_deny() -> None:
    made: Made = []
    run = lived(made, can_ask=False)
    assert "nobody can be asked" in run.of(ToolRejected)[0].message
    assert [r.automatic for r in run.of(ApprovalResolved)] == [True]
    assert not run.of(ApprovalRequested)


def test_a_rule_deployed_while_a_person_thinks_denies_the_approved_call() -> None:
    made: Made = []
    denied: list[str] = []

    def deploy(_: Inbox) -> None:
        denied.append("pay")

    acts = ((f"{C0}/approval", decides(C0, approved=True)), (f"{C0}/decision", deploy))
    run = lived(made, *acts, forbidden=lambda: tuple(denied))
    assert not made
    assert "by the rule pay" in run.of(ToolRejected)[0].message
    assert [(r.approved, r.by) for r in run.of(ApprovalResolved)] == [(True, "person"), (False, "rule")]
    assert run.state.spent.tool_calls == 0


def test_a_deny_rule_closes_a_request_that_nobody_has_answered() -> None:
    made: Made = []
    denied: list[str] = []

    def deploy(inbox: Inbox) -> None:
        denied.append("pay")
        inbox.driver.wake()

    run = lived(made, ("wait/7", deploy), forbidden=lambda: tuple(denied))
    assert [(r.approved, r.by, r.automatic) for r in run.of(ApprovalResolved)] == [(False, "rule", True)]
    assert run.state.approvals == ()


def test_a_change_of_mode_applies_to_the_next_call_of_a_running_run_and_not_to_an_open_request() -> None:
    made: Made = []

    def loosen(inbox: Inbox) -> None:
        inbox.change_mode("autopilot", allowed=MODES)
        inbox.change_mode("autopilot", allowed=MODES)

    model = asks(("pay", {"amount": 1}), then=[Answer(calls=(("pay", {"amount": 2}),)), "done"])
    run = lived(made, (f"{C0}/approval", loosen), ("approval-mode/0", decides(C0, approved=True)), model=model)
    assert [c.mode for c in run.of(ApprovalModeChanged)] == ["autopilot"]
    assert len(run.of(ApprovalRequested)) == 1
    assert (len(made), run.state.approval_mode) == (2, "autopilot")


def test_a_change_of_mode_between_the_answer_and_its_calls_is_read_at_their_frontier() -> None:
    made: Made = []
    run = lived(
        made,
        ("s1/r1/a0", lambda inbox: inbox.change_mode("read-only", allowed=MODES, tighten=True)),
        approval="autopilot",
    )
    assert not made
    assert "may only read" in run.of(ToolRejected)[0].message


def test_a_mode_that_is_not_allowed_or_looser_for_a_run_token_or_too_late_is_refused() -> None:
    refused: Refused = []

    def tried(inbox: Inbox) -> None:
        only: tuple[ApprovalMode, ...] = ("ask-all",)
        for allowed, tighten in ((only, False), (MODES, True)):
            with pytest.raises(Refusal) as no:
                inbox.change_mode("autopilot", allowed=allowed, tighten=tighten)
            refused.append((no.value.status, no.value.code))
        inbox.cancel()

    run = lived([], (f"{C0}/approval", tried))
    with pytest.raises(Refusal) as late:
        run.object.instance.inbox.change_mode("read-only", allowed=MODES)
    assert refused == [(422, "mode_not_allowed"), (403, "only_tighten")]
    assert (late.value.status, late.value.code) == (409, "run_ended")
    assert not run.of(ApprovalModeChanged)
