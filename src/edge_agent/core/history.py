"""An earlier conversation, the first of its turns folded into one."""

from collections.abc import Sequence
from dataclasses import dataclass

from edge_agent.core.messages import Turn

SUMMARY = "Summary of the earlier conversation:\n"  # how such a turn begins, and is known again


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What became of a history. `compacted` False: it is as it was given, since it fits or nothing in it is older.
    Tokens are estimated."""

    history: tuple[Turn, ...]
    summary: str | None = None
    before_tokens: int
    after_tokens: int
    compacted: bool = False


def older_turns(history: Sequence[Turn], keep_recent_turns: int) -> tuple[Turn, ...]:
    """All but the newest turns; none where these are nothing but an earlier summary."""
    older = tuple(history[: max(0, len(history) - keep_recent_turns)])
    return () if len(older) == 1 and _is_summary(older[0]) else older


def _is_summary(turn: Turn) -> bool:
    return turn.role == "assistant" and turn.text.startswith(SUMMARY)


def compact_history(history: Sequence[Turn], summary: str, *, keep_recent_turns: int = 4) -> tuple[Turn, ...]:
    """The history with `summary` as one turn in the place of all but its newest turns. `history` stays as it is; where
    there is nothing older, or the summary is blank, a copy of it comes back."""
    older = older_turns(history, keep_recent_turns)
    if not older or not summary.strip():
        return tuple(history)
    return (summary_turn(summary), *history[len(older) :])


def summary_turn(summary: str) -> Turn:
    return Turn(role="assistant", text=SUMMARY + summary.strip().removeprefix(SUMMARY))
