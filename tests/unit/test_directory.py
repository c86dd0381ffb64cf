"""What spans runs, in memory: reports over a bad network, the directory's shards, the erasure of a run."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from edge_agent.core import keys
from edge_agent.core.errors import Refusal
from edge_agent.core.events import QuestionAsked, RunCreated
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.journal import is_terminal
from edge_agent.core.limits import Limits
from edge_agent.core.listing import DIRECTORY, Listing, ModelUse, listing_of, shard_of
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record, Send
from edge_agent.core.usage import Usage
from edge_agent.loop.fork import kept, numbered, up_to
from edge_agent.loop.walk import Ports
from edge_agent.storage.directory import REMEMBERED_MS, SqlDirectory
from edge_agent.storage.sql import in_memory
from edge_agent.testing import (
    Answer,
    Faults,
    Kill,
    MemoryDirectory,
    ScriptedModel,
    SimulatedObject,
    SimulatedPost,
    VirtualClock,
    in_virtual_time,
)
from edge_agent.testing.post import Trouble
from edge_agent.tool import tool
from edge_agent.tools.toolbox import Toolbox

DAY = 86_400_000
NOON = 1_764_504_000_000  # 2025-11-30T12:00Z
TROUBLES: tuple[Trouble, ...] = ("lost", "unanswered", "doubled", "late")


def listing(run_id: str = "r1", seq: int = 1, created: int = NOON, **other: Any) -> JsonObject:
    fields: dict[str, Any] = {"agent": "a", "status": "running", "updated": created, "title": "t", **other}
    return asdict(Listing(run_id=run_id, seq=seq, created=created, **fields))


def use(model: str, tokens: int, usd: float = 0.0) -> ModelUse:
    return ModelUse(model=model, usage=Usage(input=tokens, output=2 * tokens), cost_usd=usd)


def ids(page: Sequence[JsonObject]) -> list[str]:
    return [run["run_id"] for run in page]


# -- one shard
def test_asking_a_directory_that_nobody_told_anything_leaves_nothing_behind() -> None:
    sql = in_memory()
    directory = SqlDirectory(sql)
    assert directory.page(limit=10) == []
    assert directory.active() == 0
    assert directory.usage(by="day") == {"total": None, "groups": {}}
    assert sql.run("select name from sqlite_master") == []


def test_of_two_reports_the_later_one_counts_in_whatever_order_they_come() -> None:
    directory = SqlDirectory(in_memory())
    first, last = listing(seq=1), listing(seq=9, status="completed", uses=(use("m", 5),))
    for told in (last, first, last, first):
        directory.report(told)
    assert [run["status"] for run in directory.page(limit=10)] == ["completed"]
    assert directory.usage()["total"]["input"] == 5
    assert directory.active() == 0


def test_pages_go_back_in_time_and_nothing_new_moves_them() -> None:
    directory = SqlDirectory(in_memory())
    for number in range(10):
        directory.report(listing(f"r{number}", created=NOON + number // 2))
    first = directory.page(limit=4)
    assert ids(first) == ["r9", "r8", "r7", "r6"]
    directory.report(listing("new", created=NOON + 99))
    directory.report(listing("r3", seq=7, created=NOON + 1, status="completed"))
    rest = directory.page(limit=10, before=(first[-1]["created"], first[-1]["run_id"]))
    assert ids(rest) == ["r5", "r4", "r3", "r2", "r1", "r0"]


def test_a_page_may_ask_for_a_status_and_an_agent() -> None:
    directory = SqlDirectory(in_memory())
    for number, (status, agent) in enumerate([("running", "a"), ("completed", "a"), ("completed", "b")]):
        directory.report(listing(f"r{number}", status=status, agent=agent))
    assert ids(directory.page(limit=9, status="completed")) == ["r2", "r1"]
    assert ids(directory.page(limit=9, status="completed", agent="a", before=(NOON, "r2"))) == ["r1"]
    assert directory.active() == 1


def test_what_runs_used_is_summed_by_agent_by_day_and_by_model() -> None:
    directory = SqlDirectory(in_memory())
    directory.report(listing("r1", agent="a", uses=(use("x", 1, 0.25), use("y", 2))))
    directory.report(listing("r2", agent="b", created=NOON + DAY, uses=(use("x", 4, 0.5),)))
    directory.report(listing("r3", agent="b", created=NOON + DAY))
    total = directory.usage()["total"]
    assert (total["runs"], total["input"], total["output"], total["cost_usd"]) == (3, 7, 14, 0.75)
    by_agent = directory.usage(by="agent")["groups"]
    assert {name: (spent["runs"], spent["input"]) for name, spent in by_agent.items()} == {"a": (1, 3), "b": (2, 4)}
    assert {day: spent["runs"] for day, spent in directory.usage(by="day")["groups"].items()} == {
        "2025-11-30": 1,
        "2025-12-01": 2,
    }
    by_model = directory.usage(by="model")["groups"]
    assert {name: spent["input"] for name, spent in by_model.items()} == {"": 0, "x": 5, "y": 2}
    assert directory.usage(since=NOON + 1)["total"]["runs"] == 2


def test_a_forgotten_run_is_listed_no_more_whatever_comes_late_and_what_it_used_still_counts() -> None:
    sql = in_memory()
    directory = SqlDirectory(sql)
    directory.report(listing("r1", seq=2, title="a secret"))
    last = listing("r1", seq=9, status="cancelled", title="a secret", uses=(use("m", 5, 0.5),))
    for _ in range(2):
        directory.forget(last, NOON)
        directory.report(listing("r1", seq=12, title="a secret", uses=(use("m", 99),)))
    assert directory.page(limit=9) == []
    total = directory.usage(by="agent")["total"]
    assert (total["runs"], total["input"], total["cost_usd"]) == (1, 5, 0.5)
    assert not any("secret" in str(row) for table in ("run", "spent") for row in sql.run(f"select * from {table}"))
    assert sql.run("select * from spent where run_id = 'r1'") == []
    directory.forget(listing("r2"), NOON + REMEMBERED_MS + 1)
    assert sql.run("select run_id from forgotten") == [("r2",)]


def test_the_ids_of_runs_fall_evenly_to_the_shards() -> None:
    counts = [0] * 16
    for number in range(4_000):
        counts[shard_of(f"run-{number}")] += 1
    assert min(counts) > 150


# -- runs that tell
@tool
async def charge() -> str:
    """Charge."""
    await asyncio.sleep(0.5)
    return "charged"


@tool(on_unknown="ask")
async def transfer() -> str:
    """Move money."""
    await asyncio.sleep(0.5)
    return "moved"


@dataclass
class World:
    """One run over a network with troubles, and the directory it tells."""

    run: SimulatedObject
    post: SimulatedPost
    directory: MemoryDirectory

    async def create(self, task: str = "do it") -> None:
        created = RunCreated(version=keys.VERSION, input=task, agent_name="a", models=("m",), limits=Limits())
        await self.run.call(lambda inbox: inbox.create(created, "print", idempotent=True))

    async def listed(self) -> list[JsonObject]:
        return [run for shard in await self.directory.ask("page", {"limit": 99}) for run in shard["runs"]]

    async def used(self) -> int:
        """Output tokens of all runs."""
        totals = [shard["total"] for shard in await self.directory.ask("usage", {})]
        return sum(total["output"] for total in totals if total)

    @property
    def told(self) -> list[str]:
        return [send.arguments["status"] for send in self.post.tries]


def world(
    *,
    troubles: Sequence[Trouble] = (),
    kills: Sequence[Kill] = (),
    tools: Sequence[Any] = (charge,),
    down_seconds: float = 0,
    slow: bool = False,
    hangs: bool = False,
) -> World:
    directory = MemoryDirectory(VirtualClock())

    async def receive(send: Send) -> None:
        if asyncio.get_running_loop().time() < down_seconds:
            raise ConnectionError("down")
        if hangs:
            await asyncio.Event().wait()
        if slow:
            await asyncio.sleep(3)
        await directory.receive(send)

    post = SimulatedPost({DIRECTORY: receive}, troubles)
    name = tools[0].spec.name
    answers = [Answer(calls=((name, {}),), delay=0.3), Answer(text="Done.", delay=0.3)]
    model = ScriptedModel(answers=[*answers], by_turn=True)
    toolbox = Toolbox(tools)

    def ports(instance: Any) -> Ports:
        agent = AgentSpec(name="a", instructions="")
        return Ports(clock=run.clock, sink=instance.hub, agent=agent, model=lambda _: model, tools=toolbox)

    run = SimulatedObject("run-1", ports, faults=Faults(frozenset(kills)), post=post)
    return World(run, post, directory)


def test_a_run_tells_when_it_is_created_and_when_it_ends_and_then_sets_no_alarm_any_more() -> None:
    async def scene() -> None:
        here = world()
        await here.create()
        await here.run.until_told()
        assert here.told == ["queued", "completed"]
        (listed,) = await here.listed()
        expected = listing_of("run-1", here.run.log.load())
        assert listed["seq"] == expected.seq
        assert (listed["status"], listed["title"]) == ("completed", "do it")
        assert await here.used() == sum(use.usage.output for use in expected.uses) > 0
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(here.run.until(lambda: False), 7 * DAY / 1000)
        assert here.run.rings <= 2

    in_virtual_time(scene())


@pytest.mark.parametrize("seed", range(40))
def test_a_report_that_is_lost_doubled_or_late_counts_once(seed: int) -> None:
    async def scene() -> None:
        draw = random.Random(seed)
        here = world(troubles=[draw.choice(TROUBLES) for _ in range(draw.randrange(1, 12))])
        await here.create()
        await here.run.until_told()
        await here.post.settled()
        (listed,) = await here.listed()
        assert listed["status"] == "completed"
        assert await here.used() == sum(u.usage.output for u in listing_of("run-1", here.run.log.load()).uses)

    in_virtual_time(scene())


def test_an_object_that_dies_at_any_append_still_tells_the_end() -> None:
    async def scene(number: int) -> int:
        kills = [Kill(number, when) for when in ("before", "after")]
        here = world(kills=kills, troubles=["lost"], tools=(charge,))
        await here.create()
        await here.run.until_told()
        (listed,) = await here.listed()
        assert listed["status"] == "completed", number
        assert listed["seq"] == len(here.run.log.load())
        return here.run.faults.deaths

    assert sum(in_virtual_time(scene(number)) for number in range(1, 12)) > 8


def test_a_directory_that_is_down_for_an_hour_is_asked_once_a_minute_and_no_run_waits_for_it() -> None:
    async def scene() -> None:
        here = world(down_seconds=3_600)
        await here.create()
        await here.run.until_ended()
        assert asyncio.get_running_loop().time() < 5
        await here.run.until_told()
        assert 60 < len(here.post.tries) < 160
        assert [run["status"] for run in await here.listed()] == ["completed"]

    in_virtual_time(scene())


def test_what_two_pump_at_once_is_sent_once() -> None:
    async def scene() -> None:
        here = world(slow=True)
        await here.create()
        outbox = here.run.instance.driver.outbox
        await asyncio.gather(outbox.pump(), outbox.pump(), outbox.pump())
        assert here.told == ["queued"]

    in_virtual_time(scene())


def test_a_directory_that_hangs_keeps_no_run_from_working() -> None:
    async def scene() -> None:
        here = world(hangs=True, tools=(transfer,), kills=[Kill(6, "after")])
        await here.create()
        working = asyncio.ensure_future(here.run.until_ended())
        await asyncio.sleep(5)  # of virtual time: the run waits for a person, and its slice for the directory
        question = next(r.event for r in here.run.log.load() if isinstance(r.event, QuestionAsked))
        await here.run.call(lambda inbox: inbox.answer(question.question_id, "happened"))
        answered = here.run.clock.now()
        await working
        assert here.run.log.load()[-1].at - answered < 1_000
        assert [unsent.send.arguments["status"] for unsent in here.run.log.outbox()][-1] == "completed"

    in_virtual_time(scene())


def test_a_wait_for_a_person_is_listed_and_so_is_its_end() -> None:
    async def scene() -> None:
        here = world(tools=(transfer,), kills=[Kill(6, "after")])
        await here.create()
        await here.run.until(lambda: "waiting" in here.told)
        assert [run["status"] for run in await here.listed()] == ["waiting"]
        question = next(r.event for r in here.run.log.load() if isinstance(r.event, QuestionAsked))
        await here.run.call(lambda inbox: inbox.answer(question.question_id, "happened"))
        await here.run.until_told()
        assert here.told == ["queued", "waiting", "running", "completed"]

    in_virtual_time(scene())


def test_a_fork_is_listed_with_what_it_used_itself() -> None:
    async def scene() -> None:
        here, its = world(), world()
        await here.create()
        await here.run.until_told()
        taken = kept(up_to(here.run.log.load(), 5))
        records = numbered(here.run.instance.journal.created, "run-1", 5, taken, its.run.clock.now())
        its.run.instance.driver.wake()
        its.run.instance.journal.begin(records, {"run_id": "run-1"})
        await its.run.until_told()
        (listed,) = await its.listed()
        assert (its.told, listed["status"]) == (["queued", "completed"], "completed")
        assert await its.used() == await here.used() / 2, "the first of the two calls was the other run's"

    in_virtual_time(scene())


# -- erasure
@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize("troubled", [False, True])
def test_a_run_that_is_deleted_at_any_moment_leaves_a_tombstone_and_nothing_else(after: int, troubled: bool) -> None:
    async def scene() -> None:
        here = world(troubles=["lost", "late", "doubled", "unanswered"] if troubled else [])
        await here.create("a secret")
        deleted = asyncio.Event()
        ends: list[str] = []

        def watch(items: Sequence[Any]) -> None:
            ends.extend(item.type for item in items if isinstance(item, Record) and is_terminal(item))
            if len(here.run.instance.journal.records) >= after and not deleted.is_set():
                deleted.set()
                asyncio.get_running_loop().call_soon(here.run.instance.inbox.delete)

        here.run.instance.hub.follow(watch)
        watch([])
        await here.run.until_told()
        await here.post.settled()
        log = here.run.log
        assert log.erased()
        assert log.load() == []
        assert len(ends) == 1, "its followers are told that it is over"
        assert await here.listed() == []
        here.run.instance.inbox.delete()
        here.run.kill()
        assert here.run.instance.journal.erased
        assert not here.run.instance.journal.records
        with pytest.raises(Refusal) as refused:
            await here.create()
        assert (refused.value.status, refused.value.code) == (410, "run_deleted")
        for act in ("cancel", "resume"):
            with pytest.raises(Refusal, match="deleted"):
                getattr(here.run.instance.inbox, act)()

    in_virtual_time(scene())


def test_an_unknown_run_cannot_be_deleted_and_the_attempt_leaves_nothing() -> None:
    here = world()
    with pytest.raises(Refusal) as refused:
        here.run.instance.inbox.delete()
    assert refused.value.code == "unknown_run"
    assert not here.run.log.erased()
