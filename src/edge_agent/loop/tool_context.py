"""What a tool gets to see of its run while it is called."""

import copy

from edge_agent.core.answers import ENDED, said
from edge_agent.core.egress import Requested, no_egress
from edge_agent.core.errors import ToolError
from edge_agent.core.events import EgressRequest, ToolCalled, ToolProgress, ToolResult
from edge_agent.core.journal import Draft
from edge_agent.core.tooling import Files, Tool, ToolContext
from edge_agent.loop import elicitation
from edge_agent.loop.outcomes import shown_of, whole_text
from edge_agent.loop.skills import pages_read
from edge_agent.loop.walk import Walk


def context_of(walk: Walk, key: str, tool: Tool, intent: ToolCalled, files: Files) -> ToolContext:
    def report(done: float, total: float | None, message: str | None) -> None:
        walk.ports.sink.passing(
            ToolProgress(
                call_id=intent.call_id,
                progress=done,
                total=total,
                message=None if message is None else walk.journal.cleaned_text(message),
                step=intent.step,
                round=intent.round,
            )
        )

    def requested(one: Requested) -> None:
        """On record at once, as a note: a call that is lost has sent its requests all the same."""
        number = len(walk.journal.under.get(f"{key}/egress", ()))
        event = EgressRequest(
            call_id=intent.call_id,
            method=one.method,
            url=one.url,
            allowed=one.allowed,
            status=one.status,
            reason=one.reason,
            step=intent.step,
            round=intent.round,
        )
        walk.journal.append("note", Draft(key=f"{key}/egress/{number}", event=event))

    fetcher = walk.agent.fetcher
    return ToolContext(
        run_id=walk.run_id,
        call_id=intent.call_id,
        step=intent.step,
        idempotency_key=intent.idempotency_key,
        metadata=copy.deepcopy(walk.created.metadata or {}),
        answers=elicitation.answers(walk, key),
        secrets=walk.ports.secrets,
        report=report,
        fetch=fetcher(requested) if fetcher else no_egress,
        pages=lambda: pages_read(walk),
        files=files,
        result=lambda call_id: _result(walk, call_id),
        max_output=shown_of(walk, tool),
        is_cancelled=lambda: walk.cancelled() or walk.step_cancelled(key),
    )


def _result(walk: Walk, call_id: str) -> str:
    """Raises ToolError where no call of that id has ended."""
    for record in reversed(walk.journal.in_order()):
        event = record.event
        if isinstance(event, ENDED) and event.call_id == call_id:
            return whole_text(walk, event) if isinstance(event, ToolResult) else said(event)
    raise ToolError(f"No call {call_id[:40]!r} has ended in this run.")
