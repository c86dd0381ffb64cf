"""The pure half of asking: a neutral request in, a call of the Messages API out."""

from collections.abc import Sequence
from typing import cast

from edge_agent.core.messages import AssistantMessage, JsonObject, ToolSpec
from edge_agent.core.model import ModelRequest, PromptCache
from edge_agent.models.adapter import Call
from edge_agent.models.anthropic.families import Family, family_of
from edge_agent.models.anthropic.layout import THOUGHTS, text_block
from edge_agent.models.anthropic.structured import Form, form_of
from edge_agent.models.anthropic.thinking import Thought, thought
from edge_agent.models.anthropic.turns import opens_without_thought, turns_of
from edge_agent.models.asking import headers, schema_in_words
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.schemas import for_anthropic

PATH = "/messages"
VERSION = "2023-06-01"
BETAS = "anthropic-beta"
DEFAULT_MAX_OUTPUT = 8_192  # tokens, of a model whose own limit is not known; the field must be there


def build(request: ModelRequest, endpoint: Endpoint, model: str) -> Call:
    """The call. Options win over everything, as Adapter says; those of output_config do so field by field."""
    family = family_of(model)
    form = form_of(request, endpoint.profile, family)
    max_tokens = _max_tokens(request, family)
    choice, not_demanded = _tool_choice(request, form, family)
    tools, not_told = _tools(request, form, choice)
    turns = turns_of(request, endpoint.provider, model, thinks=True)
    thinking = thought(
        request,
        family,
        max_tokens,
        forced=choice.get("type") in ("any", "tool"),
        unopened=opens_without_thought(turns),
    )
    if not thinking.on:
        turns = turns_of(request, endpoint.provider, model, thinks=False)
    body: JsonObject = {
        "model": model,
        "max_tokens": max_tokens,
        "stream": True,
        **_system(request, form),
        **tools,
        **({"thinking": thinking.config} if thinking.config else {}),
        **_output_config(form, thinking),
        "messages": _marked(turns, request.cache),
    }
    for options in (endpoint.profile.options, endpoint.options, request.options or {}):
        body = _with(body, options)
    told = _with_beta({"anthropic-version": VERSION} | headers(request, endpoint), thinking.beta)
    warnings = (*not_demanded, *not_told, *(form.warnings if form else ()), *thinking.warnings)
    return Call(path=PATH, headers=told, body=body, warnings=warnings)


def _with(body: JsonObject, options: JsonObject) -> JsonObject:
    own, wanted = body.get("output_config"), options.get("output_config")
    if isinstance(own, dict) and isinstance(wanted, dict):
        options = {**options, "output_config": cast(JsonObject, own) | cast(JsonObject, wanted)}
    return body | options


def _with_beta(told: dict[str, str], beta: str | None) -> dict[str, str]:
    """Beside those of the endpoint: a field of a beta is refused without its name in the header."""
    betas = [name.strip() for name in told.get(BETAS, "").split(",") if name.strip()]
    return told | {BETAS: ",".join(dict.fromkeys([*betas, beta]))} if beta else told


def _max_tokens(request: ModelRequest, family: Family) -> int:
    """More than the model can say is refused."""
    wanted = request.max_output_tokens or family.max_output or DEFAULT_MAX_OUTPUT
    return min(wanted, family.max_output or wanted)


def _system(request: ModelRequest, form: Form | None) -> JsonObject:
    """The system prompt, and behind it a cache mark: what stands before it is the same in every round."""
    words = schema_in_words(form.schema) if form and form.means == "words" else ""
    told = "\n\n".join(part for part in (request.system, words) if part.strip())
    return {"system": [text_block(told) | _mark(request.cache)]} if told else {}


def _tools(request: ModelRequest, form: Form | None, choice: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """The fields, and what of the schemas could not be told. Nothing for no tools: an empty list is refused.

    A conversation with calls is refused without any tool: those it knows are named then, and may not be called."""
    converted = [(spec, for_anthropic(spec.parameters)) for spec in request.tools]
    told = [_tool(spec, one.schema) for spec, one in converted]
    warnings = tuple(f"The tool {spec.name}: {warning}." for spec, one in converted for warning in one.warnings)
    if form and form.tool:
        told.append({"name": form.tool, "description": "Gives the answer.", "input_schema": form.schema})
    if told:
        return {"tools": told, **({"tool_choice": choice} if choice else {})}, warnings
    called = _called(request)
    return ({"tools": called, "tool_choice": {"type": "none"}} if called else {}), ()


def _tool(spec: ToolSpec, schema: JsonObject) -> JsonObject:
    """Without strictness: that has limits of its own, and arguments are checked before a call runs anyway."""
    described = {"description": spec.description} if spec.description else {}  # an empty one is refused
    return {"name": spec.name, **described, "input_schema": schema}


def _called(request: ModelRequest) -> list[JsonObject]:
    answers = [message for message in request.messages if isinstance(message, AssistantMessage)]
    names = dict.fromkeys(call.name for answer in answers for call in answer.calls)
    return [{"name": name, "input_schema": {"type": "object", "properties": {}}} for name in names]


def _tool_choice(request: ModelRequest, form: Form | None, family: Family) -> tuple[JsonObject, tuple[str, ...]]:
    """Empty for the default, with what could not be asked for."""
    if form and form.tool:
        may_call = request.tools and request.tool_choice != "none"
        return ({"type": "any"} if may_call else {"type": "tool", "name": form.tool}), ()
    if not request.tools or request.tool_choice == "auto":
        return {}, ()
    if request.tool_choice == "none":
        return {"type": "none"}, ()
    if family.forced_tools:
        return {"type": "any"}, ()
    return {}, ("This model cannot be made to call a tool: it was left to choose.",)


def _output_config(form: Form | None, thinking: Thought) -> JsonObject:
    config: JsonObject = {"effort": thinking.effort} if thinking.effort else {}
    if form and form.means == "format":
        config["format"] = {"type": "json_schema", "schema": form.schema}
    return {"output_config": config} if config else {}


def _marked(turns: Sequence[JsonObject], cache: PromptCache | None) -> list[JsonObject]:
    """With a cache mark on the newest block, so that the next round reads what this one wrote. It moves on with each
    round: with that of the system prompt there are two, of four that are allowed."""
    *before, last = turns
    *blocks, newest = last["content"]
    if cache is None or newest["type"] in THOUGHTS:
        return list(turns)
    return [*before, {**last, "content": [*blocks, newest | _mark(cache)]}]


def _mark(cache: PromptCache | None) -> JsonObject:
    if cache is None:
        return {}
    return {"cache_control": {"type": "ephemeral"} | ({"ttl": cache.ttl} if cache.ttl else {})}
