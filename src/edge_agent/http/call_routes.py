"""What each model call of a run cost, by our prices and by the gateway's own log."""

import asyncio
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, TypeAdapter

from edge_agent.core.errors import EdgeAgentError, Refusal
from edge_agent.core.model_calls import AnsweredCall
from edge_agent.http.openapi import problems
from edge_agent.http.ports import Deps
from edge_agent.http.run_id import RunId

MOST = 40  # a Worker on the free plan may make 50 requests for one
_CALLS = TypeAdapter(tuple[AnsweredCall, ...])
After = Annotated[int, Query(ge=0, description="Only calls behind this seq: that of the last one seen.")]
WithGateway = Annotated[bool, Query(description="Also what AI Gateway keeps of each call, where it went through one.")]


class CallsAnswer(BaseModel):
    """In the order of the log. `after`: for the next page; absent on the last one."""

    calls: tuple[AnsweredCall, ...]
    after: int | None = None


def call_routes(deps: Deps) -> APIRouter:
    router = APIRouter(prefix="/v1/runs", tags=["runs"])

    @router.get("/{run_id}/calls", response_model=CallsAnswer, responses=problems(404, 410, 422, 503))
    async def read_calls(run_id: RunId, after: After = 0, gateway: WithGateway = False) -> JSONResponse:  # noqa: FBT002 (a query)
        """The model calls of the run that were answered, with tokens and dollars. `gateway=true` adds what the gateway
        has on record of each: its cost is the one that is billed."""
        answer = await deps.runs.call(run_id, "calls", {})
        calls = [call for call in _CALLS.validate_python(answer["calls"]) if call.seq > after]
        page = calls[:MOST]
        if gateway:
            page = list(await asyncio.gather(*(_logged(deps, call) for call in page)))
        shown = CallsAnswer(calls=tuple(page), after=page[-1].seq if len(calls) > MOST else None)
        return JSONResponse(shown.model_dump(mode="json", exclude_none=True))

    return router


async def _logged(deps: Deps, call: AnsweredCall) -> AnsweredCall:
    if call.gateway_log_id is None:
        return call
    if deps.gateway_log is None:
        detail = "The log of AI Gateway is read by the AI binding, with EDGE_AGENT_GATEWAY naming the gateway's id."
        raise Refusal(503, "configuration", detail)
    try:
        return replace(call, gateway=await deps.gateway_log(call.gateway_log_id))
    except EdgeAgentError as error:
        raise Refusal(503, "gateway_unreachable", f"Try again later: {error}.") from error
