"""What is outside of a simulated object: a model, tools that count what they did, people, followers."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any

from edge_agent.core import keys
from edge_agent.core.compaction import Compaction
from edge_agent.core.errors import InvalidArguments, ModelError, OutcomeUnknown, Refusal
from edge_agent.core.events import (
    ApprovalMode,
    Mode,
    ModelFailed,
    OnUnknown,
    RunCreated,
    ToolCalled,
    ToolRule,
)
from edge_agent.core.hooks import AgentSpec, Hooks
from edge_agent.core.hub import Item
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage, JsonObject, ToolSpec, Turn, UserMessage
from edge_agent.core.model import CalledTool, Finished, ModelEvent, ModelRequest, TextDelta, UsageSeen
from edge_agent.core.ports import Record
from edge_agent.core.state import RunState, fold
from edge_agent.core.tooling import SignIn, ToolContext, ToolFile, ToolOutput
from edge_agent.core.usage import Amount, Usage
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.estimates import estimated_input
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.walk import Ports
from edge_agent.models.scripted import Answer
from edge_agent.testing import Faults, Follower, Kill, Killed, SimulatedObject, in_virtual_time
from edge_agent.testing.simulated import Instance

RUN = "run-1"
LOST = ("lost", "run-ended")  # errors of attempts nobody heard the end of
REMINDER = "Say it again, properly."
Calls = tuple[tuple[str, JsonObject | str], ...]


# -- what a scenario is
@dataclass(frozen=True, slots=True)
class Person:
    """At the first sight of a record, after a moment, somebody does something, again until there is an answer."""

    sees: str | int
    does: Callable[[Inbox], Any]
    after: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """script: answers by turn. broken: models that fail at every call. failing: attempts that fail.

    down_in_first_life: a round whose every attempt fails until the run is resumed. says: the model, as a function of
    what it is shown, in place of a script."""

    name: str
    script: Sequence[Answer | str] = ()
    mode: Mode = "direct"
    says: Callable[[ModelRequest], Answer] | None = None
    models: tuple[str, ...] = ("m1",)
    broken: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    compaction: Compaction = field(default_factory=Compaction)
    window: int = 128_000
    history: tuple[Turn, ...] = ()
    hooks: Hooks = field(default_factory=Hooks)
    force_text: bool = False
    failing: Mapping[str, ModelError] = field(default_factory=dict[str, ModelError])
    down_in_first_life: str | None = None
    people: tuple[Person, ...] = ()
    ends: str = "run.completed"
    same_when_lost: bool = True  # a lost attempt's reserve may stop a run that has a cap
    slices: SliceBudget = field(default_factory=SliceBudget)
    approval: ApprovalMode = "autopilot"
    tool_rules: Mapping[str, ToolRule] = field(default_factory=dict[str, ToolRule])
    approval_seconds: float | None = 3_600


# -- tools
@dataclass(frozen=True, slots=True, kw_only=True)
class CountingTool:
    name: str
    world: "World"
    safe: bool = False
    on_unknown: OnUnknown = "report"
    requires_approval: bool = False
    max_output: None = None
    timeout: float = 30.0
    server: None = None

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.name, parameters={"type": "object", "properties": {}})

    @property
    def read_only(self) -> bool:
        return self.safe

    @property
    def safe_to_repeat(self) -> bool:
        return self.safe

    def check(self, arguments: JsonObject) -> None:
        if arguments.get("bad"):
            raise InvalidArguments("`bad`: must not be there")

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        await asyncio.sleep(0.2)
        self.world.began(self, context)
        first = self.world.tried[context.idempotency_key] == 1
        if self.name == "slow":
            await asyncio.sleep(100)
        if self.name.startswith("doubt") and first:
            raise OutcomeUnknown("the line went dead")
        if self.name in ("flaky", "broken"):
            raise RuntimeError(f"{self.name} is out of order")
        self.world.happened[self.name, context.idempotency_key] += 1
        await asyncio.sleep(0.2)
        if self.name == "big":
            file = ToolFile(name="a b.bin", media_type="application/octet-stream", content=b"\xff" * 10)
            return ToolOutput(text="x" * 100_000, structured={"long": "y" * 70_000}, files=(file, file))
        return ToolOutput(text=f"{self.name} {arguments.get('q', '')} ok", structured={"n": 1})


class CountingTools:
    def __init__(self, tools: Sequence[CountingTool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    async def refresh(self) -> tuple[str, ...]:
        await asyncio.sleep(0.05)
        return ()

    def sign_ins(self) -> tuple[SignIn, ...]:
        return ()

    def offered(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    def find(self, name: str) -> CountingTool | None:
        return self._tools.get(name)

    async def close(self) -> None:
        await asyncio.sleep(0)


# -- the model
@dataclass(frozen=True, slots=True)
class CountedModel:
    """Says what the script says at the turn it is shown; fails the attempts it is to fail. No attempt is made twice."""

    name: str
    world: "World"
    provider: str = "world"
    force_text_after_tool: bool = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        part = self.world.asked(request)
        answer = self.world.answer(request)
        size = len(answer.text) // 3 + 1
        for start in range(0, len(answer.text), size):
            await asyncio.sleep(0.1)
            yield TextDelta(text=answer.text[start : start + size])
            if (error := self.world.failure(part, self.name)) and start:
                raise error
        await asyncio.sleep(0.1)
        if error := self.world.failure(part, self.name):
            raise error
        for name, arguments in answer.calls:
            yield CalledTool(name=name, arguments=arguments if isinstance(arguments, str) else json.dumps(arguments))
        yield UsageSeen(usage=Usage(input=100, output=20))
        yield Finished(reason=answer.finish or ("tool-calls" if answer.calls else "stop"))


# -- the world
class World:
    def __init__(
        self,
        scenario: Scenario,
        kills: Sequence[Kill] = (),
        *,
        people: Sequence[Person] = (),
        vanish: bool = True,
        followers: bool = False,
        log: Sequence[Record] = (),
        run_id: str = RUN,
    ) -> None:
        self.run_id = run_id
        self.scenario, self.kills, self.vanish, self.patient = scenario, kills, vanish, True
        self.people = [*scenario.people, *people]
        self.log = log
        self.happened: Counter[tuple[str, str]] = Counter()
        self.tried: Counter[str] = Counter()
        self.parts: Counter[str] = Counter()
        self.followers: list[Follower] | None = [] if followers else None
        self.faults: list[str] = []
        self.answers: list[Any] = []
        self._seen: set[int] = set()
        self._busy: set[asyncio.Task[None]] = set()
        self.object: SimulatedObject

    # what the object meets
    def began(self, tool: CountingTool, context: ToolContext) -> None:
        self.tried[context.idempotency_key] += 1
        calls = {r.key: r.event for r in self.object.log.load() if isinstance(r.event, ToolCalled)}
        mine = [key for key, call in calls.items() if call.idempotency_key == context.idempotency_key]
        self._expect(bool(mine), f"{tool.name} ran without a record")
        self._expect(len({key.partition("/call")[0] for key in mine}) == 1, f"two calls share a key: {mine}")
        results = {r.key for r in self.object.log.load()}
        done = [key for key in mine if f"{key.partition('/call')[0]}/result" in results]
        self._expect(not done, f"{tool.name} ran again after its result: {done}")

    def asked(self, request: ModelRequest) -> str:
        open_ = [record.key for record, _ in self.object.instance.journal.open_attempts()]
        self._expect(len(open_) == 1, f"{len(open_)} attempts are open")
        self._expect(estimated_input(request) <= self.scenario.window, "a request is longer than the window")
        part = open_[-1]
        self.parts[part] += 1
        self._expect(self.parts[part] == 1, f"the attempt {part} was made twice")
        return part

    def answer(self, request: ModelRequest) -> Answer:
        if self.scenario.says:
            return self.scenario.says(request)
        turn = sum(
            isinstance(m, AssistantMessage) or (isinstance(m, UserMessage) and m.text == REMINDER)
            for m in request.messages
        )
        if not request.tools and turn:
            return Answer(text=f"the end after {turn} turns")
        said = self.scenario.script[min(turn, len(self.scenario.script) - 1)]
        return Answer(text=said) if isinstance(said, str) else said

    def failure(self, part: str, model: str) -> ModelError | None:
        if model in self.scenario.broken:
            return ModelError("unavailable", f"{model} is down", retryable=True)
        down = self.scenario.down_in_first_life
        if down and part.startswith(f"{down}/") and self.object.instance.journal.life == 0:
            return ModelError("unavailable", "the model is down", retryable=True)
        return self.scenario.failing.get(part)

    # the object
    def tools(self) -> CountingTools:
        def tool(name: str, **more: Any) -> CountingTool:
            return CountingTool(name=name, world=self, **more)

        return CountingTools(
            [
                *(tool(name, safe=True) for name in ("read", "flaky", "big")),
                *(tool(name) for name in ("pay", "broken", "doubt")),
                tool("slow", timeout=1.0),
                tool("doubt_retry", on_unknown="retry"),
                tool("doubt_ask", on_unknown="ask"),
                tool("doubt_fail", on_unknown="fail"),
            ]
        )

    def ports(self, instance: Instance) -> Ports:
        scenario = self.scenario
        return Ports(
            clock=self.object.clock,
            sink=instance.hub,
            agent=AgentSpec(name="a", hooks=scenario.hooks, force_text_after_tool=scenario.force_text),
            model=lambda name: CountedModel(name, self),
            tools=self.tools(),
            context_window=scenario.window,
            approval_seconds=scenario.approval_seconds,
        )

    def watch(self, instance: Instance) -> None:
        for record in instance.journal.in_order():
            self.see(record)

        def tell(items: Sequence[Item]) -> None:
            for item in items:
                if isinstance(item, Record):
                    self.see(item)
                    if self.followers is not None:
                        self._later(self._joins(item))

        for follower in self.followers or ():
            follower.join(instance.hub, instance.journal)
        instance.hub.follow(tell)

    def see(self, record: Record) -> None:
        for number, person in enumerate(self.people):
            if number not in self._seen and person.sees in (record.key, record.seq):
                self._seen.add(number)
                self._later(self._acts(person))

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, context=Context())  # no kill of the object ends it
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _acts(self, person: Person) -> None:
        await asyncio.sleep(person.after)
        try:
            self.answers.append(await self.object.call(person.does, again=self.patient))
        except (Refusal, Killed) as no:
            self.answers.append(no)

    async def _joins(self, record: Record) -> None:
        """A late follower for each record, with a cursor somewhere before it."""
        if self.followers is not None and not self.object.has_ended():
            instance = self.object.instance
            follower = Follower(after=record.seq * 7 % (record.seq + 1))
            follower.join(instance.hub, instance.journal)
            self.followers.append(follower)

    async def _live(self) -> None:
        self.object = SimulatedObject(
            self.run_id,
            self.ports,
            faults=Faults(frozenset(self.kills)),
            vanish=self.vanish,
            slice_budget=self.scenario.slices,
            on_instance=self.watch,
        )
        created = RunCreated(
            version=keys.VERSION,
            input="do it",
            agent_name="a",
            models=self.scenario.models,
            limits=self.scenario.limits,
            compaction=self.scenario.compaction,
            history=self.scenario.history,
            mode=self.scenario.mode,
            approval=self.scenario.approval,
            tool_rules=dict(self.scenario.tool_rules),
        )
        if self.log:  # a run that an earlier code has begun
            self.object.log.append(self.log, (), {"fingerprint": "print"})
            self.object.instance.driver.wake()
        await self.object.call(lambda inbox: inbox.create(created, "print", idempotent=True))
        while self._busy or not self.object.has_ended():  # who acts at the end (a resume) begins another life
            await self.object.until_ended()
            await asyncio.gather(*self._busy)
        self.records = self.object.log.load()

    def lived(self) -> "World":
        in_virtual_time(self._live())
        return self

    def _expect(self, holds: bool, fault: str) -> None:
        if not holds:
            self.faults.append(fault)

    # what came of it
    @property
    def state(self) -> RunState:
        return fold(self.run_id, self.records)

    @property
    def appends(self) -> int:
        return self.object.faults.appends

    def money(self, *kinds: type, lost: bool | None = None) -> Amount:
        """What the ends of these kinds have settled, each under its own attempt."""
        ends = [r for r in self.records if isinstance(r.event, kinds)]
        if lost is not None:
            ends = [r for r in ends if isinstance(r.event, ModelFailed) and (r.event.error in LOST) is lost]
        return sum((amount for record in ends for amount in record.money.values()), Amount())
