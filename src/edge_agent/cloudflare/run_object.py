"""A run in its own Durable Object, and inline subagents with it: a shell that hands what arrives to the journal, the
inbox and the driver of the run it is for."""

import json
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import js
from pydantic import ValidationError
from workers import DurableObject, Request, Response

from edge_agent.cloudflare import rpc
from edge_agent.cloudflare.followers import cursor, follow, missed, refused
from edge_agent.cloudflare.live_run import LiveRun, WiringOf
from edge_agent.cloudflare.live_runs import LiveRuns
from edge_agent.cloudflare.sockets import NORMAL, close, frames, run_of, send
from edge_agent.cloudflare.sql import ObjectAlarm, raw_storage
from edge_agent.cloudflare.timers import end_cancelled_timers
from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Alarm, Post
from edge_agent.forking import LENT, Objects, Taker, lend
from edge_agent.http.gate import strict_json
from edge_agent.http.run_tokens import chosen_protocol
from edge_agent.kin_objects import receive
from edge_agent.loop.kin import METHODS
from edge_agent.loop.walk import Slice
from edge_agent.wire.console import SILENT, Console
from edge_agent.wire.refused import refusal_of
from edge_agent.wire.socket import FRAMES, HOW

LISTED_AT_ONCE = ("create", "fork", "resume", "delete")  # who has done it finds it in the list
UNREADABLE_MS = 10_000  # until a log that could not be read is tried again


def _nobody(_: Any) -> Post | None:
    return None


def _silent(_: Any) -> Console:
    return SILENT


