"""Replay: the code of today walks the log of a run. Nothing is called and nothing is written; what differs is told.

Records are compared by their keys, never by their places. A live walk asks for them in the same way; a replay also
builds the prompt of every attempt, and enters what has come to its end.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeVar, cast

from edge_agent.core import keys
from edge_agent.core.difference import Difference, DifferenceKind
from edge_agent.core.errors import Drift, EdgeAgentError
from edge_agent.core.events import ModelRefused, ModelRequested, OfferedTools, RecordedEvent, RunCompleted, RunFailed
from edge_agent.core.journal import Journal
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.ports import Record, StoredFile
from edge_agent.core.signals import Cancelled, Suspend
from edge_agent.core.tooling import Tools
from edge_agent.loop import close
from edge_agent.loop.direct import Ending
from edge_agent.loop.offer import is_of_server, offer
from edge_agent.loop.planned import whole
from edge_agent.loop.recorded import RecordedLog, RecordedTools, Unheard
from edge_agent.loop.walk import Ports, Slice, Walk

T = TypeVar("T")
E = TypeVar("E", bound=RecordedEvent)
CIRCUMSTANCES = frozenset({"restarts", "drift", "config"})  # why a run failed, where the log does not say it


async def replay(
    run_id: str, records: Sequence[Record], ports: Ports, files: Iterable[StoredFile] = ()
) -> Difference | None:
    """The first difference between what the code asks for and what was recorded; None where there is none.

    `ports`: of the agent as it is today; no model, tool or hook is called. `files`: those of the log."""
    files = tuple(files)

    def recorded(tools: Tools) -> RecordedTools:
        return RecordedTools(tools.offered(), files)

    others = {name: (agent, recorded(tools)) for name, (agent, tools) in ports.others.items()}
    quiet = replace(ports, tools=recorded(ports.tools), others=others, sink=Unheard(), model=_no_model)
    walk = ReplayWalk(run_id, records, quiet)
    try:
        return await _verdict(walk)
    except Differs as found:
        return found.difference


class Differs(BaseException):
    """A BaseException: what the code does about errors is no business of a replay."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.message)
        self.difference = difference


