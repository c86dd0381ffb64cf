"""A server's answer to a call as a `ToolOutput`."""

import base64
import binascii
import json
import mimetypes
import re
from typing import Any, cast
from urllib.parse import urlsplit

from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import ToolFile, ToolOutput
from edge_agent.tools.json_schema import SchemaCheck
from edge_agent.tools.mcp_import import types

_MISSING = "it promises a structured result and gave none"


def tool_output(result: types.CallToolResult, tool: str, declared: SchemaCheck | None) -> ToolOutput:
    """Text joined by lines; the structured value used, and added to the text where no text says it already; images,
    audio and blobs as files, named in the text; links kept as text. A failed result is never checked. One that does not
    fit `declared`, the server's own output schema, keeps its content and says so."""
    files: list[ToolFile] = []
    texts = [_block(block, tool, files) for block in result.content]
    structured: Any = result.structured_content
    if structured is not None and not any(_says(text, structured) for text in texts):
        texts.append(json.dumps(structured, ensure_ascii=False))
    faults = [] if result.is_error or declared is None else _faults(structured, declared)
    if faults:
        texts.append(f"[warning: this result does not fit the tool's own output schema: {'; '.join(faults)}]")
    return ToolOutput(
        text="\n".join(text for text in texts if text),
        ok=not result.is_error,
        structured=cast("JsonObject", structured) if isinstance(structured, dict) and not faults else None,
        files=tuple(files),
    )


def _faults(structured: Any, declared: SchemaCheck) -> list[str]:
    return [_MISSING] if structured is None else declared.faults(structured)


def _says(text: str, structured: Any) -> bool:
    try:
        return json.loads(text) == structured
    except (ValueError, RecursionError):
        return False


def _block(block: types.ContentBlock, tool: str, files: list[ToolFile]) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return _file(block.data, block.mime_type, f"{tool}-{len(files) + 1}", block.type, files)
        case types.ResourceLink():
            about = ": ".join(part for part in (block.title or block.name, block.description) if part)
            kind = f", {block.mime_type}" if block.mime_type else ""
            return f"[link to {block.uri}{kind}: {about}]"
        case types.EmbeddedResource():
            resource = block.resource
            if isinstance(resource, types.TextResourceContents):
                return f"[resource {resource.uri}]\n{resource.text}"
            media_type = resource.mime_type or "application/octet-stream"
            stem = urlsplit(str(resource.uri)).path.rpartition("/")[2] or f"{tool}-{len(files) + 1}"
            return _file(resource.blob, media_type, stem, f"resource {resource.uri}", files)


def _file(data: str, media_type: str, stem: str, kind: str, files: list[ToolFile]) -> str:
    try:
        content = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return f"[{kind} that could not be decoded, {media_type}]"
    name = _free(re.sub("[^a-zA-Z0-9._-]", "_", stem), media_type, {file.name for file in files})
    files.append(ToolFile(name=name, media_type=media_type, content=content))
    return f"[{kind}: file {name}, {media_type}, {len(content)} bytes]"


def _free(stem: str, media_type: str, taken: set[str]) -> str:
    name = stem if "." in stem else stem + (mimetypes.guess_extension(media_type, strict=False) or ".bin")
    head, dot, tail = name.rpartition(".")
    number = 1
    while name in taken:
        number += 1
        name = f"{head}-{number}{dot}{tail}"
    return name
