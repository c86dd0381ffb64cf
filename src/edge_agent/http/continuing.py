"""`continues` in POST /v1/runs: a run that has ended, whose turns become the history of the new one."""

from collections.abc import Mapping

from pydantic import TypeAdapter

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import Turn
from edge_agent.http.ports import Deps
from edge_agent.wire.content import HistoryTurn, parts_of
from edge_agent.wire.http import MAX_TURNS, StartRun

MAX_HISTORY = 1_000_000  # bytes of text, images and files
_TURN = TypeAdapter(Turn)


async def continued(deps: Deps, body: StartRun) -> StartRun:
    """The request with its history in place. Raises Refusal 404, 409 and 410 with the field."""
    if body.continues is None:
        return body
    try:
        answer = await deps.runs.call(body.continues, "turns", {})
    except Refusal as no:
        raise Refusal(no.status, no.code, no.message, **{**no.more, "field": "continues"}) from no
    content = {file["name"]: file["base64"] for file in answer["files"]}
    told = [_TURN.validate_python(turn) for turn in answer["turns"]]
    size = sum(len(turn.text.encode()) + sum(file.bytes for file in turn.attachments or ()) for turn in told)
    if len(told) > MAX_TURNS or size > MAX_HISTORY:
        message = (
            f"The conversation has {len(told)} turns and {size} bytes; a run begins with at most {MAX_TURNS} and "
            f"{MAX_HISTORY}. Send what matters of it as `history`."
        )
        raise Refusal(409, "history_too_long", message, field="continues")
    return body.model_copy(update={"history": tuple(_asked(turn, content) for turn in told)})


def _asked(turn: Turn, content: Mapping[str, str]) -> HistoryTurn:
    """The turn as a client would send it."""
    if not turn.attachments:
        return HistoryTurn(role=turn.role, text=turn.text)
    parts = list(parts_of(turn.text, turn.attachments, content))
    return HistoryTurn.model_validate({"role": turn.role, "parts": parts})
