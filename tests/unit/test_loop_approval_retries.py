"""An approved call whose outcome is unknown: who is asked before it is made again."""

import asyncio

import pytest

from edge_agent import ToolContext, tool
from edge_agent.core.errors import OutcomeUnknown
from edge_agent.core.events import (
    ApprovalRequested,
    OnUnknown,
    RunCompleted,
    ToolUnknown,
)
from edge_agent.core.tooling import Tool
from edge_agent.loop.inbox import Inbox
from tests.unit.approval_kit import C0, Made, decides, lived
from tests.unit.loop_kit import asks, shown


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
    assert "paid 1" in shown(model)[0].text
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
