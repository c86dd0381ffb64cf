"""The end of a life: one append with an outcome for everything open, and the terminal record."""

from dataclasses import replace
from typing import cast

from edge_agent.core import keys
from edge_agent.core.errors import ConfigError, Drift, EdgeAgentError
from edge_agent.core.events import (
    ErrorInfo,
    MessageQueued,
    MessageUndelivered,
    QuestionAnswered,
    RunCancelled,
    RunCompleted,
    RunFailed,
    Terminal,
    ToolUnknown,
)
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.state import used
from edge_agent.core.usage import Amount
from edge_agent.loop import approvals, kin, prompts
from edge_agent.loop.calls import OutcomeForbidden
from edge_agent.loop.charge import unheard
from edge_agent.loop.direct import Ending
from edge_agent.loop.hooking import Aborted, HookFailed
from edge_agent.loop.sign_in import NoTools
from edge_agent.loop.structured import NoOutput
from edge_agent.loop.tries import ModelGaveUp
from edge_agent.loop.turns import HandedInCircles, OffPalette


def completed(journal: Journal, ending: Ending) -> RunCompleted:
    return RunCompleted(
        stop_reason=ending.stop_reason, text=ending.text, output=ending.output, usage=used(journal.in_order())
    )


def cancelled(journal: Journal) -> RunCancelled:
    return RunCancelled(usage=used(journal.in_order()))


def failed(journal: Journal, error: ErrorInfo) -> RunFailed:
    if journal.created.parent and error.remedy == RESUME:
        error = replace(error, remedy=RESUME_PARENT)
    return RunFailed(error=error, usage=used(journal.in_order()))


def close(run_id: str, journal: Journal, end: Terminal) -> None:
    """Does nothing to a run that has ended."""
    if journal.ended:
        return
    left = [cast(MessageQueued, record.event) for record in journal.undelivered()]
    lost = [
        Draft(key=f"msg/{m.message_id}/end", event=MessageUndelivered(message_id=m.message_id, text=m.text))
        for m in left
    ]
    outcomes = _open(journal)
    spent = journal.spent_with(*outcomes)
    end = replace(end, undelivered=tuple(message.message_id for message in left), cost_usd=spent.usd)
    sends = [kin.cancel(run_id, key, started, _how(journal)) for key, started in journal.open_children()]
    if parent := journal.created.parent:
        sends.append(kin.result(run_id, parent, end, spent, journal.life))
    journal.append("note", *outcomes, *lost, Draft(key=keys.end(journal.life), event=end), sends=sends)


def _how(journal: Journal) -> str:
    return "the run was cancelled" if keys.cancel(journal.life) in journal.records else "the run ended"


def _open(journal: Journal) -> list[Draft]:
    heard_nothing, how = "the run ended while the model answered", _how(journal)
    drafts = [
        unheard(record.key, asked, journal.money.get(record.key, Amount()), "run-ended", heard_nothing)
        for record, asked in journal.open_attempts()
    ]
    for key, started in journal.open_children():
        drafts.append(Draft(key=f"{key}/result", event=kin.given_up(started, how), by="loop"))
    for key, call in journal.open_calls():
        unknown = ToolUnknown(
            call_id=call.call_id,
            name=call.name,
            cause="cancelled" if keys.cancel(journal.life) in journal.records else "run-ended",
            policy=call.on_unknown,
            message=prompts.unknown_outcome(call.name, how),
            step=call.step,
            round=call.round,
        )
        drafts.append(Draft(key=f"{key}/result", event=unknown, by="loop"))
    for key, question in journal.open_questions():
        withdrawn = QuestionAnswered(question_id=question.question_id, by="cancel")
        drafts.append(Draft(key=key, event=withdrawn, by="input"))
    return [*drafts, *approvals.withdrawn(journal, how)]


RESUME = "Mend the cause, then POST /v1/runs/{id}/resume: everything on record stays, the failed call is made again."
RESUME_PARENT = "Mend the cause, then resume the run that this one works for, or fork this one."
ROLL_BACK = "Roll the deployment back and resume the run, or fork it. Nothing was done or repeated."
FIND_OUT = "Find out whether the call happened; a new run or a resume goes on after it, without repeating it."
FORK = "Fork the run before its answer, with another model or another schema: what is on record stays as it is."
LARGER = (
    "Fork the run with a model that has a larger context window, or start it with a shorter input or history. Where "
    "the model's window is larger than it is taken for, set EDGE_AGENT_CONTEXT_WINDOW and resume the run."
)
_REASONS: tuple[tuple[type[EdgeAgentError], str, str, str], ...] = (
    (Drift, "drift", "drift", ROLL_BACK),
    (ConfigError, "config", "config", RESUME),
    (HookFailed, "hook", "hook", RESUME),
    (Aborted, "hook", "hook", RESUME),
    (NoOutput, "output", "output", FORK),
    (HandedInCircles, "handoff", "handoff-cycle", FORK),
    (NoTools, "mcp", "no-tools", RESUME),
    (OffPalette, "tool", "off-palette", FORK),
    (OutcomeForbidden, "tool", "unknown-outcome", FIND_OUT),
)


def why(error: EdgeAgentError) -> ErrorInfo:
    """A failure in words a person can act on."""
    if isinstance(error, ModelGaveUp):
        remedy = LARGER if error.failure.error == "context-overflow" else RESUME
        return ErrorInfo(kind="provider", code=error.failure.error, message=str(error), remedy=remedy)
    known = (row[1:] for row in _REASONS if isinstance(error, row[0]))
    kind, code, remedy = next(known, ("internal", "internal", RESUME))
    return ErrorInfo(kind=kind, code=code, message=str(error), remedy=remedy)
