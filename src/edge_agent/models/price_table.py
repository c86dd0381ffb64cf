"""Models as their providers list them, with the date and the source of each row."""

from collections.abc import Mapping
from dataclasses import dataclass

from edge_agent.core.price import Price

OPENAI = "developers.openai.com/api/docs/pricing, standard tier, as of 2026-06"
ANTHROPIC = "platform.claude.com/docs/en/about-claude/pricing, as of 2026-10"
# Read at second hand, from pages that quote it. What a cache holds is counted like other input: that rate is not sure.
GOOGLE = "ai.google.dev/gemini-api/docs/pricing, paid tier, as of 2026-05"
WORKERS_AI = "developers.cloudflare.com/workers-ai/platform/pricing, as of 2026-07-09"
WORKERS_AI_MODEL = "the model's page in developers.cloudflare.com/workers-ai/models, as of 2026-11"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A model as its provider lists it.

    window: tokens, not above what the price holds for (OpenAI asks double for prompts of more than 272 000, Google for
        more than 200 000, Anthropic's Haiku 5.5 five times as much above 100 000).
    hour_write: dollars for a million tokens written to a cache that keeps them for an hour.
    """

    price: Price
    window: int
    source: str
    hour_write: float | None = None


def _listed(source: str, window: int, input_: float, cached: float | None, output: float) -> Listed:
    return Listed(price=Price(input=input_, cached=cached, output=output), window=window, source=source)


def _claude(window: int, input_: float, cached: float, output: float) -> Listed:
    """Writing to the cache costs a quarter more than reading input, and double where it is kept for an hour."""
    price = Price(input=input_, cached=cached, cache_write=1.25 * input_, output=output)
    return Listed(price=price, window=window, source=ANTHROPIC, hour_write=2 * input_)


TABLE: Mapping[str, Listed] = {
    "openai/gpt-4.1": _listed(OPENAI, 1_047_576, 2.00, 0.50, 8.00),
    "openai/gpt-4.1-mini": _listed(OPENAI, 1_047_576, 0.40, 0.10, 1.60),
    "openai/gpt-4.1-nano": _listed(OPENAI, 1_047_576, 0.10, 0.025, 0.40),
    "openai/gpt-4o": _listed(OPENAI, 128_000, 2.50, 1.25, 10.00),
    "openai/gpt-4o-mini": _listed(OPENAI, 128_000, 0.15, 0.075, 0.60),
    "openai/o3": _listed(OPENAI, 200_000, 2.00, 0.50, 8.00),
    "openai/o4-mini": _listed(OPENAI, 200_000, 1.10, 0.275, 4.40),
    "openai/gpt-5": _listed(OPENAI, 400_000, 1.25, 0.125, 10.00),
    "openai/gpt-5-mini": _listed(OPENAI, 400_000, 0.25, 0.025, 2.00),
    "openai/gpt-5-nano": _listed(OPENAI, 400_000, 0.05, 0.005, 0.40),
    "openai/gpt-5.1": _listed(OPENAI, 400_000, 1.25, 0.125, 10.00),
    "openai/gpt-5.2": _listed(OPENAI, 400_000, 1.75, 0.175, 14.00),
    "openai/gpt-5.4": _listed(OPENAI, 272_000, 2.50, 0.25, 15.00),
    "openai/gpt-5.4-mini": _listed(OPENAI, 400_000, 0.75, 0.075, 4.50),
    "openai/gpt-5.4-nano": _listed(OPENAI, 400_000, 0.20, 0.02, 1.25),
    "openai/gpt-5.5": _listed(OPENAI, 272_000, 5.00, 0.50, 30.00),
    "anthropic/claude-fable-5-1": _claude(1_000_000, 10.00, 0.25, 50.00),
    "anthropic/claude-fable-5": _claude(1_000_000, 10.00, 1.00, 50.00),
    "anthropic/claude-opus-5-5": _claude(1_000_000, 4.00, 0.20, 20.00),
    "anthropic/claude-opus-5": _claude(1_000_000, 5.00, 0.50, 25.00),
    "anthropic/claude-opus-4-8": _claude(1_000_000, 5.00, 0.50, 25.00),
    "anthropic/claude-opus-4-7": _claude(1_000_000, 5.00, 0.50, 25.00),
    "anthropic/claude-opus-4-6": _claude(200_000, 5.00, 0.50, 25.00),
    "anthropic/claude-opus-4-5": _claude(200_000, 5.00, 0.50, 25.00),
    "anthropic/claude-sonnet-5-5": _claude(1_000_000, 2.00, 0.10, 10.00),
    "anthropic/claude-sonnet-5": _claude(1_000_000, 2.00, 0.20, 10.00),
    "anthropic/claude-sonnet-4-6": _claude(200_000, 3.00, 0.30, 15.00),
    "anthropic/claude-sonnet-4-5": _claude(200_000, 3.00, 0.30, 15.00),
    "anthropic/claude-haiku-5-5": _claude(100_000, 0.10, 0.01, 0.50),
    "anthropic/claude-haiku-4-5": _claude(200_000, 1.00, 0.10, 5.00),
    "google/gemini-3.5-flash": _listed(GOOGLE, 1_048_576, 1.50, None, 9.00),
    "google/gemini-3.1-pro-preview": _listed(GOOGLE, 200_000, 2.00, None, 12.00),
    "google/gemini-3.1-flash-lite": _listed(GOOGLE, 1_048_576, 0.25, None, 1.50),
    "google/gemini-2.5-pro": _listed(GOOGLE, 200_000, 1.25, None, 10.00),
    "google/gemini-2.5-flash": _listed(GOOGLE, 1_048_576, 0.30, None, 2.50),
    "google/gemini-2.5-flash-lite": _listed(GOOGLE, 1_048_576, 0.10, None, 0.40),
    "@cf/meta/llama-3.3-70b-instruct-fp8-fast": _listed(WORKERS_AI, 24_000, 0.293, None, 2.253),
    "@cf/meta/llama-4-scout-17b-16e-instruct": _listed(WORKERS_AI, 131_000, 0.27, None, 0.85),
    "@cf/openai/gpt-oss-20b": _listed(WORKERS_AI, 128_000, 0.20, None, 0.30),
    "@cf/openai/gpt-oss-120b": _listed(WORKERS_AI, 128_000, 0.35, None, 0.75),
    "@cf/qwen/qwen3-30b-a3b-fp8": _listed(WORKERS_AI, 32_768, 0.051, None, 0.335),
    "@cf/qwen/qwq-32b": _listed(WORKERS_AI, 24_000, 0.66, None, 1.00),
    "@cf/mistralai/mistral-small-3.1-24b-instruct": _listed(WORKERS_AI, 128_000, 0.351, None, 0.555),
    "@cf/nvidia/nemotron-3-120b-a12b": _listed(WORKERS_AI, 256_000, 0.50, None, 1.50),
    "@cf/zai-org/glm-4.7-flash": _listed(WORKERS_AI, 131_072, 0.06, None, 0.40),
    "@cf/zai-org/glm-5.2": _listed(WORKERS_AI_MODEL, 262_144, 1.40, 0.26, 4.40),
    "@cf/zai-org/glm-5.3": _listed(WORKERS_AI_MODEL, 1_310_720, 1.40, 0.26, 4.40),
    "@cf/moonshotai/kimi-k2.7-code": _listed(WORKERS_AI, 262_144, 0.95, 0.19, 4.00),
    "@cf/deepseek-ai/deepseek-v4-flash-0731": _listed(WORKERS_AI_MODEL, 1_048_576, 0.44, 0.014, 1.32),
}
