"""Calls of the Messages API, checked against its rules, for tests."""

from typing import Any

from edge_agent.core.messages import AssistantMessage, OpaquePart, ToolCall, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import ModelRequest, PromptCache, Thinking
from edge_agent.models.adapter import Call
from edge_agent.models.anthropic import Anthropic
from edge_agent.models.endpoint import Endpoint, Profile
from tests.wire.anthropic_rules import faults

Json = dict[str, Any]
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
NOW = ToolSpec(name="now", description="The time.", parameters={"type": "object"})
USER = UserMessage(text="hi")
SCHEMA: Json = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
    "additionalProperties": False,
}
CACHE = PromptCache(key="k")
BUDGETED, ADAPTIVE, ALWAYS = "claude-sonnet-4-5-20250929", "claude-opus-4-8", "claude-opus-5-5"
OLD, DEMANDS = "claude-3-5-haiku-latest", "claude-sonnet-4-20250514"
MODELS = (
    OLD, "claude-3-haiku-20240307", "claude-3-7-sonnet-20250219", DEMANDS, "claude-opus-4-1",
    BUDGETED, "claude-opus-4-5", "claude-haiku-4-5", "claude-opus-4-6", ADAPTIVE, "claude-sonnet-5", "claude-opus-5",
    "claude-haiku-5-5", "claude-sonnet-5-5", ALWAYS, "claude-fable-5-1", "claude-fable-5", "claude-mythos-preview",
)  # fmt: skip
WISHES: tuple[Thinking | None, ...] = (None, "none", "minimal", "low", "medium", "high", "xhigh", 500, 3_000, 100_000)
THOUGHT: Json = {"type": "thinking", "thinking": "Hm.", "signature": "sig-1"}
REDACTED: Json = {"type": "redacted_thinking", "data": "EsAB"}


def endpoint(profile: Profile | None = None, **more: Any) -> Endpoint:
    fields: Json = {"key": "sk-1", "key_header": "x-api-key", **more}
    return Endpoint(provider="anthropic", base_url="https://api.example.com/v1", profile=profile or Profile(), **fields)


def request(**more: Any) -> ModelRequest:
    fields: Json = {"system": "Be brief.", "messages": (USER,), "max_output_tokens": 4_000, **more}
    return ModelRequest(**fields)


def call(asked: ModelRequest, model: str = ADAPTIVE, profile: Profile | None = None, **more: Any) -> Call:
    """The call, which must break no rule."""
    made = Anthropic().call(asked, endpoint(profile, **more), model)
    ours = [block for message in asked.messages if isinstance(message, AssistantMessage)
            for part in message.opaque if part.provider == "anthropic" for block in part.data["blocks"]]  # fmt: skip
    assert faults(made.body, made.headers, lambda block: block in ours) == []
    return made


def body(asked: ModelRequest, model: str = ADAPTIVE, profile: Profile | None = None, **more: Any) -> Json:
    return call(asked, model, profile, **more).body


def calling(*ids: str, text: str = "", opaque: tuple[OpaquePart, ...] = ()) -> AssistantMessage:
    calls = tuple(ToolCall(id=id_, name="add", arguments={"a": 1}) for id_ in ids)
    return AssistantMessage(text=text, calls=calls, opaque=opaque)


def result(id_: str, text: str = "2", *, ok: bool = True) -> ToolMessage:
    return ToolMessage(call_id=id_, name="add", text=text, ok=ok)


def opaque(*blocks: Json, model: str = BUDGETED, provider: str = "anthropic") -> OpaquePart:
    return OpaquePart(provider=provider, model=model, data={"blocks": list(blocks)})
