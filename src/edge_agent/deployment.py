"""What a deployment offers and how its runs are made: agents from the code, the rest from variables."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from edge_agent import permissions
from edge_agent.agent import Agent
from edge_agent.core import keys
from edge_agent.core.difference import Difference
from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.events import ApprovalMode, Mode, RecordedEvent, RunCreated
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.limits import Limits
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Model
from edge_agent.core.ports import Clock, Sink
from edge_agent.core.price import Price
from edge_agent.handoff import Handoff
from edge_agent.loop.admission import require_prices, require_room
from edge_agent.loop.recorded import NoClock, Unheard
from edge_agent.loop.replay import replay
from edge_agent.loop.walk import Ports
from edge_agent.models.naming import split_models
from edge_agent.models.prices import price_of, window_of
from edge_agent.tools.json_schema import SchemaCheck, schema_fault
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.toolbox import Toolbox, ToolSource
from edge_agent.wire import codec
from edge_agent.wire.export import Exported
from edge_agent.wire.http import (
    AgentInfo,
    ForkChanges,
    StageModels,
    StartRun,
    ToolInfo,
    ToolsAnswer,
    WantedLimits,
)
from edge_agent.wire.settings import Settings

VERSION = "0.1.0"
ModelResolver = Callable[[str, Settings], Model]
SourceMaker = Callable[[str, McpServer, Settings], ToolSource]


class Deployment:
    """`model` and `source` make the concrete adapters; they raise ConfigError. The first agent is the default one."""

    version = VERSION

    def __init__(self, agents: Sequence[Agent], settings: Settings, model: ModelResolver, source: SourceMaker) -> None:
        self.settings, self._model, self._source = settings, model, source
        self._agents = {agent.name: agent for agent in agents}
        self._reachable = _reachable(agents)
        if not self._agents:
            raise ConfigError("agents", "there is no agent", 'agents = [Agent(name="assistant")]')
        if len(self._agents) != len(agents):
            raise ConfigError("agents", "two agents have the same name", 'Agent(name="other")')

    # -- a new run
    def configure(self, request: StartRun) -> RunCreated:
        """Raises Refusal (422) for what the request gets wrong, ConfigError for what the deployment gets wrong."""
        agent = self._asked(request.agent)
        models, planner, synthesizer = self._stage_models(agent, request)
        created = RunCreated(
            version=keys.VERSION,
            input=request.input,
            agent_name=agent.name,
            models=models,
            planner_models=planner,
            synthesizer_models=synthesizer,
            limits=self._limits(agent, request.limits),
            mode=request.mode or self._mode(agent),
            approval=permissions.asked_mode(agent, self.settings, request.approval),
            tool_rules=permissions.asked_rules(agent, self.settings, request.tool_rules),
            history=tuple(turn.turn() for turn in request.history),
            metadata=request.metadata,
            output_schema=_schema(request.output_schema or agent.output_schema),
        )
        self._admit(agent, created)
        return created

    def forked(self, created: RunCreated, changes: ForkChanges) -> RunCreated:
        """The configuration of a run that begins with records of the one configured so; its keys are of that version.

        Raises Refusal (422) like `configure`, also for an agent that is gone."""
        agent, stages = self._asked(created.agent_name), changes.models or StageModels()
        asked = {
            "models": stages.executor or changes.model,
            "planner_models": stages.planner or changes.model,
            "synthesizer_models": stages.synthesizer or changes.model,
        }
        for name in asked.values():
            self._resolvable(agent, (name,) if name else (), asked=True)
        made: dict[str, Any] = {field: (name,) for field, name in asked.items() if name}
        if changes.limits is not None:
            self._limits(agent, changes.limits)
            made["limits"] = dataclasses.replace(created.limits, **changes.limits.wanted())
        if changes.approval is not None:
            made["approval"] = permissions.asked_mode(agent, self.settings, changes.approval)
        if changes.tool_rules is not None:
            made["tool_rules"] = permissions.asked_rules(agent, self.settings, changes.tool_rules)
        if changes.metadata is not None:
            made["metadata"] = changes.metadata
        fork = dataclasses.replace(created, **made)
        self._admit(agent, fork)
        return fork

    def _admit(self, agent: Agent, created: RunCreated) -> None:
        require_prices(created, self._price)
        tools = self._toolbox(agent).offered()  # those of servers are not known before they are asked
        require_room(created, agent.instructions, tools, self._window(created), self._price)

    def _price(self, name: str) -> Price | None:
        return price_of(name, self.settings)

    def _window(self, created: RunCreated) -> int:
        """Of the model with the smallest one: any of them may be asked."""
        return window_of((*created.models, *created.planner_models, *created.synthesizer_models), self.settings)

    def _asked(self, name: str | None) -> Agent:
        if name is None:
            return next(iter(self._agents.values()))
        if name not in self._agents:
            known = ", ".join(self._agents)
            message = f"There is no agent {name!r}. This deployment has: {known}."
            raise Refusal(422, "unknown_agent", message, field="agent")
        return self._agents[name]

    def _stage_models(self, agent: Agent, request: StartRun) -> tuple[tuple[str, ...], ...]:
        """The executor's, the planner's and the synthesizer's: of the request, of the variables, of the code."""
        asked = request.models
        wanted = (
            (asked and asked.executor) or request.model,
            (asked and asked.planner) or request.model,
            (asked and asked.synthesizer) or request.model,
        )
        own = (self._models(agent) if wanted[0] is None else (), *self._later_models(agent))
        for name, models in zip(wanted, own, strict=True):
            self._resolvable(agent, (name,) if name else models, asked=name is not None)
        return tuple((name,) if name else models for name, models in zip(wanted, own, strict=True))

    def _mode(self, agent: Agent) -> Mode:
        return self.settings.mode or agent.mode

    def _later_models(self, agent: Agent) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The planner's and the synthesizer's. Empty: those of the executor."""
        return (
            self.settings.planner_models or split_models(agent.planner_model or ""),
            self.settings.synthesizer_models or split_models(agent.synthesizer_model or ""),
        )

    def _models(self, agent: Agent) -> tuple[str, ...]:
        if agent.model is not None and not isinstance(agent.model, str):
            return tuple(_given(agent))
        models = self.settings.models or split_models(agent.model or "")
        if not models:
            fault = f"is not set, and the agent {agent.name} names no model"
            raise ConfigError("EDGE_AGENT_MODEL", fault, "EDGE_AGENT_MODEL=openai-compatible/some-model")
        return models

    def _resolvable(self, agent: Agent, models: Sequence[str], *, asked: bool) -> None:
        given = _given(agent)
        for name in models:
            if name in given:
                continue
            try:
                self._model(name, self.settings)
            except ConfigError as error:
                if asked:
                    raise Refusal(422, "unknown_model", str(error), field="model") from error
                raise

    def _limits(self, agent: Agent, wanted: WantedLimits | None) -> Limits:
        limits = self._agent_limits(agent)
        if wanted is None:
            return limits
        try:
            return limits.lowered_by(wanted.wanted())
        except ValueError as error:
            field = str(error).split(" ", 1)[0]
            raise Refusal(422, "limit_too_high", str(error), field=field) from error

    def _agent_limits(self, agent: Agent) -> Limits:
        return dataclasses.replace(agent.limits, **self.settings.limits)

    # -- a run at work
    def ports(
        self, created: RunCreated, sink: Sink, clock: Clock, *, can_ask: bool = True, servers: bool = True
    ) -> Ports:
        """Raises ConfigError where the agent is gone or a variable is wrong. can_ask: whether there is a person.
        servers: whether there are tools of MCP servers."""
        agent = self._still_there(created.agent_name)
        others = [other for name, other in _reachable([agent]).items() if name != agent.name]
        return Ports(
            clock=clock,
            sink=sink,
            agent=self._spec(agent),
            others={other.name: (self._spec(other), self._toolbox(other, servers=servers)) for other in others},
            model=self._model_by(agent, *others),
            tools=self._toolbox(agent, servers=servers),
            secrets=self.settings.secrets,
            declared=self.settings.declared_secrets(),
            faults=lambda schema, value: SchemaCheck(schema).faults(value),
            context_window=self._window(created),
            price=self._price,
            max_retries=self.settings.max_retries,
            forbidden=[glob for glob, rule in permissions.rules_of(agent, self.settings).items() if rule == "deny"],
            approval_seconds=self.settings.approval_timeout,
            can_ask=can_ask,
        )

    def _spec(self, agent: Agent) -> AgentSpec:
        targets = {tool.spec.name: tool.target.name for tool in agent.tools if isinstance(tool, Handoff)}
        return dataclasses.replace(agent.spec, models=self._models(agent) if agent.model else (), handoffs=targets)

    def _model_by(self, *agents: Agent) -> Callable[[str], Model]:
        """By name, but for models that an agent was given as they are."""
        given = _given(*agents)
        return lambda name: given[name] if name in given else self._model(name, self.settings)

    async def replay(self, log: Exported) -> Difference | None:
        """The first difference between what this code asks for and what the log holds. Calls and connects to nothing.

        Raises Refusal (422) for the log of an agent that is not here, and for one that no run has made."""
        created = cast(RunCreated, log.records[0].event)
        self._asked(created.agent_name)
        ports = self.ports(created, Unheard(), NoClock(), servers=False)
        try:
            return await replay(log.run_id, log.records, ports, log.files)
        except Exception as error:
            message = f"No run can have made this log: {type(error).__name__}: {str(error)[:300]}"
            raise Refusal(422, "not_a_log", message) from error

    def _still_there(self, name: str) -> Agent:
        agent = self._reachable.get(name)
        if agent is None:
            fault = f"the agent {name} of this run is no longer in the code"
            raise ConfigError("agents", fault, f'Agent(name="{name}")')
        return agent

    def approval_modes(self, agent: str) -> Sequence[ApprovalMode]:
        """The modes a run of this agent may be put into. Raises ConfigError like `ports`."""
        return permissions.modes_of(self._still_there(agent), self.settings)

    async def edited(self, agent: str, tool: str, arguments: JsonObject) -> JsonObject:
        """The arguments a person puts in the place of a call's, sanitized and checked. Raises Refusal 422 and 503."""
        asked = self._still_there(agent)
        return await permissions.edited(asked, self._toolbox(asked), tool, arguments)

    def mask(self, event: RecordedEvent) -> RecordedEvent:
        """Declared secrets never reach a table or a frame."""
        return codec.masked(event, self.settings.mask)

    def _toolbox(self, agent: Agent, *, servers: bool = True) -> Toolbox:
        found = self._servers(agent).items() if servers else ()
        sources = [self._source(name, server, self.settings) for name, server in found]
        return Toolbox(agent.tools, sources, allow=self.settings.tools_allow, deny=self.settings.tools_deny)

    def _servers(self, agent: Agent) -> Mapping[str, McpServer]:
        """Those of the code, then those of the variable; of two with one name the variable's."""
        configured = {
            name: McpServer(
                url=server.url,
                headers=server.headers,
                timeout=server.timeout or 30,
                connect_timeout=server.connect_timeout,
                allow=server.allow,
                deny=server.deny,
            )
            for name, server in self.settings.mcp_servers.items()
        }
        return {**agent.mcp_servers, **configured}

    # -- what there is
    def agents(self) -> Sequence[AgentInfo]:
        return [
            AgentInfo(
                name=agent.name,
                description=agent.description,
                default=number == 0,
                models=self._models(agent),
                mode=self._mode(agent),
                tools=tuple(tool.spec.name for tool in agent.tools),
                limits=self._agent_limits(agent),
                approval=permissions.mode_of(agent, self.settings),
                approval_modes=tuple(permissions.modes_of(agent, self.settings)),
                tool_rules=permissions.rules_of(agent, self.settings),
            )
            for number, agent in enumerate(self._agents.values())
        ]

    async def tools(self) -> ToolsAnswer:
        """Every tool once, by name and server, with the agents that have it. Connects to the servers."""
        found: dict[tuple[str | None, str], ToolInfo] = {}
        unreachable: dict[str, None] = {}
        for agent in self._agents.values():
            box = self._toolbox(agent)
            try:
                unreachable.update(dict.fromkeys(await box.refresh()))
                for spec in box.offered():
                    if tool := box.find(spec.name):
                        key = (tool.server, spec.name)
                        agents = (*(found[key].agents if key in found else ()), agent.name)
                        found[key] = ToolInfo(
                            name=spec.name,
                            description=spec.description,
                            server=tool.server,
                            parameters=spec.parameters,
                            read_only=tool.read_only,
                            safe_to_repeat=tool.safe_to_repeat,
                            requires_approval=tool.requires_approval,
                            agents=agents,
                        )
            finally:
                await box.close()
        return ToolsAnswer(tools=tuple(found.values()), unreachable=tuple(unreachable))

    def faults(self) -> Sequence[ConfigError]:
        """Everything wrong with variables and agents. Connects to nothing."""
        faults = list(self.settings.faults())
        for agent in self._reachable.values():
            try:
                self._check(agent)
            except ConfigError as error:
                faults.append(error)
        return list({str(fault): fault for fault in faults}.values())

    def _check(self, agent: Agent) -> None:
        """Raises ConfigError. A run keeps its models and its approval mode when it is handed over."""
        self._toolbox(agent)
        if agent.name in self._agents:
            for models in (self._models(agent), *self._later_models(agent)):
                self._resolvable(agent, models, asked=False)
            permissions.mode_of(agent, self.settings)


def _given(*agents: Agent) -> dict[str, Model]:
    """By name, the models that agents have as they are, and not by name."""
    models = [agent.model for agent in agents if agent.model is not None and not isinstance(agent.model, str)]
    return {f"{model.provider}/{model.name}": model for model in models}


def _reachable(agents: Sequence[Agent]) -> dict[str, Agent]:
    """These agents and those that can be handed over to. Raises ConfigError where two of them have one name."""
    found: dict[str, Agent] = {}
    waiting = list(agents)
    while waiting:
        agent = waiting.pop(0)
        if found.get(agent.name) is agent:
            continue
        if agent.name in found:
            raise ConfigError("agents", f"two agents are named {agent.name}", 'Agent(name="other")')
        found[agent.name] = agent
        waiting += [tool.target for tool in agent.tools if isinstance(tool, Handoff)]
    return found


def _schema(schema: JsonObject | None) -> JsonObject | None:
    """Raises Refusal for one that could not be handed to a model."""
    if schema is not None and (fault := schema_fault(schema)):
        raise Refusal(422, "bad_schema", f"output_schema cannot be used: {fault}.", field="output_schema")
    return schema
