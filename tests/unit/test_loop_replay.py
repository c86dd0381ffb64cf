"""Replay: the log of a run against the code of today. Nothing is called; the first difference is named."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from edge_agent.core.canonical import canonical
from edge_agent.core.difference import Difference
from edge_agent.core.errors import Refusal
from edge_agent.core.events import (
    Boundary,
    ModelAnswered,
    ModelFailed,
    ModelRejected,
    ModelRequested,
    OfferedTools,
    RunCreated,
)
from edge_agent.core.hooks import Hooks
from edge_agent.core.limits import Limits
from edge_agent.core.messages import Message, ToolSpec
from edge_agent.core.model import ModelRequest
from edge_agent.core.ports import Record, StoredFile
from edge_agent.core.state import fold
from edge_agent.core.usage import Usage
from edge_agent.loop.conversation import conversation
from edge_agent.loop.fork import kept, numbered, up_to
from edge_agent.loop.offer import file_name, offer
from edge_agent.loop.prompt_hash import prompt_hash
from edge_agent.loop.replay import replay
from edge_agent.loop.walk import Ports
from edge_agent.models.scripted import Answer
from edge_agent.testing import Kill, in_virtual_time
from edge_agent.testing.faults import When
from tests.faults.memory_world import RUN, CountingTool, CountingTools, Scenario, World
from tests.faults.test_memory_approvals import SCENARIOS as APPROVALS
from tests.faults.test_memory_compaction import HISTORY, REPLANNED, blocked
from tests.faults.test_memory_kills import RICH, SCENARIOS
from tests.faults.test_memory_planned import CAPPED, PLANNED
from tests.unit.records_by_hand import lived_ports, made, new_run, requested


def mended(request: ModelRequest) -> Answer:
    """What comes first of a plan and of a verdict is none."""
    to_plan = (request.metadata or {}).get("stage") in ("plan", "replan")
    return Answer(text="well …") if to_plan and len(request.messages) == 1 else blocked(request)


MENDED = Scenario(name="a planner and a replanner that mend what they said", mode="planned", says=mended)
FOLDED = replace(REPLANNED, name="a history that outgrows the window of the planner", history=HISTORY)
ALL = [*SCENARIOS, *APPROVALS, PLANNED, CAPPED, MENDED]


def replayed(world: World, records: Sequence[Record] | None = None, **ports: Any) -> Difference | None:
    """The log of a world (or these records) against its own code, but for the ports that are given."""

    async def work() -> Difference | None:
        made = replace(world.ports(world.object.instance), **ports)
        return await replay(world.run_id, world.records if records is None else records, made)

    before = dict(world.parts), dict(world.tried), len(world.object.log.load())
    found = in_virtual_time(work())
    assert (dict(world.parts), dict(world.tried), len(world.object.log.load())) == before, "something was called"
    return found


def instructed(world: World, instructions: str) -> Ports:
    ports = world.ports(world.object.instance)
    return replace(ports, agent=replace(ports.agent, instructions=instructions))


def found_in(difference: Difference | None) -> Difference:
    assert difference is not None
    return difference


# -- the same
@pytest.mark.parametrize("scenario", [*ALL, REPLANNED], ids=lambda scenario: scenario.name)
def test_the_unchanged_code_finds_no_difference_and_calls_nothing(scenario: Scenario) -> None:
    assert replayed(World(scenario).lived()) is None


@pytest.mark.parametrize("scenario", [*ALL, REPLANNED, FOLDED], ids=lambda scenario: scenario.name)
def test_a_log_that_has_not_ended_is_as_good_as_far_as_it_goes(scenario: Scenario) -> None:
    calm = World(scenario).lived()
    for seq in {record.batch for record in calm.records}:
        assert replayed(calm, calm.records[:seq]) is None


@pytest.mark.parametrize("scenario", [RICH, PLANNED], ids=lambda scenario: scenario.name)
def test_a_fork_has_no_difference_either_its_inherited_prompts_included(scenario: Scenario) -> None:
    """What it took was asked with another run's limits, models and code."""
    calm = World(scenario).lived()
    created = calm.records[0].event
    assert isinstance(created, RunCreated)
    for at in range(1, len(calm.records), 5):
        prefix = up_to(calm.records, at)
        records = numbered(created, RUN, len(prefix), kept(prefix), calm.records[-1].at)
        forked = World(scenario, log=records, run_id="run-2").lived()
        assert replayed(forked) is None
        other = replayed(forked, agent=instructed(forked, "Be brief.").agent)
        own = next((r for r in forked.records[created_of(forked).inherited :] if r.type == "model.requested"), None)
        assert (other and other.key) == (own and own.key)


def created_of(world: World) -> RunCreated:
    created = world.records[0].event
    assert isinstance(created, RunCreated)
    return created


