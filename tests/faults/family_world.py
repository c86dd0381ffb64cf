"""A run with subagents on virtual time: models that answer by turn and count, tools that count, and what must hold."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any

from edge_agent import Agent, Limits, ToolContext, cpython, subagent, tool
from edge_agent.core import keys
from edge_agent.core.errors import ModelError, Refusal
from edge_agent.core.events import (
    Mode,
    ModelAnswered,
    ModelFailed,
    RunCreated,
    SubagentCompleted,
    SubagentEvent,
    SubagentFailed,
    SubagentStarted,
    ToolCalled,
    UsageSoFar,
)
from edge_agent.core.hub import Item
from edge_agent.core.limits import crossed
from edge_agent.core.messages import AssistantMessage
from edge_agent.core.model import CalledTool, Finished, ModelEvent, ModelRequest, TextDelta, UsageSeen
from edge_agent.core.ports import Record
from edge_agent.core.state import RunState, fold
from edge_agent.core.usage import Amount, Usage, total_of
from edge_agent.cpython import model, source
from edge_agent.deployment import Deployment
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from edge_agent.subagent import Isolation
from edge_agent.testing import Faults, Kill, Killed, SimulatedRuns, assert_sound, in_virtual_time
from edge_agent.testing.post import Trouble
from edge_agent.testing.simulated import Instance
from edge_agent.wire.http import StartRun
from edge_agent.wire.settings import Settings

BOSS = "boss-1"
PRICES = {
    "family/boss": {"input": 3.0, "output": 15.0},
    "family/child": {"input": 0.5, "output": 2.5},
    "family/clerk": {"input": 0.1, "output": 0.4},
}
Says = Callable[[int, ModelRequest], Answer | str]


@dataclass(frozen=True, slots=True)
class Person:
    """At the first sight of a record of a run, after a moment, somebody does something to the run `at`."""

    run: str
    sees: str
    does: Callable[[Inbox], Any]
    after: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the boss asks of its researchers, and how they work: by turn. `deeper`: the isolation of those below."""

    name: str
    boss: Says
    child: Says
    limits: Limits = field(default_factory=Limits)
    child_limits: Limits = field(default_factory=Limits)
    max_concurrent: int = 4
    timeout: float | None = None
    people: tuple[Person, ...] = ()
    slices: SliceBudget = field(default_factory=SliceBudget)
    ends: str = "run.completed"
    grandchildren: Says | None = None
    mode: Mode = "direct"
    isolation: Isolation = "object"
    deeper: Isolation = "object"


@dataclass(frozen=True, slots=True)
class TurnModel:
    """Counts every real call by the run and the attempt it is made for."""

    name: str
    says: Says
    world: "FamilyWorld"
    provider: str = "family"
    force_text_after_tool: bool = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        run_id = (request.metadata or {})["run"]
        self.world.asked(run_id)
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages)
        said = self.says(turn, request)
        answer = Answer(text=said) if isinstance(said, str) else said
        await asyncio.sleep(answer.delay or 0.2)
        if answer.text:
            yield TextDelta(text=answer.text)
        for name, arguments in answer.calls if request.tools else ():
            yield CalledTool(name=name, arguments=json.dumps(arguments))
        yield UsageSeen(usage=Usage(input=100, output=20))
        yield Finished(reason="tool-calls" if answer.calls else "stop")


