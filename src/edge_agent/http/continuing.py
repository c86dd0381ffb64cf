"""`continues` in POST /v1/runs: a run that has ended, whose turns become the history of the new one."""

from edge_agent.core.errors import Refusal
from edge_agent.http.ports import Deps
from edge_agent.wire.http import MAX_TURNS, HistoryTurn, StartRun

MAX_HISTORY = 1_000_000  # bytes of text


async def continued(deps: Deps, body: StartRun) -> StartRun:
    """The request with its history in place. Raises Refusal 404, 409 and 410 with the field."""
    if body.continues is None:
        return body
    try:
        answer = await deps.runs.call(body.continues, "turns", {})
    except Refusal as no:
        raise Refusal(no.status, no.code, no.message, **{**no.more, "field": "continues"}) from no
    turns = [HistoryTurn.model_validate(turn) for turn in answer["turns"]]
    size = sum(len(turn.text.encode()) for turn in turns)
    if len(turns) > MAX_TURNS or size > MAX_HISTORY:
        message = (
            f"The conversation has {len(turns)} turns and {size} bytes; a run begins with at most {MAX_TURNS} and "
            f"{MAX_HISTORY}. Send what matters of it as `history`."
        )
        raise Refusal(409, "history_too_long", message, field="continues")
    return body.model_copy(update={"history": tuple(turns)})
