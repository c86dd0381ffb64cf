"""POST /v1/runs/{run_id}/fork: a new run that begins with records of this one."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.http.auth import Caller
from edge_agent.http.capacity import room_for_a_run
from edge_agent.http.openapi import problems
from edge_agent.http.ports import Deps
from edge_agent.http.run_id import RunId
from edge_agent.http.run_routes import IdempotencyKey, exists, fingerprint, id_of, started_fields
from edge_agent.http.run_tokens import run_token
from edge_agent.wire.http import ForkRun
from edge_agent.wire.http_answers import RunForkedAnswer


def fork_routes(deps: Deps) -> APIRouter:
    router = APIRouter(prefix="/v1/runs", tags=["runs"])

    @router.post(
        "/{run_id}/fork",
        status_code=202,
        response_model=RunForkedAnswer,
        responses=problems(400, 404, 409, 413, 415, 416, 422, 429, 503),
    )
    async def fork_run(
        request: Request, run_id: RunId, body: ForkRun, idempotency_key: IdempotencyKey = None
    ) -> JSONResponse:
        """Start a new run with the records of this one up to `at`: what had come to its end there is not done again,
        what was open is done by the new run, with the changes asked for. This run is left as it is."""
        forked = await _fork(deps, request.state.caller, run_id, body, idempotency_key)
        return JSONResponse(forked.model_dump(), 202, {"location": forked.links.self})

    return router


async def _fork(deps: Deps, caller: Caller, source: str, body: ForkRun, key: str | None) -> RunForkedAnswer:
    run_id = id_of(deps, caller, body.run_id, key)
    await _require_room(deps, run_id, repeats=key is not None)
    payload: JsonObject = {
        "source": source,
        "user": caller.name,
        "at": body.at,
        "changes": body.changes.model_dump(mode="json", exclude_none=True),
        "fingerprint": fingerprint(body, "fork", source),
        "idempotent": key is not None,
    }
    token = run_token(await deps.run_token_key(), run_id, deps.clock.now())
    state = await deps.runs.call(run_id, "fork", payload)
    return RunForkedAnswer(**started_fields(run_id, state, token), forked_from=state["forked_from"])


async def _require_room(deps: Deps, run_id: str, *, repeats: bool) -> None:
    try:
        await room_for_a_run(deps)
    except Refusal:
        if not (repeats and await exists(deps, run_id)):
            raise
