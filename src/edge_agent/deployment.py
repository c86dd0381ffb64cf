"""How the runs of a deployment are made and what they work with: agents from the code, the rest from variables."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

from edge_agent import configured, permissions
from edge_agent.agent import Agent
from edge_agent.compacting import compact, compaction_of, writers_for
from edge_agent.core import keys
from edge_agent.core.difference import Difference
from edge_agent.core.egress import Egress, Fetcher
from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.events import ApprovalMode, ParentRun, RecordedEvent, RunCreated
from edge_agent.core.history import Compacted
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.limits import Limits
from edge_agent.core.messages import JsonObject, Turn
from edge_agent.core.ports import Clock, Sink
from edge_agent.core.price import Price
from edge_agent.core.skill_library import EMPTY, SkillLibrary
from edge_agent.core.subagents import Commission, Delegation
from edge_agent.equipment import Equipment, SourceMaker
from edge_agent.handoff import Handoff
from edge_agent.inventory import Inventory
from edge_agent.loop.admission import require_prices, require_room
from edge_agent.loop.recorded import NoClock, Unheard
from edge_agent.loop.replay import replay
from edge_agent.loop.shares import lower
from edge_agent.loop.walk import Ports
from edge_agent.mcp_servers import servers_of
from edge_agent.model_choice import ModelChoice, ModelResolver
from edge_agent.models.prices import price_of, window_of
from edge_agent.prompting import prompting_of
from edge_agent.reach import everyone, subagents_of, team
from edge_agent.skilled import origins_of
from edge_agent.subagent import Subagent
from edge_agent.tools.json_schema import SchemaCheck, schema_fault
from edge_agent.tools.toolbox import Toolbox
from edge_agent.wire import codec
from edge_agent.wire.content import said
from edge_agent.wire.export import Exported
from edge_agent.wire.http import ForkChanges, StartRun
from edge_agent.wire.settings import Settings

FetcherMaker = Callable[[Egress, Settings], Fetcher]


class Deployment:
    """The makers of adapters, `model`, `source` and `fetcher`, raise ConfigError. A source is made for a user, whose
    login it uses. The first agent is the default. offer: what there is, for whoever asks."""

    def __init__(
        self,
        agents: Sequence[Agent],
        settings: Settings,
        model: ModelResolver,
        source: SourceMaker,
        fetcher: FetcherMaker,
        *,
        library: SkillLibrary = EMPTY,
    ) -> None:
        self.settings, self._fetcher = settings, fetcher
        self._agents, self._everyone = {agent.name: agent for agent in agents}, everyone(agents)
        self._choice = ModelChoice(settings, model)
        taken = {skill.name for agent in self._everyone.values() for skill in agent.skills}
        self._equipment = Equipment(settings, source, library, taken)
        if not self._agents:
            raise ConfigError("agents", "there is no agent", 'agents = [Agent(name="assistant")]')
        if len(self._agents) != len(agents):
            raise ConfigError("agents", "two agents have the same name", 'Agent(name="other")')
        self.offer = Inventory(agents, settings, self._choice, self._equipment)

    # -- a new run
    def configure(self, request: StartRun) -> RunCreated:
        """Raises Refusal (422) for what the request gets wrong, ConfigError for what the deployment gets wrong."""
        agent = self._asked(request.agent)
        return self._created(agent, request, limits=configured.asked_limits(agent, self.settings, request.limits))

    def _created(
        self, agent: Agent, request: StartRun, *, limits: Limits, parent: ParentRun | None = None
    ) -> RunCreated:
        models, planner, synthesizer = self._choice.of_run(agent, request)
        asked = said(request.input)
        created = RunCreated(
            version=keys.VERSION,
            input=asked.text,
            attachments=asked.attachments,
            agent_name=agent.name,
            models=models,
            planner_models=planner,
            synthesizer_models=synthesizer,
            limits=limits,
            compaction=compaction_of(agent, self.settings),
            mode=request.mode or configured.mode_of(agent, self.settings),
            approval=permissions.asked_mode(agent, self.settings, request.approval),
            tool_rules=permissions.asked_rules(agent, self.settings, request.tool_rules),
            history=tuple(turn.turn() for turn in request.history),
            metadata=request.metadata,
            output_schema=_schema(request.output_schema or agent.output_schema),
            parent=parent,
            library=origins_of(map(self._equipment.skills, team(agent).values())),
        )
        self._admit(agent, created)
        return created

    def _child(self, by: Subagent, work: Commission) -> RunCreated:
        """The configuration of a run that works for another one. Raises Refusal (422) where what is left does not
        do."""
        agent = by.agents[work.profile]
        own = configured.limits_of(agent, self.settings)
        limits = dataclasses.replace(own, **cast("dict[str, Any]", lower(own, work.caps)))
        reads_only = by.read_only and "read-only" in permissions.modes_of(agent, self.settings)
        request = StartRun(input=work.task, metadata=work.metadata, approval="read-only" if reads_only else None)
        return self._created(agent, request, limits=limits, parent=work.parent)

    def forked(self, created: RunCreated, changes: ForkChanges) -> RunCreated:
        """The configuration of a run that begins with records of the one configured so; its keys are of that version.

        Raises Refusal (422) like `configure`, also for an agent that is gone."""
        agent = self._maker(created)
        made: dict[str, Any] = dict(self._choice.of_fork(agent, changes))
        made["parent"] = None  # it works for itself
        if changes.limits is not None:
            configured.asked_limits(agent, self.settings, changes.limits)
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
        self._choice.require_taken(created, [*team(agent).values()])
        price = self._price(agent)
        require_prices(created, price)
        # The tools of servers are not known before they are asked.
        tools = self._equipment.toolbox(agent, created.user, depth=created.depth).offered()
        require_room(created, self._spec(agent), tools, self._window(created), price)

    def _price(self, agent: Agent) -> Callable[[str], Price | None]:
        caching = prompting_of(agent, self.settings).caching
        for_an_hour = caching is not None and caching.ttl == "1h"
        return lambda name: price_of(name, self.settings, for_an_hour=for_an_hour)

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

    def _maker(self, created: RunCreated) -> Agent:
        """The agent that has made a run, be it a subagent's."""
        return self._everyone.get(created.agent_name) or self._asked(created.agent_name)

    # -- outside of runs
    async def compact(self, history: Sequence[Turn], *, force: bool) -> Compacted:
        """By the models that sum up for the default agent. Raises Refusal (503), and ConfigError like `configure`."""
        agent = self._asked(None)
        writers = writers_for(agent, self._choice, self.settings)
        return await compact(history, writers, compaction_of(agent, self.settings), force=force)

    # -- a run at work
    def ports(
        self, created: RunCreated, sink: Sink, clock: Clock, *, can_ask: bool = True, servers: bool = True
    ) -> Ports:
        """Raises ConfigError where the agent is gone or a variable is wrong. can_ask: whether there is a person.
        servers: whether there are tools of MCP servers."""
        agent = self._still_there(created.agent_name)
        others = [other for name, other in team(agent).items() if name != agent.name]

        def toolbox(agent: Agent) -> Toolbox:
            return self._equipment.toolbox(agent, created.user, servers=servers, depth=created.depth)

        return Ports(
            clock=clock,
            sink=sink,
            agent=self._spec(agent),
            others={other.name: (self._spec(other), toolbox(other)) for other in others},
            model=self._choice.model_by(agent, *others),
            tools=toolbox(agent),
            secrets=self.settings.secrets,
            declared=self.settings.declared_secrets(),
            faults=lambda schema, value: SchemaCheck(schema).faults(value),
            context_window=self._window(created),
            price=self._price(agent),
            max_retries=self.settings.max_retries,
            forbidden=[glob for glob, rule in permissions.rules_of(agent, self.settings).items() if rule == "deny"],
            approval_seconds=self.settings.approval_timeout,
            can_ask=can_ask,
        )

    def _spec(self, agent: Agent) -> AgentSpec:
        targets = {tool.spec.name: tool.target.name for tool in agent.tools if isinstance(tool, Handoff)}
        egress = self.settings.egress_over(agent.egress)
        return dataclasses.replace(
            agent.spec,
            models=self._choice.of_agent(agent) if agent.model else (),
            fail_on_no_tools=agent.fail_on_no_tools and bool(servers_of(agent, self.settings)),
            handoffs=targets,
            subagents={tool.spec.name: self._delegation(tool) for tool in subagents_of(agent)},
            prompting=prompting_of(agent, self.settings),
            selection=self.settings.tool_selection or agent.tool_selection,
            fetcher=self._fetcher(egress, self.settings) if egress else None,
            skills=self._equipment.skills(agent),
        )

    def _delegation(self, tool: Subagent) -> Delegation:
        return Delegation(
            max_concurrent=tool.max_concurrent,
            timeout=tool.lifetime,
            output_max_chars=tool.output_max_chars,
            inline=tool.isolation == "inline",
            configure=functools.partial(self._child, tool),
        )

    async def replay(self, log: Exported) -> Difference | None:
        """The first difference between what this code asks for and what the log holds. Calls and connects to nothing.

        Raises Refusal (422) for the log of an agent that is not here, and for one that no run has made."""
        created = cast(RunCreated, log.records[0].event)
        self._maker(created)
        ports = self.ports(created, Unheard(), NoClock(), servers=False)
        try:
            return await replay(log.run_id, log.records, ports, log.files)
        except Exception as error:
            message = f"No run can have made this log: {type(error).__name__}: {str(error)[:300]}"
            raise Refusal(422, "not_a_log", message) from error

    def _still_there(self, name: str) -> Agent:
        agent = self._everyone.get(name)
        if agent is None:
            fault = f"the agent {name} of this run is no longer in the code"
            raise ConfigError("agents", fault, f'Agent(name="{name}")')
        return agent

    def approval_modes(self, agent: str) -> Sequence[ApprovalMode]:
        """The modes a run of this agent may be put into. Raises ConfigError like `ports`."""
        return permissions.modes_of(self._still_there(agent), self.settings)

    async def edited(self, agent: str, user: str | None, tool: str, arguments: JsonObject) -> JsonObject:
        """The arguments a person puts in the place of a call's, sanitized and checked. Raises Refusal 422 and 503."""
        asked = self._still_there(agent)
        return await permissions.edited(asked, self._equipment.toolbox(asked, user), tool, arguments)

    def mask(self, event: RecordedEvent) -> RecordedEvent:
        """Declared secrets never reach a table or a frame."""
        return codec.masked(event, self.settings.mask)


def _schema(schema: JsonObject | None) -> JsonObject | None:
    """Raises Refusal for one that could not be handed to a model."""
    if schema is not None and (fault := schema_fault(schema)):
        raise Refusal(422, "bad_schema", f"output_schema cannot be used: {fault}.", field="output_schema")
    return schema
