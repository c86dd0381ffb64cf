"""What a replay found: where the code of today asks for something else than the log holds."""

from dataclasses import dataclass
from typing import Literal

DifferenceKind = Literal["key", "type", "tools", "prompt", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """key: another record is asked for. type: that record is of another kind. tools: a model would be shown others.
    prompt: it would be asked otherwise. end: the run would end otherwise.

    `key`, `seq`: the record of the log that differs, the last one where the log ends too early. `asked`: the key the
    code asks for in its place, where it asks for one.
    """

    kind: DifferenceKind
    key: str
    seq: int
    message: str
    asked: str | None = None
