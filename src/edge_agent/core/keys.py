"""The structural keys of records. A key is written once; agent, arguments and a plan's numbers are no part of it."""

import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

from edge_agent.core.canonical import canonical

RUN = "run"
VERSION = (
    1  # of the keys and their order: a deploy that changes either raises it and gates the change on run.created.version
)


_CALL = 2  # where the call stands in a key: step, round, call


def life(number: int) -> str:
    return f"life/{number}"


def end(number: int) -> str:
    return f"end/{number}"


def cancel(number: int) -> str:
    return f"cancel/{number}"


def cancel_step(step: str) -> str:
    return f"cancel-step/{step}"


def budget(kind: str, number: int) -> str:
    return f"budget/{kind}/{number}"


def round_(scope: str, number: int) -> str:
    """The boundary before a round, counted from 1."""
    return f"{scope}/r{number}"


def attempt(asked: str, number: int) -> str:
    """An attempt of a model call, counted from 0; also the `part` of its stream."""
    return f"{asked}/a{number}"


def compaction(asked: str, number: int) -> tuple[str, str]:
    """Where a summary is asked for before a model call, and where it stands; there may be several, counted from 0."""
    nth = number or ""
    return f"{asked}/compact{nth}", f"{asked}/compacted{nth}"


def overflow(asked: str) -> str:
    """The boundary after an attempt that was too long for the context window."""
    return f"{asked}/overflow"


def tool_call(round_key: str, index: int) -> str:
    return f"{round_key}/c{index}"


def call_of(key: str) -> str | None:
    """The key of the call a record belongs to: s2/r1/c0/approval -> s2/r1/c0; None outside of calls."""
    parts = key.split("/")
    inside = len(parts) > _CALL and parts[_CALL][:1] == "c" and parts[_CALL][1:].isdigit()
    return "/".join(parts[: _CALL + 1]) if inside else None


def approval(call: str, number: int) -> str:
    """The request for the call (0), or for its repeat."""
    return f"{call}/approval/{number}" if number else f"{call}/approval"


def decision(approval_key: str) -> str:
    """Where the decision on a request stands: …/approval/1 -> …/decision/1."""
    call, _, number = approval_key.rpartition("/approval")
    return f"{call}/decision{number}"


def asked_call(approval_key: str) -> str:
    """The key of the call that a request is about."""
    return approval_key.rpartition("/approval")[0]


def approval_mode(number: int) -> str:
    """A change of the mode, counted from 0."""
    return f"approval-mode/{number}"


def step_of(key: str) -> int | None:
    """The number of the executed step a key lies in; None outside of steps."""
    head = key.split("/", 1)[0]
    return int(head[1:]) if head[:1] == "s" and head[1:].isdigit() else None


def is_round(key: str) -> bool:
    """Whether a round begins there, and does not merely hold it."""
    return key.count("/") == 1 and round_of(key) is not None


def round_of(key: str) -> int | None:
    parts = key.split("/")
    return int(parts[1][1:]) if len(parts) > 1 and parts[1][:1] == "r" and parts[1][1:].isdigit() else None


def scopes(key: str) -> Iterator[str]:
    """a/b/c -> a, a/b"""
    return itertools.accumulate(key.split("/")[:-1], lambda head, part: f"{head}/{part}")


def digest(*parts: Any) -> str:
    """A SHA-256 over the canonical JSON of the parts, in hex."""
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()


OF_CHILDREN = "sub-"  # what their ids begin with, and those of no other run
_INLINE = re.compile(rf"({OF_CHILDREN}[0-9a-f]{{32}})-in-(.+)")


def child(run_id: str, key: str, *, inline: bool = False) -> str:
    """The id of the run that a call is: the same on every walk, another for every other call and in every fork. That of
    an inline one says whose object it lies in."""
    own = f"{OF_CHILDREN}{digest(run_id, key)[:32]}"
    return f"{own}-in-{object_of(run_id)}" if inline else own


def object_of(run_id: str) -> str:
    """The name of the object that a run lies in, which is the id of that object's own run."""
    inline = _INLINE.fullmatch(run_id)
    return inline[2] if inline else run_id


def within_object(run_id: str) -> str:
    """What tells a run from the others of its object: nothing for the object's own."""
    inline = _INLINE.fullmatch(run_id)
    return inline[1] if inline else ""


_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def call_id(run_id: str, key: str) -> str:
    """Nine letters or digits: the strictest provider's rule (Mistral), unique in the run."""
    number, letters = int(digest(run_id, key), 16), ""
    for _ in range(9):
        number, rest = divmod(number, 36)
        letters += _ALPHABET[rest]
    return letters


def idempotency_key(run_id: str, key: str, arguments: Any) -> str:
    """The same for a repeat of a call, another for every other call; never derived from the model's own id."""
    return digest(run_id, key, arguments)[:32]
