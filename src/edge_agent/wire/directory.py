"""The JSON bodies of what spans runs: the list of them, and what they used."""

from pydantic import BaseModel, Field

from edge_agent.core.events import StopReason
from edge_agent.core.listing import Listing
from edge_agent.core.messages import JsonObject
from edge_agent.core.state import Status
from edge_agent.core.usage import Usage, total_usage
from edge_agent.wire.codec import timestamp


class RunSummary(BaseModel):
    """A run as it last told the directory. `usage` and `cost_usd` of an active run grow until its end; `metadata` is
    left out where it is long."""

    run_id: str
    agent: str
    status: Status
    created_at: str
    updated_at: str
    title: str = Field(description="How the input begins.")
    stop_reason: StopReason | None = None
    usage: Usage
    cost_usd: float
    parent: str | None = None
    metadata: JsonObject | None = None

    @classmethod
    def of(cls, listing: Listing) -> "RunSummary":
        return cls(
            run_id=listing.run_id,
            agent=listing.agent,
            status=listing.status,
            created_at=timestamp(listing.created),
            updated_at=timestamp(listing.updated),
            title=listing.title,
            stop_reason=listing.stop_reason,
            usage=total_usage(use.usage for use in listing.uses),
            cost_usd=sum(use.cost_usd for use in listing.uses),
            parent=listing.parent,
            metadata=listing.metadata,
        )


class RunsAnswer(BaseModel):
    """Newest first. `cursor`: for the next page; absent on the last one."""

    runs: tuple[RunSummary, ...]
    cursor: str | None = None


class Spent(BaseModel):
    """Tokens and dollars of some runs. `input` includes the cached ones, `output` includes reasoning."""

    runs: int = 0
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        mine, others = self.model_dump(), other.model_dump()
        return Spent(**{name: value + others[name] for name, value in mine.items()})


class SpentBy(Spent):
    """`name`: of the agent, of the model, or a day of UTC such as 2026-11-30."""

    name: str


class UsageAnswer(BaseModel):
    """`groups` in the order of their names; a run that used several models counts in each of their groups."""

    total: Spent
    groups: tuple[SpentBy, ...] = ()
