"""The paths a run's own object answers: they are described here and passed on before they get here."""

# ruff: noqa: ARG001, FBT002 - the parameters are there to be described, and checked where this is served without objects

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query

from edge_agent.core.errors import Refusal
from edge_agent.http.openapi import JSON_LINES, event_stream, problems, streamed
from edge_agent.http.run_id import RunId

After = Annotated[int | None, Query(ge=0, description="The cursor: only what was recorded after this `seq`.")]
FileName = Annotated[str, Path(min_length=1, max_length=600)]


def stream_routes() -> APIRouter:
    router = APIRouter(prefix="/v1/runs/{run_id}", tags=["runs"])

    @router.get("/events", responses={200: event_stream(), **problems(404, 416, 422)})
    async def follow_run(
        run_id: RunId,
        after: After = None,
        wait: Annotated[bool, Query(description="false: what there is, as JSON lines.")] = True,
        last_event_id: Annotated[int | None, Header(ge=0, alias="Last-Event-ID")] = None,
    ) -> None:
        """Server-sent events: `id` is the seq of recorded ones, `event` the type, `data` the event. A comment every
        15 s while the run works; the stream ends after run.waiting (come back with the cursor) and after the end."""
        raise _elsewhere()

    @router.get("/ws", responses={101: {"description": "The same events, one object or an array of them per message. "
                "Subprotocols: `edge-agent.v1`, `token.<run token>`; closed with 1000 after the end."},
                **problems(404, 416, 422, 426)})  # fmt: skip
    async def follow_run_by_websocket(run_id: RunId, after: After = None) -> None:
        """The same events over a WebSocket."""
        raise _elsewhere()

    @router.get("/log", responses={200: streamed(JSON_LINES, "The whole log."), **problems(404, 422)})
    async def export_log(run_id: RunId) -> None:
        """Every record, one JSON object a line."""
        raise _elsewhere()

    @router.get("/files/{name}", responses={200: streamed("*/*", "The file."), **problems(404, 422)})
    async def read_file(run_id: RunId, name: FileName) -> None:
        """A file of the run: a binary result of a tool, or a text too long for its record."""
        raise _elsewhere()

    return router


def _elsewhere() -> Refusal:
    return Refusal(
        421, "misdirected", "This path is answered by the run's own object, which this server does not reach."
    )
