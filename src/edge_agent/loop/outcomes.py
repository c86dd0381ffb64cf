"""What a tool gave back, as a record: sanitized, capped for the model, whole in a file where it is long."""

from dataclasses import dataclass

from edge_agent.core.canonical import canonical
from edge_agent.core.events import FileRef, ToolCalled, ToolResult
from edge_agent.core.long_strings import LONG
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import StoredFile
from edge_agent.core.tooling import ToolOutput
from edge_agent.loop import prompts
from edge_agent.loop.walk import Walk

MODEL_SEES = 20_000  # characters of one result
_HEAD = 15_000


def model_view(text: str) -> str:
    """The beginning and the end of a long result, with a marker between them."""
    if len(text) <= MODEL_SEES:
        return text
    tail = MODEL_SEES - _HEAD - 100
    return text[:_HEAD] + prompts.clipped(len(text) - _HEAD - tail) + text[-tail:]


@dataclass(frozen=True, slots=True)
class Outcome:
    result: ToolResult
    files: tuple[StoredFile, ...]


def outcome(walk: Walk, intent: ToolCalled, output: ToolOutput, duration_ms: int) -> Outcome:
    text, ok = _sanitized(
        walk, intent.name, output.text or (canonical(output.structured) if output.structured else ""), output.ok
    )
    files = [
        StoredFile(name=f"{intent.call_id}-{file.name}", media_type=file.media_type, content=file.content)
        for file in output.files
    ]
    if len(text) > LONG:
        whole = text.encode("utf-8", "surrogatepass")
        files.append(StoredFile(name=f"{intent.call_id}.txt", media_type="text/plain; charset=utf-8", content=whole))
        text = model_view(text)
    result = ToolResult(
        call_id=intent.call_id,
        name=intent.name,
        ok=ok,
        output=text,
        structured=_small(output.structured) if ok and walk.ports.agent.hooks.sanitize_output is None else None,
        model_chars=len(model_view(text)),
        files=tuple(FileRef(name=file.name, media_type=file.media_type, bytes=len(file.content)) for file in files),
        duration_ms=duration_ms,
        step=intent.step,
        round=intent.round,
    )
    return Outcome(result, tuple(files))


def _sanitized(walk: Walk, tool: str, text: str, ok: bool) -> tuple[str, bool]:
    sanitize = walk.ports.agent.hooks.sanitize_output
    if sanitize is None:
        return text, ok
    try:
        return sanitize(tool, text), ok
    except Exception:
        return "(left out: the output sanitizer failed on it)", False


def _small(structured: JsonObject | None) -> JsonObject | None:
    return structured if structured is not None and len(canonical(structured)) <= LONG else None
