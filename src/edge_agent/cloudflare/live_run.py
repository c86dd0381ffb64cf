"""What an instance of an object holds in memory of a run, made when somebody first needs it."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from pydantic import TypeAdapter

from edge_agent.cloudflare.sockets import Sockets
from edge_agent.cloudflare.sql import ObjectClock
from edge_agent.core.approval import Approval
from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.events import ApprovalMode, QuestionAsked, RecordedEvent, RunCreated
from edge_agent.core.hub import Hub, Item
from edge_agent.core.journal import Journal, is_terminal
from edge_agent.core.listing import Listed
from edge_agent.core.messages import JsonObject
from edge_agent.core.model_calls import answered_calls
from edge_agent.core.ports import Alarm, Post, Record
from edge_agent.core.state import RunState, fold
from edge_agent.loop import decisions, elicitation, kin_inbox
from edge_agent.loop.continued import turns
from edge_agent.loop.conversation import conversation
from edge_agent.loop.driver import Driver
from edge_agent.loop.fork import up_to
from edge_agent.loop.inbox import Inbox, known
from edge_agent.loop.walk import Ports
from edge_agent.storage.sql_log import SqlLog
from edge_agent.tools.json_schema import SchemaCheck
from edge_agent.wire.content import lent, taken
from edge_agent.wire.forwarded import forwarded
from edge_agent.wire.frames import Framer
from edge_agent.wire.http import DecideCall, ForkChanges

_CREATED: TypeAdapter[RunCreated] = TypeAdapter(RunCreated)
_APPROVAL: TypeAdapter[Approval] = TypeAdapter(Approval)
_STATE: TypeAdapter[RunState] = TypeAdapter(RunState)


class Wiring(Protocol):
    """What the runs of this deployment work with."""

    def ports(self, created: RunCreated, sink: Hub, clock: ObjectClock) -> Ports:
        """Raises ConfigError."""
        ...

    def mask(self, event: RecordedEvent) -> RecordedEvent:
        """The event without the values of declared secrets."""
        ...

    def forked(self, created: RunCreated, changes: ForkChanges) -> RunCreated:
        """The configuration of a fork of the run that was created so. Raises Refusal 422."""
        ...

    def approval_modes(self, agent: str) -> Sequence[ApprovalMode]:
        """The modes a run of this agent may be put into. Raises ConfigError."""
        ...

    async def edited(self, agent: str, user: str | None, tool: str, arguments: JsonObject) -> JsonObject:
        """The arguments a person puts in the place of a call's, sanitized and checked. Raises Refusal 422 and 503."""
        ...


WiringOf = Callable[[Any], Wiring]
AT_ONCE_SECONDS = 1.0  # that a create waits for the directory


