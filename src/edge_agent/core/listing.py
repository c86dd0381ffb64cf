"""What the directory of runs is told of a run: who it is, how it stands, what it has used.

A report is the whole listing as of a `seq`, so that of two that arrive in any order the later one counts. There are few
of them: the run is created, begins to wait for a person, goes on after that, ends.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from edge_agent.core import keys
from edge_agent.core.canonical import canonical
from edge_agent.core.events import TERMINAL_TYPES, ModelAnswered, ModelRequested, RunCreated, RunWaiting, StopReason
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record, Send
from edge_agent.core.state import Status, fold
from edge_agent.core.usage import Usage, total_of, total_usage

DIRECTORY = "directory"  # the destination; the post finds the shard by the run's id
SHARDS = 16
ACTIVE: tuple[Status, ...] = ("queued", "running", "waiting")
MOST_METADATA = 1_000  # characters; more of it is in the run's state alone
MOST_TITLE = 120
_WORTH_TELLING = frozenset({"run.created", "run.resumed", *TERMINAL_TYPES})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """What one model was used for in one run: tokens of its answers, dollars of all attempts, as in the run's state."""

    model: str
    usage: Usage
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A run as it is listed. Times in ms since the epoch; `title` is how its input begins."""

    run_id: str
    agent: str
    status: Status
    created: int
    updated: int
    seq: int
    title: str
    stop_reason: StopReason | None = None
    uses: tuple[ModelUse, ...] = ()
    parent: str | None = None
    metadata: JsonObject | None = None


def shard_of(run_id: str) -> int:
    """Which part of the directory knows the run."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4], "big") % SHARDS


def listing_of(run_id: str, records: Sequence[Record]) -> Listing:
    """The listing after the last of `records`, which begin with run.created."""
    state, created = fold(run_id, records), cast(RunCreated, records[0].event)
    small = created.metadata is not None and len(canonical(created.metadata)) <= MOST_METADATA
    return Listing(
        run_id=run_id,
        agent=state.agent,
        status=state.status,
        created=records[0].at,
        updated=max(records[0].at, records[-1].at),  # what a fork takes is older than the fork
        seq=records[-1].seq,
        title=" ".join(created.input[: MOST_TITLE * 2].split())[:MOST_TITLE],
        stop_reason=state.stop_reason,
        uses=_uses(records, created.inherited),
        parent=state.parent,
        metadata=created.metadata if small else None,
    )


def _uses(records: Sequence[Record], inherited: int) -> tuple[ModelUse, ...]:
    """By model. What a fork inherits was used by the run it comes from, and is counted there; what a child used, by the
    child."""
    money = {key: amount for record in records for key, amount in record.money.items()}
    answers = {r.key.removesuffix("/end"): r.event.usage for r in records if isinstance(r.event, ModelAnswered)}
    attempts: dict[str, list[str]] = {}
    for record in records:
        if isinstance(record.event, ModelRequested) and record.seq > inherited:
            attempts.setdefault(f"{record.event.provider}/{record.event.model}", []).append(record.key)
    return tuple(
        ModelUse(
            model=model,
            usage=total_usage(answers[key] for key in made if key in answers),
            cost_usd=total_of(money[key] for key in made if key in money).usd,
        )
        for model, made in attempts.items()
    )


class Listed:
    """Finds out which appends the directory has to hear of."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id

    def after(self, before: Mapping[str, Record], last_wait: Record | None, made: Sequence[Record]) -> tuple[Send, ...]:
        """The report that goes with an append, where one is due. `last_wait`: the last run.waiting of `before`."""
        goes_on = last_wait is not None and _goes_on(before, last_wait, made)
        if not goes_on and not any(_worth_telling(record) for record in made):
            return ()
        return (self._send("report", [*before.values(), *made]),)

    def erased(self, records: Sequence[Record]) -> tuple[Send, ...]:
        """What it used still counts; the rest is to be forgotten."""
        return (self._send("forget", records),)

    def _send(self, method: str, records: Sequence[Record]) -> Send:
        listing = listing_of(self._run_id, records)
        key = f"listed/{listing.seq}" if method == "report" else method
        return Send(key=key, destination=DIRECTORY, method=method, arguments=asdict(listing))


def _worth_telling(record: Record) -> bool:
    return record.type in _WORTH_TELLING or (isinstance(record.event, RunWaiting) and _for_a_person(record.event))


def _for_a_person(waiting: RunWaiting) -> bool:
    return not set(waiting.for_) <= {"retry", "subagent"}


def _goes_on(before: Mapping[str, Record], wait: Record, made: Sequence[Record]) -> bool:
    """Whether this append ends a wait that the directory was told of."""
    waited = cast(RunWaiting, wait.event)
    over = keys.end(wait.life) in before or any(key in before for key in waited.keys)
    return _for_a_person(waited) and not over and any(record.key in waited.keys for record in made)
