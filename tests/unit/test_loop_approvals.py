"""Whether a call may run, and how a person is asked: rules, memory, modes, requests, decisions and their limits."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from edge_agent import Hooks, Limits, ToolContext, tool
from edge_agent.core import keys
from edge_agent.core.approval import Decision, as_strict_as
from edge_agent.core.errors import OutcomeUnknown, Refusal
from edge_agent.core.events import (
    ApprovalMode,
    ApprovalModeChanged,
    ApprovalRequested,
    ApprovalResolved,
    OnUnknown,
    RunCompleted,
    RunWaiting,
    ToolCalled,
    ToolRejected,
    ToolResult,
    ToolRule,
    ToolUnknown,
)
from edge_agent.core.messages import JsonObject, ToolMessage
from edge_agent.core.state import RunState, fold
from edge_agent.core.tooling import Tool
from edge_agent.loop import decisions
from edge_agent.loop.approvals import ALWAYS_RUN, Policy, Wanted, decide_permission
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing.virtual_time import BEGIN
from edge_agent.tools.toolbox import Toolbox
from tests.unit.loop_kit import Act, Lived, Setting, cancels, live, resumes

MODES: tuple[ApprovalMode, ...] = ("autopilot", "ask-writes", "ask-all", "read-only")


# -- the judgement
def wanted(name: str = "bank__pay", *, reads: bool = False, requires: bool = False, **arguments: Any) -> Wanted:
    server = name.partition("__")[0] if "__" in name else None
    return Wanted(
        key="s1/r1/c0",
        call_id="c",
        name=name,
        server=server,
        arguments=arguments,
        read_only=reads,
        requires_approval=requires,
        step=1,
        round=1,
    )


def verdict(
    call: Wanted, mode: ApprovalMode = "autopilot", rules: dict[str, ToolRule] | None = None, **more: Any
) -> str:
    return decide_permission(call, Policy(mode=mode, rules=rules or {}, **more)).verdict


def said(*, approved: bool, name: str = "bank__pay", server: str | None = "bank", **more: Any) -> ApprovalResolved:
    return ApprovalResolved(
        call_id="b", name=name, server=server, approved=approved, by="person", remember=True, **more
    )


def test_each_mode_judges_reads_and_writes() -> None:
    judged = {mode: (verdict(wanted(reads=True), mode), verdict(wanted(), mode)) for mode in MODES}
    assert judged == {
        "autopilot": ("allow", "allow"),
        "ask-writes": ("allow", "ask"),
        "ask-all": ("ask", "ask"),
        "read-only": ("allow", "deny"),
    }


def test_the_exact_rule_wins_then_the_longest_glob_then_the_first() -> None:
    rules: dict[str, ToolRule] = {"*": "ask", "bank__*": "allow", "bank__pay*": "ask", "bank__pay": "allow"}
    assert verdict(wanted(), "ask-all", rules) == "allow"
    assert verdict(wanted("bank__payout"), "autopilot", rules) == "ask"
    assert verdict(wanted("bank__look"), "ask-all", rules) == "allow"
    assert verdict(wanted("other"), "autopilot", rules) == "ask"
    assert verdict(wanted("ab"), "autopilot", {"a?": "ask", "?b": "allow"}) == "ask"
    assert verdict(wanted("ab"), "ask-all", {"?b": "allow", "a?": "ask"}) == "allow"


def test_a_deny_rule_wins_over_a_more_specific_one_over_memory_and_over_every_mode() -> None:
    for mode in MODES:
        rules: dict[str, ToolRule] = {"bank__*": "deny", "bank__pay": "allow"}
        assert verdict(wanted(), mode, rules, remembered=[said(approved=True)]) == "deny"
        assert verdict(wanted(), mode, {"bank__pay": "allow"}, forbidden=["*pay"]) == "deny"


def test_what_a_person_said_for_the_run_comes_before_rules_and_the_newest_word_counts() -> None:
    yes, no = said(approved=True), said(approved=False, reason="not today")
    assert verdict(wanted(), "ask-all", {"*": "ask"}, remembered=[no, yes]) == "allow"
    assert verdict(wanted(), "autopilot", {"bank__pay": "allow"}, remembered=[yes, no]) == "deny"
    told = decide_permission(wanted(), Policy(mode="autopilot", rules={}, remembered=[no]))
    assert (told.by, "not today" in told.message) == ("remembered", True)


def test_what_is_remembered_is_kept_to_its_server_its_tool_and_its_arguments() -> None:
    yes = said(approved=True, pattern={"to": "eve*", "amount": "[0-9]"})
    assert verdict(wanted(to="eve@x", amount=5), "ask-all", remembered=[yes]) == "allow"
    assert verdict(wanted(to="eve@x", amount=50), "ask-all", remembered=[yes]) == "ask"
    assert verdict(wanted(to="mallory", amount=5), "ask-all", remembered=[yes]) == "ask"
    assert verdict(wanted(amount=5), "ask-all", remembered=[yes]) == "ask"
    other_server = said(approved=True, server="bank2")
    assert verdict(wanted(), "ask-all", remembered=[other_server]) == "ask"
    assert verdict(wanted("bank__look"), "ask-all", remembered=[said(approved=True)]) == "ask"


def test_a_tool_that_requires_approval_asks_in_every_mode_that_does_not_deny_and_rules_come_first() -> None:
    assert [verdict(wanted(requires=True), mode) for mode in MODES] == ["ask", "ask", "ask", "deny"]
    assert [verdict(wanted(reads=True, requires=True), mode) for mode in MODES] == ["ask"] * 4
    assert verdict(wanted(requires=True), "autopilot", {"bank__*": "allow"}) == "allow"
    assert verdict(wanted(requires=True), "autopilot", {"bank__*": "deny"}) == "deny"


def test_the_four_built_in_tools_always_run() -> None:
    for name in ALWAYS_RUN:
        assert verdict(wanted(name), "read-only", {"*": "deny"}, forbidden=["*"]) == "allow"


def test_a_mode_is_as_strict_as_another_when_it_lets_nothing_more_pass() -> None:
    order = {"allow": 0, "ask": 1, "deny": 2}
    for one in MODES:
        for other in MODES:
            calls = (wanted(reads=True), wanted())
            stricter = all(order[verdict(call, other)] >= order[verdict(call, one)] for call in calls)
            assert (other in as_strict_as(one)) is stricter, (one, other)


# -- a run
Made = list[tuple[str, JsonObject]]
Calls = Sequence[tuple[str, JsonObject]]


def paying(made: Made, *, name: str = "pay", **more: Any) -> Tool:
    @tool(name=name, **more)
    async def pay(context: ToolContext, amount: int, to: str = "eve") -> str:
        """Pay."""
        made.append((context.idempotency_key, {"amount": amount, "to": to}))
        return f"paid {amount}"

    return pay


@tool(read_only=True)
async def look(q: str = "") -> str:
    """Look."""
    await asyncio.sleep(2)
    return f"seen {q}"


def asks(*calls: tuple[str, JsonObject], then: Sequence[Answer | str] = ("done",)) -> ScriptedModel:
    return ScriptedModel(answers=[Answer(calls=calls), *then])


def decides(call: str, *, approved: bool, after: float = 1.0, again: bool = False, **more: Any) -> Act:
    """A person who decides about a call some time after being asked; what is refused ends up in the list `refused`."""

    def act(inbox: Inbox) -> None:
        def now() -> None:
            for _ in range(1 + again):
                try:
                    inbox.decide(keys.call_id("run-1", call), Decision(approved=approved, **more))
                except Refusal as no:
                    refused.append((no.status, no.code))

        asyncio.get_running_loop().call_later(after, now)

    return act


refused: list[tuple[int, str]] = []


@pytest.fixture(autouse=True)
def nothing_refused_yet() -> None:
    refused.clear()


def lived(made: Made, *acts: tuple[str, Act], calls: Sequence[tuple[str, JsonObject]] = (), **more: Any) -> Lived:
    model = more.pop("model", None) or asks(*(calls or (("pay", {"amount": 5}),)))
    more.setdefault("approval", "ask-writes")
    tools = more.pop("tools", None) or [paying(made), look]
    return live(Setting(model=model, tools=tools, acts=dict(acts), **more))


def shown(model: ScriptedModel) -> list[str]:
    return [message.text for message in model.requests[-1].messages if isinstance(message, ToolMessage)]


C0, C1 = "s1/r1/c0", "s1/r1/c1"


def test_an_approved_call_runs_once_and_the_run_waits_for_it_without_working() -> None:
    made: Made = []
    run = lived(made, (f"{C0}/approval", decides(C0, approved=True, after=600, again=True)))
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
    assert shown(model)[0] == rejected.message
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
    assert shown(model) == [run.of(ToolRejected)[0].message]
    assert "nobody approved it in time" in shown(model)[0]


def test_without_a_timeout_a_request_never_expires() -> None:
    made: Made = []
    a_month = 30 * 86_400
    run = lived(made, (f"{C0}/approval", decides(C0, approved=True, after=a_month)), approval_seconds=None)
    assert (run.of(ApprovalRequested)[0].expires_at, run.of(RunWaiting)[0].until, len(made)) == (None, None, 1)


@pytest.mark.parametrize("after", [59.0, 59.997, 59.998, 59.999, 60.0, 60.001, 60.5])
def test_at_every_moment_around_the_deadline_the_first_word_stands(after: float) -> None:
    made: Made = []
    run = lived(made, (f"{C0}/approval", decides(C0, approved=True, after=after)), approval_seconds=60)
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
    act = (f"{C0}/approval", decides(C0, approved=True, after=70))
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
    assert shown(model) == ['(A person approved this call with other arguments: {"amount":4,"to":"bob"})\npaid 4']


def test_the_same_arguments_sent_back_are_no_edit() -> None:
    made: Made = []
    model = asks(("pay", {"amount": 5}))
    run = lived(made, (f"{C0}/approval", decides(C0, approved=True, arguments={"amount": 5})), model=model)
    assert run.of(ApprovalResolved)[0].arguments is None
    assert shown(model) == ["paid 5"]


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
    assert "no payments" in shown(model)[1]
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


# -- rules and modes in a run
def test_automatic_denials_say_so_and_automatic_allows_say_nothing() -> None:
    made: Made = []
    model = asks(("pay", {"amount": 1}), ("look", {}), ("send", {"amount": 2}))
    tools = [paying(made), look, paying(made, name="send")]
    run = lived(made, model=model, tools=tools, approval="read-only", tool_rules={"send*": "deny", "pay": "allow"})
    resolved = run.of(ApprovalResolved)
    assert [(r.name, r.approved, r.by, r.automatic) for r in resolved] == [("send", False, "rule", True)]
    assert "by the rule send*" in shown(model)[2]
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


# -- what cannot be decided
def run_with_decision(act: Callable[[Inbox], object], **more: Any) -> Lived:
    return lived([], (f"{C0}/approval", act), **more)


def refusal(act: Callable[[Inbox], object]) -> Act:
    def tried(inbox: Inbox) -> None:
        with pytest.raises(Refusal) as no:
            act(inbox)
        assert no.value.message.endswith(".")
        refused.append((no.value.status, no.value.code))
        inbox.cancel()

    return tried


def test_a_decision_about_no_request_or_other_arguments_is_refused() -> None:
    call_id = keys.call_id("run-1", C0)
    yes = Decision(approved=True)
    run_with_decision(refusal(lambda inbox: inbox.decide("nobody", yes)))
    run_with_decision(refusal(lambda inbox: inbox.decide(call_id, yes, arguments_hash="0" * 64)))
    pattern = Decision(approved=True, remember=True, pattern={"to": "*"})
    run_with_decision(refusal(lambda inbox: inbox.decide(call_id, pattern)))
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


# -- cancel, resume
def test_a_cancel_resolves_what_waits_as_not_approved_and_a_late_decision_is_refused() -> None:
    made: Made = []
    acts = (
        (f"{C0}/approval", cancels),
        ("cancel/0", decides(C0, approved=True, after=0)),
        ("end/0", decides(C0, approved=True, after=0)),
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


# -- a call that is made again
def doubtful(made: Made, policy: OnUnknown, times: int = 1) -> Tool:
    @tool(name="pay", on_unknown=policy)
    async def pay(context: ToolContext, amount: int) -> str:
        """Pay, perhaps."""
        made.append((context.idempotency_key, {"amount": amount}))
        if len(made) <= times:
            raise OutcomeUnknown("the line went dead")
        return f"paid {amount}"

    return pay


def test_a_retry_of_an_approved_call_asks_again_and_says_why() -> None:
    made: Made = []
    acts = (
        (f"{C0}/approval", decides(C0, approved=True)),
        (f"{C0}/approval/1", decides(C0, approved=True)),
    )
    run = lived(made, *acts, tools=[doubtful(made, "retry")])
    first, second = run.of(ApprovalRequested)
    assert (first.cause, second.cause) == (None, "lost")
    assert first.arguments_hash != second.arguments_hash, "a late copy of the first decision is none on the second"
    assert len(made) == 2
    assert len({key for key, _ in made}) == 1
    assert [r for r in run.all_keys() if "/call" in r or "/decision" in r] == [
        f"{C0}/decision", f"{C0}/call", f"{C0}/decision/1", f"{C0}/call/1",
    ]  # fmt: skip


def test_a_retry_that_is_denied_leaves_the_outcome_unknown() -> None:
    made: Made = []
    acts = (
        (f"{C0}/approval", decides(C0, approved=True)),
        (f"{C0}/approval/1", decides(C0, approved=False, reason="look first")),
    )
    run = lived(made, *acts, tools=[doubtful(made, "retry")])
    assert len(made) == 1
    unknown = run.of(ToolUnknown)[0]
    assert (unknown.cause, "look first" in unknown.message) == ("lost", True)
    assert run.state.spent.tool_calls == 1


def test_a_retry_may_be_approved_with_other_arguments_under_their_own_key() -> None:
    made: Made = []
    acts = (
        (f"{C0}/approval", decides(C0, approved=True)),
        (f"{C0}/approval/1", decides(C0, approved=True, arguments={"amount": 1})),
    )
    model = asks(("pay", {"amount": 5}))
    run = lived(made, *acts, model=model, tools=[doubtful(made, "retry")])
    assert [arguments["amount"] for _, arguments in made] == [5, 1]
    assert len({key for key, _ in made}) == 2
    assert "paid 1" in shown(model)[0]
    misfit = lived(
        [],
        (f"{C0}/approval", decides(C0, approved=True)),
        (f"{C0}/approval/1", decides(C0, approved=True, arguments={"amount": "much"})),
        tools=[doubtful([], "retry")],
    )
    assert "amount" in misfit.of(ToolUnknown)[0].message
    assert isinstance(run.end, RunCompleted)


def test_who_answers_retry_has_decided_and_is_not_asked_for_approval_again() -> None:
    made: Made = []

    def retry(inbox: Inbox) -> None:
        for _, question in list(inbox.journal.open_questions()):
            inbox.answer(question.question_id, "retry")

    acts = ((f"{C0}/approval", decides(C0, approved=True)), (f"{C0}/ask/0", retry))
    run = lived(made, *acts, tools=[doubtful(made, "ask")])
    assert (len(made), len(run.of(ApprovalRequested))) == (2, 1)


@pytest.mark.parametrize("policy", ["retry", "ask"])
def test_no_call_is_made_again_once_a_rule_forbids_it(policy: OnUnknown) -> None:
    made: Made = []
    denied: list[str] = []

    def deploy(inbox: Inbox) -> None:
        denied.append("pay")
        for _, question in inbox.journal.open_questions():
            asyncio.get_running_loop().call_later(1, inbox.answer, question.question_id, "retry")
        asyncio.get_running_loop().call_later(1, inbox.driver.wake)

    at = f"{C0}/approval/1" if policy == "retry" else f"{C0}/ask/0"
    acts = ((f"{C0}/approval", decides(C0, approved=True)), (at, deploy))
    run = lived(made, *acts, tools=[doubtful(made, policy)], forbidden=lambda: tuple(denied))
    assert len(made) == 1
    assert "by the rule pay" in run.of(ToolUnknown)[0].message
    assert run.state.approvals == ()


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


def test_a_mode_that_is_not_allowed_or_looser_for_a_run_token_or_too_late_is_refused() -> None:
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
