"""`read_result`, the built-in tool that pages through what a model was not shown in full."""

import functools
from typing import Annotated, Any

from pydantic import Field

from edge_agent.core.errors import ToolError
from edge_agent.core.media_types import is_text
from edge_agent.core.tooling import READ_RESULT, ToolContext, ToolOutput
from edge_agent.tools.functions import FunctionTool, function_tool

PAGE, LONGEST_PAGE = 10_000, 50_000  # characters
_HEADING = 100  # characters that the line before a page may take


@functools.cache
def read_result_tool() -> FunctionTool[..., Any]:
    return function_tool(
        read_result,
        name=READ_RESULT,
        description=None,
        timeout=30,
        read_only=True,
        idempotent=True,
        on_unknown="report",
        built_in=True,
    )


async def read_result(
    context: ToolContext,
    call_id: str = "",
    file: str = "",
    offset: Annotated[int, Field(ge=0)] = 0,
    limit: Annotated[int, Field(ge=1, le=LONGEST_PAGE)] = PAGE,
) -> ToolOutput:
    """Read on in a result that was cut or cleared, or in a text file of this run.

    Args:
        call_id: Of the call whose result it is; the mark in the result says it.
        file: In place of call_id, the name of a file.
        offset: How many characters to skip.
        limit: How many characters to read at most.
    """
    if bool(call_id) == bool(file):
        raise ToolError("Give either call_id or file.")
    text = context.result(call_id) if call_id else _text_of(context, file)
    if offset and offset >= len(text):
        raise ToolError(f"There are {len(text)} characters, so nothing begins at offset {offset}.")
    most = min(limit, context.max_output - _HEADING) if context.max_output else limit
    page = text[offset : offset + most]
    end = offset + len(page)
    rest = f"; the rest begins at offset {end}" if end < len(text) else "; this is the end"
    return ToolOutput(text=f"[characters {offset} to {end} of {len(text)}{rest}]\n{page}")


def _text_of(context: ToolContext, name: str) -> str:
    file = context.files.read(name)
    if not is_text(file.media_type):
        raise ToolError(f"{name} is no text but {file.media_type}, {len(file.content)} bytes.")
    return file.content.decode(errors="replace")
