"""/v1/runs: start a run, look at it, cancel, resume, answer and delete it."""

import hashlib
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, TypeAdapter

from edge_agent.core import keys
from edge_agent.core.canonical import canonical
from edge_agent.core.errors import Refusal
from edge_agent.core.events import RunCreated
from edge_agent.core.messages import JsonObject
from edge_agent.core.state import RunState
from edge_agent.http.approval_routes import with_links
from edge_agent.http.auth import Caller
from edge_agent.http.capacity import room_for_a_run
from edge_agent.http.continuing import continued
from edge_agent.http.openapi import problems
from edge_agent.http.ports import Deps, RunMethod
from edge_agent.http.run_id import RunId
from edge_agent.http.run_tokens import run_token
from edge_agent.wire.content import lent
from edge_agent.wire.http import CancelRun, GiveAnswer, ResumeRun, StartRun
from edge_agent.wire.http_answers import Links, RunStartedAnswer

QuestionId = Annotated[
    str, Path(min_length=1, max_length=300, description="From `waiting_for.questions` of the state.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[\x20-\x7e]{1,255}$",
        description="The same key and body return the same run; another body is a 409. Keys are kept per caller.",
    ),
]
At = Annotated[
    int | None,
    Query(ge=1, description="The state after this record, and what was appended together with it, as it was then."),
]
Include = Annotated[Literal["messages"] | None, Query()]
_CREATED = TypeAdapter(RunCreated)


def run_routes(deps: Deps) -> APIRouter:
    router = APIRouter(prefix="/v1/runs", tags=["runs"])

    @router.post(
        "",
        status_code=202,
        response_model=RunStartedAnswer,
        responses=problems(400, 404, 409, 410, 413, 415, 422, 429, 503),
    )
    async def start_run(request: Request, body: StartRun, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        """Create a run and start it. Follow it at `links.events` or `links.ws`; a disconnect never cancels it."""
        started = await _start(deps, request.state.caller, body, idempotency_key)
        return JSONResponse(started.model_dump(), 202, {"location": started.links.self})

    @router.get("/{run_id}", response_model=RunState, responses=problems(404, 409, 416, 422))
    async def read_run(request: Request, run_id: RunId, at: At = None, include: Include = None) -> JSONResponse:
        """The state of the run, folded from its log; `seq` says up to which record. `include=messages` adds the
        conversation as its model sees it: in a planned run that of the last stage."""
        asked: JsonObject = {} if at is None else {"at": at}
        if include:
            asked["messages"] = True
        state = await deps.runs.call(run_id, "state", asked)
        return JSONResponse(state if at else await with_links(deps, request.state.caller, state))

    @router.post("/{run_id}/cancel", response_model=RunState, responses=problems(400, 404, 409, 413, 415, 422))
    async def cancel_run(run_id: RunId, body: CancelRun | None = None) -> JSONResponse:
        """Stop the run. What is under way is cut off; the run ends as cancelled."""
        return await _asked(deps, run_id, "cancel", {"reason": body.reason if body else None})

    @router.post("/{run_id}/resume", response_model=RunState, responses=problems(400, 404, 409, 413, 415, 422, 429))
    async def resume_run(run_id: RunId, body: ResumeRun | None = None) -> JSONResponse:
        """Go on with a failed or cancelled run from its log, with nothing changed."""
        await room_for_a_run(deps)
        return await _asked(deps, run_id, "resume", {"reason": body.reason if body else None})

    @router.post(
        "/{run_id}/answers/{question_id:path}",
        response_model=RunState,
        responses=problems(400, 404, 409, 410, 413, 415, 422),
    )
    async def answer_question(run_id: RunId, question_id: QuestionId, body: GiveAnswer) -> JSONResponse:
        """Answer a question the run waits for."""
        return await _asked(deps, run_id, "answer", {"question_id": question_id, "answer": body.answer})

    @router.delete("/{run_id}", status_code=204, responses=problems(404, 422))
    async def delete_run(run_id: RunId) -> Response:
        """Erase the run: what is under way is cut off, its log and files go for good, and with it its inline
        subagents. What it used still counts. Its id is not used again; every path of it answers 410 from then on, this
        one 204."""
        await deps.runs.call(run_id, "delete", {})
        return Response(status_code=204)

    return router


async def _start(deps: Deps, caller: Caller, body: StartRun, key: str | None) -> RunStartedAnswer:
    run_id = id_of(deps, caller, body.run_id, key)
    admitted = await _admitted(deps, body, run_id, repeats=key is not None)
    configured = deps.deployment.configure(admitted)
    created = replace(configured, user=caller.name)
    payload: JsonObject = {
        "created": _CREATED.dump_python(created, mode="json"),
        "fingerprint": fingerprint(body),
        "idempotent": key is not None,
        "files": [lent(file) for file in admitted.files],
    }
    token = run_token(await deps.run_token_key(), run_id, deps.clock.now())
    state = await deps.runs.call(run_id, "create", payload)
    return RunStartedAnswer(**started_fields(run_id, state, token))


def started_fields(run_id: str, state: JsonObject, token: str) -> JsonObject:
    """Those of RunStartedAnswer."""
    own = f"/v1/runs/{run_id}"
    links = Links(self=own, events=f"{own}/events", ws=f"{own}/ws")
    return {
        "run_id": run_id, "status": state["status"], "agent": state["agent"], "links": links, "stream_token": token
    }  # fmt: skip


def id_of(deps: Deps, caller: Caller, asked: str | None, key: str | None) -> str:
    """Of a run that is to be. The same for the same caller and key, so that the run's own object sees a repeat."""
    if key is not None and asked is not None:
        detail = "`run_id` and the header Idempotency-Key both name the run: send one of them."
        raise Refusal(422, "invalid_request", detail, field="run_id")
    if asked is not None and asked.startswith(keys.OF_CHILDREN):
        detail = f"A `run_id` that begins with `{keys.OF_CHILDREN}` is that of a subagent. Take another one."
        raise Refusal(422, "invalid_request", detail, field="run_id")
    derived = None if key is None else hashlib.sha256(canonical([caller.name, key]).encode()).hexdigest()[:32]
    return asked or derived or deps.new_run_id()


def fingerprint(body: BaseModel, *more: str) -> str:
    """What a repeat of the request has in common with it."""
    said = body.model_dump(mode="json", exclude_none=True)
    return hashlib.sha256(canonical([said, *more] if more else said).encode()).hexdigest()


async def _admitted(deps: Deps, body: StartRun, run_id: str, *, repeats: bool) -> StartRun:
    """The request with the history it asks for, where there is room for a run. A repeat of a request whose run exists
    needs neither."""
    try:
        await room_for_a_run(deps)
        return await continued(deps, body)
    except Refusal:
        if repeats and await exists(deps, run_id):
            return body
        raise


async def exists(deps: Deps, run_id: str) -> bool:
    try:
        await deps.runs.call(run_id, "state", {})
    except Refusal as no:
        return no.code == "run_deleted"
    return True


async def _asked(deps: Deps, run_id: str, method: RunMethod, payload: JsonObject) -> JSONResponse:
    return JSONResponse(await deps.runs.call(run_id, method, payload))
