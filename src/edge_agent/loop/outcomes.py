"""What a tool gave back, as a record: sanitized, capped for the model, whole in a file where it is long."""

import contextlib
import re
from dataclasses import dataclass, replace
from typing import cast

from edge_agent.core.canonical import canonical
from edge_agent.core.compaction import Compaction
from edge_agent.core.events import FileRef, ToolCalled, ToolResult
from edge_agent.core.long_strings import LONG
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import StoredFile
from edge_agent.core.skills_in_play import MOST_ACTIVE
from edge_agent.core.tooling import LOAD_SKILL, Tool, ToolOutput
from edge_agent.loop import prompts
from edge_agent.loop.call_files import CallFiles
from edge_agent.loop.walk import Walk

MOST_LOADED = MOST_ACTIVE + 1_000  # characters of a skill with its heading and the list of its files
MODEL_SEES = Compaction().max_tool_output_chars  # of one result, where nothing else is set
_WHOLE = re.compile(r"[^-]+\.txt")  # the file of a long text; those of tools have a - after the id of the call
_HEAD = 0.75  # of what a model sees of a long result
_MARKER = 120  # characters that the marker may take


def model_view(text: str, most: int, call_id: str) -> str:
    """The beginning and the end of a result of more than `most` characters, with a marker between them that says how to
    read what it stands for; 0: all."""
    if not most or len(text) <= most:
        return text
    head = int(_HEAD * most)
    tail = most - head - _MARKER
    return text[:head] + prompts.result_cut(len(text) - head - tail, call_id, head) + text[len(text) - tail :]


def shown_of(walk: Walk, tool: Tool) -> int:
    """Characters of a result of this tool that the model sees; 0: all."""
    caps = [cap for cap in (seen_of(walk, tool.spec.name), tool.max_output) if cap]
    return min(caps, default=0)


def seen_of(walk: Walk, name: str) -> int:
    """The same as far as the run says it. A skill is seen as far as one can be active, whatever is seen of others."""
    most = walk.created.compaction.max_tool_output_chars
    return max(most, MOST_LOADED) if most and name == LOAD_SKILL else most


def whole_text(walk: Walk, result: ToolResult) -> str:
    """Also where the record holds only what the model was shown."""
    names = (file.name for file in result.files if _WHOLE.fullmatch(file.name))
    file = walk.journal.log.file(next(names, ""))
    return file.content.decode() if file else result.output


@dataclass(frozen=True, slots=True)
class Outcome:
    result: ToolResult
    files: tuple[StoredFile, ...]


def outcome(
    walk: Walk, tool: Tool, intent: ToolCalled, output: ToolOutput, *, duration_ms: int, files: CallFiles
) -> Outcome:
    """Never raises for what a tool gave back: the call has happened, so it has a result. files: what it has saved."""
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
    if not clean:
        files.drop()
    for file in output.files if clean else ():
        files.save(file.name, file.content, file.media_type)
    return _kept(walk, tool, result, files)


def _kept(walk: Walk, tool: Tool, result: ToolResult, files: CallFiles) -> Outcome:
    """Long text is shortened to what the model sees, and is whole in a file; so is a long structured value."""
    result = walk.journal.cleaned(result)  # before any of it goes into a file
    text, structured, most = result.output, result.structured, shown_of(walk, tool)
    if len(text) > LONG or (tool.max_output and len(text) > most):
        files.put(f"{result.call_id}.txt", text, "text/plain; charset=utf-8")
        text = model_view(text, most, result.call_id)
    if structured is not None and len(whole := canonical(structured)) > LONG:
        files.put(f"{result.call_id}.json", whole, "application/json")
        structured = None
    kept = tuple(files.saved.values())
    shown = replace(
        result,
        output=text,
        structured=structured,
        model_chars=len(model_view(text, most, result.call_id)),
        files=tuple(FileRef(name=file.name, media_type=file.media_type, bytes=len(file.content)) for file in kept),
    )
    return Outcome(shown, kept)


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
