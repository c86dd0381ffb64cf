"""A fork: a new run that begins with records of another one, up to the end of a batch.

It reuses what came to its end there and makes for itself what was open: no call, attempt, request or decision that the
other run had not finished comes along, and nothing that was said about that run alone.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from edge_agent.core import keys
from edge_agent.core.errors import Refusal
from edge_agent.core.events import (
    ApprovalModeChanged,
    Boundary,
    BudgetExceeded,
    CancelRequested,
    ForkedFrom,
    ModelRequested,
    QuestionAsked,
    RecordedEvent,
    RunCreated,
    SubagentStarted,
    ToolResult,
)
from edge_agent.core.limits import BudgetKind
from edge_agent.core.ports import Record
from edge_agent.loop.offer import file_name, is_of_server


def up_to(records: Sequence[Record], at: int) -> Sequence[Record]:
    """The records up to the end of the batch that holds `at`: what was appended together is never cut.

    Raises Refusal 422 and 416 for a record there is not."""
    if at < 1:
        raise Refusal(422, "bad_record", "`at` is the seq of a record: a whole number from 1.", field="at")
    if at > len(records):
        last = len(records)
        raise Refusal(416, "record_ahead", f"There is no record {at}: the log ends at {last}.", last=last)
    return records[: records[at - 1].batch]


def kept(records: Sequence[Record], *, approval_changes: bool = False, limits_change: bool = False) -> list[Record]:
    """What a fork takes of these records, still numbered as they were.

    approval_changes: it has a mode of its own. limits_change: that a cap was reached is to be found out again."""
    known = {record.key: record for record in records}
    open_scopes = set(_open_scopes(records, known.keys()))
    exceeded: set[BudgetKind] = set()
    return [
        _without_reserve(record, known)
        for record in records
        if not (
            _is_about_the_other_run(record)
            or _lies_in(open_scopes, record.key)
            or (approval_changes and isinstance(record.event, ApprovalModeChanged))
            or (isinstance(record.event, BudgetExceeded) and (limits_change or _repeated(record.event.kind, exceeded)))
        )
    ]


def _without_reserve(record: Record, known: Mapping[str, Record]) -> Record:
    """What a child that was given up has cost is said to the other run alone, so its reserve would stay for ever."""
    call = record.key.removesuffix("/call")
    if not isinstance(record.event, SubagentStarted) or f"{call}/settled" in known:
        return record
    result = known.get(f"{call}/result")
    return record if result is None or call in result.money else replace(record, money={})


def _is_about_the_other_run(record: Record) -> bool:
    """Its beginning, waits and ends, its cancel (that of a step ends that step in the fork too), its end's fault."""
    if isinstance(record.event, CancelRequested):
        return record.event.step is None
    return record.type.startswith("run.") or record.key.startswith("fault/")


def _open_scopes(records: Sequence[Record], known: Collection[str]) -> Iterator[str]:
    """Keys of attempts without an end, questions without an answer and calls without a result: everything under them
    stays behind."""
    for record in records:
        if isinstance(record.event, ModelRequested):
            if f"{record.key}/end" not in known:
                yield record.key
        elif isinstance(record.event, QuestionAsked) and f"{record.key}/answer" not in known:
            yield record.key
        elif (call := keys.call_of(record.key)) and f"{call}/result" not in known:
            yield call


def _lies_in(scopes: set[str], key: str) -> bool:
    return key in scopes or any(scope in scopes for scope in keys.scopes(key))


def _repeated(kind: BudgetKind, before: set[BudgetKind]) -> bool:
    """The lives of the other run become one, in which a cap is crossed once."""
    again = kind in before
    before.add(kind)
    return again


def numbered(created: RunCreated, source: str, at: int, taken: Sequence[Record], now: int) -> list[Record]:
    """The fork's own first records: its run.created, then those it took, in the batches and at the times they had."""
    came = ForkedFrom(run_id=source, at=at, inherited=len(taken) + 1)
    first = Record(
        seq=1,
        key=keys.RUN,
        batch=1,
        life=0,
        by="note",
        at=now,
        agent=created.agent_name,
        event=replace(created, forked_from=came),
        money={},
    )
    last = {record.batch: seq for seq, record in enumerate(taken, start=2)}
    return [first, *(_renumbered(record, seq, last[record.batch]) for seq, record in enumerate(taken, start=2))]


def _renumbered(record: Record, seq: int, batch: int) -> Record:
    key = keys.budget(record.event.kind, 0) if isinstance(record.event, BudgetExceeded) else record.key
    return replace(record, seq=seq, batch=batch, life=0, key=key)


def files_of(records: Sequence[Record]) -> list[str]:
    """Names of the files these records refer to, each once. Long strings are no such files: they travel whole."""
    return list(dict.fromkeys(name for record in records for name in _files(record.event)))


def _files(event: RecordedEvent) -> Iterator[str]:
    if isinstance(event, RunCreated | ToolResult):
        yield from (file.name for file in event.files)
    elif isinstance(event, Boundary | ModelRequested) and event.tools and any(map(is_of_server, event.tools.names)):
        yield file_name(event.tools)
