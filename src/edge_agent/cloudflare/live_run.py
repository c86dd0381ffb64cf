"""What an instance of a run's object holds in memory, made when somebody first needs it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from pydantic import TypeAdapter

from edge_agent.cloudflare.sql import ObjectAlarm, ObjectClock, ObjectSql, raw_storage
from edge_agent.core.events import RecordedEvent, RunCreated
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Journal
from edge_agent.core.listing import Listed
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Post
from edge_agent.core.state import RunState, fold
from edge_agent.loop.continued import turns
from edge_agent.loop.driver import Driver
from edge_agent.loop.inbox import Inbox, known
from edge_agent.loop.walk import Ports
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import codec
from edge_agent.wire.frames import Framer

_CREATED: TypeAdapter[RunCreated] = TypeAdapter(RunCreated)
_STATE: TypeAdapter[RunState] = TypeAdapter(RunState)


class Wiring(Protocol):
    """What the runs of this deployment work with."""

    def ports(self, created: RunCreated, sink: Hub, clock: ObjectClock) -> Ports:
        """Raises ConfigError."""
        ...

    def mask(self, event: RecordedEvent) -> RecordedEvent:
        """The event without the values of declared secrets."""
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

    @classmethod
    def open(cls, ctx: Any, wiring: Wiring, post: Post | None) -> "LiveRun":
        """Reads the log by one select. Makes nothing: a run that was never created leaves no trace."""
        storage = raw_storage(ctx)
        clock, hub, log = ObjectClock(), Hub(), SqlLog(ObjectSql(storage), codec)
        # An alarm that wakes a cold object may come without the object's name (cloudflare/partykit#391).
        run_id = log.meta("run_id") or str(ctx.id.name)
        journal = Journal(log, clock, hub, wiring.mask, Listed(run_id) if post else None)
        driver = Driver(
            run_id, journal, ObjectAlarm(storage), lambda: wiring.ports(journal.created, hub, clock), post=post
        )
        return cls(run_id, log, journal, hub, driver, Inbox(journal, driver), Framer(run_id=run_id, journal=journal))

    @property
    def exists(self) -> bool:
        return bool(self.journal.records)

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
        return _STATE.dump_python(fold(self.run_id, self.journal.in_order(), restarts), mode="json", exclude_none=True)

    def obey(self, method: str, payload: JsonObject) -> JsonObject:
        """A command of a client, and what its answer holds besides the state. Raises Refusal."""
        match method:
            case "create":
                created = _CREATED.validate_python(payload["created"])
                self.inbox.create(created, payload["fingerprint"], idempotent=payload["idempotent"])
            case "cancel":
                self.inbox.cancel(payload.get("reason"))
            case "cancel_step":
                return {"cancelled_step": self.inbox.cancel_step(payload.get("reason"))}
            case "message":
                self.inbox.message(payload["message_id"], payload["text"])
            case "resume":
                self.inbox.resume()
            case "delete":
                self.inbox.delete()
            case "turns":
                return {"turns": [asdict(turn) for turn in turns(self.journal)]}
            case "answer":
                self.inbox.answer(payload["question_id"], payload["answer"])
            case _:  # "state" changes nothing
                pass
        return {}
