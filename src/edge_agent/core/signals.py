"""How a walk lets go of a run. BaseException, so that no handler of a tool's errors can swallow them."""

from dataclasses import dataclass

from edge_agent.core.events import QuestionAsked, RecordedEvent, WaitReason
from edge_agent.core.ports import Send


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """`key` ends the wait. At `until` (ms since the epoch; None: never) the driver writes `at_deadline` there with
    `sends`, unless someone was first. `question`: what a person is asked, if one is."""

    key: str
    reason: WaitReason
    until: int | None
    at_deadline: RecordedEvent
    sends: tuple[Send, ...] = ()
    question: QuestionAsked | None = None


class Suspend(BaseException):
    """The run waits for someone; the driver lets go of it."""

    def __init__(self, *waits: Wait) -> None:
        super().__init__(*waits)
        self.waits = waits


class Yield(BaseException):
    """The slice's time is used up and an effect would be next. Nothing was begun that is not on record."""


class Cancelled(BaseException):
    """The run was cancelled; the terminal batch is its record."""
