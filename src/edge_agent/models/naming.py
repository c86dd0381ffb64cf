"""From the name of a model to the model: which provider, which way to it, which key. Reads no environment and opens
nothing."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from edge_agent.core.errors import ConfigError
from edge_agent.core.model import Model
from edge_agent.models.adapter import Adapter
from edge_agent.models.anthropic import Anthropic
from edge_agent.models.endpoint import PROFILES, Endpoint, Profile
from edge_agent.models.google import Google
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.provider_model import ProviderModel
from edge_agent.models.providers import KEY_HEADERS, OPTION, PROVIDERS, Known
from edge_agent.models.transport import Transport
from edge_agent.models.workers_ai import WorkersAI
from edge_agent.wire.entries import Provider
from edge_agent.wire.model_settings import Gateway
from edge_agent.wire.settings import Settings

MODEL_VARIABLE = "EDGE_AGENT_MODEL"
WORKERS_AI = "@cf"
ADAPTERS: Mapping[str, Adapter] = {
    "openai_chat": OpenAIChat(),
    "anthropic": Anthropic(),
    "google": Google(),
    "workers_ai": WorkersAI(),
}
_NATIVE_TOOLS = ("anthropic", "google", "workers_ai")  # adapters that know no JSON tool mode
GATEWAY_HOST = "https://gateway.ai.cloudflare.com"
REST_HOST = "https://api.cloudflare.com/client/v4/accounts"
_COMPATIBLE = "openai-compatible"


def split_models(text: str) -> tuple[str, ...]:
    """A comma-separated list: the model, then its fallbacks in order. Blanks and repetitions are left out."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def model_for(name: str, settings: Settings, *, transport_for: Callable[[Endpoint], Transport]) -> Model:
    """The model of that name, reached by the transport that is right for its endpoint.

    Opens nothing before the first call. Raises ConfigError as `resolve` does."""
    endpoint, model = resolve(name, settings)
    return ProviderModel(
        name=model,
        endpoint=endpoint,
        adapter=ADAPTERS[endpoint.adapter],
        transport=transport_for(endpoint),
        stall_timeout=settings.stall_timeout,
        timeout=settings.model_timeout,
    )


def resolve(name: str, settings: Settings) -> tuple[Endpoint, str]:
    """`provider/model` as the provider's endpoint and the model's name there (which may hold slashes of its own).

    Entries of EDGE_AGENT_PROVIDERS win over the providers known by name. Raises ConfigError naming the variable to
    set."""
    provider, slash, model = name.strip().partition("/")
    if not slash or not provider or not model:
        fault = f"{name!r} names no model: it is written as provider/model or @cf/…"
        raise ConfigError(MODEL_VARIABLE, fault, f"{MODEL_VARIABLE}=openai/gpt-5-mini")
    if provider in settings.providers:
        at = _own(provider, settings.providers[provider], settings)
    elif provider == _COMPATIBLE:
        at = _compatible(name, settings)
    elif provider == WORKERS_AI:
        at = _workers_ai(name, settings)
    elif provider in PROVIDERS:
        at = _known(provider, model, settings)
    else:
        raise _unknown(provider, name, settings)
    return replace(at, user_agent=settings.name), model


def _own(provider: str, entry: Provider, settings: Settings) -> Endpoint:
    return Endpoint(
        provider=provider,
        base_url=entry.base_url,
        adapter=entry.adapter,
        key=settings.secrets[entry.key] if entry.key else None,
        key_header=KEY_HEADERS.get(entry.adapter, "authorization"),
        headers=entry.headers,
        profile=_profile(provider, entry),
        options=entry.options,
    )


def _profile(provider: str, entry: Provider) -> Profile:
    name = entry.profile or "default"
    if name not in PROFILES:
        fault = f"{provider}.profile is {name!r}, which is none of {', '.join(PROFILES)}"
        example = f'EDGE_AGENT_PROVIDERS={{"{provider}": {{"base_url": "{entry.base_url}", "profile": "default"}}}}'
        raise ConfigError("EDGE_AGENT_PROVIDERS", fault, example)
    profile = PROFILES[name]
    tool_mode = entry.tool_mode or profile.tool_mode
    if tool_mode == "json" and entry.adapter in _NATIVE_TOOLS:
        fault = f"{provider} has the tool_mode json, which there is not for the adapter {entry.adapter}"
        example = f'EDGE_AGENT_PROVIDERS={{"{provider}": {{"base_url": "{entry.base_url}", "tool_mode": "native"}}}}'
        raise ConfigError("EDGE_AGENT_PROVIDERS", fault, example)
    return replace(
        profile,
        tool_mode=tool_mode,
        context_window=entry.context_window or profile.context_window,
    )


