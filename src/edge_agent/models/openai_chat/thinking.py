"""How models behind chat completions are told to think, as data: by the kind of server and by the model's name.

Facts: the documentation of the providers as of 2026-11. Where thinking cannot be told, it is left out with a warning;
an unknown field would be refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Effort, ModelRequest
from edge_agent.models.effort import nearest

Form = Literal["effort", "reasoning", "thinking", "kept-thinking", "template"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """form: the field: `reasoning_effort`; OpenRouter's `reasoning`, which takes budgets as well; `thinking` with a
    type, which Z.ai forgets from round to round unless it is told to keep it, or a variable of the chat template, which
    are switches. None: thinking cannot be told.
    levels: lowest first, "none" among them where thinking can be switched off; a switch has none and on."""

    form: Form | None = None
    levels: tuple[Effort, ...] = ("none", "medium")


_SILENT = Family()
_USUAL: tuple[Effort, ...] = ("low", "medium", "high")
_EVERY: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh")


def _effort(*levels: Effort) -> Family:
    return Family(form="effort", levels=levels)


# The first whose pattern fits the beginning of the model's name, without what stands before its last slash.
_FAMILIES: Mapping[str, tuple[tuple[str, Family], ...]] = {
    "openai": (
        (r"gpt-[34]|chatgpt|gpt-5.*-chat", _SILENT),
        (r"o\d|gpt-oss", _effort(*_USUAL)),
        (r"gpt-5-pro", _effort("high")),
        (r"gpt-5(-|$)", _effort("minimal", *_USUAL)),
        (r"gpt-5\.1", _effort("none", *_USUAL)),
        (r"gpt-5\.", _effort("none", *_USUAL, "xhigh")),
        (r"", _effort(*_USUAL)),
    ),
    "xai": ((r"grok-3-mini", _effort("low", "high")), (r"", _SILENT)),
    "groq": ((r"gpt-oss", _effort(*_USUAL)), (r"", _SILENT)),
    "gemini": ((r"gemini-2\.5-flash", _effort("none", *_USUAL)), (r"gemini", _effort(*_USUAL)), (r"", _SILENT)),
    "efforts": ((r"gpt-oss", _effort(*_USUAL)), (r"", _effort("none", *_USUAL))),
    "openrouter": ((r"", Family(form="reasoning", levels=_EVERY)),),
    "switch": ((r"", Family(form="thinking")),),
    "zai": ((r"", Family(form="kept-thinking")),),
    "template": ((r"", Family(form="template")),),
}


def thinking_fields(request: ModelRequest, model: str, kind: str | None) -> tuple[JsonObject, tuple[str, ...]]:
    """Fields of the body, and what could not be asked for as it was meant."""
    family, wanted = family_of(model, kind), request.thinking
    if wanted is None:
        hidden = family.form == "reasoning" and not request.include_thoughts
        return ({"reasoning": {"exclude": True}} if hidden else {}), ()
    if family.form is None:
        return {}, () if wanted in ("none", 0) else (
            f"{model} cannot be told to think; thinking={wanted} was left out.",
        )
    if family.form == "reasoning":
        return {"reasoning": _reasoning(request)}, ()
    level = nearest(family.levels, wanted)
    switch = "none" if level == "none" else "on"
    meant = switch == "on" or wanted in ("none", 0) if family.form != "effort" else level == wanted
    warnings = () if meant else (f"{model} cannot think with thinking={wanted}; {level} was asked for instead.",)
    return _told(family.form, level), warnings


def family_of(model: str, kind: str | None) -> Family:
    name = model.rpartition("/")[2]
    return next((family for pattern, family in _FAMILIES.get(kind or "", ()) if re.match(pattern, name)), _SILENT)


def _told(form: Form, level: Effort) -> JsonObject:
    if form == "effort":
        return {"reasoning_effort": level}
    if form in ("thinking", "kept-thinking"):
        kept = {"clear_thinking": False} if form == "kept-thinking" and level != "none" else {}
        return {"thinking": {"type": "disabled" if level == "none" else "enabled", **kept}}
    return {"chat_template_kwargs": {"enable_thinking": level != "none"}}


def _reasoning(request: ModelRequest) -> JsonObject:
    wanted = request.thinking
    shown: JsonObject = {} if request.include_thoughts else {"exclude": True}
    if wanted in ("none", 0):
        return {"enabled": False}
    return {"effort": wanted, **shown} if isinstance(wanted, str) else {"max_tokens": wanted, **shown}
