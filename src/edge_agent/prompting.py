"""How an agent's models are asked: what its code says, under what the deployment's variables say."""

import re
from collections.abc import Mapping
from typing import Any, Protocol, cast, get_args

from edge_agent.core.errors import ConfigError
from edge_agent.core.messages import JsonObject
from edge_agent.core.prompting import Caching, Prompting, StageName, Wish, thinking_fault
from edge_agent.wire.settings import Settings

_CACHING = {"ttl": re.compile("5m|1h"), "key": re.compile("[A-Za-z0-9._-]{1,40}")}
_ALIAS = re.compile("[a-z0-9][a-z0-9_-]{0,63}")


class Asks(Protocol):
    """What an agent says of how its models are asked."""

    @property
    def thinking(self) -> Wish | None: ...
    @property
    def stage_thinking(self) -> Mapping[StageName, Wish]: ...
    @property
    def include_thoughts(self) -> bool: ...
    @property
    def prompt_caching(self) -> bool | Mapping[str, str]: ...
    @property
    def provider_options(self) -> Mapping[str, JsonObject]: ...
    @property
    def aliases(self) -> Mapping[str, str]: ...


def require_prompting(agent: Asks) -> None:
    """Raises ConfigError for thinking, caching or aliases that nobody could ask for."""
    if agent.thinking is not None and (fault := thinking_fault(agent.thinking)):
        raise ConfigError("Agent.thinking", fault, 'Agent(thinking="medium")')
    for stage, wish in agent.stage_thinking.items():
        stage_fault = None if stage in get_args(StageName) else f"{stage!r} is none of {', '.join(get_args(StageName))}"
        if fault := stage_fault or thinking_fault(wish):
            raise ConfigError("Agent.stage_thinking", fault, 'Agent(stage_thinking={"planner": "high"})')
    caching: Any = agent.prompt_caching
    known = isinstance(caching, Mapping) and all(
        name in _CACHING and _CACHING[name].fullmatch(str(value))
        for name, value in cast(Mapping[Any, Any], caching).items()
    )
    if not isinstance(caching, bool) and not known:
        raise ConfigError("Agent.prompt_caching", f"cannot be {caching!r}", 'Agent(prompt_caching={"ttl": "1h"})')
    for alias, model in agent.aliases.items():
        if not _ALIAS.fullmatch(alias) or "/" not in model:
            fault = f"maps short names to provider/model; got {alias!r}: {model!r}"
            raise ConfigError("Agent.aliases", fault, 'Agent(aliases={"fast": "openai/gpt-5-mini"})')


def prompting_of(agent: Asks, settings: Settings) -> Prompting:
    """Raises ConfigError for a variable that is wrong."""
    return Prompting(
        thinking=agent.thinking if settings.thinking is None else settings.thinking,
        stage_thinking={**agent.stage_thinking, **settings.stage_thinking},
        include_thoughts=agent.include_thoughts,
        caching=_caching(agent, settings),
        options=agent.provider_options,
    )


def _caching(agent: Asks, settings: Settings) -> Caching | None:
    said = settings.prompt_caching
    if said is None:
        said = agent.prompt_caching
    if isinstance(said, bool):
        return Caching(prefix=settings.name) if said else None
    wanted: Any = said if isinstance(said, Mapping) else said.model_dump()
    return Caching(prefix=settings.name, **wanted)
