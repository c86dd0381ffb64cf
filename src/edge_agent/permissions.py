"""How the runs of an agent ask: what the code says, what the deployment's variables say, what a request may add."""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol, get_args

from edge_agent.core.approval import as_strict_as
from edge_agent.core.errors import ConfigError, InvalidArguments, Refusal
from edge_agent.core.events import ApprovalMode, ToolRule
from edge_agent.core.hooks import Hooks
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Tools
from edge_agent.wire.entries import TOOL_GLOB
from edge_agent.wire.settings import Settings

_STRICTNESS: Mapping[ToolRule, int] = {"allow": 0, "ask": 1, "deny": 2}


class Asks(Protocol):
    """What an agent says of how its runs ask."""

    @property
    def name(self) -> str: ...
    @property
    def approval(self) -> ApprovalMode: ...
    @property
    def approval_modes(self) -> Sequence[ApprovalMode] | None: ...
    @property
    def tool_rules(self) -> Mapping[str, ToolRule]: ...
    @property
    def hooks(self) -> Hooks: ...


def require_policy(approval: str, modes: Sequence[str] | None, rules: Mapping[str, str]) -> None:
    """Raises ConfigError where an agent's approval, approval_modes or tool_rules cannot work."""
    known = get_args(ApprovalMode)
    for setting, mode in [("approval", approval), *(("approval_modes", mode) for mode in modes or ())]:
        if mode not in known:
            fault = f"must be of {', '.join(known)}, got {mode!r}"
            raise ConfigError(f"Agent.{setting}", fault, 'Agent(name="clerk", approval="ask-writes")')
    if modes is not None and approval not in modes:
        example = f'approval_modes=("{approval}",)'
        raise ConfigError("Agent.approval_modes", f"must hold {approval}, the agent's own mode", example)
    for glob, rule in rules.items():
        if rule not in get_args(ToolRule) or not re.fullmatch(TOOL_GLOB, glob):
            fault = f"maps names of tools, or globs of them, to allow, ask or deny; got {glob!r}: {rule!r}"
            raise ConfigError("Agent.tool_rules", fault, '{"github__delete_*": "deny"}')


def mode_of(agent: Asks, settings: Settings) -> ApprovalMode:
    """The mode the agent's runs begin in. Raises ConfigError where the variable names one the agent does not allow."""
    mode = settings.approval or agent.approval
    if agent.approval_modes is not None and mode not in agent.approval_modes:
        fault = f"the agent {agent.name} allows only {', '.join(agent.approval_modes)}"
        raise ConfigError("EDGE_AGENT_APPROVAL", fault, f"EDGE_AGENT_APPROVAL={agent.approval}")
    return mode


def modes_of(agent: Asks, settings: Settings) -> tuple[ApprovalMode, ...]:
    """The modes a run of the agent may be put into: those the code names, else its own and every stricter one."""
    return tuple(agent.approval_modes or as_strict_as(mode_of(agent, settings)))


def rules_of(agent: Asks, settings: Settings) -> dict[str, ToolRule]:
    """Those of the code, then those of the variable; of two for one glob the variable's."""
    return {**agent.tool_rules, **settings.tool_rules}


def asked_mode(agent: Asks, settings: Settings, wanted: ApprovalMode | None) -> ApprovalMode:
    """Raises Refusal 422 for a mode that lets more pass than the agent's own, or that the agent does not allow."""
    own = mode_of(agent, settings)
    choice = [mode for mode in as_strict_as(own) if mode == own or mode in modes_of(agent, settings)]
    if wanted is not None and wanted not in choice:
        message = f"approval may be {' or '.join(choice)} for the agent {agent.name}; got {wanted}."
        raise Refusal(422, "approval_too_loose", message, field="approval")
    return wanted or own


def asked_rules(agent: Asks, settings: Settings, wanted: Mapping[str, ToolRule] | None) -> dict[str, ToolRule]:
    """The agent's rules with the request's: of two for one glob the stricter. A rule that asks would let a person allow
    what a mode that only reads denies: Refusal 422."""
    rules = rules_of(agent, settings)
    if wanted and mode_of(agent, settings) == "read-only" and "ask" in wanted.values():
        message = f"The agent {agent.name} may only read: a request may add deny rules, but none that ask."
        raise Refusal(422, "approval_too_loose", message, field="tool_rules")
    for glob, rule in (wanted or {}).items():
        rules[glob] = max(rule, rules.get(glob, "allow"), key=lambda one: _STRICTNESS[one])
    return rules


async def edited(agent: Asks, tools: Tools, tool: str, arguments: JsonObject) -> JsonObject:
    """The arguments that a person puts in the place of a call's, as they would be recorded: sanitized and checked.

    Connects to a server where the tool is one of it. Raises Refusal 422 naming the field, 503 where the tool cannot be
    asked now."""
    try:
        if sanitize := agent.hooks.sanitize_input:
            arguments = sanitize(tool, arguments)
    except Exception:  # noqa: BLE001 - what it says might hold what it was to hide
        message = "The input sanitizer of the agent failed on these arguments."
        raise Refusal(422, "invalid_arguments", message, field="arguments") from None
    try:
        if tools.find(tool) is None:
            await tools.refresh()
        if (found := tools.find(tool)) is None:
            message = f"{tool} cannot be reached now, so other arguments for it cannot be checked. Try again later."
            raise Refusal(503, "tool_unavailable", message, retry_after=5)
        found.check(arguments)
    except InvalidArguments as error:
        field = re.match(r"`([^`]{1,100})`", str(error))
        place = f"arguments.{field[1]}" if field else "arguments"
        raise Refusal(422, "invalid_arguments", f"{str(error).rstrip('.')}.", field=place) from error
    finally:
        await tools.close()
    return arguments
