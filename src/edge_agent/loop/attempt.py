"""One attempt of a model call that is on record: it is made, and its end is recorded and paid for."""

import random
from dataclasses import dataclass, replace

from edge_agent.core.errors import ModelError
from edge_agent.core.events import Fault, ModelAnswered, ModelFailed, ModelRejected, ModelRequested
from edge_agent.core.hooks import Reject
from edge_agent.core.journal import Draft
from edge_agent.core.messages import AssistantMessage, MessageWithFiles
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.usage import Usage
from edge_agent.loop import budget
from edge_agent.loop.charge import Charge, tell_usage
from edge_agent.loop.hooking import must, wants_abort
from edge_agent.loop.listen import Heard, Listener
from edge_agent.loop.tries import Tries
from edge_agent.loop.walk import Cut, Stray, Walk

IN_MEMORY_SECONDS = 5.0  # a longer wait lets go of the object
FIRST_PAUSE = 0.5  # seconds, doubled by each retry, and up to half as much again: many runs do not come back at once
UNSENT = frozenset(
    {"connection", "unauthorized", "bad-request", "thinking-refused", "not-found", "rate-limited", "quota",
     "context-overflow"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """`call`: the key of the model call. hurried: by the time of the run; the answer at its end is not. may_reject:
    whether the agent's hook may turn the answer down."""

    walk: Walk
    call: str
    tries: Tries
    key: str
    model: Model
    request: ModelRequest
    requested: ModelRequested
    charge: Charge
    hurried: bool
    may_reject: bool

    @property
    def until(self) -> int | None:
        """When the time of the run is up (ms since the epoch)."""
        limits, clock = self.walk.created.limits, self.walk.ports.clock
        if limits.max_seconds is None or not self.hurried:
            return None
        left = limits.max_seconds - budget.active_seconds(self.walk.journal, clock.now())
        return clock.now() + int(left * 1000)


async def make(attempt: Attempt) -> None:
    """Until its end is on record. Raises HookFailed, Cancelled, Yield."""
    walk, began, heard = attempt.walk, attempt.walk.ports.clock.now(), Heard()
    stage, most = attempt.requested.stage, attempt.charge.held.most
    listener = Listener(walk, attempt.call, attempt.key, stage, heard, most=most, until=attempt.until)
    try:
        await walk.effect(attempt.key, listener.listen(attempt.model, _with_files(walk, attempt.request)))
    except Cut:
        walk.ready()  # the end of the run ends the attempt; that of a step is recorded here
        _cut_off(attempt, heard)
    except ModelError as error:
        await _failed(attempt, heard, error)
    except Stray as error:
        await _failed(attempt, heard, ModelError("connection", f"the model's stream ended: {error}", retryable=True))
    except Exception as error:  # noqa: BLE001 - an adapter may raise only ModelError; another try would meet the same fault
        message = f"the model adapter raised {type(error).__name__}: {error}"
        await _failed(attempt, heard, ModelError("bad-answer", message, retryable=False))
    else:
        await _answered(attempt, heard, walk.ports.clock.now() - began)


def _with_files(walk: Walk, request: ModelRequest) -> ModelRequest:
    """With the bytes of what was sent along, which are read here and kept nowhere."""
    shown = (message for message in request.messages if isinstance(message, MessageWithFiles))
    names = dict.fromkeys(file.name for message in shown for file in message.attachments)
    found = [file for name in names if (file := walk.journal.log.file(name))]
    return replace(request, files={file.name: file.content for file in found}) if found else request


async def _answered(attempt: Attempt, heard: Heard, latency: int) -> None:
    walk, key, requested = attempt.walk, attempt.key, attempt.requested
    message, charge = heard.message(), attempt.charge
    usage = charge.usage(heard)
    amount, cut_by = charge.amount(usage), charge.cut_by(heard, usage)
    answered = ModelAnswered(
        stage=requested.stage,
        message=message,
        finish_reason=heard.finish_reason or "other",
        usage=usage if heard.left else heard.usage or usage,
        estimated=heard.left or heard.usage is None,
        cut_by=cut_by,
        latency_ms=latency,
        cost_usd=amount.usd,
        gateway_log_id=heard.gateway_log_id,
    )
    drafts = [Draft(key=f"{key}/end", event=answered, money={key: amount})]
    if verdict := await _judged(attempt, message):
        rejected = ModelRejected(attempt=requested.attempt, reason=verdict.reason, reminder=verdict.reminder)
        drafts.append(Draft(key=f"{key}/rejected", event=rejected))
    walk.write(*drafts, *charge.crossed(amount, cut_by))
    tell_usage(walk, requested.stage)


async def _judged(attempt: Attempt, message: AssistantMessage) -> Reject | None:
    """Decided before the answer is on record and recorded with it, so that a walk never asks the hook again."""
    hook = attempt.walk.agent.hooks.after_model
    if hook is None or not attempt.may_reject:
        return None
    return await must(attempt.walk, attempt.key, "after_model", Reject, lambda: hook(message))


async def _failed(attempt: Attempt, heard: Heard, error: ModelError) -> None:
    walk, key, requested, tries = attempt.walk, attempt.key, attempt.requested, attempt.tries
    unsent = error.kind in UNSENT and not heard.anything and heard.usage is None
    usage = Usage() if unsent else attempt.charge.usage(heard)
    abort = await wants_abort(walk, key, "provider", None, error)
    again = error.retryable and tries.one_is_left and not abort
    later = again and error.retry_after is not None and error.retry_after > IN_MEMORY_SECONDS
    jitter = random.uniform(1.0, 1.5)  # noqa: S311 - no secret
    tries.pause = 0.0 if later else error.retry_after or FIRST_PAUSE * 2**tries.bad * jitter
    failed = ModelFailed(
        stage=requested.stage,
        attempt=requested.attempt,
        error=error.kind,
        message=error.message,
        retryable=error.retryable,
        usage=usage,
        retry_at=walk.ports.clock.now() + int((error.retry_after or 0) * 1000) if later else None,
    )
    drafts = [Draft(key=f"{key}/end", event=failed, money={key: attempt.charge.amount(usage)})]
    if abort:
        drafts.append(Draft(key=f"{key}/abort", event=Fault(kind="provider", message=error.message, action="failed")))
    walk.write(*drafts)
    tell_usage(walk, requested.stage)


def _cut_off(attempt: Attempt, heard: Heard) -> None:
    """By the cancel of the step. What was sent is paid for, and what was heard."""
    walk, requested = attempt.walk, attempt.requested
    usage = attempt.charge.usage(heard)
    failed = ModelFailed(
        stage=requested.stage,
        attempt=requested.attempt,
        error="cancelled",
        message="the step was cancelled while the model answered",
        retryable=False,
        usage=usage,
    )
    walk.write(Draft(key=f"{attempt.key}/end", event=failed, money={attempt.key: attempt.charge.amount(usage)}))
