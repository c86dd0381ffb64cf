"""Which models are asked, by which way, with which key, for how long and at which price."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, NamedTuple, cast

from pydantic import Field, TypeAdapter

from edge_agent.core.errors import ConfigError
from edge_agent.core.price import Price
from edge_agent.core.prompting import StageName, Wish, thinking_fault
from edge_agent.wire.compaction import compaction_fields
from edge_agent.wire.entries import LEAST_WINDOW, CachingEntry, PriceEntry, Provider, http_url
from edge_agent.wire.variables import Variables, checked, entries, wrong

PREFIX = "EDGE_AGENT_"
_KEY_NAME = re.compile(r"_(API_KEY|KEY|TOKEN|SECRET|PASSWORD|TOKEN_BEDROCK)$")
_GATEWAY = re.compile(r"(?:(?P<account>[0-9a-f]{32})/)?(?P<id>[a-z0-9][a-z0-9-]{0,63})")
_ProviderName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
_PROVIDERS = TypeAdapter(dict[_ProviderName, Provider])
_PRICES = TypeAdapter(dict[str, PriceEntry])
_STAGE_THINKING = TypeAdapter(dict[StageName, bool | int | str])
_CACHING = TypeAdapter(CachingEntry | None)
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


class Gateway(NamedTuple):
    """An AI Gateway. Without an account it is reached by the AI binding, with one over HTTPS and with the token."""

    id: str
    account: str | None = None
    token: str | None = None

    def __repr__(self) -> str:
        return f"Gateway(id={self.id!r})"


class ModelSettings(Variables):
    """ai_binding: whether the Worker has the AI binding."""

    def __init__(self, env: Mapping[str, str], *, ai_binding: bool = False) -> None:
        super().__init__(env)
        self.ai_binding = ai_binding

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The model and its fallbacks, in order; empty where the code decides."""
        return self._model_names("EDGE_AGENT_MODEL")

    @cached_property
    def planner_models(self) -> tuple[str, ...]:
        """Empty: those of `models`. Likewise the synthesizer's."""
        return self._model_names("EDGE_AGENT_PLANNER_MODEL")

    @cached_property
    def synthesizer_models(self) -> tuple[str, ...]:
        return self._model_names("EDGE_AGENT_SYNTHESIZER_MODEL")

    def _model_names(self, variable: str) -> tuple[str, ...]:
        models = entries(self.env.get(variable, ""))
        for model in models:
            if not re.fullmatch(r"@cf/[^\s,]+|[a-z0-9][a-z0-9_-]*/[^\s,]+", model):
                raise wrong(variable, "a model is provider/model or @cf/…; fallbacks are separated by commas")
        if any(model.startswith("openai-compatible/") for model in models) and "EDGE_AGENT_BASE_URL" not in self.env:
            raise wrong("EDGE_AGENT_BASE_URL", f"is not set, and {variable} names an openai-compatible model")
        return models

    @cached_property
    def base_url(self) -> str | None:
        text = self.env.get("EDGE_AGENT_BASE_URL")
        return None if text is None else checked("EDGE_AGENT_BASE_URL", http_url, text)

    @cached_property
    def api_key(self) -> str | None:
        """The key of the provider openai-compatible."""
        key = self.env.get("EDGE_AGENT_API_KEY")
        if key is not None and not re.fullmatch(r"[\x21-\x7e]+", key):
            raise wrong("EDGE_AGENT_API_KEY", "holds a character that cannot stand in a header")
        return key

    @cached_property
    def providers(self) -> Mapping[str, Provider]:
        providers = self.read_json("EDGE_AGENT_PROVIDERS", _PROVIDERS, {})
        for name, provider in providers.items():
            if provider.key is not None and provider.key not in self.env:
                raise wrong("EDGE_AGENT_PROVIDERS", f"{name}.key names the secret {provider.key}, which is not set")
        return providers

    @cached_property
    def gateway(self) -> Gateway | None:
        """The AI Gateway that calls of models go through; None: each provider is called directly."""
        variable = "EDGE_AGENT_GATEWAY"
        text = self.env.get(variable)
        if text is None:
            return None
        named = _GATEWAY.fullmatch(text)
        if named is None:
            raise wrong(variable, "is the id of a gateway, or account/gateway")
        token = self.env.get("CF_AIG_TOKEN")
        if named["account"] and token is None:
            raise ConfigError(
                "CF_AIG_TOKEN", f"is not set, and {variable} as account/gateway needs it", "CF_AIG_TOKEN=…"
            )
        if not named["account"] and not self.ai_binding:
            raise wrong(variable, "needs the AI binding where it names no account")
        return Gateway(named["id"], named["account"], token)

    def variable(self, name: str) -> str | None:
        """Any variable by its name: an option of a provider."""
        return self.env.get(name)

    @cached_property
    def secrets(self) -> Mapping[str, str]:
        """Keys by their usual names (OPENAI_API_KEY, GITHUB_TOKEN, …) and those providers name. Never raises."""
        wanted = set(re.findall(r'"key"\s*:\s*"([A-Za-z_][A-Za-z0-9_]*)"', self.env.get("EDGE_AGENT_PROVIDERS", "")))
        return {
            name: value
            for name, value in self.env.items()
            if name in wanted or (_KEY_NAME.search(name) and not name.startswith(PREFIX))
        }

    @cached_property
    def model_timeout(self) -> float | None:
        """Seconds for one whole model call; None for no limit."""
        return self.seconds("EDGE_AGENT_MODEL_TIMEOUT", 0) or None

    @cached_property
    def stall_timeout(self) -> float | None:
        """Seconds a stream may be silent; None for no limit."""
        return self.seconds("EDGE_AGENT_STALL_TIMEOUT", 60) or None

    @cached_property
    def max_retries(self) -> int:
        return self.whole("EDGE_AGENT_MAX_RETRIES", 2, 0, 10)

    @cached_property
    def thinking(self) -> Wish | None:
        """None where the code decides."""
        text = self.env.get("EDGE_AGENT_THINKING")
        return None if text is None else _wish("EDGE_AGENT_THINKING", text)

    @cached_property
    def stage_thinking(self) -> Mapping[str, Wish]:
        stages = self.read_json("EDGE_AGENT_STAGE_THINKING", _STAGE_THINKING, {})
        return {stage: _wish("EDGE_AGENT_STAGE_THINKING", wish) for stage, wish in stages.items()}

    @cached_property
    def prompt_caching(self) -> CachingEntry | bool | None:
        """None where the code decides."""
        switched = _SWITCH.get(self.env.get("EDGE_AGENT_PROMPT_CACHING", ""))
        return self.read_json("EDGE_AGENT_PROMPT_CACHING", _CACHING, None) if switched is None else switched

    @cached_property
    def prices(self) -> Mapping[str, Price]:
        """By model, `provider/model` or the model alone; they win over the table."""
        entries = self.read_json("EDGE_AGENT_PRICES", _PRICES, {})
        return {
            name: Price(input=one.input, output=one.output, cached=one.cached, cache_write=one.cache_write)
            for name, one in entries.items()
        }

    @cached_property
    def context_window(self) -> int | None:
        """Tokens, of every model; None where each has its own."""
        return self.whole("EDGE_AGENT_CONTEXT_WINDOW", 0, LEAST_WINDOW, 100_000_000) or None

    @cached_property
    def compaction(self) -> Mapping[str, Any]:
        """What is laid over the `Compaction` in the code."""
        text = self.env.get("EDGE_AGENT_COMPACTION")
        return {} if text is None else checked("EDGE_AGENT_COMPACTION", compaction_fields, text)


def _wish(variable: str, value: object) -> Wish:
    """Raises ConfigError for what is no way to think."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() else _SWITCH.get(value.lower(), value)
    if fault := thinking_fault(value):
        raise wrong(variable, fault)
    return cast(Wish, value)
