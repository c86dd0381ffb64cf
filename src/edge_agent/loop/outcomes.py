"""What a tool gave back, as a record: sanitized, capped for the model, whole in a file where it is long."""

import contextlib
import itertools
import re
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import cast

from edge_agent.core.canonical import canonical
from edge_agent.core.compaction import Compaction
from edge_agent.core.events import FileRef, ToolCalled, ToolResult
from edge_agent.core.long_strings import LONG
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import StoredFile
from edge_agent.core.tooling import ToolFile, ToolOutput
from edge_agent.loop import prompts
from edge_agent.loop.walk import Walk

MODEL_SEES = Compaction().max_tool_output_chars  # of one result, where nothing else is set
_HEAD = 0.75  # of what a model sees of a long result
_MARKER = 100  # characters that the marker may take


def model_view(text: str, most: int) -> str:
    """The beginning and the end of a result of more than `most` characters, with a marker between them; 0: all."""
    if not most or len(text) <= most:
        return text
    head = int(_HEAD * most)
    tail = most - head - _MARKER
    return text[:head] + prompts.result_cut(len(text) - head - tail) + text[len(text) - tail :]


@dataclass(frozen=True, slots=True)
class Outcome:
    result: ToolResult
    files: tuple[StoredFile, ...]


def outcome(walk: Walk, intent: ToolCalled, output: ToolOutput, duration_ms: int) -> Outcome:
    """Never raises for what a tool gave back: the call has happened, so it gets its result."""
    structured = _structured(output)
    text, clean = sanitized(walk, intent.name, _text(output, structured))
    unseen = walk.agent.hooks.sanitize_output is None
    result = ToolResult(
        call_id=intent.call_id,
        name=intent.name,
        ok=output.ok and clean,
        output=text,
        structured=structured if output.ok and unseen else None,
        model_chars=0,
        duration_ms=duration_ms,
        step=intent.step,
        round=intent.round,
    )
    return _kept(walk, result, output.files if clean else ())


def _kept(walk: Walk, result: ToolResult, given: tuple[ToolFile, ...]) -> Outcome:
    """Long text is shortened to what the model sees, and is whole in a file; so is a long structured value."""
    result = walk.journal.cleaned(result)  # before any of it goes into a file
    taken: dict[str, StoredFile] = {}
    for file in given:
        name = _file_name(f"{result.call_id}-{file.name}", taken)
        taken[name] = StoredFile(name=name, media_type=file.media_type, content=_cleaned(walk, file))
    text, structured, most = result.output, result.structured, walk.created.compaction.max_tool_output_chars
    if len(text) > LONG:
        name = f"{result.call_id}.txt"
        taken[name] = StoredFile(name=name, media_type="text/plain; charset=utf-8", content=text.encode())
        text = model_view(text, most)
    if structured is not None and len(whole := canonical(structured)) > LONG:
        name = f"{result.call_id}.json"
        taken[name] = StoredFile(name=name, media_type="application/json", content=whole.encode())
        structured = None
    references = tuple(FileRef(name=f.name, media_type=f.media_type, bytes=len(f.content)) for f in taken.values())
    shown = replace(
        result, output=text, structured=structured, model_chars=len(model_view(text, most)), files=references
    )
    return Outcome(shown, tuple(taken.values()))


def _structured(output: ToolOutput) -> JsonObject | None:
    """What JSON cannot say is left out: the text says it."""
    try:
        return output.structured if canonical(output.structured)[:1] == "{" else None
    except (ValueError, TypeError, RecursionError):
        return None


def _text(output: ToolOutput, structured: JsonObject | None) -> str:
    return str(output.text) or (canonical(structured) if structured is not None else "")


def sanitized(walk: Walk, tool: str, text: str) -> tuple[str, bool]:
    """The text after the output sanitizer; a placeholder and False where that failed."""
    sanitize = walk.agent.hooks.sanitize_output
    if sanitize is None:
        return text, True
    with contextlib.suppress(Exception):  # what it says might hold what it was to hide
        clean = cast(object, sanitize(tool, text))
        if isinstance(clean, str):
            return clean, True
    return "(left out: the output sanitizer failed on it)", False


def _cleaned(walk: Walk, file: ToolFile) -> bytes:
    """A file that is text is masked like an event."""
    try:
        text = file.content.decode()
    except UnicodeDecodeError:
        return file.content
    return walk.journal.cleaned_text(text).encode()


def _file_name(wanted: str, taken: Container[str]) -> str:
    """Of letters, digits, point, line and underscore, and not the name of another file of the call."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", wanted)[:100]
    others = (f"{number}-{name}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], others) if free not in taken)
