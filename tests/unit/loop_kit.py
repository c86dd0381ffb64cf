"""One run on virtual time, from its creation to its end, with what was said to whoever listened."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from edge_agent.core import keys
from edge_agent.core.attachments import Attachment
from edge_agent.core.compaction import Compaction
from edge_agent.core.egress import Fetcher
from edge_agent.core.errors import Refusal
from edge_agent.core.events import ApprovalMode, ErrorInfo, Mode, RecordedEvent, RunCreated, RunFailed, ToolRule
from edge_agent.core.hooks import AgentSpec, Hooks, ReplanAfter
from edge_agent.core.hub import Item
from edge_agent.core.limits import Limits
from edge_agent.core.messages import JsonObject, ToolMessage, Turn
from edge_agent.core.model import Model, ToolSpec
from edge_agent.core.ports import Log, Record
from edge_agent.core.price import Price
from edge_agent.core.prompting import Prompting
from edge_agent.core.skill_library import SkillUse
from edge_agent.core.state import RunState, fold
from edge_agent.core.tooling import Tool, ToolContext, ToolOutput, Tools, ToolSelection
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.walk import Ports
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Faults, Kill, SimulatedObject, in_virtual_time
from edge_agent.testing.simulated import Instance
from edge_agent.tools.toolbox import Toolbox

E = TypeVar("E")
Act = Callable[[Inbox], object]


@dataclass(slots=True, kw_only=True)
class Setting:
    """model: one, or several by name. acts: what happens at the append of a record, by its key."""

    model: Model | Mapping[str, Model]
    names: tuple[str, ...] | None = None
    tools: Sequence[Any] = ()
    toolbox: Tools | None = None
    hooks: Hooks = field(default_factory=Hooks)
    limits: Limits = field(default_factory=Limits)
    compaction: Compaction = field(default_factory=Compaction)
    window: int = 128_000
    mode: Mode = "direct"
    replan: ReplanAfter = "failure"
    instructions: str = ""
    force_text: bool = False
    input: str = "do it"
    history: tuple[Turn, ...] = ()
    attachments: tuple[Attachment, ...] | None = None
    metadata: JsonObject | None = None
    secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    declared: tuple[str, ...] = ()
    mask: Callable[[RecordedEvent], RecordedEvent] = lambda event: event
    acts: Mapping[str, Act] = field(default_factory=dict[str, Act])
    kills: Sequence[Kill] = ()
    slices: SliceBudget = field(default_factory=SliceBudget)
    ports: Callable[[], None] = lambda: None
    log: Log | None = None
    max_retries: int = 2
    price: Callable[[str], Price | None] = lambda name: None
    output_schema: JsonObject | None = None
    faults: Callable[[JsonObject, Any], Sequence[str]] = lambda schema, value: ()
    approval: ApprovalMode = "autopilot"
    tool_rules: Mapping[str, ToolRule] = field(default_factory=dict[str, ToolRule])
    forbidden: Callable[[], Sequence[str]] = lambda: ()
    approval_seconds: float | None = 3_600
    can_ask: bool = True
    prompting: Prompting = field(default_factory=Prompting)
    fetcher: Fetcher | None = None
    skills: SkillUse = field(default_factory=SkillUse)
    selection: ToolSelection = "auto"
    fail_on_no_tools: bool = False


@dataclass(slots=True)
class Lived:
    object: SimulatedObject
    items: list[Item]
    refusals: list[Refusal]

    @property
    def records(self) -> list[Record]:
        return self.object.log.load()

    @property
    def end(self) -> RecordedEvent:
        return self.records[-1].event

    @property
    def error(self) -> ErrorInfo:
        assert isinstance(self.end, RunFailed), self.end
        return self.end.error

    @property
    def state(self) -> RunState:
        return fold("run-1", self.records)

    def of(self, kind: type[E]) -> list[E]:
        return [record.event for record in self.records if isinstance(record.event, kind)]

    def passing(self, kind: type[E]) -> list[E]:
        return [item for item in self.items if isinstance(item, kind)]

    def all_keys(self) -> list[str]:
        return [record.key for record in self.records]


def cancels(inbox: Inbox) -> None:
    inbox.cancel()


def resumes(inbox: Inbox) -> None:
    inbox.resume()


def cancels_after(seconds: float) -> Act:
    def later(inbox: Inbox) -> None:
        asyncio.get_running_loop().call_later(seconds, inbox.cancel)

    return later


def hooked(**hooks: Any) -> Hooks:
    """Hooks by name, for tests that go through several of them."""
    return Hooks(**hooks)


def live(setting: Setting) -> Lived:
    """Until it has ended. Raises RuntimeError where it never would."""
    return in_virtual_time(_live(setting))


async def _live(setting: Setting) -> Lived:
    items: list[Item] = []
    refusals: list[Refusal] = []
    done: set[str] = set()

    def watch(instance: Instance) -> None:
        def tell(told: Sequence[Item]) -> None:
            items.extend(told)
            for item in told:
                if isinstance(item, Record) and item.key in setting.acts and item.key not in done:
                    done.add(item.key)
                    try:
                        setting.acts[item.key](instance.inbox)
                    except Refusal as refusal:
                        refusals.append(refusal)

        instance.hub.follow(tell)

    def ports(instance: Instance) -> Ports:
        setting.ports()
        models = setting.model
        return Ports(
            clock=simulated.clock,
            sink=instance.hub,
            agent=AgentSpec(
                name="a",
                instructions=setting.instructions,
                hooks=setting.hooks,
                prompting=setting.prompting,
                force_text_after_tool=setting.force_text,
                fetcher=setting.fetcher,
                selection=setting.selection,
                fail_on_no_tools=setting.fail_on_no_tools,
                replan_after=setting.replan,
                skills=setting.skills,
            ),
            model=lambda name: models[name] if isinstance(models, Mapping) else models,
            tools=setting.toolbox or Toolbox(setting.tools),
            secrets=setting.secrets,
            declared=setting.declared,
            context_window=setting.window,
            max_retries=setting.max_retries,
            price=setting.price,
            faults=setting.faults,
            forbidden=setting.forbidden(),
            approval_seconds=setting.approval_seconds,
            can_ask=setting.can_ask,
        )

    simulated = SimulatedObject(
        "run-1",
        ports,
        log=setting.log,
        faults=Faults(frozenset(setting.kills)),
        mask=setting.mask,
        slice_budget=setting.slices,
        on_instance=watch,
    )
    created = RunCreated(
        version=keys.VERSION,
        input=setting.input,
        agent_name="a",
        models=setting.names or (tuple(setting.model) if isinstance(setting.model, Mapping) else ("m",)),
        limits=setting.limits,
        compaction=setting.compaction,
        mode=setting.mode,
        history=setting.history,
        attachments=setting.attachments,
        metadata=setting.metadata,
        output_schema=setting.output_schema,
        approval=setting.approval,
        tool_rules=dict(setting.tool_rules),
        library=setting.skills.origins or None,
    )
    await simulated.call(lambda inbox: inbox.create(created, "print", idempotent=True))
    if setting.log:  # of a run that was begun before
        simulated.instance.driver.wake()
    await simulated.until_ended()
    return Lived(simulated, items, refusals)


def asks(*calls: tuple[str, JsonObject | str], then: Sequence[Answer | str] = ("done",)) -> ScriptedModel:
    """Makes these calls in one answer, then gives the others."""
    return ScriptedModel(answers=[Answer(calls=calls), *then])


def live_call(called: Tool, arguments: JsonObject | str | None = None, **more: Any) -> Lived:
    """A run that makes one call."""
    model = more.pop("model", None) or asks((called.spec.name, arguments or {}))
    return live(Setting(model=model, tools=[called], **more))


def shown(model: ScriptedModel) -> list[ToolMessage]:
    """What the newest request tells of calls."""
    return [message for message in model.requests[-1].messages if isinstance(message, ToolMessage)]


class Raw:
    """A tool of one's own that gives back whatever it likes."""

    spec = ToolSpec(name="raw", description="", parameters={"type": "object", "properties": {}})
    server, timeout, read_only, safe_to_repeat, on_unknown = None, 30.0, False, False, "report"
    requires_approval = False
    max_output = None

    def __init__(self, given: Any) -> None:
        self.given = given

    def check(self, arguments: JsonObject) -> None:
        pass

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return self.given
