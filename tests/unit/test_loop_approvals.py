"""How a person is asked before a call and what comes of the answer: requests, decisions and their limits."""

import asyncio

import pytest

from edge_agent import Hooks, Limits, tool
from edge_agent.core import keys
from edge_agent.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    RunCompleted,
    RunWaiting,
    ToolCalled,
    ToolRejected,
    ToolResult,
)
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Tool
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from edge_agent.testing.virtual_time import BEGIN
from edge_agent.tools.toolbox import Toolbox
from tests.unit.approval_kit import C0, C1, Calls, Made, Refused, decides, lived, paying
from tests.unit.loop_kit import asks, cancels, resumes, shown


def test_an_approved_call_runs_once_and_the_run_waits_for_it_without_working() -> None:
    made: Made = []
    refused: Refused = []
    act = (f"{C0}/approval", decides(C0, approved=True, after=600, again=True, refused=refused))
    run = lived(made, act)
    assert [arguments["amount"] for _, arguments in made] == [5]
    requested = run.of(ApprovalRequested)[0]
    assert (requested.name, requested.arguments, requested.read_only) == ("pay", {"amount": 5}, False)
    assert requested.expires_at == BEGIN + 3_600_000
    waiting = run.of(RunWaiting)[0]
    assert (waiting.for_, waiting.keys, waiting.until) == (("approval",), (f"{C0}/decision",), requested.expires_at)
    assert run.object.rings == 2
    called = next(record for record in run.records if record.key == f"{C0}/call")
    assert called.at == BEGIN + 600_000
    assert run.all_keys()[5:] == [
        f"{C0}/approval", "wait/7", f"{C0}/decision", f"{C0}/call", f"{C0}/result", "s1/r2", "s1/r2/a0", "s1/r2/a0/end",
        "end/0",
    ]  # fmt: skip
    assert refused == []


def test_a_denial_is_a_result_the_model_can_read_with_the_reason_and_gives_the_call_back() -> None:
    made: Made = []
    model = asks(("pay", {"amount": 5}), then=[Answer(calls=(("look", {}),)), "done"])
    decide = decides(C0, approved=False, reason="we have no money")
    run = lived(made, (f"{C0}/approval", decide), model=model, limits=Limits(max_tool_calls=1))
    assert not made
    rejected = run.of(ToolRejected)[0]
    assert (rejected.reason, "A person denied" in rejected.message) == ("denied", True)
    assert "we have no money" in rejected.message
    assert shown(model)[0].text == rejected.message
    assert [result.output for result in run.of(ToolResult)] == ["seen "], (
        "the call that was denied is no call of the cap"
    )
    assert run.state.spent.tool_calls == 1


def test_a_tool_call_is_reserved_while_a_person_thinks() -> None:
    made: Made = []
    calls = [("pay", {"amount": 1}), ("pay", {"amount": 2})]
    run = lived(made, (f"{C0}/approval", decides(C0, approved=True)), calls=calls, limits=Limits(max_tool_calls=1))
    assert [r.reason for r in run.of(ToolRejected)] == ["budget"]
    assert len(run.of(ApprovalRequested)) == 1
    assert run.state.spent.tool_calls == 1


def test_free_siblings_go_on_meanwhile_and_none_of_them_runs_again() -> None:
    made: Made = []
    calls = [("pay", {"amount": 1}), ("look", {"q": "x"}), ("pay", {"amount": 2})]
    acts = (
        (f"{C0}/approval", decides(C0, approved=True, after=10)),
        ("s1/r1/c2/approval", decides("s1/r1/c2", approved=False, after=20)),
    )
    run = lived(made, *acts, calls=calls)
    at = {record.key: record.at - BEGIN for record in run.records}
    assert at[f"{C1}/result"] == 2_000
    assert at[f"{C0}/call"] == 10_000
    assert run.all_keys().count(f"{C1}/call") == 1
    assert [w.keys for w in run.of(RunWaiting)] == [
        (f"{C0}/decision", "s1/r1/c2/decision"),
        ("s1/r1/c2/decision",),
    ]
    assert isinstance(run.end, RunCompleted)


def test_nobody_decides_and_the_alarm_denies() -> None:
    made: Made = []
    model = asks(("pay", {"amount": 5}))
    run = lived(made, model=model, approval_seconds=60)
    resolved = run.of(ApprovalResolved)[0]
    assert (resolved.by, resolved.approved, resolved.automatic) == ("expiry", False, True)
    assert next(r.at for r in run.records if r.key == f"{C0}/decision") == BEGIN + 60_000
    assert [told.text for told in shown(model)] == [run.of(ToolRejected)[0].message]
    assert "nobody approved it in time" in shown(model)[0].text


def test_without_a_timeout_a_request_never_expires() -> None:
    made: Made = []
    a_month = 30 * 86_400
    run = lived(made, (f"{C0}/approval", decides(C0, approved=True, after=a_month)), approval_seconds=None)
    assert (run.of(ApprovalRequested)[0].expires_at, run.of(RunWaiting)[0].until, len(made)) == (None, None, 1)