class RunObject(DurableObject):
    """Subclass it with `wiring`, `post`, `runs` and `console`, static functions of the environment. Without a `post`
    the run tells nobody of itself, without `runs` it cannot become a fork, without a `console` it writes no lines.

    Its only RPC method is `command`; answers hold problems as data, since an exception would cross as a traceback.
    """

    wiring: WiringOf
    post: Callable[[Any], Post | None] = staticmethod(_nobody)
    runs: Callable[[Any], Objects]
    console: Callable[[Any], Console] = staticmethod(_silent)

    def __init__(self, ctx: Any, env: Any) -> None:
        """Touches no storage and must not raise: a broken instance would be kept."""
        super().__init__(ctx, env)
        self._kept: LiveRuns | None = None
        self._forking: Taker | None = None

    def _runs(self) -> LiveRuns:
        """Made by the first who needs one of them."""
        if self._kept is None:
            end_cancelled_timers()
            kind = type(self)
            self._kept = LiveRuns(self.ctx, kind.wiring(self.env), kind.post(self.env), kind.console(self.env))
        return self._kept

    # -- commands
    async def command(self, run_id: str, text: str) -> str:
        """See rpc.answered."""
        return await rpc.answered(text, partial(self._answer, run_id))

    async def _answer(self, run_id: str, method: str, payload: JsonObject) -> JsonObject:
        live = self._runs().of(run_id)
        if method in LENT:
            return lend(live.journal, live.log, method, payload)
        if method in METHODS:
            receive(live.inbox, method, payload)
            return {}
        if method == "state":
            return await live.asked_state(payload)
        if method == "fork":
            await self._taker(live).fork(payload)
        more = live.obey(method, await live.prepared(method, payload))
        if method == "delete":
            self._runs().let_go(run_id)
        else:
            more = {**live.known().state(), **more}
        if method in LISTED_AT_ONCE:
            await live.tell_at_once()
        return more

    def _taker(self, live: LiveRun) -> Taker:
        """What makes a fork of the object's own run, one for as long as the instance lives."""
        if self._forking is None:
            objects = type(self).runs(self.env)
            self._forking = Taker(objects=objects, inbox=live.inbox, log=live.log, configure=live.wiring.forked)
        return self._forking

    # -- the driver
    async def alarm(self) -> None:
        """A slice of each run that is due. Must not raise: the platform would give up after six times."""
        with self._tried_again(str(self.ctx.id.name), ObjectAlarm(raw_storage(self.ctx))):
            await self._runs().alarm.ring(self._slice)

    async def _slice(self, run_id: str, slice_: Slice) -> None:
        """Must not raise: the slices of other runs are under way beside it."""
        with self._tried_again(run_id, self._runs().alarm.of(run_id)):
            live = self._runs().of(run_id)
            await live.driver.ring(slice_)
            if not live.exists and run_id == self._runs().own:
                self._taker(live).sweep()

    @contextmanager
    def _tried_again(self, run_id: str, alarm: Alarm) -> Generator[None]:
        """The driver has a net of its own; this is for a log that cannot be read."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever it is
            trace, now = traceback.format_exc(), int(js.Date.now())
            alarm.set(now + UNREADABLE_MS)
            type(self).console(self.env).say("error", "unexpected", now, run_id=run_id, trace=trace)

    # -- followers
    async def fetch(self, request: Request) -> Response:
        """GET /v1/runs/{run_id}/… of a caller the Worker has let in."""
        url = urlsplit(request.url)
        _, run_id, what = url.path.removeprefix("/v1/").split("/", 2)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        try:
            live = self._runs().of(run_id).known()
            if what == "ws":
                return self._socket(live, cursor(live, query.get("after")), request)
            return follow(live, what, query, request.headers.get("last-event-id"))
        except Refusal as no:
            return refused(no)

    # -- sockets
    def _socket(self, live: LiveRun, after: int, request: Request) -> Response:
        """One synchronous block: what is on record, what open parts have said, and from here on the broadcast."""
        if (request.headers.get("upgrade") or "").lower() != "websocket":
            raise Refusal(426, "upgrade_required", "This address speaks WebSocket. For plain HTTP use …/events.")
        ended = live.journal.ended is not None
        client, server = live.sockets.accept(hibernatable=not ended)
        for frame in frames(live.framer.json([*missed(live, after), *live.hub.open_parts()])):
            send(server, frame)
        if ended:
            close(server, NORMAL, "the run has ended")
        else:
            live.sockets.add(server)
        protocol = chosen_protocol(request.headers.get("sec-websocket-protocol"))
        headers = {"sec-websocket-protocol": protocol} if protocol else {}
        return Response(None, status=101, web_socket=client, headers=headers)

    async def webSocketMessage(self, socket: Any, message: Any) -> None:  # noqa: N802 - the platform's name
        """{"id", "type": "cancel" | "message" | …, …} -> {"ack": id, "ok": true} | {"ack": id, "problem": {…}}"""
        send(socket, json.dumps(await self._acknowledged(run_of(self.ctx, socket), message)))

    async def _acknowledged(self, run_id: str, message: Any) -> JsonObject:
        """An exception here would leave the client without a word."""
        request: JsonObject = {}
        try:
            request = _object_of(message)
            method, payload = _command_of(request)
            live = self._runs().of(run_id).known()
            live.obey(method, await live.prepared(method, payload))
        except Refusal as no:
            return {"ack": request.get("id"), "problem": {"status": no.status, "code": no.code, "detail": no.message}}
        return {"ack": request.get("id"), "ok": True}

    async def webSocketClose(self, socket: Any, *_: Any) -> None:  # noqa: N802 - the platform's name
        """Closes our end too, or the client would wait for it (measured)."""
        close(socket, NORMAL, "")
        self._forget(socket)

    async def webSocketError(self, socket: Any, *_: Any) -> None:  # noqa: N802 - the platform's name
        self._forget(socket)

    def _forget(self, socket: Any) -> None:
        if self._kept:
            self._kept.forget(socket)


def _object_of(message: Any) -> JsonObject:
    """Raises Refusal for what is no JSON object."""
    try:
        request = strict_json(message) if isinstance(message, str) else None
    except Refusal:
        request = None
    if not isinstance(request, dict):
        raise Refusal(422, "bad_command", f"This is no command. {HOW}")
    return cast(JsonObject, request)


def _command_of(request: JsonObject) -> tuple[str, JsonObject]:
    """The method and its payload. Raises Refusal for what no route would take either: what stands in the log is read
    by every later instance."""
    kind = request.get("type")
    if not isinstance(kind, str) or kind not in FRAMES:
        raise Refusal(422, "bad_command", f"`type` names no command. {HOW}")
    try:
        frame = FRAMES[kind].model_validate(request)
    except ValidationError as error:
        raise refusal_of(error) from None
    return kind, frame.model_dump(exclude={"id", "type"}, exclude_unset=True)
