"""A run as the beginning of another one: what was said in it."""

from typing import cast

from edge_agent.core.errors import Refusal
from edge_agent.core.events import Terminal
from edge_agent.core.journal import Journal
from edge_agent.core.messages import Turn
from edge_agent.core.state import compacted_history
from edge_agent.loop.inbox import known


def turns(journal: Journal) -> tuple[Turn, ...]:
    """Its own history (with the summary, where older turns had to be folded), its input, and its final text where there
    is one. Raises Refusal 404, 409 and 410."""
    known(journal)
    if journal.ended is None:
        message = "This run has not ended, so it cannot be continued yet. Wait for its end, or send it a message."
        raise Refusal(409, "run_not_ended", message)
    created, end = journal.created, cast(Terminal, journal.ended.event)
    answer = (Turn(role="assistant", text=end.text),) if end.text.strip() else ()
    asked = Turn(role="user", text=created.input, attachments=created.attachments)
    compacted = compacted_history(created, journal.types.get("context.compacted", ()))
    return (*(compacted or created.history), asked, *answer)
