"""Whose turn the next round is, and what no answer may do: hand over in circles, leave its palette, repeat itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from edge_agent.core import keys
from edge_agent.core.errors import EdgeAgentError
from edge_agent.core.events import Handoff, ToolResult
from edge_agent.core.journal import Draft
from edge_agent.core.messages import ToolCall
from edge_agent.loop.admit import Round, rejected
from edge_agent.loop.walk import Walk

MOST_ENTRIES = 3  # of one agent into a scope
IN_A_ROW = 3  # the same call with the same arguments: the last one is answered from the log


class HandedInCircles(EdgeAgentError):
    """The agents hand the work to and fro."""


class OffPalette(EdgeAgentError):
    """An agent with strict_tools called a tool that was not offered."""


@dataclass(slots=True)
class Turns:
    """What has to be remembered from round to round. Built from records alone."""

    entries: Counter[str] = field(default_factory=Counter[str])
    streaks: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])

    def repeated(self, round_: Round) -> dict[str, str]:
        """Calls that were made in each of the rounds just before: their keys, and the keys of their last results."""
        now: dict[str, tuple[int, str]] = {}
        answered: dict[str, str] = {}
        for key, call in zip(round_.keys, round_.calls, strict=True):
            same = keys.digest(call.name, call.arguments)
            times, last = self.streaks.get(same, (0, key))
            now[same] = (times + 1, key)
            if times + 1 >= IN_A_ROW:
                answered[key] = last
                now[same] = (times + 1, last)
        self.streaks = now
        return answered

    def hand_over(self, walk: Walk, round_: Round) -> None:
        """After the calls of a round: the first of its handoffs that went well. Raises HandedInCircles."""
        taken = _handoff(walk, round_)
        if taken is None:
            return
        key = f"{round_.key}/handoff"
        if walk.seen(key, Handoff) is None:
            walk.write(Draft(key=key, event=taken))
        walk.hand_over(taken.to)
        self.entries[taken.to] += 1
        if self.entries[taken.to] > MOST_ENTRIES:
            raise HandedInCircles(f"the work was handed to {taken.to} more than {MOST_ENTRIES} times")


def _handoff(walk: Walk, round_: Round) -> Handoff | None:
    for key, call in zip(round_.keys, round_.calls, strict=True):
        result = walk.journal.event(f"{key}/result", ToolResult)
        if call.name in walk.agent.handoffs and result is not None and result.ok:
            reason = call.arguments.get("reason")
            to = walk.agent.handoffs[call.name]
            return Handoff(from_=walk.agent.name, to=to, reason=str(reason) if reason else None)
    return None


def keep_to_palette(walk: Walk, round_: Round) -> None:
    """With strict_tools one call outside of it and none of the answer runs. Raises OffPalette."""
    outside = [call.name for call in round_.calls if call.name not in round_.offered]
    if not outside or not walk.agent.strict_tools:
        return
    message = f"The answer called {outside[0]}, which was not offered, so none of its calls was run."
    fresh = [(key, call) for key, call in _pairs(round_) if not walk.has(f"{key}/result")]
    if fresh:
        walk.write(
            *(Draft(key=f"{key}/result", event=rejected(call, round_, "off-palette", message)) for key, call in fresh)
        )
    raise OffPalette(f"the model called {outside[0]}, which was not offered, and strict_tools is on")


def _pairs(round_: Round) -> Sequence[tuple[str, ToolCall]]:
    return list(zip(round_.keys, round_.calls, strict=True))
