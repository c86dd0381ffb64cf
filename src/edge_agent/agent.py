"""An agent: instructions, a model, tools, limits and hooks. It runs in a Worker, or in this process for tests."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from edge_agent.asking import OnApproval
from edge_agent.core.compaction import Compaction
from edge_agent.core.egress import Egress
from edge_agent.core.errors import ConfigError
from edge_agent.core.events import ApprovalMode, Event, Mode, ToolRule
from edge_agent.core.history import Compacted
from edge_agent.core.hooks import AgentSpec, Hooks, ReplanAfter
from edge_agent.core.limits import Limits
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Model
from edge_agent.core.prompting import StageName, Wish
from edge_agent.core.skill_library import Learning
from edge_agent.core.skills import Skill
from edge_agent.core.state import RunState
from edge_agent.core.tooling import ToolSelection
from edge_agent.given import GivenTurn, Task
from edge_agent.permissions import require_policy
from edge_agent.prompting import require_prompting
from edge_agent.skilled import require_skills
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.names import fault_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """What a run is made by.

    model: `provider/model`, with fallbacks after commas, or None for EDGE_AGENT_MODEL; or a Model itself, for tests.
    mode: direct (model and tools take turns) or planned (plan, execute, replan, synthesize); planner_model and
    synthesizer_model are for those stages, `model` where they are None. replan_after: after a step that was blocked or
    had a tool that stayed failed, always, or as a function of the step's end says.
    tools: functions with @tool, and `handoff(other)` for agents the work can be given to. mcp_servers: remote ones by
    name, whose tools are called `name__tool`.
    approval: when a person is asked before a tool runs: autopilot (never), ask-writes, ask-all, or read-only (writes
    are denied). approval_modes: those a run may be put into; None: `approval` and what is stricter. tool_rules: allow,
    ask or deny by a tool's name or a glob; a deny rule always wins.
    tool_selection: which tools a round offers: all; those a plan's step suggests (plan-narrowed); those the model has
    found with `find_tools` (search); or auto, which is all of up to 40 tools, and search above.
    skills: those that come with the code. stored_skills: whether it also uses those that were stored over the API.
    learning: whether it writes lessons down, and uses those of earlier runs; a Learning says how.
    egress: where `web_fetch`, which an agent with one has, and `ToolContext.fetch` may go; None: nowhere.
    output_schema: the final answer is JSON of that form (a JSON Schema), where a run asks for no other.
    thinking: how much the model thinks: False, True (medium), none, minimal, low, medium, high, xhigh or a number of
    tokens; None: as its provider likes. stage_thinking: the same by stage (planner, executor, replanner, synthesizer),
    where also a False wins. include_thoughts: whether thoughts are streamed. prompt_caching: False, or {"ttl": "5m" or
    "1h", "key": …}. provider_options: fields of a provider's own wire, by the name of a model or a stage; they win over
    everything portable. aliases: short names of models, as `fast` for `openai/gpt-5-mini`.
    limits: a request may only lower them. compaction: what is shown in full of a long run and a long conversation, and
    when a summary stands for the rest. force_text_after_tool: the round after a tool round gets no tools, for
    small models that would call tools for ever. strict_tools: a call of a tool that was not offered fails the run, and
    none of its answer runs. fail_on_no_tools: a run fails at its beginning where no tool of any MCP server can be had,
    in place of going on without. Raises ConfigError where the definition cannot work.
    """

    name: str
    description: str = ""
    instructions: str = ""
    model: str | Model | None = None
    tools: Sequence[Any] = ()
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    mode: Mode = "direct"
    planner_model: str | None = None
    synthesizer_model: str | None = None
    replan_after: ReplanAfter = "failure"
    thinking: Wish | None = None
    stage_thinking: Mapping[StageName, Wish] = field(default_factory=dict[StageName, Wish])
    include_thoughts: bool = True
    prompt_caching: bool | Mapping[str, str] = True
    provider_options: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    tool_selection: ToolSelection = "auto"
    skills: Sequence[Skill] = ()
    stored_skills: bool = False
    learning: bool | Learning = False
    egress: Egress | None = None
    output_schema: JsonObject | None = None
    approval: ApprovalMode = "autopilot"
    approval_modes: Sequence[ApprovalMode] | None = None
    tool_rules: Mapping[str, ToolRule] = field(default_factory=dict[str, ToolRule])
    limits: Limits = field(default_factory=Limits)
    compaction: Compaction = field(default_factory=Compaction)
    hooks: Hooks = field(default_factory=Hooks)
    force_text_after_tool: bool = False
    strict_tools: bool = False
    fail_on_no_tools: bool = False

    def __post_init__(self) -> None:
        if fault := fault_of(self.name):
            raise ConfigError("Agent.name", fault, 'Agent(name="assistant")')
        self._require_kinds()
        require_prompting(self)
        require_skills(self.skills)
        require_policy(self.approval, self.approval_modes, self.tool_rules)

    def _require_kinds(self) -> None:
        """Raises ConfigError for what would otherwise fail in the middle of a run, or be taken for something else."""
        choices: dict[str, Any] = {"mode": (Mode, "planned"), "tool_selection": (ToolSelection, "search")}
        for name, (choice, example) in choices.items():
            if (value := getattr(self, name)) not in get_args(choice):
                fault = f"is one of {', '.join(get_args(choice))}, not {value!r}"
                raise ConfigError(f"Agent.{name}", fault, f'Agent({name}="{example}")')
        kinds = {"limits": (Limits, "max_steps=6"), "compaction": (Compaction, "keep_recent_turns=6")}
        for name, (kind, example) in kinds.items():
            if not isinstance(value := getattr(self, name), kind):
                fault = f"is an object of the class {kind.__name__}, not {value!r}"
                raise ConfigError(f"Agent.{name}", fault, f"Agent({name}={kind.__name__}({example}))")
        for given in self.tools:
            if isinstance(given, Agent):
                fault = f"holds the agent {given.name} itself: subagent({given.name}) makes a tool of it"
                raise ConfigError("Agent.tools", fault, f"Agent(tools=[subagent({given.name})])")

    @property
    def spec(self) -> AgentSpec:
        return AgentSpec(
            name=self.name,
            instructions=self.instructions,
            hooks=self.hooks,
            force_text_after_tool=self.force_text_after_tool,
            replan_after=self.replan_after,
            strict_tools=self.strict_tools,
            selection=self.tool_selection,
            forbidden=tuple(glob for glob, rule in self.tool_rules.items() if rule == "deny"),
        )

    async def run(
        self,
        task: Task,
        *,
        history: Sequence[GivenTurn] = (),
        metadata: JsonObject | None = None,
        on_approval: OnApproval | None = None,
    ) -> RunState:
        """Run to the end in this process, with its log in memory.

        task: a text, or parts as the HTTP API takes them: texts, images and files, with `data` as bytes or base64.
        history: earlier turns, as `Turn` or as {"role", "text" or "parts"}; one that came back from a run or from
        `compact` can be given again. on_approval: asked about each call that needs a person; without it such a call is
        denied.

        The state says how the run ended; nothing is raised for a failed one. Raises Refusal where it cannot begin: for
        parts that are not right or that a model does not take, and for limits too low; and ConfigError."""
        from edge_agent.in_process import run_agent  # noqa: PLC0415  (httpx2 and sqlite3 are no business of a Worker)

        return await run_agent(self, task, history=history, metadata=metadata, on_approval=on_approval)

    def stream(
        self,
        task: Task,
        *,
        history: Sequence[GivenTurn] = (),
        metadata: JsonObject | None = None,
        on_approval: OnApproval | None = None,
    ) -> AsyncGenerator[Event]:
        """Run in this process and yield every event. Leaving the loop detaches: the run goes on. Takes and raises what
        `run` does."""
        from edge_agent.in_process import stream_agent  # noqa: PLC0415  (see run)

        return stream_agent(self, task, history=history, metadata=metadata, on_approval=on_approval)

    async def compact(self, history: Sequence[GivenTurn], *, force: bool = False) -> Compacted:
        """The history with a summary by this agent's model in the place of its older turns, where it would take more
        than its share of the context window, or by `force`. `history`, in the forms `run` takes, stays as it is.

        Raises Refusal where the model writes none or a turn is not right, and ConfigError."""
        from edge_agent.in_process import compact_for  # noqa: PLC0415  (see run)

        return await compact_for(self, history, force=force)
