"""By which means an answer in the form of a schema is asked for."""

from dataclasses import dataclass
from typing import Literal

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import ModelRequest
from edge_agent.models.anthropic.families import Family
from edge_agent.models.endpoint import Profile

Means = Literal["format", "tool", "words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """`schema` as it is sent. `tool`: the demanded tool whose input is the answer."""

    means: Means
    schema: JsonObject
    tool: str | None = None


def form_of(request: ModelRequest, profile: Profile, family: Family) -> Form | None:
    """output_config.format where the model has it, else a demanded tool whose input is the answer, else words."""
    schema = request.output_schema
    if schema is None:
        return None
    if profile.structured_output == "prompt":
        return Form(means="words", schema=schema)
    if family.json_schema:
        return Form(means="format", schema=schema)
    if family.forced_tools and schema.get("type") == "object":
        return Form(means="tool", schema=schema, tool=_unused_name(request))
    return Form(means="words", schema=schema)


def _unused_name(request: ModelRequest) -> str:
    name, taken = "answer", {spec.name for spec in request.tools}
    while name in taken:
        name += "_"
    return name