@dataclass(frozen=True, slots=True)
class LiveRun:
    run_id: str
    log: SqlLog
    journal: Journal
    hub: Hub
    driver: Driver
    inbox: Inbox
    framer: Framer
    sockets: Sockets
    wiring: Wiring

    @classmethod
    def open(
        cls, run_id: str, log: SqlLog, *, alarm: Alarm, sockets: Sockets, wiring: Wiring, post: Post | None
    ) -> "LiveRun":
        """Reads the log by one select. Makes nothing: a run that was never created leaves no trace."""
        clock, hub = ObjectClock(), Hub()
        journal = Journal(log, clock, hub, wiring.mask, Listed(run_id) if post else None)
        driver = Driver(
            run_id,
            journal,
            alarm,
            lambda: wiring.ports(journal.created, hub, clock),
            post=post,
            show=lambda record: forwarded(record, run_id),
        )
        inbox, framer = Inbox(journal, driver), Framer(run_id=run_id, journal=journal)
        live = cls(run_id, log, journal, hub, driver, inbox, framer, sockets, wiring)
        hub.follow(live._broadcast)
        return live

    def _broadcast(self, items: Sequence[Item]) -> None:
        self.sockets.send(self.framer.json(items))
        if any(isinstance(item, Record) and is_terminal(item) for item in items):
            self.sockets.close()

    @property
    def exists(self) -> bool:
        return bool(self.journal.records)

    @property
    def goes_on(self) -> bool:
        return self.exists and not self.journal.refused and self.journal.ended is None

    def known(self) -> "LiveRun":
        """Itself. Raises Refusal where the run was never created, or was deleted."""
        known(self.journal)
        return self

    async def tell_at_once(self) -> None:
        """What is to be told is told now where that is quickly done: who has created a run finds it in the list. Else
        the alarm tells it."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.driver.outbox.pump(), AT_ONCE_SECONDS)

    @property
    def waits(self) -> bool:
        return fold(self.run_id, self.journal.in_order()).status == "waiting"

    def state(self) -> JsonObject:
        restarts = int(self.log.meta("restarts") or 0)
        return _json_of(fold(self.run_id, self.journal.in_order(), restarts))

    async def asked_state(self, payload: JsonObject) -> JsonObject:
        """The state now, or as of a record, with the conversation where it is asked for. Raises Refusal."""
        at, records = payload.get("at"), self.known().journal.in_order()
        if at is None and not payload.get("messages"):
            return self.state()
        shown = records if at is None else up_to(records, int(at))
        restarts = int(self.log.meta("restarts") or 0) if at is None else 0
        state = fold(self.run_id, shown, restarts)
        if payload.get("messages"):
            state = replace(state, messages=await conversation(self.run_id, shown))
        return _json_of(state)

    async def prepared(self, method: str, payload: JsonObject) -> JsonObject:
        """What has to be waited for before a command: other arguments for a call are checked by its tool."""
        if method != "decision" or (arguments := _said(payload).arguments) is None:
            return payload
        asked = decisions.shown(self.known().journal, str(payload["call_id"]), payload.get("arguments_hash"))
        if arguments == asked.arguments:
            return payload
        with _misconfiguration_told():
            return {**payload, "arguments": await self._edited(asked.name, arguments)}

    async def _edited(self, tool: str, arguments: JsonObject) -> JsonObject:
        return await self.wiring.edited(self.journal.agent, self.journal.created.user, tool, arguments)

    def _about_approvals(self, method: str, payload: JsonObject) -> JsonObject:
        if method == "approval-mode":
            with _misconfiguration_told():
                allowed = self.wiring.approval_modes(self.known().journal.agent)
            self.inbox.change_mode(payload["mode"], allowed=allowed, tighten=payload["tighten"])
            return {}
        if method == "decision":
            said, call_id, once = _said(payload), str(payload["call_id"]), payload.get("once") is True
            self.inbox.decide(call_id, said.decision(), arguments_hash=said.arguments_hash, once=once)
        asked = decisions.shown(self.known().journal, str(payload["call_id"]), payload.get("arguments_hash"))
        return {"approval": _APPROVAL.dump_python(asked, mode="json", exclude_none=True)}

    def _stopped(self, method: str, payload: JsonObject) -> JsonObject:
        reason = payload.get("reason")
        if method == "cancel_step":
            return {"cancelled_step": self.inbox.cancel_step(reason)}
        if method == "cancel_subagent":
            started = kin_inbox.cancel_subagent(self.inbox, payload["call_id"], reason)
            return {"cancelled_subagent": started.child_run_id}
        self.inbox.cancel(reason)
        return {}

    def _turns(self) -> JsonObject:
        """With the files that were sent along with them."""
        told = turns(self.journal)
        names = dict.fromkeys(file.name for turn in told for file in turn.attachments or ())
        files = [lent(file) for name in names if (file := self.log.file(name))]
        return {"turns": [asdict(turn) for turn in told], "files": files}

    def obey(self, method: str, payload: JsonObject) -> JsonObject:
        """A command of a client, and what its answer holds besides the state. Raises Refusal."""
        match method:
            case "create":
                created = _CREATED.validate_python(payload["created"])
                files = [taken(file) for file in payload["files"]]
                self.inbox.create(created, payload["fingerprint"], idempotent=payload["idempotent"], files=files)
            case "cancel" | "cancel_step" | "cancel_subagent":
                return self._stopped(method, payload)
            case "message":
                self.inbox.message(payload["message_id"], payload["text"])
            case "resume":
                self.inbox.resume(payload.get("reason"))
            case "delete":
                self.inbox.delete()
            case "turns":
                return self._turns()
            case "calls":
                return {"calls": [asdict(call) for call in answered_calls(self.known().journal.in_order())]}
            case "answer":
                _require_form(self.inbox.question(payload["question_id"]), payload["answer"])
                self.inbox.answer(payload["question_id"], payload["answer"])
            case "decision" | "approval" | "approval-mode":
                return self._about_approvals(method, payload)
            case _:  # "state" changes nothing
                pass
        return {}


def _require_form(question: QuestionAsked, answer: str) -> None:
    """Raises Refusal 422 for an answer that is not of the form the question has, so that it can be given again."""
    action, content = elicitation.response(question, answer)
    if question.schema is None or action != "accept":
        return
    if faults := SchemaCheck(question.schema).faults(content):
        how = "Answer with JSON that fits `schema` of the question, or `decline`."
        raise Refusal(422, "wrong_answer", f"{'; '.join(faults)}. {how}", field="answer")


def _said(payload: JsonObject) -> DecideCall:
    """Checked already, whichever way it came."""
    return DecideCall.model_validate({name: payload[name] for name in DecideCall.model_fields if name in payload})


@contextmanager
def _misconfiguration_told() -> Generator[None]:
    try:
        yield
    except ConfigError as error:
        raise Refusal(503, "configuration", f"This deployment is misconfigured. {error}") from error


def _json_of(state: RunState) -> JsonObject:
    return _STATE.dump_python(state, mode="json", exclude_none=True)