class EndOfRecords(BaseException):
    """Everything on record was asked for, and now `key` is."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _no_model(name: str) -> Model:
    raise EndOfRecords(name)


# -- the end of it
async def _verdict(walk: "ReplayWalk") -> Difference | None:
    life = walk.journal.life
    try:
        ending = await whole(walk)
    except EndOfRecords as end:
        return _goes_on(walk, end.key)
    except Suspend as suspended:
        walk.all_asked(None)
        return _goes_on(walk, suspended.waits[0].key)
    except Cancelled:
        walk.all_asked(None)
        return _goes_on(walk, keys.cancel(life))
    except EdgeAgentError as error:
        walk.all_asked(None)
        return _fails(walk, error)
    walk.all_asked(keys.end(life))
    return _ends(walk, ending)


def _goes_on(walk: "ReplayWalk", key: str) -> Difference | None:
    """A log that ended otherwise than completed ends anywhere."""
    ended = walk.journal.ended
    if ended is None or not isinstance(ended.event, RunCompleted):
        return None
    message = f"the code goes on with {key}, where the log ends with {ended.type}"
    return Difference(kind="end", key=ended.key, seq=ended.seq, asked=key, message=message)


def _fails(walk: "ReplayWalk", error: EdgeAgentError) -> Difference | None:
    ended, now = walk.journal.ended, close.why(error)
    match ended.event if ended else None:
        case RunFailed(error=was) if was.code != now.code and was.kind not in CIRCUMSTANCES:
            return _other_end(walk, f"the run would fail with {now.code}, and failed with {was.code}")
        case RunCompleted():
            return _other_end(walk, f"the run would fail with {now.code} ({now.message}), and was completed")
        case _:
            return None


def _ends(walk: "ReplayWalk", ending: Ending) -> Difference | None:
    ended = walk.journal.ended
    if ended is None:
        return None
    now = walk.journal.cleaned(close.completed(walk.journal, ending))
    match ended.event:
        case RunCompleted(stop_reason=reason) if reason != now.stop_reason:
            return _other_end(walk, f"the run would end with {now.stop_reason}, and ended with {reason}")
        case RunCompleted(text=text, output=output) if (text, output) != (now.text, now.output):
            return _other_end(walk, "the run would end with another answer than the recorded one")
        case RunFailed(error=was) if was.kind in CIRCUMSTANCES:
            return None
        case RunCompleted():
            return None
        case other:
            return _other_end(walk, f"the run would be completed, and ended with {other.type}")


def _other_end(walk: "ReplayWalk", message: str) -> Difference:
    last = walk.journal.last
    return Difference(kind="end", key=last.key, seq=last.seq, message=message)


# -- the walk
class ReplayWalk(Walk):
    """Raises Differs at the first difference and EndOfRecords where the log ends."""

    def __init__(self, run_id: str, records: Sequence[Record], ports: Ports) -> None:
        """All tools of the ports are RecordedTools."""
        journal = Journal(RecordedLog(records), ports.clock, ports.sink)
        super().__init__(run_id, journal, ports, Slice(until=0, most=0))
        self._scope, self._but = "", ""

    # -- what is on record
    def seen(self, key: str, *kinds: type[E]) -> E | None:
        try:
            return super().seen(key, *kinds)
        except Drift as drift:
            record = self.journal.records[key]
            raise Differs(Difference(kind="type", key=key, seq=record.seq, asked=key, message=str(drift))) from None

    async def over(self, scope: str, work: Callable[[], Awaitable[object]], *, but: str | None = None) -> None:
        """Enters the scope. Where its records end before the work does, that was its end; it left none unasked for."""
        outer, (self._scope, self._but) = (self._scope, self._but), (f"{scope}/", f"{but}/" if but else "")
        try:
            await work()
            self.all_asked(None)
        except EndOfRecords:
            pass
        except (EdgeAgentError, Suspend, Cancelled):
            self.all_asked(None)
        finally:
            self._scope, self._but = outer
        self.pass_over(scope, but=but)

    def all_asked(self, asked: str | None) -> None:
        """Raises Differs where a record was not asked for (of the scope entered, if one is): `asked` stands in its
        place."""
        first = min(self._left(), key=lambda record: record.seq, default=None)
        if first is not None:
            said = f"the code asks for {asked}" if asked else "the code asks for nothing more"
            message = f"{said}, but the log goes on with {first.key} ({first.type})"
            raise Differs(Difference(kind="key", key=first.key, seq=first.seq, asked=asked, message=message))

    def _left(self) -> Iterable[Record]:
        return (record for key, record in self._unwalked.items() if self._lies_here(f"{key}/"))

    def _lies_here(self, key: str) -> bool:
        return key.startswith(self._scope) and not (self._but and key.startswith(self._but))

    # -- prompts
    @property
    def recorded_tools(self) -> RecordedTools:
        """Of the agent whose turn it is."""
        return cast(RecordedTools, self.tools)

    def met(
        self,
        key: str,
        asked: ModelRequested | ModelRefused | None,
        build: Callable[[], ModelRequest],
        tools: OfferedTools | None,
    ) -> None:
        """What a fork has inherited was asked by other code for another run: that is no difference."""
        if not isinstance(asked, ModelRequested) or self.journal.records[key].seq <= self.created.inherited:
            return
        offered = asked.tools or tools
        if offered is not None and not self._same_tools(key, offered):
            return
        if self.hashes.of(build()) != (asked.built_hash or asked.prompt_hash):
            message = f"the prompt of {key} ({asked.stage}) is not the recorded one"
            self._differs("prompt", key, message)

    def _same_tools(self, key: str, offered: OfferedTools) -> bool:
        """False where nobody can tell: a server's tools that the log does not describe."""
        unknown = self.recorded_tools.at(offered)
        gone = [name for name in unknown if not is_of_server(name)]
        if gone:
            self._differs("tools", key, f"{key} was offered tools that are no longer in the code: {', '.join(gone)}")
        if unknown:
            return False
        if offered.names and offer(self.recorded_tools.offered()).version != offered.version:
            own = ", ".join(name for name in offered.names if name in self.recorded_tools.functions)
            self._differs(
                "tools", key, f"the descriptions of tools have changed since {key}; these are the code's: {own}"
            )
        return True

    def _differs(self, kind: DifferenceKind, key: str, message: str) -> NoReturn:
        raise Differs(Difference(kind=kind, key=key, seq=self.journal.records[key].seq, message=message))

    # -- where the log ends
    def frontier(self, key: str) -> NoReturn:
        self.all_asked(key)
        raise EndOfRecords(key)

    def ready(self) -> None:
        """Where something is left, what comes next is told what that is."""
        if not any(True for _ in self._left()):
            super().ready()

    async def effect(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        work.close()
        self.frontier(key)

    async def take_in_tools(self, key: str, *, again: bool) -> tuple[str, ...]:
        if again or not (self._scope or any(True for _ in self._left())):
            self.frontier(key)
        return ()
