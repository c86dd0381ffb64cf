"""What spans runs: the list of them, newest first, and what they used."""

import base64
import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter

from edge_agent.core.errors import Refusal
from edge_agent.core.listing import Listing
from edge_agent.core.messages import JsonObject
from edge_agent.core.state import Status
from edge_agent.http.openapi import problems
from edge_agent.http.ports import Deps
from edge_agent.wire.directory import RunsAnswer, RunSummary, Spent, SpentBy, UsageAnswer
from edge_agent.wire.run_ids import RUN_ID

MOST = 100
_LISTINGS = TypeAdapter(list[Listing])
AgentName = Annotated[str | None, Query(max_length=128, description="Only runs of this agent.")]
Cursor = Annotated[str | None, Query(max_length=300, description="From the answer before: the page after it.")]
Limit = Annotated[int, Query(ge=1, le=MOST)]
Since = Annotated[
    datetime | None, Query(description="Only runs created then or later, for example 2026-11-30 or 2026-11-30T12:00Z.")
]


def directory_routes(deps: Deps) -> APIRouter:
    router = APIRouter(tags=["runs"])

    @router.get("/v1/runs", response_model=RunsAnswer, responses=problems(422, 503))
    async def list_runs(
        status: Annotated[Status | None, Query(description="Only runs in this state.")] = None,
        agent: AgentName = None,
        cursor: Cursor = None,
        limit: Limit = 20,
    ) -> JSONResponse:
        """The runs of this deployment, newest first, as they last told of themselves. What is new comes before the
        first page, so a cursor stays good."""
        wanted: JsonObject = {"status": status, "agent": agent, "before": _place(cursor), "limit": limit + 1}
        answer = await _page(deps, wanted, limit)
        return JSONResponse(answer.model_dump(mode="json", exclude_none=True))

    @router.get("/v1/usage", responses=problems(422, 503))
    async def read_usage(since: Since = None, by: Literal["agent", "day", "model"] | None = None) -> UsageAnswer:
        """Tokens and dollars over runs, deleted ones included. A run counts on the day it was created, with what it
        had used when it last told of itself: all of it once it has ended."""
        answers = await deps.directory.ask("usage", {"since": _milliseconds(since), "by": by})
        total, groups = Spent(), dict[str, Spent]()
        for part in answers:
            total += Spent.model_validate(part["total"] or {})
            for name, spent in part["groups"].items():
                groups[name] = groups.get(name, Spent()) + Spent.model_validate(spent)
        named = tuple(SpentBy(name=name, **spent.model_dump()) for name, spent in sorted(groups.items()))
        return UsageAnswer(total=total, groups=named)

    return router


async def _page(deps: Deps, wanted: JsonObject, limit: int) -> RunsAnswer:
    """Each part of the directory gives its newest; the newest of all are among them."""
    parts = await deps.directory.ask("page", wanted)
    listings = [listing for part in parts for listing in _LISTINGS.validate_python(part["runs"])]
    listings.sort(key=lambda listing: (listing.created, listing.run_id), reverse=True)
    shown = listings[:limit]
    more = len(listings) > limit
    return RunsAnswer(runs=tuple(map(RunSummary.of, shown)), cursor=_cursor(shown[-1]) if more else None)


def _cursor(last: Listing) -> str:
    return base64.urlsafe_b64encode(f"{last.created}.{last.run_id}".encode()).rstrip(b"=").decode()


def _place(cursor: str | None) -> tuple[int, str] | None:
    """(created, run_id) of the last run of the page before. Raises Refusal 422."""
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        text = ""
    found = re.fullmatch(rf"(\d{{1,15}})\.({RUN_ID})", text, re.ASCII)
    if found is None:
        raise Refusal(422, "bad_cursor", "This is no cursor of GET /v1/runs. Leave it out to begin.", field="cursor")
    return int(found[1]), found[2]


def _milliseconds(moment: datetime | None) -> int | None:
    """A time without a zone is one of UTC."""
    if moment is None:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
