"""By which means an answer in the form of a schema is asked for."""

from dataclasses import dataclass
from typing import Literal

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import ModelRequest
from edge_agent.models.anthropic.families import Family
from edge_agent.models.endpoint import Profile
from edge_agent.models.schemas import Converted, for_anthropic, for_anthropic_strict

Means = Literal["format", "tool", "words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """`schema` as it is sent. `tool`: the demanded tool whose input is the answer. warnings: what of the schema could
    not be told."""

    means: Means
    schema: JsonObject
    tool: str | None = None
    warnings: tuple[str, ...] = ()


def form_of(request: ModelRequest, profile: Profile, family: Family) -> Form | None:
    """output_config.format where the model and the schema allow it, else a demanded tool whose input is the answer,
    else words."""
    schema = request.output_schema
    if schema is None:
        return None
    if profile.structured_output == "prompt":
        return Form(means="words", schema=schema)
    strict = for_anthropic_strict(schema)
    if family.json_schema and strict.strict:
        return Form(means="format", schema=strict.schema, warnings=_told(strict))
    loose = for_anthropic(schema)
    if family.forced_tools and loose.schema.get("type") == "object":
        return Form(means="tool", schema=loose.schema, tool=_unused_name(request), warnings=_told(loose))
    return Form(means="words", schema=schema)


def _told(converted: Converted) -> tuple[str, ...]:
    return tuple(f"The form of the answer: {warning}." for warning in converted.warnings)


def _unused_name(request: ModelRequest) -> str:
    name, taken = "answer", {spec.name for spec in request.tools}
    while name in taken:
        name += "_"
    return name
