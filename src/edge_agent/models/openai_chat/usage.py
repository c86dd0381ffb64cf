"""Token counts, normalised: what OpenAI and those who imitate it report under a dozen names."""

from typing import cast

from edge_agent.core.messages import JsonObject
from edge_agent.core.usage import Usage
from edge_agent.models.json_fields import count_in


def read_usage(reported: JsonObject, before: Usage) -> Usage:
    """The whole call so far: what is reported now, and what was reported before where a field is absent now.

    Cached tokens are part of the input. Reasoning is part of the output, also where a server counts it apart (xAI) or
    in the total only (Gemini): what the total holds beyond both is output."""
    prompt, completion = _details(reported, "prompt", "input"), _details(reported, "completion", "output")
    input_ = _first(reported, "prompt_tokens", "input_tokens", otherwise=before.input)
    spoken = _first(reported, "completion_tokens", "output_tokens", otherwise=before.output)
    output = max(spoken, _first(reported, "total_tokens", otherwise=0) - input_)
    cached = _first(
        {**reported, **prompt}, "cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens", otherwise=before.cached
    )
    reasoning = _first(completion, "reasoning_tokens", otherwise=max(before.reasoning, output - spoken))
    return Usage(
        input=input_,
        cached=min(cached, input_),
        cache_write=min(_first(prompt, "cache_write_tokens", otherwise=before.cache_write), input_),
        output=output,
        reasoning=min(reasoning, output),
    )


def _details(reported: JsonObject, *of: str) -> JsonObject:
    details = next((found for name in of if (found := reported.get(f"{name}_tokens_details"))), None)
    return cast(JsonObject, details) if isinstance(details, dict) else {}


def _first(reported: JsonObject, *names: str, otherwise: int) -> int:
    return next((count for name in names if (count := count_in(reported, name)) is not None), otherwise)
