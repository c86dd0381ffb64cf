"""Runs and their subagents on virtual time, each in its own object or inline, and the network between them."""

import asyncio
from collections.abc import Callable, Iterable
from contextvars import Context
from functools import partial

from edge_agent.core import keys
from edge_agent.core.errors import Refusal
from edge_agent.core.events import RunCreated
from edge_agent.core.listing import DIRECTORY
from edge_agent.core.ports import Send
from edge_agent.deployment import Deployment
from edge_agent.kin_objects import receive
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.kin import TO_RUN, turned_away
from edge_agent.testing.faults import Faults, Killed
from edge_agent.testing.post import Receiver, SimulatedPost, Trouble
from edge_agent.testing.simulated import Instance, SimulatedObject, SimulatedRun

LONGEST = 86_400  # seconds that runs may take to come to rest


class SimulatedRuns:
    """Runs of a deployment. Use it inside of `in_virtual_time`.

    faults: which appends of a run kill its object, by its id. troubles: see SimulatedPost. on_instance is called with
    the id of a run and each new instance of it. reports: what the directory was told."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        faults: Callable[[str], Faults] = lambda _: Faults(),
        vanish: bool = True,
        troubles: Iterable[Trouble] = (),
        slice_budget: SliceBudget | None = None,
        on_instance: Callable[[str, Instance], None] = lambda _run, _instance: None,
    ) -> None:
        self._deployment, self._faults, self._vanish = deployment, faults, vanish
        self._slice_budget, self._on_instance = slice_budget, on_instance
        self.post = SimulatedPost(self._receiver, troubles)
        self.reports: list[Send] = []
        self.runs: dict[str, SimulatedRun] = {}
        self._objects: dict[str, SimulatedObject] = {}
        self._driving: list[asyncio.Task[None]] = []

    def of(self, run_id: str) -> SimulatedRun:
        """There from the first time that somebody asks for it."""
        if run_id not in self.runs:
            faults, on_instance = self._faults(run_id), partial(self._on_instance, run_id)
            whose = keys.object_of(run_id)
            if whose == run_id:
                self.runs[run_id] = self._objects[run_id] = self._object(run_id, faults, on_instance)
            else:
                self.of(whose)
                self.runs[run_id] = self._objects[whose].inline(run_id, faults, on_instance)
        return self.runs[run_id]

    def _object(self, run_id: str, faults: Faults, on_instance: Callable[[Instance], None]) -> SimulatedObject:
        made = SimulatedObject(
            run_id,
            lambda it: self._deployment.ports(it.journal.created, it.hub, it.journal.clock),
            faults=faults,
            vanish=self._vanish,
            slice_budget=self._slice_budget,
            mask=self._deployment.mask,
            on_instance=on_instance,
            post=self.post,
        )
        drive = asyncio.get_running_loop().create_task(made.until(lambda: False), context=Context())
        self._driving.append(drive)
        return made

    async def start(self, run_id: str, created: RunCreated) -> None:
        await self.of(run_id).call(lambda inbox: inbox.create(created, "", idempotent=True))

    async def at_rest(self) -> None:
        """Returns when every run has ended and said all it had to say. Raises what has ended the driver of one."""
        for _ in range(LONGEST):
            failed = [task.exception() for task in self._driving if task.done()]
            if failed and failed[0] is not None:
                raise failed[0]
            told = all(made.has_ended() and not made.log.outbox() for made in self.runs.values())
            if told and self.post.is_quiet:
                return
            await asyncio.sleep(1)
        raise AssertionError("the runs do not come to rest")

    def _receiver(self, destination: str) -> Receiver:
        return self._listed if destination == DIRECTORY else self._receive

    async def _listed(self, send: Send) -> None:
        self.reports.append(send)

    async def _receive(self, send: Send) -> None:
        """Whoever sends to an object that dies of it hears nothing."""

        def hand_in(inbox: Inbox) -> None:
            receive(inbox, send.method, send.arguments)

        try:
            await self.of(send.destination.removeprefix(TO_RUN)).call(hand_in, again=False)
        except Killed:
            raise ConnectionError("the object died") from None
        except Refusal as no:  # an answer as well
            if told := turned_away(send, no.message):
                await self._receive(told)
