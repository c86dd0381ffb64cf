"""Functions of the agent's author that are called at fixed points of a run. All may be async or plain."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from edge_agent.core.egress import Fetcher
from edge_agent.core.events import StepCompleted, StepStarted, Terminal, ToolResult
from edge_agent.core.messages import AssistantMessage, JsonObject, ToolCall
from edge_agent.core.model import ModelRequest
from edge_agent.core.prompting import Prompting
from edge_agent.core.skill_library import SkillUse
from edge_agent.core.subagents import Delegation
from edge_agent.core.tooling import ToolSelection


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """An after_model hook's verdict: the answer leaves the history and its tools never run."""

    reason: str
    reminder: str | None = None


ErrorKind = Literal["provider", "tool", "hook", "config"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Called at the frontier only: never again for what is on record (a crash may repeat the last one, or leave out an
    after_tool).

    before_model may return another request. after_model may return a Reject (at most two in a row, then the answer
    stands). on_error may return False to end the run as failed. A raising before_model or after_model fails the run;
    any other raising hook is a fault event and the run goes on. One that takes more than a minute counts as raising.
    sanitize_input(tool, arguments) and sanitize_output(tool, text) run before anything is recorded; the first must be
    idempotent. What a sanitizer fails on is left out.
    """

    on_run_start: Callable[[str], Awaitable[None] | None] | None = None
    before_model: Callable[[ModelRequest], Awaitable[ModelRequest | None] | ModelRequest | None] | None = None
    after_model: Callable[[AssistantMessage], Awaitable[Reject | None] | Reject | None] | None = None
    on_step_start: Callable[[StepStarted], Awaitable[bool | None] | bool | None] | None = None
    on_step_complete: Callable[[StepCompleted], Awaitable[None] | None] | None = None
    after_tool: Callable[[ToolCall, ToolResult], Awaitable[None] | None] | None = None
    on_error: Callable[[ErrorKind, str | None, Exception], Awaitable[bool | None] | bool | None] | None = None
    on_run_end: Callable[[Terminal], Awaitable[None] | None] | None = None
    sanitize_input: Callable[[str, JsonObject], JsonObject] | None = None
    sanitize_output: Callable[[str, str], str] | None = None


ReplanAfter = Literal["failure", "always"] | Callable[[StepCompleted], Awaitable[bool] | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """What the loop needs to know of an agent. `replan_after`: when a planned run asks its replanner after a step.
    strict_tools: a call outside of what was offered fails the run. fail_on_no_tools: so does a beginning without a tool
    of its servers. models: its own, for rounds that were handed to it.
    handoffs: the agents its tools hand over to, by the tools' names. subagents: what its tools give work to, likewise.
    forbidden: its own deny rules. selection: which of its tools a round offers. prompting: how its models are asked.
    fetcher: how its tools reach the outside; None: not at all. skills: those it has."""

    name: str
    instructions: str = ""
    hooks: Hooks = Hooks()
    force_text_after_tool: bool = False
    replan_after: ReplanAfter = "failure"
    strict_tools: bool = False
    fail_on_no_tools: bool = False
    models: tuple[str, ...] = ()
    handoffs: Mapping[str, str] = field(default_factory=dict[str, str])
    subagents: Mapping[str, Delegation] = field(default_factory=dict[str, Delegation])
    forbidden: tuple[str, ...] = ()
    selection: ToolSelection = "auto"
    prompting: Prompting = field(default_factory=Prompting)
    fetcher: Fetcher | None = field(default=None, repr=False)
    skills: SkillUse = field(default_factory=SkillUse, repr=False)