class FamilyWorld:
    """`kills`: by the place of a run: "boss", the key of the call that is a child of it, else the id of the run."""

    def __init__(
        self,
        family: Family,
        kills: Mapping[str, Sequence[Kill]] | None = None,
        *,
        vanish: bool = True,
        troubles: Iterable[Trouble] = (),
    ) -> None:
        self.family, self.kills, self.vanish, self.troubles = family, kills or {}, vanish, troubles
        self.happened: Counter[str] = Counter()
        self.parts: Counter[tuple[str, str]] = Counter()
        self.heard: dict[str, list[int]] = {}
        self.shown: list[UsageSoFar] = []
        self.faults: list[str] = []
        self.answers: list[Any] = []
        self._met: set[Person] = set()
        self._acting: set[asyncio.Task[None]] = set()
        self.runs: SimulatedRuns

    # -- who works
    def _deployment(self) -> Deployment:
        @tool
        async def pay(context: ToolContext, amount: int = 1) -> str:
            """Pay."""
            await asyncio.sleep(0.1)
            self.happened[context.idempotency_key] += 1
            await asyncio.sleep(0.1)
            return f"paid {amount}"

        @tool(read_only=True)
        async def look(context: ToolContext) -> str:
            """Look."""
            await asyncio.sleep(0.3)
            return "seen"

        family = self.family
        tools: list[Any] = [pay, look]
        if family.grandchildren:
            clerk = Agent(name="clerk", model=TurnModel("clerk", family.grandchildren, self))
            tools.append(subagent(clerk, isolation=family.deeper))
        researcher = Agent(
            name="researcher",
            model=TurnModel("child", family.child, self),
            tools=tools,
            limits=family.child_limits,
            approval_modes=("autopilot", "ask-writes"),
        )
        delegate = subagent(
            researcher,
            profiles={"careful": {"approval": "ask-writes"}},
            max_concurrent=family.max_concurrent,
            timeout=family.timeout,
            isolation=family.isolation,
        )
        boss = Agent(
            name="boss",
            model=TurnModel("boss", family.boss, self),
            tools=[delegate, pay, look],
            limits=family.limits,
            mode=family.mode,
        )
        settings = Settings.from_env({"EDGE_AGENT_PRICES": json.dumps(PRICES)})
        return Deployment([boss], settings, model, source, cpython.fetcher)

    def asked(self, run_id: str) -> None:
        open_ = [record.key for record, _ in self.runs.of(run_id).instance.journal.open_attempts()]
        if len(open_) != 1:
            self.faults.append(f"{run_id}: {len(open_)} attempts are open")
        self.parts[run_id, open_[-1]] += 1
        if self.parts[run_id, open_[-1]] > 1:
            self.faults.append(f"{run_id}: the attempt {open_[-1]} was made twice")

    def _faults(self, run_id: str) -> Faults:
        return Faults(frozenset(self.kills.get(self._name(run_id), ())))

    @property
    def place_of(self) -> dict[str, str]:
        """The key of the call of each child of the boss, by the id of its run."""
        return {
            record.event.child_run_id: record.key.removesuffix("/call")
            for record in self.runs.of(BOSS).log.load()
            if isinstance(record.event, SubagentStarted)
        }

    # -- who watches
    def _watch(self, run_id: str, instance: Instance) -> None:
        for record in instance.journal.in_order():
            self._see(run_id, record)

        def tell(items: Sequence[Item]) -> None:
            for item in items:
                if isinstance(item, Record):
                    self._see(run_id, item)
                elif isinstance(item, SubagentEvent):
                    self.heard.setdefault(item.child_run_id, []).append(item.child_seq)
                elif isinstance(item, UsageSoFar) and item.phase == "subagent":
                    self.shown.append(item)

        instance.hub.follow(tell)

    def _see(self, run_id: str, record: Record) -> None:
        for person in self.family.people:
            if person not in self._met and person.sees == record.key and person.run == self._name(run_id):
                self._met.add(person)
                acting = asyncio.get_running_loop().create_task(self._acts(person, run_id), context=Context())
                self._acting.add(acting)
                acting.add_done_callback(self._acting.discard)

    def _name(self, run_id: str) -> str:
        return "boss" if run_id == BOSS else self.place_of.get(run_id, run_id)

    async def _acts(self, person: Person, run_id: str) -> None:
        await asyncio.sleep(person.after)
        try:
            self.answers.append(await self.runs.of(run_id).call(person.does))
        except (Refusal, Killed) as no:
            self.answers.append(no)

    # -- the run
    async def _live(self) -> None:
        deployment = self._deployment()
        self.runs = SimulatedRuns(
            deployment,
            faults=self._faults,
            vanish=self.vanish,
            troubles=self.troubles,
            slice_budget=self.family.slices,
            on_instance=self._watch,
        )
        await self.runs.start(BOSS, deployment.configure(StartRun(input="do it")))
        await self.runs.at_rest()
        while self._acting:
            await asyncio.gather(*self._acting)
            await self.runs.at_rest()
        self.logs = {run_id: made.log.load() for run_id, made in self.runs.runs.items()}
        self.places = {"boss": BOSS, **{place: run_id for run_id, place in self.place_of.items()}}

    def lived(self) -> "FamilyWorld":
        in_virtual_time(self._live())
        return self

    # -- what came of it
    @property
    def records(self) -> list[Record]:
        return self.logs[BOSS]

    def state(self, run_id: str = BOSS) -> RunState:
        return fold(run_id, self.logs[run_id])

    def children(self, run_id: str = BOSS) -> dict[str, SubagentStarted]:
        return {r.event.child_run_id: r.event for r in self.logs[run_id] if isinstance(r.event, SubagentStarted)}

    def appends(self, place: str) -> int:
        return self.runs.runs[self.places[place]].faults.appends


