"""How each model of Workers AI wants to be asked, as data by its name.

From the model pages of developers.cloudflare.com/workers-ai/models and workerd's types (2026-08); not yet compared with
the live service. Whatever it is asked in, a model may answer in any form: answer.py does not look here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from edge_agent.core.messages import JsonObject

Level = Literal["minimal", "low", "medium", "high", "xhigh", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """schema: where the schema of a structured answer goes: bare into response_format (the service's own form), named
        into response_format (OpenAI's), or into guided_json.
    max_tokens_field: the output cap's name. include_usage: whether usage has to be asked for in a stream.
    efforts: the levels of reasoning_effort that are taken, in rising order. unthinking: what switches thinking off,
        empty where it does not think; None: nothing does.
    leaks_calls: a call that was forced may come as JSON text.
    """

    schema: Literal["bare", "named", "guided"] = "bare"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    include_usage: bool = False
    efforts: tuple[Level, ...] = ()
    unthinking: JsonObject | None = None
    leaks_calls: bool = False


_NATIVE = Dialect(unthinking={})
_GUIDED = Dialect(schema="guided", unthinking={})
_CHAT = Dialect(
    schema="named",
    max_tokens_field="max_completion_tokens",
    include_usage=True,
    efforts=("low", "medium", "high"),
    unthinking={"reasoning_effort": None, "chat_template_kwargs": {"enable_thinking": False}},
)
# By the beginning of the name; the longest that fits counts.
_DIALECTS: Mapping[str, Dialect] = {
    "@hf/": _NATIVE,
    "@cf/deepseek-ai/deepseek-math": _NATIVE,
    "@cf/deepseek-ai/deepseek-r1-distill": Dialect(),
    "@cf/deepseek-ai/deepseek-v4": replace(
        _CHAT, efforts=("low", "high", "max"), unthinking={"reasoning_effort": "none"}
    ),
    "@cf/google/gemma-": _NATIVE,
    "@cf/google/gemma-3": _GUIDED,
    "@cf/google/gemma-4": _CHAT,
    "@cf/ibm-granite/": _NATIVE,
    "@cf/meta/llama-": _NATIVE,
    "@cf/meta/llama-4-scout": _GUIDED,
    "@cf/meta-llama/": _NATIVE,
    "@cf/mistral/": _NATIVE,
    "@cf/mistralai/mistral-small-3.1": _GUIDED,
    "@cf/moonshotai/": _CHAT,
    "@cf/moonshotai/kimi-k2.7": replace(_CHAT, efforts=(), unthinking=None),
    "@cf/nvidia/nemotron-3": _CHAT,
    "@cf/openai/gpt-oss": Dialect(efforts=("low", "medium", "high"), leaks_calls=True),
    "@cf/qwen/qwen1.5": _NATIVE,
    "@cf/qwen/qwen2.5": _NATIVE,
    "@cf/qwen/qwen3-30b": Dialect(),  # answers in OpenAI's form
    "@cf/qwen/qwq": Dialect(schema="guided"),
    "@cf/zai-org/": _CHAT,
    "@cf/zai-org/glm-5.3": replace(_CHAT, efforts=("low", "high", "max")),
}
# New models come in OpenAI's form, which still takes max_tokens: what every model understands, then.
_UNKNOWN = Dialect(schema="named")


def dialect_of(model: str) -> Dialect:
    """`model` by its whole name (@cf/author/model)."""
    fitting = [beginning for beginning in _DIALECTS if model.startswith(beginning)]
    return _DIALECTS[max(fitting, key=len)] if fitting else _UNKNOWN
