"""One walk through a run: what is on record is returned, what is not is decided, done and recorded, once.

The laws of the log live here. A verdict is a record. A miss is a frontier only when every record made by the loop was
walked; else the code has drifted and nothing is done. Effects are tasks of their own, so that a cancel ends them and
never the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from edge_agent.core import keys
from edge_agent.core.errors import ConfigError, Drift
from edge_agent.core.events import Log, ModelRefused, ModelRequested, OfferedTools, RecordedEvent, RunCreated
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.ports import Clock, Send, Sink, StoredFile
from edge_agent.core.price import Price
from edge_agent.core.signals import Cancelled, Suspend, Yield
from edge_agent.core.skills_in_play import InPlay
from edge_agent.core.tooling import Tools
from edge_agent.loop.estimates import Estimates
from edge_agent.loop.offer import Offers
from edge_agent.loop.prompt_hash import PromptHashes

T = TypeVar("T")
E = TypeVar("E", bound=RecordedEvent)
PARALLEL_CALLS = 5  # the platform allows six connections at a time; one is left for the clients' side


class Cut(Exception):
    """An effect was stopped half-way by a cancel: its outcome is unknown."""


class Stray(Exception):
    """An effect ended as if cancelled, and nobody had cancelled it: something it waited for was."""


class Effects:
    """What leaves the object right now, by the key it was begun for."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Any], str] = {}
        self._cut: set[asyncio.Task[Any]] = set()

    async def run(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        """Raises Cut when it was cancelled through `cut`, and Stray when it was cancelled by nobody."""
        task = asyncio.ensure_future(work)
        self._running[task] = key
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # the whole slice is ended from outside (in-process runs)
                raise
            if task in self._cut:
                raise Cut(key) from None
            raise Stray("something it waited for was cancelled") from None
        finally:
            self._running.pop(task)
            self._cut.discard(task)

    def cut(self, scope: str | None = None) -> None:
        """All of them, or those of a scope."""
        hit = [task for task, key in self._running.items() if scope is None or key.startswith(f"{scope}/")]
        self._cut.update(task for task in hit if task.cancel())


def _no_faults(_schema: JsonObject, _value: Any) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What a walk works with. `model` raises ConfigError for a name that cannot be resolved.

    others: the agents that can be handed over to, with their tools, by name.
    secrets: what tools may ask for, by name. declared: every value that no event may hold; the journal masks records,
    and the stream of a model's text is held back where one may be beginning. faults: what is wrong with a value by a
    JSON Schema, a sentence each.
    forbidden: the deny rules of the deployment as it is now. approval_seconds: how long a person is waited for, None:
    for ever. can_ask: False where there is nobody; to ask is to deny then.
    """

    clock: Clock
    sink: Sink
    agent: AgentSpec
    others: Mapping[str, tuple[AgentSpec, Tools]] = field(default_factory=dict[str, tuple[AgentSpec, Tools]])
    model: Callable[[str], Model]
    tools: Tools
    effects: Effects = field(default_factory=Effects)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    declared: Sequence[str] = field(default=(), repr=False)
    context_window: int = 128_000
    price: Callable[[str], Price | None] = lambda name: None  # noqa: ARG005 - nothing is known of any model
    max_retries: int = 2
    forbidden: Sequence[str] = ()
    approval_seconds: float | None = 86_400
    can_ask: bool = True
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    faults: Callable[[JsonObject, Any], Sequence[str]] = _no_faults


@dataclass(slots=True, kw_only=True)
class Slice:
    """How long this walk may go on: until `until` (ms since the epoch) or `most` effects, but always for one effect."""

    until: int
    most: int
    effects: int = 0

    def spent(self, now: int) -> bool:
        return self.effects > 0 and (now >= self.until or self.effects >= self.most)


class Walk:
    def __init__(self, run_id: str, journal: Journal, ports: Ports, slice_: Slice) -> None:
        self.run_id, self.journal, self.ports, self.slice = run_id, journal, ports, slice_
        self.created: RunCreated = journal.created
        self.agent, self.tools = ports.agent, ports.tools
        self.estimates, self.hashes, self.offers, self.skills = Estimates(), PromptHashes(), Offers(), InPlay()
        self._unwalked = {key: record for key, record in journal.records.items() if record.by == "loop"}
        self._slots = asyncio.Semaphore(PARALLEL_CALLS)
        self._tools_taken_in = False
        self._warned: set[str] = set()

    def hand_over(self, name: str | None) -> None:
        """The next rounds are this agent's; None: the run's own again. Raises ConfigError for one the code has lost."""
        if name is None or name == self.ports.agent.name:
            agent, tools = self.ports.agent, self.ports.tools
        elif name in self.ports.others:
            agent, tools = self.ports.others[name]
        else:
            fault = f"the agent {name}, which this run was handed to, is no longer in the code"
            raise ConfigError("agents", fault, f'Agent(name="{name}")')
        if tools is not self.tools:
            self._tools_taken_in = False
        self.agent, self.tools = agent, tools

    @property
    def models(self) -> tuple[str, ...]:
        """Of the agent whose turn it is."""
        return self.created.models if self.agent is self.ports.agent else self.agent.models or self.created.models

    # -- reading what is on record
    def seen(self, key: str, *kinds: type[E]) -> E | None:
        """What was recorded under `key`. Raises Drift when it is of another kind."""
        self._unwalked.pop(key, None)
        record = self.journal.records.get(key)
        if record is None:
            return None
        if not isinstance(record.event, kinds):
            raise Drift(f"{key} holds {record.type}, which this code does not expect there")
        return record.event

    def kept(self, key: str, *kinds: type[E]) -> E:
        """What is recorded under `key`, as it was kept: without secrets. KeyError where nothing is."""
        event = self.seen(key, *kinds)
        if event is None:
            raise KeyError(key)
        return event

    def pass_over(self, scope: str, *, but: str | None = None) -> None:
        """The records under `scope` have come to their end and need not be asked for one by one (those of `but` do)."""
        for key in self.journal.under.get(scope, ()):
            if but is None or not f"{key}/".startswith(f"{but}/"):
                self._unwalked.pop(key, None)

    async def over(
        self,
        scope: str,
        work: Callable[[], Awaitable[object]],  # noqa: ARG002 - only a replay enters it
        *,
        but: str | None = None,
    ) -> None:
        """A scope with its outcome on record is not entered again: its `work` is passed over."""
        self.pass_over(scope, but=but)

    def met(
        self,
        key: str,
        asked: ModelRequested | ModelRefused | None,
        build: Callable[[], ModelRequest],
        tools: OfferedTools | None,
    ) -> None:
        """An attempt, on record or to be made: a replay looks at its prompt. `tools`: what its boundary offers."""

    def has(self, key: str) -> bool:
        return key in self.journal.records

    # -- the frontier
    def warn(self, message: str) -> None:
        """Told to whoever follows: once in a walk, in however many rounds it is true."""
        if message not in self._warned:
            self._warned.add(message)
            self.ports.sink.passing(Log(level="warning", message=message))

    def frontier(self, key: str) -> None:
        """Nothing may be recorded or done while recorded work is left that this walk did not ask for."""
        if self._unwalked:
            first = min(self._unwalked.values(), key=lambda record: record.seq)
            raise Drift(f"the code asks for {key}, but the log goes on with {first.key} ({first.type})")

    def write(self, *drafts: Draft, files: Sequence[StoredFile] = (), sends: Sequence[Send] = ()) -> None:
        """Records a verdict or an outcome, and in the same append what means something only together with it."""
        self.frontier(drafts[0].key)
        self.journal.append("loop", *drafts, files=files, sends=sends)

    def ready(self) -> None:
        """Raises Cancelled when a cancel is on record: nothing begins after it."""
        if self.cancelled():
            raise Cancelled

    def cancelled(self) -> bool:
        return keys.cancel(self.journal.life) in self.journal.records

    def step_cancelled(self, key: str) -> bool:
        """Whether the step that `key` lies in was cancelled. Spent with the step's end: its replan runs."""
        step = key.split("/", 1)[0]
        return keys.cancel_step(step) in self.journal.records and f"{step}/end" not in self.journal.records

    def before_effect(self, key: str) -> None:
        """Raises Yield when the slice is used up; an effect that passes is counted."""
        self.frontier(key)
        if self.slice.spent(self.ports.clock.now()):
            raise Yield
        self.slice.effects += 1

    async def effect(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        return await self.ports.effects.run(key, work)

    async def take_in_tools(self, key: str, *, again: bool) -> tuple[str, ...]:
        """Connects to the tools' servers; a walk through recorded rounds never does. `again`: also when this walk did
        so before.

        Returns a sentence for each server that could not be reached."""
        if self._tools_taken_in and not again:
            return ()
        self._tools_taken_in = True
        try:
            return await self.effect(key, self.tools.refresh())
        except Cut:
            self.ready()  # of the run; a step that was cancelled goes on to record it
            return ()

    def in_this_life(self, key: str) -> bool:
        """Failures and forbidden outcomes of earlier lives end nothing any more: the run was resumed after them; nor do
        those a fork has inherited."""
        record = self.journal.records[key]
        return record.life == self.journal.life and record.seq > self.created.inherited

    # -- side by side
    async def side_by_side(self, work: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
        """Siblings always finish, and their records are made, before one of them may let go of the run.

        An error wins over a yield, a yield over the union of the waits."""

        async def one(job: Callable[[], Awaitable[T]]) -> T:
            async with self._slots:
                return await job()

        results = await asyncio.gather(*(one(job) for job in work), return_exceptions=True)
        raised = [result for result in results if isinstance(result, BaseException)]
        for error in raised:
            if not isinstance(error, Suspend | Yield):
                raise error
        if any(isinstance(error, Yield) for error in raised):
            raise Yield
        if raised:
            raise Suspend(*(wait for error in raised if isinstance(error, Suspend) for wait in error.waits))
        return [result for result in results if not isinstance(result, BaseException)]
