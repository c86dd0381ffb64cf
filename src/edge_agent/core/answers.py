"""What came of a call, whatever it was: one record under its `…/result`, and what a model is told of it."""

from edge_agent.core.events import SubagentCompleted, SubagentFailed, ToolRejected, ToolResult, ToolUnknown

Ended = ToolResult | ToolUnknown | ToolRejected | SubagentCompleted | SubagentFailed
ENDED = (ToolResult, ToolUnknown, ToolRejected, SubagentCompleted, SubagentFailed)


def said(ended: Ended) -> str:
    """In full, before it is clipped to what a model sees."""
    match ended:
        case ToolResult():
            return ended.output
        case SubagentCompleted():
            return ended.text
        case SubagentFailed():
            return f"{ended.name} gave no answer: {ended.error}"
        case _:
            return ended.message


def went_well(ended: Ended) -> bool:
    return isinstance(ended, SubagentCompleted) or (isinstance(ended, ToolResult) and ended.ok)