@pytest.mark.parametrize("after", [59.0, 59.997, 59.998, 59.999, 60.0, 60.001, 60.5])
def test_at_every_moment_around_the_deadline_the_first_word_stands(after: float) -> None:
    made: Made = []
    refused: Refused = []
    act = (f"{C0}/approval", decides(C0, approved=True, after=after, refused=refused))
    run = lived(made, act, approval_seconds=60)
    resolved = run.of(ApprovalResolved)
    assert len(resolved) == 1
    in_time = resolved[0].by == "person"
    assert in_time is (after < 60)
    assert len(made) == in_time
    assert set(refused) <= {(410, "approval_expired")}
    assert not (in_time and refused)


def test_a_decision_after_the_deadline_is_too_late_also_while_a_sibling_keeps_the_alarm_from_ringing() -> None:
    made: Made = []

    @tool(read_only=True, timeout=100)
    async def long() -> str:
        """Take long."""
        await asyncio.sleep(90)
        return "at last"

    calls: Calls = [("pay", {"amount": 1}), ("long", {})]
    refused: Refused = []
    act = (f"{C0}/approval", decides(C0, approved=True, after=70, refused=refused))
    run = lived(made, act, calls=calls, tools=[paying(made), long], approval_seconds=60)
    assert refused == [(410, "approval_expired")]
    assert run.of(ApprovalResolved)[0].by == "expiry"
    assert not made


def test_a_decision_in_time_counts_although_the_loop_meets_it_after_the_deadline() -> None:
    """The loop compares no clocks: the record speaks."""
    made: Made = []

    @tool(read_only=True, timeout=100)
    async def long() -> str:
        """Take long."""
        await asyncio.sleep(90)
        return "at last"

    calls: Calls = [("pay", {"amount": 1}), ("long", {})]
    act = (f"{C0}/approval", decides(C0, approved=True, after=50))
    run = lived(made, act, calls=calls, tools=[paying(made), long], approval_seconds=60)
    assert len(made) == 1
    assert next(r.at for r in run.records if r.key == f"{C0}/call") > BEGIN + 60_000


def test_edited_arguments_are_recorded_used_and_told_to_the_model() -> None:
    made: Made = []
    model = asks(("pay", {"amount": 500}))
    decide = decides(C0, approved=True, arguments={"amount": 4, "to": "bob"})
    run = lived(made, (f"{C0}/approval", decide), model=model)
    called = run.of(ToolCalled)[0]
    assert called.arguments == {"amount": 4, "to": "bob"}
    assert made == [(keys.idempotency_key("run-1", C0, called.arguments), {"amount": 4, "to": "bob"})]
    assert run.of(ApprovalResolved)[0].arguments == {"amount": 4, "to": "bob"}
    assert [told.text for told in shown(model)] == [
        '(A person approved this call with other arguments: {"amount":4,"to":"bob"})\npaid 4'
    ]


def test_the_same_arguments_sent_back_are_no_edit() -> None:
    made: Made = []
    model = asks(("pay", {"amount": 5}))
    run = lived(made, (f"{C0}/approval", decides(C0, approved=True, arguments={"amount": 5})), model=model)
    assert run.of(ApprovalResolved)[0].arguments is None
    assert [told.text for told in shown(model)] == ["paid 5"]


def test_edited_arguments_that_do_not_fit_any_more_are_an_answered_call() -> None:
    made: Made = []
    run = lived(made, (f"{C0}/approval", decides(C0, approved=True, arguments={"amount": "much"})))
    rejected = run.of(ToolRejected)[0]
    assert (rejected.reason, "amount" in rejected.message) == ("invalid-arguments", True)
    assert run.state.spent.tool_calls == 0


def test_what_is_remembered_answers_the_other_open_requests_in_the_same_append_and_later_calls() -> None:
    made: Made = []
    one, two, other = ("pay", {"amount": 1}), ("pay", {"amount": 2}), ("send", {"amount": 3})
    model = asks(one, two, other, then=[Answer(calls=(("pay", {"amount": 4}),)), "done"])
    acts = (("s1/r1/c2/approval", decides(C1, approved=True, remember=True, after=5)),)
    tools = [paying(made), paying(made, name="send")]
    run = lived(made, *acts, model=model, tools=tools, approval_seconds=60)
    by_key = {record.key: record for record in run.records}
    first, covered = by_key[f"{C1}/decision"], by_key[f"{C0}/decision"]
    assert first.batch == covered.batch
    assert isinstance(covered.event, ApprovalResolved)
    assert (covered.event.by, covered.event.automatic, covered.event.approved) == ("remembered", True, True)
    assert by_key["s1/r1/c2/decision"].at == BEGIN + 60_000, "another tool's request stays open"
    assert sorted(arguments["amount"] for _, arguments in made) == [1, 2, 4]
    assert "s1/r2/c0/approval" not in by_key, "an automatic allow says nothing"
    assert "s1/r2/c0/decision" not in by_key


