"""Whether a call may run, is asked for, or is denied: modes, rules, and what was said for the run."""

from typing import Any

from edge_agent.core.approval import as_strict_as
from edge_agent.core.events import (
    ApprovalMode,
    ApprovalResolved,
    ToolRule,
)
from edge_agent.loop.approvals import ALWAYS_RUN, Policy, Wanted, decide_permission
from tests.unit.approval_kit import MODES


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