@pytest.mark.parametrize("scenario", [RICH, PLANNED], ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_that_was_killed_on_its_way_has_no_difference(scenario: Scenario, when: When) -> None:
    """Its attempts that were lost have prompts too, and were made again."""
    calm = World(scenario).lived()
    for append in range(1, calm.appends + 1, 2):
        assert replayed(World(scenario, [Kill(append, when)]).lived()) is None


# -- other prompts
@pytest.mark.parametrize("scenario", [RICH, PLANNED], ids=lambda scenario: scenario.name)
def test_other_instructions_are_a_difference_at_the_first_attempt(scenario: Scenario) -> None:
    calm = World(scenario).lived()
    found = found_in(replayed(calm, agent=instructed(calm, "Be brief.").agent))
    first = next(record for record in calm.records if record.type == "model.requested")
    assert (found.kind, found.key, found.seq) == ("prompt", first.key, first.seq)


def test_other_words_of_the_loop_are_a_difference_where_they_are_first_said() -> None:
    """An earlier version said something else in its last round."""
    calm = World(next(s for s in SCENARIOS if s.name == "no steps left")).lived()
    last = [record for record in calm.records if record.type == "model.requested"][-1]
    older = changed(calm, last.key, prompt_hash="0" * 64)
    found = found_in(replayed(calm, older))
    assert (found.kind, found.key, found.seq) == ("prompt", last.key, last.seq)


@pytest.mark.parametrize("key", ["plan/a0", "s2/r1/a0", "s2/replan/a0", "s4/r1/a0", "final/a0"])
def test_prompts_inside_of_what_has_ended_are_compared_too(key: str) -> None:
    """A live walk passes over a plan and over steps that have their ends."""
    calm = World(PLANNED).lived()
    found = found_in(replayed(calm, changed(calm, key, prompt_hash="0" * 64)))
    assert (found.kind, found.key) == ("prompt", key)


def changed(world: World, key: str, **fields: Any) -> list[Record]:
    assert key in {record.key for record in world.records}
    return [replace(r, event=replace(r.event, **fields)) if r.key == key else r for r in world.records]


def test_what_a_hook_had_sent_instead_is_no_difference_and_the_hook_is_not_asked() -> None:
    asked: list[ModelRequest] = []

    def shorter(request: ModelRequest) -> ModelRequest:
        asked.append(request)
        return replace(request, system="short")

    calm = World(replace(RICH, hooks=Hooks(before_model=shorter))).lived()
    times = len(asked)
    assert replayed(calm) is None
    assert len(asked) == times
    sent = [r.event for r in calm.records if isinstance(r.event, ModelRequested)]
    assert all(event.built_hash and event.built_hash != event.prompt_hash for event in sent)


# -- other tools
def test_a_tool_that_is_no_longer_in_the_code_is_a_difference_where_it_was_first_offered() -> None:
    calm = World(RICH).lived()
    box = CountingTools([CountingTool(name="read", world=calm, safe=True)])
    found = found_in(replayed(calm, tools=box))
    assert (found.kind, found.key) == ("tools", "s1/r1/a0")
    assert "pay" in found.message
    assert "read" not in found.message


def test_a_tool_that_is_described_otherwise_is_a_difference() -> None:
    class Described(CountingTools):
        def offered(self) -> tuple[ToolSpec, ...]:
            return tuple(replace(tool, description="other words") for tool in super().offered())

    calm = World(RICH).lived()
    tools = calm.tools()
    found = found_in(replayed(calm, tools=Described([tool for name in OFFERED if (tool := tools.find(name))])))
    assert (found.kind, found.key) == ("tools", "s1/r1/a0")


OFFERED = ("read", "flaky", "big", "pay", "broken", "doubt", "slow", "doubt_retry", "doubt_ask", "doubt_fail")


def test_the_tools_of_servers_are_those_of_the_log_and_no_server_is_asked() -> None:
    spec = ToolSpec(name="docs__find", description="Find a page.", parameters={"type": "object"})
    offered = offer([spec])
    file = StoredFile(name=file_name(offered), media_type="application/json", content=canonical([spec]).encode())
    records = one_round(offered, ModelRequest(system="", messages=(), tools=(spec,), tool_choice="auto"))

    def compare(*files: StoredFile) -> Difference | None:
        return in_virtual_time(replay(RUN, records, replace(lived_ports(), tools=CountingTools(())), files))

    assert found_in(compare(file)).kind == "prompt"  # the tools are known, so that the prompt can be compared
    assert compare() is None  # a log without its files: what cannot be known is no difference


def one_round(offered: OfferedTools, request: ModelRequest) -> list[Record]:
    asked = requested(prompt_hash(request))
    return [
        made(1, "run", new_run()),
        made(2, "s1/r1", Boundary(tools=offered), by_loop=True),
        made(3, "s1/r1/a0", asked, by_loop=True),
    ]


# -- other keys
@pytest.mark.parametrize("scenario", [RICH, PLANNED], ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("old,new", [("/r1", "/round1"), ("/a0", "/b0"), ("/end", "/ended"), ("/result", "/done")])
def test_a_key_that_is_named_otherwise_is_named(scenario: Scenario, old: str, new: str) -> None:
    calm = World(scenario).lived()
    renamed = [replace(r, key=r.key.replace(old, new)) if r.by == "loop" else r for r in calm.records]
    first = next(r for r, was in zip(renamed, calm.records, strict=True) if r.key != was.key)
    found = found_in(replayed(calm, renamed))
    assert found.kind == "key"
    assert found.seq <= first.seq or found.key == first.key
    assert new in found.key
    assert found.asked is None or old in found.asked or "/calls" in found.asked


def test_a_record_that_is_missing_is_asked_for() -> None:
    """But for the intent of a call whose result is there: nobody asks for it again."""
    calm = World(RICH).lived()
    for gone in calm.records:
        if gone.by == "loop" and gone.type != "tool.called":
            shorter = [record for record in calm.records if record.key != gone.key]
            found = found_in(replayed(calm, shorter))
            assert (found.asked or "").startswith(gone.key.partition("/c")[0]), gone.key


def test_a_record_of_another_kind_is_named() -> None:
    calm = World(RICH).lived()
    wrong = ModelFailed(stage="round", attempt=0, error="timeout", message="", retryable=True, usage=Usage())
    records = [replace(r, event=wrong) if r.key == "s1/r2" else r for r in calm.records]
    found = found_in(replayed(calm, records))
    assert (found.kind, found.key) == ("type", "s1/r2")


def test_the_order_of_records_is_no_difference() -> None:
    """Siblings are recorded in the order in which they end."""
    calm = World(RICH).lived()
    results = [r for r in calm.records if r.key.startswith("s1/r2/c") and r.key.endswith("/result")]
    swapped = dict(zip((r.seq for r in results), reversed(results), strict=True))
    records = [replace(swapped.get(r.seq, r), seq=r.seq) for r in calm.records]
    assert [r.key for r in records] != [r.key for r in calm.records]
    assert replayed(calm, records) is None


# -- another end
def test_another_result_is_a_difference_of_the_end() -> None:
    calm = World(RICH).lived()
    for fields in ({"text": "something else"}, {"stop_reason": "budget"}):
        found = found_in(replayed(calm, changed(calm, "end/0", **fields)))
        assert (found.kind, found.key) == ("end", "end/0")


def test_a_completed_log_that_ends_too_early_says_what_the_code_goes_on_with() -> None:
    calm = World(RICH).lived()
    last = calm.records[-1]
    shorter = [*calm.records[:20], replace(last, seq=21, batch=21)]
    found = found_in(replayed(calm, shorter))
    assert (found.kind, found.key) == ("end", "end/0")
    assert found.asked


def test_other_limits_in_the_record_are_no_difference_where_nothing_was_decided_by_them() -> None:
    calm = World(RICH).lived()
    assert replayed(calm, changed(calm, "run", limits=Limits(max_steps=3, max_tool_calls=1))) is None


# -- the conversation
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_the_conversation_at_each_attempt_is_what_the_model_was_shown(scenario: Scenario) -> None:
    shown: dict[str, tuple[Message, ...]] = {}

    class Listening(World):
        def asked(self, request: ModelRequest) -> str:
            part = super().asked(request)
            shown[part] = request.messages
            return part

    calm = Listening(scenario).lived()
    for record in calm.records:
        if record.key in shown:
            prefix = up_to(calm.records, record.seq)
            assert in_virtual_time(conversation(RUN, prefix)) == shown[record.key]
        if isinstance(record.event, ModelAnswered) and f"{record.key[:-4]}/rejected" not in rejected(calm):
            said = in_virtual_time(conversation(RUN, up_to(calm.records, record.seq)))
            assert said[-1] == record.event.message


def rejected(world: World) -> set[str]:
    return {record.key for record in world.records if isinstance(record.event, ModelRejected)}


def test_the_conversation_before_anything_was_asked_is_the_request() -> None:
    calm = World(RICH).lived()
    (said,) = in_virtual_time(conversation(RUN, calm.records[:1]))
    assert said.text == "do it"


def test_a_log_that_the_code_cannot_walk_has_no_conversation() -> None:
    calm = World(RICH).lived()
    renamed = [replace(r, key=r.key.replace("/r1", "/round1")) for r in calm.records]
    with pytest.raises(Refusal) as refusal:
        in_virtual_time(conversation(RUN, renamed))
    assert (refusal.value.status, refusal.value.code) == (409, "drift")


def test_the_state_at_each_record_is_what_it_was_then() -> None:
    calm = World(RICH).lived()
    heard: list[Record] = []
    for record in calm.records:
        heard.append(record)
        if record.seq == record.batch:
            assert fold(RUN, up_to(calm.records, record.seq)) == fold(RUN, heard)