def _compatible(name: str, settings: Settings) -> Endpoint:
    if settings.base_url is None:
        fault = f"is not set, and the model {name} needs it"
        raise ConfigError("EDGE_AGENT_BASE_URL", fault, "EDGE_AGENT_BASE_URL=https://models.example.com/v1")
    return Endpoint(provider=_COMPATIBLE, base_url=settings.base_url, key=settings.api_key)


def _workers_ai(name: str, settings: Settings) -> Endpoint:
    """By the AI binding; where there is none, over HTTPS with the account and token of the gateway."""
    gateway = settings.gateway
    at = Endpoint(provider=WORKERS_AI, base_url="https://workers-binding.ai", adapter="workers_ai", route="binding")
    if settings.ai_binding:
        return replace(at, gateway=gateway.id, metadata_header=_METADATA) if gateway else at
    if gateway is None or gateway.account is None:
        fault = f"is not set, and without the AI binding the model {name} needs it as account/gateway"
        raise ConfigError("EDGE_AGENT_GATEWAY", fault, "EDGE_AGENT_GATEWAY=0123456789abcdef0123456789abcdef/default")
    return replace(
        at,
        base_url=f"{REST_HOST}/{gateway.account}/ai",
        route="https",
        key=gateway.token,
        headers={**_GATEWAY_HEADERS, "cf-aig-gateway-id": gateway.id},
        metadata_header=_METADATA,
    )


# The loop retries: a gateway that did so too would pay for attempts nobody knows of.
_GATEWAY_HEADERS = {"cf-aig-max-attempts": "1"}
_METADATA = "cf-aig-metadata"


def _known(provider: str, model: str, settings: Settings) -> Endpoint:
    known, gateway = PROVIDERS[provider], settings.gateway
    key = settings.secrets.get(known.key)
    options = _options(known, provider, settings) | {"model": model}
    at = Endpoint(
        provider=provider,
        base_url=known.direct.format(**options),
        adapter=known.adapter,
        key=key,
        key_header=known.key_header,
        profile=PROFILES[known.profile],
    )
    if gateway is not None and known.gateway is not None:
        return _through(gateway, at, known.gateway.format(**options))
    if not key:
        fault = f"is not set, and the model {provider}/{model} needs it"
        raise ConfigError(known.key, fault, f"{known.key}=sk-…")
    return at


def _through(gateway: Gateway, at: Endpoint, path: str) -> Endpoint:
    """The gateway sends the key it was given, else one that is stored there, else it is billed by Cloudflare."""
    headers = dict(_GATEWAY_HEADERS)
    if gateway.account is None:
        base, route = f"{GATEWAY_HOST}/{path}", "gateway"
    else:
        base, route = f"{GATEWAY_HOST}/v1/{gateway.account}/{gateway.id}/{path}", "https"
        headers["cf-aig-authorization"] = f"Bearer {gateway.token}"
    return replace(at, base_url=base, route=route, gateway=gateway.id, headers=headers, metadata_header=_METADATA)


def _options(known: Known, provider: str, settings: Settings) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in known.options:
        value = settings.variable(name)
        if value is None:
            raise ConfigError(name, f"is not set, and the provider {provider} needs it", f"{name}=…")
        if not OPTION.fullmatch(value):
            raise ConfigError(name, "is made of letters, digits, '.', '_' and '-'", f"{name}=…")
        found[name] = value
    return found


def _unknown(provider: str, name: str, settings: Settings) -> ConfigError:
    known = ", ".join((*PROVIDERS, _COMPATIBLE, WORKERS_AI, *settings.providers))
    fault = f"{provider!r} in {name!r} is no provider that is known here; known are {known}"
    example = f'EDGE_AGENT_PROVIDERS={{"{provider.strip("@")}": {{"base_url": "https://models.example.com/v1"}}}}'
    return ConfigError(MODEL_VARIABLE, fault, example)
