"""What models cost and how much fits into their window: data with its date and source, under what is configured.

A price that has changed since, or a model that is missing: EDGE_AGENT_PRICES. What is not known is not guessed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from edge_agent.core.errors import ConfigError
from edge_agent.core.price import FREE, Price
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.naming import resolve
from edge_agent.wire.settings import Settings

DEFAULT_WINDOW = 128_000  # tokens
OPENAI = "developers.openai.com/api/docs/pricing, standard tier, as of 2026-06"
ANTHROPIC = "platform.claude.com/docs/en/about-claude/pricing, caches of five minutes, as of 2026-10"
WORKERS_AI_MODELS = "developers.cloudflare.com/workers-ai/models, as of 2026-08"
WORKERS_AI = "developers.cloudflare.com/workers-ai/platform/pricing, as of 2026-07-09"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A model as its provider lists it. `window` in tokens: not above what the price holds for (OpenAI asks double for
    prompts of more than 272 000, Anthropic's Haiku 5.5 five times as much above 100 000)."""

    price: Price
    window: int
    source: str


def _listed(source: str, window: int, input_: float, cached: float | None, output: float) -> Listed:
    return Listed(price=Price(input=input_, cached=cached, output=output), window=window, source=source)


def _claude(window: int, input_: float, cached: float, output: float) -> Listed:
    """Writing the cache costs a quarter more than other input."""
    price = Price(input=input_, cached=cached, cache_write=1.25 * input_, output=output)
    return Listed(price=price, window=window, source=ANTHROPIC)


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
    "@cf/meta/llama-3.3-70b-instruct-fp8-fast": _listed(WORKERS_AI, 24_000, 0.293, None, 2.253),
    "@cf/meta/llama-4-scout-17b-16e-instruct": _listed(WORKERS_AI, 131_000, 0.27, None, 0.85),
    "@cf/openai/gpt-oss-20b": _listed(WORKERS_AI, 128_000, 0.20, None, 0.30),
    "@cf/openai/gpt-oss-120b": _listed(WORKERS_AI, 128_000, 0.35, None, 0.75),
    "@cf/qwen/qwen3-30b-a3b-fp8": _listed(WORKERS_AI, 32_768, 0.051, None, 0.335),
    "@cf/qwen/qwq-32b": _listed(WORKERS_AI, 24_000, 0.66, None, 1.00),
    "@cf/mistralai/mistral-small-3.1-24b-instruct": _listed(WORKERS_AI, 128_000, 0.351, None, 0.555),
    "@cf/nvidia/nemotron-3-120b-a12b": _listed(WORKERS_AI, 256_000, 0.50, None, 1.50),
    "@cf/zai-org/glm-4.7-flash": _listed(WORKERS_AI, 131_072, 0.06, None, 0.40),
    "@cf/zai-org/glm-5.2": _listed(WORKERS_AI_MODELS, 262_144, 1.40, 0.26, 4.40),
    "@cf/zai-org/glm-5.3": _listed(WORKERS_AI_MODELS, 1_310_720, 1.40, 0.26, 4.40),
    "@cf/moonshotai/kimi-k2.7-code": _listed(WORKERS_AI_MODELS, 262_144, 0.95, 0.19, 4.00),
    "@cf/deepseek-ai/deepseek-v4-flash-0731": _listed(WORKERS_AI_MODELS, 1_048_576, 0.44, 0.014, 1.32),
}


def price_of(name: str, settings: Settings) -> Price | None:
    """Of a model by its whole name: configured, free because it runs on this machine, or listed; None: nobody knows."""
    configured = settings.prices
    own = configured.get(name) or configured.get(name.partition("/")[2])
    if own is not None:
        return own
    endpoint = _endpoint(name, settings)
    if endpoint is not None and _is_loopback(endpoint.host):
        return FREE
    return TABLE[name].price if name in TABLE else None


def window_of(names: Iterable[str], settings: Settings) -> int:
    """The smallest context window of these models, in tokens."""
    return settings.context_window or min((_window(name, settings) for name in names), default=DEFAULT_WINDOW)


def _window(name: str, settings: Settings) -> int:
    endpoint = _endpoint(name, settings)
    own = endpoint.profile.context_window if endpoint is not None else None
    return own or (TABLE[name].window if name in TABLE else DEFAULT_WINDOW)


def _endpoint(name: str, settings: Settings) -> Endpoint | None:
    """None for a model that was passed in as an object, or whose provider is not configured (any more)."""
    try:
        return resolve(name, settings)[0]
    except ConfigError:
        return None


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name == "localhost":
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
