"""Approvals: look at a request, decide it, decide it by a link without a session; and the mode a run asks in."""

from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from edge_agent.core.approval import Approval
from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.core.state import RunState
from edge_agent.http import approval_page
from edge_agent.http.approval_links import PATH, Link, link_to, opened_link
from edge_agent.http.auth import Caller
from edge_agent.http.openapi import HTML, problems
from edge_agent.http.ports import Deps
from edge_agent.http.run_id import RunId
from edge_agent.wire.http import ChangeApprovalMode, DecideByLink, DecideCall
from edge_agent.wire.refused import refusal_of

CallId = Annotated[str, Path(min_length=1, max_length=64, description="From `approvals` of the state.")]
LinkToken = Annotated[str, Path(min_length=1, max_length=400, description="The last part of a `link`.")]
FORM = "application/x-www-form-urlencoded"
_FORM_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": DecideByLink.model_json_schema()},
            FORM: {"schema": DecideByLink.model_json_schema()},
        },
    }
}


def approval_routes(deps: Deps) -> APIRouter:
    router = APIRouter(tags=["approvals"])
    _by_callers(router, deps)
    _by_link(router, deps)
    return router


def _by_callers(router: APIRouter, deps: Deps) -> None:
    path = "/v1/runs/{run_id}/approvals/{call_id}"

    @router.get(path, response_model=Approval, responses=problems(404, 410, 422))
    async def read_approval(request: Request, run_id: RunId, call_id: CallId) -> JSONResponse:
        """The newest request about a call, and what became of it. Decides nothing."""
        answer = await deps.runs.call(run_id, "approval", {"call_id": call_id})
        return JSONResponse(await _linked(deps, request.state.caller, run_id, answer["approval"]))

    @router.post(path, response_model=Approval, responses=problems(400, 404, 409, 410, 413, 415, 422, 503))
    async def decide_call(run_id: RunId, call_id: CallId, body: DecideCall) -> JSONResponse:
        """Approve or deny a call, perhaps with other arguments. The first decision stands: an equal one finds it,
        another is a 409, one that comes too late a 410."""
        payload = {"call_id": call_id, **body.model_dump(exclude_none=True)}
        return JSONResponse((await deps.runs.call(run_id, "decision", payload))["approval"])

    @router.put(
        "/v1/runs/{run_id}/approval-mode",
        response_model=RunState,
        responses=problems(400, 403, 404, 409, 410, 413, 415, 422),
    )
    async def change_approval_mode(request: Request, run_id: RunId, body: ChangeApprovalMode) -> JSONResponse:
        """How the next call of the run is judged, also while it works. A run token may only make it stricter."""
        tighten = request.state.caller.run_id is not None
        return JSONResponse(await deps.runs.call(run_id, "approval-mode", {"mode": body.mode, "tighten": tighten}))


def _by_link(router: APIRouter, deps: Deps) -> None:
    @router.get(f"{PATH}/{{link}}", response_model=Approval, responses={**HTML, **problems(403, 404, 409, 410, 422)})
    async def read_approval_by_link(request: Request, link: LinkToken) -> Response:
        """The request behind a signed link, as a page or as JSON by what is accepted. Decides nothing."""
        return await _answered(deps, request, link, None)

    @router.post(
        f"{PATH}/{{link}}",
        response_model=Approval,
        responses={**HTML, **problems(400, 403, 404, 409, 410, 413, 415, 422)},
        openapi_extra=_FORM_BODY,
    )
    async def decide_call_by_link(request: Request, link: LinkToken) -> Response:
        """Decides what the link is about, once, with no session: the link is the permission."""
        return await _answered(deps, request, link, await request.body())


async def _answered(deps: Deps, request: Request, token: str, body: bytes | None) -> Response:
    wants_page = "text/html" in request.headers.get("accept", "")
    try:
        link = opened_link(await deps.run_token_key(), token, deps.clock.now())
        asked = await _asked_by_link(deps, link, None if body is None else _decision(request, body))
    except Refusal as no:
        if wants_page:
            return approval_page.refused(no)
        raise
    return approval_page.page(link.run_id, asked) if wants_page else JSONResponse(asked)


async def _asked_by_link(deps: Deps, link: Link, decision: DecideByLink | None) -> JsonObject:
    about = {"call_id": link.call_id, "arguments_hash": link.arguments_hash}
    if decision is None:
        return (await deps.runs.call(link.run_id, "approval", about))["approval"]
    payload = {**about, **decision.model_dump(exclude_none=True), "once": True}
    return (await deps.runs.call(link.run_id, "decision", payload))["approval"]


def _decision(request: Request, body: bytes) -> DecideByLink:
    """Of a form, or of JSON. Raises Refusal 422."""
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
            fields = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
            approved = {"true": True, "false": False}.get(fields.get("approved", ""))
            return DecideByLink.model_validate({**fields, "approved": approved})
        return DecideByLink.model_validate_json(body)
    except ValidationError as error:
        raise refusal_of(error) from None


# -- links for those who may hand them on
async def with_links(deps: Deps, caller: Caller, state: JsonObject) -> JsonObject:
    """The state with a link to each open request. A run token gets none: a link would outlive it."""
    if not state.get("approvals"):
        return state
    linked = [await _linked(deps, caller, state["run_id"], asked) for asked in state["approvals"]]
    return {**state, "approvals": linked}


async def _linked(deps: Deps, caller: Caller, run_id: str, asked: JsonObject) -> JsonObject:
    if caller.run_id is not None or asked["status"] != "pending":
        return asked
    return {**asked, "link": link_to(await deps.run_token_key(), run_id, asked, deps.clock.now())}
