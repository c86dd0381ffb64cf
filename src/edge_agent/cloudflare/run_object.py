"""One run in its own Durable Object: a shell around the journal, the inbox and the driver. No policy lives here."""

import json
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import js
from pydantic import TypeAdapter
from workers import DurableObject, Request, Response

from edge_agent.cloudflare.event_stream import EventStream
from edge_agent.cloudflare.sockets import NORMAL, Sockets, close, frames, send
from edge_agent.cloudflare.sql import ObjectAlarm, ObjectClock, ObjectSql, raw_storage
from edge_agent.core.errors import Refusal
from edge_agent.core.events import RecordedEvent, RunCreated
from edge_agent.core.hub import Hub, Item
from edge_agent.core.journal import Journal, is_terminal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record
from edge_agent.core.state import RunState, fold
from edge_agent.loop.driver import Driver
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.walk import Ports
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import codec, export
from edge_agent.wire.frames import Framer

RETRY_WHEN_WAITING = "retry: 15000\n\n"  # an open response would keep the object from hibernating; the client comes back
PROTOCOL = "edge-agent.v1"
NDJSON = {"content-type": "application/x-ndjson; charset=utf-8", "cache-control": "no-store"}
SSE = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}
_CREATED: TypeAdapter[RunCreated] = TypeAdapter(RunCreated)
_STATE: TypeAdapter[RunState] = TypeAdapter(RunState)


class Wiring(Protocol):
    """What a run works with in this deployment."""

    def ports(self, created: RunCreated, hub: Hub, clock: ObjectClock) -> Ports:
        """Raises ConfigError."""
        ...

    def mask(self, event: RecordedEvent) -> RecordedEvent:
        """The event without the values of declared secrets."""
        ...


@dataclass(frozen=True, slots=True)
class _Live:
    """What an instance of the object holds in memory."""

    run_id: str
    log: SqlLog
    journal: Journal
    hub: Hub
    driver: Driver
    inbox: Inbox
    framer: Framer


