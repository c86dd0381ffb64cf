"""Steering a run that works: a message to it, the end of the step that is open now, the end of one subagent."""

import uuid
from typing import Annotated

from fastapi import APIRouter, Header, Path
from fastapi.responses import JSONResponse

from edge_agent.http.openapi import problems
from edge_agent.http.ports import Deps
from edge_agent.http.run_id import RunId
from edge_agent.wire.http import CancelRun, SendMessage
from edge_agent.wire.http_answers import CancelledStep, CancelledSubagent, MessageTaken

CallId = Annotated[str, Path(min_length=1, max_length=64, description="From `subagents` of the state.")]
MessageKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[a-zA-Z0-9_-]{1,64}$",
        description="In place of `id`: a repeat is the same message.",
    ),
]


def steering_routes(deps: Deps) -> APIRouter:
    router = APIRouter(prefix="/v1/runs", tags=["runs"])

    @router.post(
        "/{run_id}/messages",
        status_code=202,
        response_model=MessageTaken,
        responses=problems(400, 404, 409, 413, 415, 422),
    )
    async def send_message(run_id: RunId, body: SendMessage, idempotency_key: MessageKey = None) -> JSONResponse:
        """Queue a message. It is delivered at the next boundary; `message.delivered` says where."""
        message_id = body.id or idempotency_key or uuid.uuid4().hex[:16]
        await deps.runs.call(run_id, "message", {"message_id": message_id, "text": body.text})
        return JSONResponse(MessageTaken(run_id=run_id, message_id=message_id).model_dump(), 202)

    @router.post(
        "/{run_id}/steps/current/cancel",
        response_model=CancelledStep,
        responses=problems(400, 404, 409, 413, 415, 422),
    )
    async def cancel_step(run_id: RunId, body: CancelRun | None = None) -> JSONResponse:
        """End the step that is open now; the run plans around it. 409 where none is open, and in direct mode."""
        reason = body.reason if body else None
        answer = await deps.runs.call(run_id, "cancel_step", {"reason": reason})
        return JSONResponse(CancelledStep(run_id=run_id, step=answer["cancelled_step"]).model_dump())

    @router.post(
        "/{run_id}/subagents/{call_id}/cancel",
        response_model=CancelledSubagent,
        responses=problems(400, 404, 409, 413, 415, 422),
    )
    async def cancel_subagent(run_id: RunId, call_id: CallId, body: CancelRun | None = None) -> JSONResponse:
        """Stop one subagent. The run goes on, and its model is told so. 409 where it has ended already."""
        asked = {"call_id": call_id, "reason": body.reason if body else None}
        answer = await deps.runs.call(run_id, "cancel_subagent", asked)
        child = answer["cancelled_subagent"]
        return JSONResponse(CancelledSubagent(run_id=run_id, call_id=call_id, child_run_id=child).model_dump())

    return router
