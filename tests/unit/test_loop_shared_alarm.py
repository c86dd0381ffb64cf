"""One alarm for the runs of an object: who rings when, beside whom, and what a crash leaves of it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from edge_agent.core import keys
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.shared_alarm import SharedAlarm
from edge_agent.loop.walk import Slice
from edge_agent.storage.alarms import SqlAlarms
from edge_agent.storage.sql import Value, in_memory
from edge_agent.testing import VirtualClock, in_virtual_time
from edge_agent.testing.virtual_time import BEGIN

OWN = "boss"
ONE, TWO = (keys.child(OWN, f"s1/r1/c{number}", inline=True) for number in range(2))
Work = Callable[[Slice], Coroutine[Any, Any, None]]


class Platform:
    """The alarm that the object has: the times it was set to, in ms since virtual time began."""

    def __init__(self) -> None:
        self.set_to: list[int] = []

    def set(self, at: int) -> None:
        self.set_to.append(at - BEGIN)


class Object:
    """What outlives its instances, and the one that lives. `work`: what a run does in a slice."""

    def __init__(self, **work: Work) -> None:
        self.sql, self.platform, self.clock = in_memory(), Platform(), VirtualClock()
        self.work = {{"own": OWN, "one": ONE, "two": TWO}[name]: does for name, does in work.items()}
        self.rang: list[tuple[str, int]] = []
        self.restart()

    def restart(self) -> None:
        kept, budget = SqlAlarms(self.sql), SliceBudget(seconds=60, effects=3)
        self.alarm = SharedAlarm(OWN, self.platform, kept, self.clock, budget)

    async def wakes_up(self) -> None:
        """The first time that an instance rings, its own run does, in vain."""

        async def nothing(run_id: str, slice_: Slice) -> None:
            pass

        await self.alarm.ring(nothing)

    def now(self) -> int:
        return self.clock.now() - BEGIN

    def set(self, run_id: str, seconds: float = 0.0) -> None:
        self.alarm.of(run_id).set(self.clock.now() + int(seconds * 1000))

    async def ring(self) -> None:
        await self.alarm.ring(self._slice)

    async def _slice(self, run_id: str, slice_: Slice) -> None:
        self.rang.append((run_id, self.now()))
        await self.work[run_id](slice_)

    def kept(self) -> dict[str, int]:
        return {run_id: at - BEGIN for run_id, at in SqlAlarms(self.sql).times().items()}

    def tables(self) -> list[tuple[Value, ...]]:
        return self.sql.run("select name from sqlite_master")


def takes(seconds: float, then: Callable[[], None] = lambda: None, effects: int = 0) -> Work:
    async def work(slice_: Slice) -> None:
        slice_.effects += effects
        await asyncio.sleep(seconds)
        then()

    return work


def test_those_that_are_due_ring_side_by_side_and_the_others_not_yet() -> None:
    async def scene() -> None:
        object_ = Object(own=takes(0), one=takes(2), two=takes(2))
        object_.set(ONE)
        object_.set(TWO)
        object_.set(OWN, 50)
        await object_.ring()
        assert object_.rang == [(ONE, 0), (TWO, 0)]
        assert (object_.now(), object_.platform.set_to[-1]) == (2_000, 50_000)

    in_virtual_time(scene())


def test_one_that_is_woken_begins_at_once_beside_a_slice_under_way() -> None:
    async def scene() -> None:
        object_ = Object(own=takes(1), one=takes(2, lambda: object_.set(OWN)), two=takes(30))
        await object_.wakes_up()
        object_.set(ONE)
        object_.set(TWO)
        await object_.ring()
        assert object_.rang[2:] == [(OWN, 2_000)]
        assert object_.now() == 30_000

    in_virtual_time(scene())


def test_one_that_is_woken_in_its_own_slice_rings_again_after_it_and_where_it_is_alone_in_the_next_handler() -> None:
    async def scene() -> None:
        object_ = Object(own=takes(1, lambda: object_.set(OWN)))
        await object_.wakes_up()
        object_.set(OWN)
        await object_.ring()
        assert (object_.rang, object_.platform.set_to) == ([(OWN, 0)], [0, 1_000])
        object_ = Object(own=takes(1), one=takes(1, lambda: object_.set(ONE, -0.5)), two=takes(1.5))
        await object_.wakes_up()
        object_.set(ONE)
        object_.set(TWO)
        await object_.ring()
        assert object_.rang == [(ONE, 1_000), (TWO, 1_000), (ONE, 2_000)]

    in_virtual_time(scene())


def test_one_whose_time_comes_while_another_is_at_work_does_not_wait_for_it() -> None:
    async def scene() -> None:
        object_ = Object(own=takes(0), one=takes(30))
        object_.set(ONE)
        object_.set(OWN, 5)
        await object_.ring()
        assert object_.rang == [(ONE, 0), (OWN, 5_000)]

    in_virtual_time(scene())


@pytest.mark.parametrize("long,effects", [(1, 3), (61, 1)])
def test_where_the_budget_is_used_up_one_that_is_woken_begins_and_comes_back_each_second_until_the_others_have_ended(
    long: int, effects: int
) -> None:
    async def scene() -> None:
        object_ = Object(one=takes(long, lambda: object_.set(OWN), effects), two=takes(90))

        async def yields(slice_: Slice) -> None:
            assert slice_.spent(object_.clock.now()) == (object_.now() < 90_000), "the next handler has a new budget"
            object_.set(OWN)

        object_.work[OWN] = yields
        await object_.wakes_up()
        object_.set(ONE)
        object_.set(TWO)
        await object_.ring()
        assert object_.rang == [(ONE, 0), (TWO, 0), *((OWN, at * 1_000) for at in range(long, 90))]
        assert object_.platform.set_to[-1] <= 91_000
        await asyncio.sleep(1)
        await object_.ring()
        assert object_.rang[-1] == (OWN, 91_000)

    in_virtual_time(scene())


def test_a_time_to_come_does_not_take_the_place_of_the_alarm_that_brings_back_a_slice_under_way() -> None:
    async def scene() -> None:
        object_ = Object(own=takes(1, lambda: object_.set(OWN, 600)), one=takes(30))
        object_.set(OWN)
        object_.set(ONE)
        before = len(object_.platform.set_to)
        ringing = asyncio.ensure_future(object_.ring())
        await asyncio.sleep(20)
        assert object_.platform.set_to[before:] == [], "a crash now would ring at once"
        await ringing
        assert object_.platform.set_to[before:] == [601_000]

    in_virtual_time(scene())


def test_a_new_instance_rings_its_own_run_and_those_whose_time_has_come_or_who_were_at_work() -> None:
    async def scene() -> None:
        object_ = Object(own=takes(0), one=takes(99), two=takes(0))
        object_.set(ONE)
        object_.set(TWO, 600)
        dying = asyncio.ensure_future(object_.ring())
        await asyncio.sleep(1)
        dying.cancel()
        object_.restart()
        object_.rang.clear()
        object_.work[ONE] = takes(1)
        await object_.ring()
        assert object_.rang == [(OWN, 1_000), (ONE, 1_000)]
        assert object_.kept() == {TWO: 600_000}
        assert object_.platform.set_to[-1] == 600_000
        object_.rang.clear()
        await object_.ring()
        assert object_.rang == [], "the same instance knows that nobody is due"

    in_virtual_time(scene())


def test_an_object_with_only_its_own_run_keeps_nothing_and_sets_each_time_once() -> None:
    async def scene() -> None:
        object_ = Object(own=takes(1, lambda: object_.set(OWN, 600)))
        object_.set(OWN)
        await object_.ring()
        assert object_.platform.set_to == [0, 601_000]
        assert object_.tables() == []

    in_virtual_time(scene())
