"""The model calls of a run and what they cost: by our table of prices, and as a gateway reckons it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edge_agent.core.events import ModelAnswered, ModelRequested
from edge_agent.core.ports import Record
from edge_agent.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCall:
    """What a gateway keeps of a call. cost: US dollars. cached: the answer came from the gateway's cache and cost
    nothing at the provider. None: the gateway does not say."""

    id: str
    provider: str
    model: str
    status: int | None = None
    cached: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """A call that was answered, under the seq of its answer. `model` is `provider/model`."""

    seq: int
    key: str
    stage: str
    model: str
    usage: Usage
    estimated: bool
    cost_usd: float
    gateway_log_id: str | None = None
    gateway: LoggedCall | None = None


def answered_calls(records: Sequence[Record]) -> Iterator[AnsweredCall]:
    requested = {record.key: record.event for record in records if isinstance(record.event, ModelRequested)}
    for record in records:
        if isinstance(record.event, ModelAnswered):
            answered, asked = record.event, requested[record.key.removesuffix("/end")]
            yield AnsweredCall(
                seq=record.seq,
                key=record.key.removesuffix("/end"),
                stage=answered.stage,
                model=f"{asked.provider}/{asked.model}",
                usage=answered.usage,
                estimated=answered.estimated,
                cost_usd=answered.cost_usd,
                gateway_log_id=answered.gateway_log_id,
            )
