"""`subagent(agent)`: a tool that gives a task to another agent, which works on it in a run of its own."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from edge_agent.agent import Agent
from edge_agent.core.errors import ConfigError, InvalidArguments
from edge_agent.core.events import OnUnknown
from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.tooling import ToolContext, ToolOutput
from edge_agent.loop.outcomes import MODEL_SEES
from edge_agent.tools.names import fault_of

Isolation = Literal["object", "inline"]
Profile = Mapping[str, Any]
TASK = {
    "type": "string",
    "description": "All it is told: what to find out or do, with every fact it needs, and what to report back.",
}
MOST_AT_ONCE = 32
_EXAMPLE = 'subagent(researcher, profiles={"thorough": {"description": "reads ten sources", "model": "openai/big"}})'


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """A tool whose call is a run: the loop starts it and waits for it (loop/delegate.py), and never calls `run`.

    agents: by profile, the one without a profile under None. timeout of the tool is no one's: see `lifetime`."""

    spec: ToolSpec
    agents: Mapping[str | None, Agent]
    max_concurrent: int
    lifetime: float | None
    output_max_chars: int
    isolation: Isolation
    read_only: bool
    server: None = None
    timeout: float = 30.0
    safe_to_repeat: bool = False
    requires_approval: bool = False
    max_output: None = None
    on_unknown: OnUnknown = field(default="report")

    def check(self, arguments: JsonObject) -> None:
        """An unknown profile is met here, before anything is started."""
        unknown = sorted(set(arguments) - {"task", "profile"})
        if unknown:
            raise InvalidArguments(f"`{unknown[0]}`: {self.spec.name} takes nothing but `task` and `profile`.")
        task, profile = arguments.get("task"), arguments.get("profile")
        if not isinstance(task, str) or not task.strip():
            raise InvalidArguments("`task`: must be a text that says what to do.")
        if "profile" in arguments and (not isinstance(profile, str) or profile not in self.agents):
            known = ", ".join(name for name in self.agents if name) or "none: leave it out"
            raise InvalidArguments(f"`profile`: there is no {profile!r}. Profiles of {self.spec.name}: {known}.")

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        raise NotImplementedError(f"{self.spec.name} is a run of its own")


def subagent(
    agent: Agent,
    *,
    profiles: Mapping[str, Profile] | None = None,
    max_concurrent: int = 4,
    timeout: float | None = None,
    output_max_chars: int = 8_000,
    read_only: bool = False,
    isolation: Isolation = "object",
) -> Subagent:
    """The tool {task, profile?}, named like the agent. Each call is a run; the run that calls it waits without working
    until the answer comes, however long that takes.

    The child knows its task and nothing else of its parent; model, tools and rules are its agent's. profiles: fields of
    the agent by the name of a profile, laid over it one by one; a profile's `description` also tells the model when to
    choose it. max_concurrent: calls of one answer at work at a time, the others wait. timeout: seconds after which it
    is given up. output_max_chars: of its answer. read_only: a promise, kept by running it in the mode read-only.
    isolation: each call has a Durable Object of its own, or lies in that of the run that calls (inline), which needs no
    other object, but shares memory, computing time and storage with it.

    Raises ConfigError where the definition cannot work.
    """
    name = agent.name
    if isolation not in get_args(Isolation):
        fault = f"is object (one of its own for each call) or inline (in that of the run that calls); got {isolation!r}"
        raise ConfigError("subagent.isolation", fault, f'subagent({name}, isolation="inline")')
    _whole("max_concurrent", max_concurrent, MOST_AT_ONCE)
    _whole("output_max_chars", output_max_chars, MODEL_SEES)
    if timeout is not None and not 0 < timeout < float("inf"):
        fault = f"is a number of seconds above 0, or None to wait without end; got {timeout}"
        raise ConfigError("subagent.timeout", fault, f"subagent({name}, timeout=600)")
    laid = {profile: _laid_over(agent, profile, fields) for profile, fields in (profiles or {}).items()}
    return Subagent(
        spec=ToolSpec(name=name, description=_description(agent, profiles or {}), parameters=_parameters(laid)),
        agents={None: agent, **laid},
        max_concurrent=max_concurrent,
        lifetime=timeout,
        output_max_chars=output_max_chars,
        isolation=isolation,
        read_only=read_only,
    )


def _whole(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise ConfigError(f"subagent.{name}", f"is from 1 to {most}, got {value}", f"subagent(agent, {name}={most})")


def _laid_over(agent: Agent, profile: str, fields: Profile) -> Agent:
    """The agent with these fields in the place of its own, under a name of its own."""
    setting, known = f"subagent.profiles[{profile!r}]", {field.name for field in dataclasses.fields(Agent)} - {"name"}
    name = f"{agent.name}-{profile}"
    if fault := fault_of(name):
        raise ConfigError(setting, f"makes the agent {name!r}, and {fault}", _EXAMPLE)
    for unknown in sorted(set(fields) - known):
        fault = f"{unknown!r} is no field of an agent that can be laid over; those are {', '.join(sorted(known))}"
        raise ConfigError(setting, fault, _EXAMPLE)
    return dataclasses.replace(agent, **{**fields, "name": name})


def _description(agent: Agent, profiles: Mapping[str, Profile]) -> str:
    told = f"Give a task to {agent.name}, who works on it alone and reports back. {agent.description}".strip()
    lines = [f"- {name}: {fields.get('description', '')}".rstrip(": ") for name, fields in profiles.items()]
    return "\n".join([told, "Profiles:", *lines]) if lines else told


def _parameters(laid: Mapping[str, Agent]) -> JsonObject:
    properties: JsonObject = {"task": TASK}
    if laid:
        properties["profile"] = {"type": "string", "enum": list(laid), "description": "Leave it out for the usual one."}
    return {"type": "object", "properties": properties, "required": ["task"], "additionalProperties": False}
