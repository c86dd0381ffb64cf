"""The parts of a prompt that can be folded into a summary, and one of them: the turns of the earlier conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edge_agent.core.events import ContextCompacted, Part
from edge_agent.core.history import older_turns, summary_turn
from edge_agent.core.messages import AssistantMessage, Message, Turn, user_message
from edge_agent.core.tokens import estimate
from edge_agent.loop import prompts
from edge_agent.loop.estimates import of_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Older:
    """What a summary would stand for: its pieces in order, their keys (or how many turns it is then), and the summary
    so far, which the new one takes in. `files`: tokens of images and files that go with the pieces."""

    pieces: Sequence[str]
    earlier: str
    replaces: tuple[str, ...] = ()
    turns: int = 0
    files: int = 0

    @property
    def tokens(self) -> int:
        return sum(map(estimate, self.pieces)) + estimate(self.earlier) + self.files


class Foldable(Protocol):
    """A part of a prompt. Built from records alone."""

    @property
    def name(self) -> Part: ...

    def older(self, keep: int) -> Older | None:
        """All but the newest `keep` entries; None where that is nothing new."""
        ...

    def take(self, folded: ContextCompacted) -> None:
        """The summary stands for them from here on. A second time changes nothing."""
        ...


@dataclass(slots=True)
class Past:
    """The turns of the earlier conversation, the first of which may be folded."""

    turns: tuple[Turn, ...]
    name: Part = "history"
    messages: tuple[Message, ...] = ()
    _folded: int = 0
    _summary: str = ""
    _shown: tuple[Turn, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._show(self.turns)

    def older(self, keep: int) -> Older | None:
        older = older_turns(self._shown, keep)
        fresh = older[1:] if self._summary else older
        if not fresh:
            return None
        pieces = [prompts.said_by(turn.role, turn.text) for turn in fresh]
        files = of_files(*map(_message, fresh))
        return Older(pieces=pieces, earlier=self._summary, turns=self._folded + len(fresh), files=files)

    def take(self, folded: ContextCompacted) -> None:
        self._folded, self._summary = folded.turns, folded.summary or ""
        self._show((summary_turn(self._summary), *self.turns[folded.turns :]))

    def _show(self, turns: tuple[Turn, ...]) -> None:
        self._shown, self.messages = turns, tuple(map(_message, turns))


def _message(turn: Turn) -> Message:
    return user_message(turn.text, turn.attachments) if turn.role == "user" else AssistantMessage(text=turn.text)
