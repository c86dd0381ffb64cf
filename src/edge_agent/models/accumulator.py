"""What the answers of all wires have in common: what arrives is taken piece by piece; each read tells what is new."""

from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import CallGrew, ModelEvent, UsageSeen
from edge_agent.core.usage import Usage
from edge_agent.models.body import Body
from edge_agent.models.deltas import Deltas


class Accumulator:
    """Implements Answer but for `end`. A wire says how a payload is taken and how much its calls have grown."""

    def __init__(self, body: Body) -> None:
        self._body, self._deltas = body, Deltas()
        self._usage: Usage | None = None
        self._told: Usage | None = None  # the usage that went out last
        self._reason: FinishReason | None = None

    @property
    def over(self) -> bool:
        return self._body.over

    @property
    def finished(self) -> bool:
        return self._reason is not None

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        for payload in self._body.feed(chunk):
            self._take(payload)
        events = self._deltas.drain()
        if grown := self._growth():
            events.append(CallGrew(text=grown))
        return self._with_usage(events)

    def _take_rest(self) -> None:
        for payload in self._body.end():
            self._take(payload)

    def _with_usage(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """Where it has changed."""
        if self._usage is not None and self._usage != self._told:
            self._told = self._usage
            events.append(UsageSeen(usage=self._usage))
        return events

    def _take(self, payload: JsonObject) -> None:
        raise NotImplementedError

    def _growth(self) -> str:
        """What was added to the arguments of calls since it was asked last."""
        raise NotImplementedError