def check(world: FamilyWorld) -> None:
    """Each child ran once and is answered once, nothing is paid twice, and the money of all logs adds up."""
    assert not world.faults, world.faults
    started = {child for run_id in world.logs for child in world.children(run_id)}
    assert set(world.logs) == {BOSS, *started}, "a run that nobody has started"
    for run_id, records in world.logs.items():
        if records[0].type != "run.refused":
            assert_sound(records)
            _check_money(world, run_id)
            _check_caps(world, run_id)
    assert all(times == 1 for times in world.happened.values()), "paid twice"
    for child, seqs in world.heard.items():
        assert seqs == list(range(1, len(world.logs[child]) + 1)), f"of {child} its parent told {seqs}"


def _check_money(world: FamilyWorld, run_id: str) -> None:
    """What a run has spent is what its own attempts and calls have, and its children; where one was given up, and the
    run ended before it could say what it cost, its whole reserve."""
    records = world.logs[run_id]
    own = [r for r in records if isinstance(r.event, ModelAnswered | ModelFailed)]
    spent = sum((amount for record in own for amount in record.money.values()), Amount())
    spent += Amount(tool_calls=len({r.key.partition("/call")[0] for r in records if isinstance(r.event, ToolCalled)}))
    results = {r.key: r for r in records}
    for record in records:
        if not isinstance(record.event, SubagentStarted):
            continue
        key, child = record.key.removesuffix("/call"), record.event.child_run_id
        result = results[f"{key}/result"].event
        settled = not (isinstance(result, SubagentFailed) and result.stopped) or f"{key}/settled" in results
        if not settled:
            end = results[keys.end(results[f"{key}/result"].life)]
            assert world.logs[child][-1].at > end.at - TIME_TO_SAY or world.troubles
            spent += record.money[key]
            continue
        refused = world.logs[child][0].type == "run.refused"
        spent += Amount(tool_calls=1) + (Amount() if refused else world.state(child).spent)
    assert _rounded(world.state(run_id).spent) == _rounded(spent), run_id


def _rounded(amount: Amount) -> Amount:
    """Dollars are sums of floats, made in another order."""
    return replace(amount, usd=round(amount.usd, 9))


def _check_caps(world: FamilyWorld, run_id: str) -> None:
    """At no record is more spent and reserved than the caps allow, and no child may spend more than its reserve."""
    records, money = world.logs[run_id], dict[str, Amount]()
    limits = world.state(run_id).limits
    for record in records:
        money |= record.money
        assert crossed(limits, total_of(money.values())) is None, (run_id, record.key)
        if isinstance(record.event, SubagentStarted) and limits.max_cost_usd is not None:
            child = world.logs[record.event.child_run_id][0].event
            reserved = record.money[record.key.removesuffix("/call")].usd
            assert not isinstance(child, RunCreated) or child.limits.max_cost_usd == reserved


TIME_TO_SAY = 2_000  # ms before the end of the parent; what a child says later than that nobody may hear any more


def outcomes(world: FamilyWorld) -> dict[str, Any]:
    """What came of each call of the boss, and its answer."""
    said = {
        record.key: (record.event.type, getattr(record.event, "text", getattr(record.event, "output", "")))
        for record in world.records
        if record.key.endswith("/result")
    }
    return {**said, "end": (world.records[-1].type, world.state().text)}


def answered(world: FamilyWorld) -> list[str]:
    return [record.event.text for record in world.records if isinstance(record.event, SubagentCompleted)]


DOWN = ModelError("unauthorized", "the key is wrong", retryable=False)