class RunObject(DurableObject):
    """Subclass it with `wiring`, a function of the environment. RPC: `command` alone; its answers hold problems as data."""

    wiring: Callable[[Any], Wiring]

    def __init__(self, ctx: Any, env: Any) -> None:
        """Touches no storage and must not raise: a broken instance would be kept."""
        super().__init__(ctx, env)
        self._sockets = Sockets(ctx)
        self._kept: _Live | None = None

    # -- commands
    async def command(self, text: str) -> str:
        """{"run_id", "method", "payload"} -> {"ok": state} | {"refusal": {status, code, message, …}}"""
        request = json.loads(text)
        try:
            live = self._live(request["run_id"])
            self._obey(live, request["method"], request["payload"])
            return json.dumps({"ok": self._state(live)})
        except Refusal as no:
            return json.dumps({"refusal": {"status": no.status, "code": no.code, "message": no.message, **no.more}})

    def _obey(self, live: _Live, method: str, payload: JsonObject) -> None:
        match method:
            case "create":
                created = _CREATED.validate_python(payload["created"])
                live.inbox.create(created, payload["fingerprint"], idempotent=payload["idempotent"])
                live.log.set_meta("run_id", live.run_id)
            case "cancel":
                live.inbox.cancel(payload.get("reason"))
            case "resume":
                live.inbox.resume()
            case "answer":
                live.inbox.answer(payload["question_id"], payload["answer"])
            case _:
                pass

    def _state(self, live: _Live) -> JsonObject:
        _known(live)
        restarts = int(live.log.meta("restarts") or 0)
        return _STATE.dump_python(fold(live.run_id, live.journal.in_order(), restarts), mode="json", exclude_none=True)

    # -- the driver
    async def alarm(self) -> None:
        """One slice. Must not raise: the platform would back off and give up after six times."""
        try:
            await self._live(None).driver.ring()
        except Exception:  # the driver has its own net; this one is for a log that cannot be read
            js.console.error(traceback.format_exc())
            raw_storage(self.ctx).setAlarm(js.Date.now() + 10_000)

    # -- followers
    async def fetch(self, request: Request) -> Response:
        """GET …/{run_id}/events, ws, log, files/{name}. The caller was let in by the Worker."""
        url = urlsplit(request.url)
        run_id, what = _run_and_rest(url.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        try:
            live = self._live(run_id)
            _known(live)
            return self._follow(live, what, query, request)
        except Refusal as no:
            return _problem(no)

    def _follow(self, live: _Live, what: str, query: dict[str, str], request: Request) -> Response:
        if what == "log":
            return Response(self._export(live), headers=NDJSON)
        if what.startswith("files/"):
            return self._file(live, what.removeprefix("files/"))
        after = _cursor(live.journal, query.get("after") or request.headers.get("last-event-id"))
        if what == "ws":
            return self._socket(live, after, request)
        if query.get("wait") == "false":
            return Response(self._so_far(live, after), headers=NDJSON)
        return self._events(live, after)

    def _so_far(self, live: _Live, after: int) -> str:
        return "".join(f"{line}\n" for line in live.framer.json([r for r in live.journal.in_order() if r.seq > after]))

    def _events(self, live: _Live, after: int) -> Response:
        leave: list[Callable[[], None]] = []
        stream = EventStream(lambda: [go() for go in leave] and None)

        def tell(items: Any) -> None:
            stream.write(live.framer.sse(items))
            last = items[-1] if items else None
            if live.journal.ended:
                stream.end()
            elif isinstance(last, Record) and last.type == "run.waiting":
                stream.write(RETRY_WHEN_WAITING)
                stream.end()

        leave.append(live.hub.join(live.journal, after, tell))
        if not live.journal.ended and fold(live.run_id, live.journal.in_order()).status == "waiting":
            stream.write(RETRY_WHEN_WAITING)
            stream.end()
        return Response(stream.body, headers=SSE)

    def _export(self, live: _Live) -> str:
        return "".join(f"{line}\n" for line in export.lines(live.run_id, live.journal.in_order(), live.log.files()))

    def _file(self, live: _Live, name: str) -> Response:
        file = live.log.file(name)
        if file is None:
            raise Refusal(404, "unknown_file", "This run has no such file. Its tool.result events name those it has.")
        headers = {
            "content-type": file.media_type,
            "content-disposition": "attachment",
            "x-content-type-options": "nosniff",
        }
        return Response(file.content, headers=headers)

    # -- sockets
    def _socket(self, live: _Live, after: int, request: Request) -> Response:
        if (request.headers.get("upgrade") or "").lower() != "websocket":
            raise Refusal(426, "upgrade_required", "This address speaks WebSocket. For plain HTTP use …/events.")
        client, server = self._sockets.accept(hibernatable=live.journal.ended is None)
        missed: list[Item] = [record for record in live.journal.in_order() if record.seq > after]
        for frame in frames(live.framer.json([*missed, *live.hub.open_parts()])):
            send(server, frame)
        if live.journal.ended:
            close(server, NORMAL, "the run has ended")
        else:
            self._sockets.add(server)
        asked = request.headers.get("sec-websocket-protocol") or ""
        headers = {"sec-websocket-protocol": PROTOCOL} if PROTOCOL in asked else {}
        return Response(None, status=101, web_socket=client, headers=headers)

    async def webSocketMessage(self, socket: Any, message: Any) -> None:  # noqa: N802  (the platform's name)
        """{"id", "type": "cancel" | "answer", …} -> {"ack": id, "ok": …} | {"ack": id, "problem": …}"""
        send(socket, json.dumps(self._acknowledged(message)))

    def _acknowledged(self, message: Any) -> JsonObject:
        number: Any = None
        try:
            request = json.loads(message) if isinstance(message, str) else None
            if not isinstance(request, dict) or request.get("type") not in ("cancel", "answer"):
                raise Refusal(400, "bad_command", 'Send {"id": 1, "type": "cancel"} or {"id": 2, "type": "answer", "question_id", "answer"}.')
            number = request.get("id")
            live = self._live(None)
            _known(live)
            self._obey(live, request["type"], request)
            return {"ack": number, "ok": True}
        except Refusal as no:
            return {"ack": number, "problem": {"status": no.status, "code": no.code, "detail": no.message}}
        except (ValueError, KeyError, TypeError) as error:
            return {"ack": number, "problem": {"status": 400, "code": "bad_command", "detail": f"not understood: {error}"}}

    async def webSocketClose(self, socket: Any, code: int, reason: str, clean: bool) -> None:  # noqa: N802, ARG002, FBT001
        close(socket, NORMAL, "")
        self._sockets.forget(socket)

    async def webSocketError(self, socket: Any, error: Any) -> None:  # noqa: N802, ARG002
        self._sockets.forget(socket)

    # -- what is in memory
    def _live(self, run_id: str | None) -> _Live:
        """Loaded by the first who needs it. An unknown run is not kept: a create may come."""
        if self._kept:
            return self._kept
        storage = raw_storage(self.ctx)
        clock, hub, log = ObjectClock(), Hub(), SqlLog(ObjectSql(storage), codec)
        wiring = type(self).wiring(self.env)
        run_id = log.meta("run_id") or run_id or ""
        journal = Journal(log, clock, hub, wiring.mask)
        driver = Driver(run_id, journal, ObjectAlarm(storage), lambda: wiring.ports(journal.created, hub, clock))
        framer = Framer(run_id=run_id, journal=journal)
        self._kept = _Live(run_id, log, journal, hub, driver, Inbox(journal, driver), framer)
        hub.follow(lambda items: self._broadcast(framer, items))
        return self._kept

    def _broadcast(self, framer: Framer, items: Any) -> None:
        self._sockets.send(framer.json(items))
        if any(isinstance(item, Record) and is_terminal(item) for item in items):
            self._sockets.close()


def _run_and_rest(path: str) -> tuple[str, str]:
    found = re.fullmatch(r"/v1/runs/([^/]+)/(.+)", path)
    return (found[1], found[2]) if found else ("", "")


def _known(live: _Live) -> None:
    if not live.journal.records:
        raise Refusal(404, "unknown_run", "There is no run with this id. POST /v1/runs starts one.")


def _cursor(journal: Journal, text: str | None) -> int:
    if not text:
        return 0
    if not re.fullmatch(r"\d{1,15}", text):
        raise Refusal(400, "bad_cursor", "The cursor is the seq of the last event you have: a whole number.")
    last = len(journal.records)
    if int(text) > last:
        raise Refusal(416, "cursor_ahead", f"The cursor {text} is ahead of the log, which ends at {last}. Start again from 0.", last=last)
    return int(text)


def _problem(no: Refusal) -> Response:
    body = {"type": f"urn:edge-agent:{no.code}", "title": no.code, "status": no.status, "code": no.code, "detail": no.message, **no.more}
    return Response(json.dumps(body), status=no.status, headers={"content-type": "application/problem+json"})

