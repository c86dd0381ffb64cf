"""Which tools there are, how far a run may go, and which of its calls a person is asked about."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import Annotated, Literal, cast, get_args

from pydantic import Field, TypeAdapter

from edge_agent.core.egress import Egress
from edge_agent.core.events import ApprovalMode, Mode, ToolRule
from edge_agent.core.limits import FRACTIONAL, Limits
from edge_agent.core.skill_library import Learning
from edge_agent.core.tooling import ToolSelection
from edge_agent.wire.entries import TOOL_GLOB, McpServerSettings, egress_of
from edge_agent.wire.variables import Variables, checked, entries, wrong

_ServerName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*$", max_length=32)]
_SERVERS = TypeAdapter(dict[_ServerName, McpServerSettings])
_LEARNING = TypeAdapter(dict[Literal["nudge"], Annotated[bool, Field(strict=True)]])
_RULES = TypeAdapter(dict[Annotated[str, Field(pattern=TOOL_GLOB)], ToolRule])
_KNOWN_LIMITS = tuple(field.name for field in fields(Limits))
_UNLIMITED = Limits(**dict.fromkeys(_KNOWN_LIMITS))
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_LIMITS = TypeAdapter(dict[str, Annotated[int, Field(strict=True)] | _Number | None])


class RunSettings(Variables):
    @cached_property
    def mcp_servers(self) -> Mapping[str, McpServerSettings]:
        return self.read_json("EDGE_AGENT_MCP_SERVERS", _SERVERS, {})

    @cached_property
    def tools_allow(self) -> tuple[str, ...]:
        """Globs; empty where everything is allowed."""
        return entries(self.env.get("EDGE_AGENT_TOOLS_ALLOW", ""))

    @cached_property
    def tools_deny(self) -> tuple[str, ...]:
        return entries(self.env.get("EDGE_AGENT_TOOLS_DENY", ""))

    @cached_property
    def tool_selection(self) -> ToolSelection | None:
        """None where the code decides."""
        selection = self.env.get("EDGE_AGENT_TOOL_SELECTION")
        if selection is not None and selection not in get_args(ToolSelection):
            raise wrong("EDGE_AGENT_TOOL_SELECTION", f"is one of {', '.join(get_args(ToolSelection))}")
        return cast(ToolSelection | None, selection)

    def egress_over(self, own: Egress | None) -> Egress | None:
        """That of an agent whose code says `own`: the variable wins."""
        return self._egress if "EDGE_AGENT_EGRESS" in self.env else own

    @cached_property
    def _egress(self) -> Egress | None:
        return checked("EDGE_AGENT_EGRESS", egress_of, self.env.get("EDGE_AGENT_EGRESS", "off"))

    # -- skills
    @cached_property
    def learning(self) -> bool | Learning | None:
        """None where the code decides."""
        said = self.env.get("EDGE_AGENT_LEARNING")
        if said in (None, "on", "off"):
            return None if said is None else said == "on"
        return Learning(**self.read_json("EDGE_AGENT_LEARNING", _LEARNING, {}))

    @cached_property
    def stored_skills(self) -> bool | None:
        """None where the code decides."""
        said = self.env.get("EDGE_AGENT_STORED_SKILLS")
        if said not in (None, "on", "off"):
            raise wrong("EDGE_AGENT_STORED_SKILLS", "is on or off")
        return None if said is None else said == "on"

    @cached_property
    def limits(self) -> Mapping[str, float | None]:
        """What is laid over the limits in the code; a null takes a cap away."""
        wanted = self.read_json("EDGE_AGENT_LIMITS", _LIMITS, {})
        checked("EDGE_AGENT_LIMITS", _UNLIMITED.lowered_by, {k: v for k, v in wanted.items() if v is not None})
        unknown = [name[:60] for name in wanted if name not in _KNOWN_LIMITS]
        if unknown:
            raise wrong("EDGE_AGENT_LIMITS", f"{unknown[0]} is not a limit; known are {', '.join(_KNOWN_LIMITS)}")
        fractional = [name for name, value in wanted.items() if isinstance(value, float) and name not in FRACTIONAL]
        if fractional:
            raise wrong("EDGE_AGENT_LIMITS", f"{fractional[0]} must be a whole number")
        return wanted

    @cached_property
    def mode(self) -> Mode | None:
        """None where the code decides."""
        mode = self.env.get("EDGE_AGENT_MODE")
        if mode is not None and mode not in get_args(Mode):
            raise wrong("EDGE_AGENT_MODE", f"is one of {', '.join(get_args(Mode))}")
        return cast(Mode | None, mode)

    # -- approvals
    @cached_property
    def approval(self) -> ApprovalMode | None:
        """None where the code decides."""
        mode = self.env.get("EDGE_AGENT_APPROVAL")
        if mode is not None and mode not in get_args(ApprovalMode):
            raise wrong("EDGE_AGENT_APPROVAL", f"is one of {', '.join(get_args(ApprovalMode))}")
        return cast(ApprovalMode | None, mode)

    @cached_property
    def tool_rules(self) -> Mapping[str, ToolRule]:
        return self.read_json("EDGE_AGENT_TOOL_RULES", _RULES, {})

    @cached_property
    def approval_timeout(self) -> float | None:
        """Seconds a person is waited for; None for ever."""
        return self.seconds("EDGE_AGENT_APPROVAL_TIMEOUT", 86_400) or None
