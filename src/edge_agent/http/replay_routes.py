"""POST /v1/replay: an exported log against the code of this deployment, with nothing called."""

from fastapi import APIRouter, Request

from edge_agent.core.messages import JsonObject
from edge_agent.http.openapi import JSON_LINES, problems
from edge_agent.http.ports import Deps
from edge_agent.http.routing import MOST_LOG
from edge_agent.wire import export
from edge_agent.wire.http_answers import ReplayAnswer

_BODY: JsonObject = {
    "required": True,
    "description": f"What GET /v1/runs/{{run_id}}/log gives, up to {MOST_LOG} bytes; or its lines as one JSON array.",
    "content": {
        JSON_LINES: {"schema": {"type": "string"}},
        "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
    },
}


def replay_routes(deps: Deps) -> APIRouter:
    router = APIRouter(tags=["deployment"])

    @router.post("/v1/replay", responses=problems(400, 413, 415, 422, 503), openapi_extra={"requestBody": _BODY})
    async def replay_log(request: Request) -> ReplayAnswer:
        """Walk the log with the code of today: does it ask for the same records and the same prompts? No model, tool or
        hook is called, and nothing is written. `differences` holds the first one, or nothing."""
        log = export.read(await request.body())
        found = await deps.deployment.replay(log)
        return ReplayAnswer(
            run_id=log.run_id,
            agent=log.records[-1].agent,
            records=len(log.records),
            differences=() if found is None else (found,),
        )

    return router
