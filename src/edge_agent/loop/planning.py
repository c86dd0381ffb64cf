"""A plan as a model writes it: the schema it is asked for, and what is taken of what came."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from edge_agent.core.errors import EdgeAgentError
from edge_agent.core.events import Plan, PlanStep, ReplanMode
from edge_agent.core.messages import JsonObject
from edge_agent.loop.fences import unfenced

LONGEST_THOUGHT, LONGEST_TEXT, LONGEST_NAME, MOST_SUGGESTED, MOST_SKILLS = 600, 300, 64, 4, 4
MOST_NAMED = 100  # tools; a schema with more names than that is a burden, and wrong ones are dropped in any case


class NoPlan(EdgeAgentError):
    """What came is no plan; the message says what is wrong with it, for the model's next try."""


@dataclass(frozen=True, slots=True)
class Planned:
    """`warnings`: what was cut, dropped or doubted."""

    plan: Plan
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    mode: ReplanMode
    reason: str
    planned: Planned | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The names a plan may use."""

    tools: Sequence[str]
    skills: Sequence[str] = ()


def plan_schema(named: Named, most_steps: int) -> JsonObject:
    """Strings are bounded, since a small model under a grammar would go on for ever."""
    return _object(thought=_text(LONGEST_THOUGHT), steps=_steps(named.tools, most_steps), **_skills(named))


def verdict_schema(named: Named, most_steps: int) -> JsonObject:
    mode = {"type": "string", "enum": ["continue", "revise", "finish"]}
    steps = {**_steps(named.tools, most_steps), "minItems": 0}
    return _object(reason=_text(LONGEST_TEXT), mode=mode, steps=steps, **_skills(named))


def _skills(named: Named) -> dict[str, JsonObject]:
    """Asked for where there are any."""
    entries = {"type": "string", "enum": list(named.skills)}
    return {"skills": {"type": "array", "items": entries, "maxItems": MOST_SKILLS}} if named.skills else {}


def _object(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(most: int) -> JsonObject:
    return {"type": "string", "maxLength": most}


def _steps(tools: Sequence[str], most_steps: int) -> JsonObject:
    step = {"id": _text(40), "description": _text(LONGEST_TEXT), "expected_outcome": _text(LONGEST_TEXT)}
    if tools:
        named = {"type": "string", "enum": list(tools)} if len(tools) <= MOST_NAMED else _text(LONGEST_NAME)
        step["suggested_tools"] = {"type": "array", "items": named, "maxItems": MOST_SUGGESTED}
    return {"type": "array", "items": _object(**step), "minItems": 1, "maxItems": most_steps}


def parse_plan(text: str, named: Named, most_steps: int | None) -> Planned:
    """Raises NoPlan."""
    data = _json(text)
    planned = _plan(data, named, most_steps)
    if not planned.plan.steps:
        raise NoPlan("a plan has at least one step with a description")
    return planned


def parse_verdict(text: str, named: Named, most_steps: int | None) -> Verdict:
    """Raises NoPlan. A revision without steps is a finish."""
    data = _json(text)
    mode = data.get("mode")
    if mode not in ("continue", "revise", "finish"):
        raise NoPlan("mode must be continue, revise or finish")
    reason = str(data.get("reason") or "")
    if mode != "revise":
        return Verdict(mode, reason, None)
    planned = _plan(data, named, most_steps)
    return Verdict("revise", reason, planned) if planned.plan.steps else Verdict("finish", reason, None)


def _json(text: str) -> JsonObject:
    try:
        data = json.loads(unfenced(text))
    except (ValueError, RecursionError) as error:
        raise NoPlan(f"the answer must be one JSON object: {error}") from error
    if not isinstance(data, dict):
        raise NoPlan("the answer must be one JSON object")
    return cast(JsonObject, data)


def _plan(data: JsonObject, named: Named, most_steps: int | None) -> Planned:
    given = data.get("steps")
    if not isinstance(given, list):
        raise NoPlan("steps must be a list")
    warnings: list[str] = []
    steps: list[PlanStep] = []
    for entry in cast("list[Any]", given):
        if step := _step(entry, len(steps) + 1, named.tools, warnings):
            steps.append(step)
    unique = list({step.description: step for step in reversed(steps)}.values())[::-1]
    if len(unique) < len(steps):
        warnings.append(f"{len(steps) - len(unique)} repeated steps were dropped")
    if most_steps is not None and len(unique) > most_steps:
        warnings.append(f"{len(unique) - most_steps} steps over the cap of {most_steps} were cut")
        unique = unique[:most_steps]
    plan = Plan(thought=str(data.get("thought") or ""), steps=tuple(unique), skills=_wanted(data, named, warnings))
    return Planned(plan, tuple(warnings))


def _wanted(data: JsonObject, named: Named, warnings: list[str]) -> tuple[str, ...] | None:
    """The skills it names and there are, each once; None for none."""
    asked = data.get("skills")
    wanted = list(dict.fromkeys(str(name) for name in cast("list[Any]", asked))) if isinstance(asked, list) else []
    if unknown := [name for name in wanted if name not in named.skills]:
        warnings.append(f"unknown skills were dropped: {', '.join(unknown)[:LONGEST_TEXT]}")
    return tuple(name for name in wanted if name in named.skills)[:MOST_SKILLS] or None


def _step(entry: Any, number: int, tools: Sequence[str], warnings: list[str]) -> PlanStep | None:
    fields = cast(JsonObject, entry) if isinstance(entry, dict) else {"description": entry}
    description = str(fields.get("description") or "").strip()
    if not description:
        return None
    asked = fields.get("suggested_tools")
    suggested = [str(name) for name in cast("list[Any]", asked)] if isinstance(asked, list) else []
    known = tuple(dict.fromkeys(name for name in suggested if name in tools))
    unknown = [name for name in suggested if name not in tools]
    if unknown:
        warnings.append(f"step {number}: unknown tools were dropped: {', '.join(unknown)}")
    return PlanStep(
        id=str(fields.get("id") or f"s{number}")[:40],
        description=description,
        expected_outcome=str(fields.get("expected_outcome") or ""),
        suggested_tools=known,
        requires_tools=bool(unknown) and not known,
    )
