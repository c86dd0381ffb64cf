"""From the name of a model to the model: which provider, where it is, which key. Reads no environment and opens
nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edge_agent.core.errors import ConfigError
from edge_agent.core.model import Model
from edge_agent.models.endpoint import PROFILES, Endpoint, Profile
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.provider_model import ProviderModel
from edge_agent.models.transport import Transport
from edge_agent.wire.settings import Provider, Settings

if TYPE_CHECKING:
    from edge_agent.models.httpx_transport import ClientFactory

MODEL_VARIABLE = "EDGE_AGENT_MODEL"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A provider known by name: its address and the variable of its key."""

    base_url: str
    key: str
    profile: str = "default"


_PROVIDERS: Mapping[str, _Known] = {
    "openai": _Known(base_url="https://api.openai.com/v1", key="OPENAI_API_KEY", profile="openai"),
}  # fmt: skip
_COMPATIBLE = "openai-compatible"


def split_models(text: str) -> tuple[str, ...]:
    """A comma-separated list: the model, then its fallbacks in order. Blanks and repetitions are left out."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def resolve(name: str, settings: Settings) -> tuple[Endpoint, str]:
    """`provider/model` as the provider's endpoint and the model's name there (which may hold slashes of its own).

    Entries of EDGE_AGENT_PROVIDERS win over the providers known by name. Raises ConfigError naming the variable to
    set."""
    provider, slash, model = name.strip().partition("/")
    if not slash or not provider or not model:
        fault = f"{name!r} names no model: it is written as provider/model"
        raise ConfigError(MODEL_VARIABLE, fault, f"{MODEL_VARIABLE}=openai/gpt-5-mini")
    if provider in settings.providers:
        return _own(provider, settings.providers[provider], settings), model
    if provider == _COMPATIBLE:
        return _compatible(name, settings), model
    if provider in _PROVIDERS:
        return _known(provider, name, settings), model
    raise _unknown(provider, name, settings)


def model_for(
    name: str,
    settings: Settings,
    *,
    client_factory: "ClientFactory | None" = None,
    transport: Transport | None = None,
) -> Model:
    """The model of that name, over httpx2 with clients of the factory, or over another transport: give one of the two.

    Opens nothing before the first call. Raises ConfigError as `resolve` does."""
    endpoint, model = resolve(name, settings)
    if transport is None:
        if client_factory is None:
            raise TypeError("model_for takes a client_factory or a transport")
        # Only here: importing httpx2 costs a third of a second in the Worker, which brings a transport of its own.
        from edge_agent.models.httpx_transport import HttpxTransport  # noqa: PLC0415

        transport = HttpxTransport(client_factory)
    return ProviderModel(
        adapter=OpenAIChat(),
        name=model,
        endpoint=endpoint,
        transport=transport,
        stall_timeout=settings.stall_timeout,
        timeout=settings.model_timeout,
    )


def _own(provider: str, entry: Provider, settings: Settings) -> Endpoint:
    return Endpoint(
        provider=provider,
        base_url=entry.base_url,
        key=settings.secrets[entry.key] if entry.key else None,
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
    return replace(
        profile,
        tool_mode=entry.tool_mode or profile.tool_mode,
        context_window=entry.context_window or profile.context_window,
    )


def _compatible(name: str, settings: Settings) -> Endpoint:
    if settings.base_url is None:
        fault = f"is not set, and the model {name} needs it"
        raise ConfigError("EDGE_AGENT_BASE_URL", fault, "EDGE_AGENT_BASE_URL=https://models.example.com/v1")
    return Endpoint(provider=_COMPATIBLE, base_url=settings.base_url, key=settings.api_key)


def _known(provider: str, name: str, settings: Settings) -> Endpoint:
    row = _PROVIDERS[provider]
    key = settings.secrets.get(row.key)
    if not key:
        raise ConfigError(row.key, f"is not set, and the model {name} needs it", f"{row.key}=sk-…")
    return Endpoint(provider=provider, base_url=row.base_url, key=key, profile=PROFILES[row.profile])


def _unknown(provider: str, name: str, settings: Settings) -> ConfigError:
    known = ", ".join((*_PROVIDERS, _COMPATIBLE, *settings.providers))
    fault = f"{provider!r} in {name!r} is no provider that is known here; known are {known}"
    example = f'EDGE_AGENT_PROVIDERS={{"{provider.strip("@")}": {{"base_url": "https://models.example.com/v1"}}}}'
    return ConfigError(MODEL_VARIABLE, fault, example)
