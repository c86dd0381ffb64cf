"""POST /v1/compact: a history folded on request, outside of any run."""

from fastapi import APIRouter

from edge_agent.http.openapi import problems
from edge_agent.http.ports import Deps
from edge_agent.wire.content import HistoryTurn
from edge_agent.wire.http import CompactHistory
from edge_agent.wire.http_answers import CompactedAnswer


def context_routes(deps: Deps) -> APIRouter:
    router = APIRouter(tags=["deployment"])

    @router.post("/v1/compact", response_model_exclude_none=True, responses=problems(400, 413, 415, 422, 503))
    async def compact_history(body: CompactHistory) -> CompactedAnswer:
        """All but the newest turns of a history as one summary, where it would take more than its share of the context
        window, or by `force`. One call of the default agent's model, which no run is charged with."""
        made = await deps.deployment.compact([turn.turn() for turn in body.history], force=body.force)
        summary = [HistoryTurn(role=turn.role, text=turn.text) for turn in made.history[:1] if made.compacted]
        newest = body.history[len(body.history) - len(made.history) + len(summary) :]
        return CompactedAnswer(
            history=(*summary, *newest),
            summary=made.summary,
            before_tokens=made.before_tokens,
            after_tokens=made.after_tokens,
            compacted=made.compacted,
        )

    return router
