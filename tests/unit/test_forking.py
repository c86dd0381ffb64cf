"""The way of a fork's records from one object to another: in pages, all or nothing, once."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from edge_agent import Agent, Limits, cpython, handoff, tool
from edge_agent.core.difference import Difference
from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.events import RunCreated
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Model
from edge_agent.deployment import Deployment
from edge_agent.forking import PAGE, SWEEP_MS, Taker, lend
from edge_agent.loop.conversation import conversation
from edge_agent.loop.fork import files_of, kept
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.storage.sql_log import Piece, SqlLog
from edge_agent.testing import SimulatedObject, in_virtual_time, record, replay
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.toolbox import ToolSource
from edge_agent.wire import export
from edge_agent.wire.http import ForkChanges, StartRun
from edge_agent.wire.settings import Settings
from tests.conftest import Figure
from tests.faults.memory_world import RUN, World
from tests.faults.test_memory_kills import SCENARIOS

BIG = next(s for s in SCENARIOS if s.name == "long output, files, structure")


class Gone(BaseException):
    """The object that takes was killed."""


@dataclass
class Lending:
    """The objects of runs, of which one has a log. `dies_at`: the number of the call in which the taker is killed."""

    world: World
    dies_at: int = 0
    calls: list[str] = field(default_factory=list[str])
    before: Callable[[], None] = lambda: None

    async def call(self, run_id: str, method: str, payload: JsonObject) -> JsonObject:
        await asyncio.sleep(0.01)
        self.calls.append(method)
        self.before()
        if len(self.calls) == self.dies_at:
            raise Gone
        if run_id != RUN:
            raise Refusal(404, "unknown_run", "There is no run with this id.")
        return lend(self.world.object.instance.journal, log_of(self.world.object), method, payload)


def log_of(simulated: SimulatedObject) -> SqlLog:
    assert isinstance(simulated.log, SqlLog)
    return simulated.log


def taker(simulated: SimulatedObject, objects: Lending) -> Taker:
    def configure(created: RunCreated, changes: ForkChanges) -> RunCreated:
        if changes.model == "bad/model":
            raise Refusal(422, "unknown_model", "There is no such model.")
        return replace(created, models=(changes.model or "m1",))

    inbox = simulated.instance.inbox
    return Taker(objects=objects, inbox=inbox, log=log_of(simulated), configure=configure)


def order(at: int, source: str = RUN, fingerprint: str = "print", **changes: Any) -> JsonObject:
    return {"source": source, "at": at, "changes": changes, "fingerprint": fingerprint, "idempotent": True}


def empty(source: World) -> SimulatedObject:
    return SimulatedObject("run-2", source.ports)


@pytest.fixture(scope="module")
def big() -> World:
    return World(BIG).lived()


def test_what_arrives_is_what_was_kept_with_its_files(big: World) -> None:
    async def work() -> None:
        forked, objects = empty(big), Lending(big)
        await taker(forked, objects).fork(order(len(big.records), model="a/b"))
        records = forked.log.load()
        assert [(r.key, r.event) for r in records[1:]] == [(r.key, r.event) for r in kept(big.records)]
        assert forked.instance.journal.created.models == ("a/b",)
        names = files_of(big.records)
        assert names
        for name in names:
            assert forked.log.file(name) == big.object.log.file(name)
        assert list(forked.log.load()) == forked.instance.journal.in_order()

    in_virtual_time(work())


def test_a_kill_at_every_message_leaves_no_run_and_the_next_request_makes_it(big: World, figure: Figure) -> None:
    async def work() -> None:
        calm = Lending(big)
        await taker(empty(big), calm).fork(order(len(big.records)))
        for number in range(1, len(calm.calls) + 1):
            forked = empty(big)
            with pytest.raises(Gone):
                await taker(forked, Lending(big, dies_at=number)).fork(order(len(big.records)))
            assert not forked.log.exists()
            assert forked.log.load() == []
            again = taker(forked, Lending(big))
            await again.fork(order(len(big.records)))
            assert forked.instance.journal.created.forked_from
        figure(f"{len(calm.calls)} kills")

    in_virtual_time(work())


def test_pieces_that_a_kill_has_left_are_swept_and_those_that_still_come_are_not(big: World) -> None:
    async def work() -> None:
        forked, objects = empty(big), Lending(big)
        made = taker(forked, objects)
        made.log.put_piece("left.bin", 0, Piece("a/b", b"x", 2))
        assert not made.log.exists()
        made.sweep()
        assert made.log.piece("left.bin", 0) is None
        objects.before = made.sweep
        await made.fork(order(len(big.records)))
        for name in files_of(big.records):
            assert forked.log.file(name) == big.object.log.file(name)
        made.sweep()
        assert forked.log.file(files_of(big.records)[0])

    in_virtual_time(work())


def test_an_object_with_pieces_and_no_run_has_its_alarm_set(big: World) -> None:
    async def work() -> None:
        forked = empty(big)
        with pytest.raises(Gone):
            await taker(forked, Lending(big, dies_at=3)).fork(order(len(big.records)))
        began = forked.clock.now()
        await forked.until(lambda: forked.rings > 0)
        assert forked.clock.now() - began <= SWEEP_MS

    in_virtual_time(work())


def test_a_page_has_at_least_one_record_and_few_more_characters_than_it_may(big: World) -> None:
    journal = big.object.instance.journal
    after: int | None = 0
    seen: list[str] = []
    while after is not None:
        page = lend(journal, log_of(big.object), "lend_records", {"at": len(big.records), "after": after})
        assert page["lines"]
        assert sum(map(len, page["lines"])) <= PAGE or len(page["lines"]) == 1
        seen, after = [*seen, *page["lines"]], page["next"]
    assert seen == [export.record_line(record) for record in big.records]


def test_two_requests_with_one_key_are_one_fork(big: World) -> None:
    async def work() -> None:
        forked, objects = empty(big), Lending(big)
        made = taker(forked, objects)
        asked = order(len(big.records))
        await asyncio.gather(made.fork(asked), made.fork(asked))
        times = len(objects.calls)
        await made.fork(asked)
        assert len(objects.calls) == times
        with pytest.raises(Refusal) as refusal:
            await made.fork({**asked, "fingerprint": "other"})
        assert refusal.value.code == "idempotency_conflict"

    in_virtual_time(work())


def test_a_run_that_begins_meanwhile_is_not_overwritten(big: World) -> None:
    async def work() -> None:
        forked, objects = empty(big), Lending(big)
        other = big.object.instance.journal.created
        objects.before = lambda: forked.instance.inbox.create(other, "other", idempotent=True)
        with pytest.raises(Refusal) as refusal:
            await taker(forked, objects).fork(order(len(big.records)))
        assert refusal.value.code == "idempotency_conflict"
        assert [record.key for record in forked.log.load()] == ["run"]

    in_virtual_time(work())


@pytest.mark.parametrize(
    "asked,code",
    [
        (order(1, source="nobody"), "unknown_run"),
        (order(10_000), "record_ahead"),
        (order(1, model="bad/model"), "unknown_model"),
    ],
)
def test_what_cannot_be_forked_leaves_nothing(big: World, asked: JsonObject, code: str) -> None:
    async def work() -> None:
        forked = empty(big)
        with pytest.raises(Refusal) as refusal:
            await taker(forked, Lending(big)).fork(asked)
        assert refusal.value.code == code
        assert not forked.log.exists()

    in_virtual_time(work())


# -- the configuration of a fork
@tool(read_only=True)
async def look(q: str) -> str:
    """Look something up."""
    return f"found {q}"


def deployment(*agents: Agent, **env: str) -> Deployment:
    def no_model(name: str, settings: Settings) -> Model:
        if name.startswith("nowhere/"):
            raise ConfigError("model", "there is no such provider", "openai/x")
        return ScriptedModel(answers=[])

    def no_source(name: str, server: McpServer, settings: Settings, user: str) -> ToolSource:
        raise AssertionError("no server is asked")

    return Deployment(
        agents, Settings.from_env({f"EDGE_AGENT_{k}": v for k, v in env.items()}), no_model, no_source, cpython.fetcher
    )


AGENT = Agent(name="a", model="openai/first", limits=Limits(max_steps=20), tools=[look])


def refused(changes: JsonObject, agent: Agent = AGENT) -> Refusal:
    created = deployment(AGENT).configure(StartRun(input="go"))
    with pytest.raises(Refusal) as refusal:
        deployment(agent).forked(created, ForkChanges.model_validate(changes))
    return refusal.value


def test_a_fork_changes_what_it_is_asked_to_and_nothing_else() -> None:
    made = deployment(AGENT)
    asked = StartRun.model_validate({"input": "go", "limits": {"max_steps": 3}, "metadata": {"ticket": 7}})
    created = made.configure(asked)
    assert made.forked(created, ForkChanges()) == created
    changes = {
        "model": "openai/second",
        "limits": {"max_steps": 20, "max_tool_calls": 5},
        "approval": "ask-all",
        "tool_rules": {"look": "deny"},
        "metadata": {"ticket": 8},
    }
    forked = made.forked(created, ForkChanges.model_validate(changes))
    assert forked.models == forked.planner_models == forked.synthesizer_models == ("openai/second",)
    assert (forked.limits.max_steps, forked.limits.max_tool_calls) == (20, 5)
    assert (forked.approval, forked.tool_rules) == ("ask-all", {"look": "deny"})
    assert forked.metadata == {"ticket": 8}
    assert (forked.input, forked.agent_name, forked.version, forked.mode) == ("go", "a", created.version, "direct")


def test_one_stage_of_a_fork_can_have_another_model() -> None:
    made = deployment(replace(AGENT, mode="planned"))
    created = made.configure(StartRun(input="go"))
    forked = made.forked(created, ForkChanges.model_validate({"models": {"planner": "openai/big"}}))
    assert (forked.models, forked.planner_models) == (created.models, ("openai/big",))
    assert forked.synthesizer_models == created.synthesizer_models


def test_a_fork_gets_no_more_than_its_agent_allows() -> None:
    assert refused({"limits": {"max_steps": 21}}).code == "limit_too_high"
    assert refused({"model": "nowhere/x"}).code == "unknown_model"
    assert refused({"approval": "autopilot"}, replace(AGENT, approval="ask-writes")).code == "approval_too_loose"
    assert refused({}, replace(AGENT, name="b")).code == "unknown_agent"


# -- the helpers for tests
def looking(**changes: Any) -> Agent:
    model = ScriptedModel(answers=[Answer(calls=(("look", {"q": "x"}),)), "found it"])
    return replace(Agent(name="a", model=model, tools=[look], instructions="Be kind."), **changes)


async def test_a_log_that_was_recorded_is_replayed_against_the_agent_as_it_is() -> None:
    log = await record(looking(), "go")
    assert await replay(looking(), log) is None
    assert await replay(looking(), log.encode()) is None
    cases: tuple[tuple[JsonObject, str | None, str | None], ...] = (
        ({"instructions": "Be brief."}, "prompt", "s1/r1/a0"),
        ({"tools": []}, "tools", "s1/r1/a0"),
        ({"mode": "planned"}, None, None),  # the mode is the log's
    )
    for changes, kind, key in cases:
        found = await replay(looking(**changes), log)
        assert (found and found.kind, found and found.key) == (kind, key)
    with pytest.raises(Refusal) as refusal:
        await replay(looking(name="b"), log)
    assert refusal.value.code == "unknown_agent"


async def test_a_log_that_no_run_can_have_made_is_refused() -> None:
    """Every attempt reserves its cost; here none does."""
    lines: list[JsonObject] = [json.loads(line) for line in (await record(looking(), "go")).splitlines()]
    attempt = next(number for number, line in enumerate(lines) if line.get("type") == "model.requested")
    poor: list[JsonObject] = [{**line, "money": {}} for line in lines[1 : attempt + 1]]
    with pytest.raises(Refusal) as refusal:
        await replay(looking(), "\n".join(map(json.dumps, [lines[0], *poor])))
    assert refusal.value.code == "not_a_log"


async def test_a_run_that_was_handed_over_is_replayed_and_recalled_with_each_agents_own_words() -> None:
    def team(**changes: Any) -> Agent:
        expert = ScriptedModel(name="expert", answers=[Answer(calls=(("look", {"q": "y"}),)), "it is blue"])
        target = replace(Agent(name="expert", model=expert, tools=[look], instructions="Know."), **changes)
        clerk = ScriptedModel(name="clerk", answers=[Answer(calls=(("transfer_to_expert", {"reason": "hard"}),))])
        return Agent(name="a", model=clerk, tools=[handoff(target)], instructions="Ask others.")

    log = await record(team(), "go")
    exported = export.read(log)
    assert exported.records[-1].type == "run.completed"
    assert await replay(team(), log) is None
    found = await replay(team(instructions="Guess."), log)
    assert found
    assert (found.kind, found.key) == ("prompt", "s1/r2/a0")
    found = await replay(looking(), log)
    assert found
    assert found.kind == "tools"
    said = await conversation("r", exported.records)
    assert [message.role for message in said] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]


async def test_the_tools_of_a_server_are_described_in_the_log_and_replayed_without_it() -> None:
    @tool(name="docs__find", read_only=True)
    async def find(q: str) -> str:
        """Find a page."""
        return f"page {q}"

    def reader(**changes: Any) -> Agent:
        model = ScriptedModel(answers=[Answer(calls=(("docs__find", {"q": "x"}),)), "found it"])
        return replace(Agent(name="a", model=model, tools=[find, look]), **changes)

    log = await record(reader(), "go")
    exported = export.read(log)
    (file,) = exported.files
    assert file.name.startswith("tools-")
    assert [entry["name"] for entry in json.loads(file.content)] == ["docs__find"]
    without = reader(tools=[look])  # a server's tools are not in the code
    assert await replay(without, log) is None
    assert (await replay(replace(without, instructions="Other."), log) or nothing()).kind == "prompt"
    lines = [line for line in log.splitlines() if not line.startswith('{"file"')]
    assert await replay(replace(without, instructions="Other."), "\n".join(lines)) is None  # nobody can tell


def nothing() -> Difference:
    raise AssertionError("no difference was found")
