"""What holds for the log of every run, however often its object died."""

from collections import Counter
from collections.abc import Sequence

from edge_agent.core import keys
from edge_agent.core.events import TERMINAL_TYPES, ModelAnswered
from edge_agent.core.ports import Record

BEGUN = ("tool.called", "subagent.started")


def assert_sound(records: Sequence[Record]) -> None:
    """Raises AssertionError for a log that cannot be: gaps, keys twice, a life without exactly one end, an attempt or a
    call without an outcome at the end of its life. The log must be that of a run that has ended."""
    faults = [*_order(records), *_lives(records), *_open(records)]
    if faults:
        raise AssertionError("; ".join(faults))


def _order(records: Sequence[Record]) -> list[str]:
    faults = [f"seq {r.seq} at place {place}" for place, r in enumerate(records, start=1) if r.seq != place]
    faults += [f"{key} is on record {n} times" for key, n in Counter(r.key for r in records).items() if n > 1]
    faults += [f"the batch of {r.key} is no record's" for r in records if not r.seq <= r.batch <= len(records)]
    return faults


def _lives(records: Sequence[Record]) -> list[str]:
    ends = [record for record in records if record.type in TERMINAL_TYPES]
    faults = [f"{end.key} ends life {end.life}" for end in ends if end.key != keys.end(end.life)]
    if [end.life for end in ends] != list(range(records[-1].life + 1)):
        faults.append(f"the ends are those of lives {[end.life for end in ends]}, the last life is {records[-1].life}")
    after = [r for end in ends for r in records[end.seq : end.seq + 1] if r.key != keys.life(end.life + 1)]
    return [*faults, *(f"{record.key} follows the end of a life" for record in after)]


def _open(records: Sequence[Record]) -> list[str]:
    known = {record.key for record in records}
    faults = [f"the attempt {r.key} has no end" for r in records if r.type == "model.requested"]
    faults = [fault for fault in faults if f"{fault.split()[2]}/end" not in known]
    calls = {record.key.partition("/call")[0] for record in records if record.type in BEGUN}
    faults += [f"the call {call} has no outcome" for call in sorted(calls) if f"{call}/result" not in known]
    if records[-1].type == "run.completed":
        faults += [f"{call} was never answered" for call in _asked(records) if f"{call}/result" not in known]
    return faults


def _asked(records: Sequence[Record]) -> list[str]:
    """The calls of every answer that stands."""
    rejected = {record.key.removesuffix("/rejected") for record in records if record.type == "model.rejected"}
    return [
        f"{record.key.rpartition('/a')[0]}/c{index}"
        for record in records
        if isinstance(record.event, ModelAnswered) and record.key.removesuffix("/end") not in rejected
        for index in range(len(record.event.message.calls))
    ]
