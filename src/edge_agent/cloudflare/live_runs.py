"""The runs that lie in one object: its own, and those of inline subagents below it."""

from typing import Any

from edge_agent.cloudflare.live_run import LiveRun, Wiring
from edge_agent.cloudflare.sockets import Sockets, run_of
from edge_agent.cloudflare.sql import ObjectAlarm, ObjectClock, ObjectSql, raw_storage
from edge_agent.core import keys
from edge_agent.core.ports import Post
from edge_agent.loop.shared_alarm import SharedAlarm
from edge_agent.storage.alarms import SqlAlarms
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import codec
from edge_agent.wire.console import Console, RunLines


class LiveRuns:
    """What an instance of the object holds in memory. `own`: the id of the object's own run."""

    def __init__(self, ctx: Any, wiring: Wiring, post: Post | None, console: Console) -> None:
        self._ctx, self._wiring, self._post, self._console = ctx, wiring, post, console
        storage = raw_storage(ctx)
        self._sql = ObjectSql(storage)
        # An alarm that wakes a cold object may come without the object's name (cloudflare/partykit#391).
        self.own = SqlLog(self._sql, codec).meta("run_id") or str(ctx.id.name)
        self.alarm = SharedAlarm(self.own, ObjectAlarm(storage), SqlAlarms(self._sql), ObjectClock())
        self._open: dict[str, LiveRun] = {}

    def of(self, run_id: str) -> LiveRun:
        """Opened by the first who needs it. Of inline runs only those stay in memory that go on, or still tell others
        of their end."""
        if run_id not in self._open:
            self._open = {known: live for known, live in self._open.items() if self._stays(known, live)}
            live = self._open[run_id] = LiveRun.open(
                run_id,
                SqlLog(self._sql, codec, keys.within_object(run_id)),
                alarm=self.alarm.of(run_id),
                sockets=Sockets(self._ctx, run_id),
                wiring=self._wiring,
                post=self._post,
            )
            live.hub.follow(RunLines(self._console, run_id).tell)
        return self._open[run_id]

    def _stays(self, run_id: str, live: LiveRun) -> bool:
        return run_id == self.own or live.goes_on or self.alarm.is_at_work(run_id)

    def forget(self, socket: Any) -> None:
        """A closing one. A run that is not open will not find it any more."""
        if live := self._open.get(run_of(self._ctx, socket)):
            live.sockets.forget(socket)

    def let_go(self, run_id: str) -> None:
        """Of one that was deleted. A slice under way keeps what it has until it meets its closed run."""
        self._open.pop(run_id, None)