def test_a_remembered_denial_denies_later_calls_and_says_so() -> None:
    made: Made = []
    model = asks(("pay", {"amount": 1}), then=[Answer(calls=(("pay", {"amount": 2}),)), "done"])
    decide = decides(C0, approved=False, remember=True, reason="no payments")
    run = lived(made, (f"{C0}/approval", decide), model=model)
    resolved = run.of(ApprovalResolved)
    assert [(r.by, r.automatic) for r in resolved] == [("person", False), ("remembered", True)]
    assert "no payments" in shown(model)[1].text
    assert not made


def test_a_remembered_pattern_covers_only_what_it_matches() -> None:
    made: Made = []
    later = [("pay", {"amount": 2, "to": "eve2"}), ("pay", {"amount": 3, "to": "bob"})]
    model = asks(("pay", {"amount": 1, "to": "eve"}), then=[Answer(calls=tuple(later)), "done"])
    acts = (
        (f"{C0}/approval", decides(C0, approved=True, remember=True, pattern={"to": "eve*"})),
        ("s1/r2/c1/approval", decides("s1/r2/c1", approved=False)),
    )
    run = lived(made, *acts, model=model)
    assert [arguments["amount"] for _, arguments in made] == [1, 2]
    assert [r.key for r in run.records if r.type == "tool.approval-requested"] == [
        f"{C0}/approval",
        "s1/r2/c1/approval",
    ]


# -- sanitizers, secrets
def test_a_person_sees_the_arguments_after_the_sanitizer_and_no_secret() -> None:
    made: Made = []

    def clean(name: str, arguments: JsonObject) -> JsonObject:
        return {**arguments, "to": "(hidden)"}

    run = lived(made, (f"{C0}/approval", decides(C0, approved=True)), hooks=Hooks(sanitize_input=clean))
    assert run.of(ApprovalRequested)[0].arguments == {"amount": 5, "to": "(hidden)"}
    assert made[0][1]["to"] == "(hidden)"


def test_arguments_that_a_sanitizer_fails_on_are_shown_to_nobody() -> None:
    made: Made = []

    def fail(name: str, arguments: JsonObject) -> JsonObject:
        raise ValueError("pin 4711")

    run = lived(made, hooks=Hooks(sanitize_input=fail))
    assert not run.of(ApprovalRequested)
    assert run.of(ToolRejected)[0].reason == "invalid-arguments"


# -- cancel, resume
def test_a_cancel_resolves_what_waits_as_not_approved_and_a_late_decision_is_refused() -> None:
    made: Made = []
    refused: Refused = []
    acts = (
        (f"{C0}/approval", cancels),
        ("cancel/0", decides(C0, approved=True, after=0, refused=refused)),
        ("end/0", decides(C0, approved=True, after=0, refused=refused)),
    )
    run = lived(made, *acts)
    assert [(r.by, r.approved) for r in run.of(ApprovalResolved)] == [("cancel", False)]
    assert [(r.reason, r.message) for r in run.of(ToolRejected)] == [
        ("cancelled", "pay was not run: the run was cancelled.")
    ]
    assert (run.end.type, run.state.spent.tool_calls, run.state.approvals) == ("run.cancelled", 0, ())
    assert set(refused) == {(410, "approval_expired")}


def test_an_approval_that_was_not_used_before_the_cancel_is_not_used_after_a_resume() -> None:
    made: Made = []
    acts = (
        (f"{C0}/approval", decides(C0, approved=True, after=1)),
        (f"{C0}/decision", cancels),
        ("end/0", resumes),
    )
    run = lived(made, *acts)
    assert not made
    assert run.of(ToolRejected)[0].reason == "cancelled"
    assert isinstance(run.end, RunCompleted)


# -- tools that come and go
class Going(Toolbox):
    """Its tools are gone while `gone` is set."""

    gone = False

    def find(self, name: str) -> Tool | None:
        return None if self.gone else super().find(name)


def test_a_server_that_is_down_while_a_person_thinks_closes_no_request() -> None:
    made: Made = []
    box = Going([paying(made)])

    def down(inbox: Inbox) -> None:
        box.gone = True
        inbox.driver.wake()

    def up(_: Inbox) -> None:
        box.gone = False

    acts = (("wait/7", down), (f"{C0}/approval", decides(C0, approved=True, after=30)), (f"{C0}/decision", up))
    lived(made, *acts, toolbox=box)
    assert len(made) == 1


def test_a_tool_that_is_gone_after_the_approval_is_an_answered_call() -> None:
    made: Made = []
    box = Going([paying(made)])

    def down(_: Inbox) -> None:
        box.gone = True

    run = lived(made, (f"{C0}/approval", decides(C0, approved=True)), (f"{C0}/decision", down), toolbox=box)
    assert (run.of(ToolRejected)[0].reason, run.state.spent.tool_calls) == ("unknown-tool", 0)
