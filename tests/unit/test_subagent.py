"""The tool that is a run: how it is defined, what the child gets to know, what it may spend, and how deep it goes."""

import json
from typing import Any, TypeVar

import pytest

from edge_agent import Agent, ConfigError, Decision, Limits, ToolContext, cpython, subagent, tool
from edge_agent.core import keys
from edge_agent.core.errors import InvalidArguments, ModelError, Refusal
from edge_agent.core.events import (
    Event,
    RunCompleted,
    RunCreated,
    SubagentCompleted,
    SubagentEvent,
    SubagentStarted,
    ToolRejected,
)
from edge_agent.core.state import RunState
from edge_agent.cpython import model, source
from edge_agent.deployment import Deployment
from edge_agent.in_process import InProcessRun, LocalRuns
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import in_memory_log, record, replay
from edge_agent.wire.http import ForkChanges, StartRun
from edge_agent.wire.settings import Settings


def researcher(*answers: Answer | str | ModelError, **fields: Any) -> Agent:
    small = ScriptedModel(answers=list(answers or ("2.8 million.",)), name="small")
    return Agent(name="researcher", description="Looks things up.", model=small, **fields)


def ask(*tasks: str, **more: Any) -> Answer:
    return Answer(calls=tuple(("researcher", {"task": task, **more}) for task in tasks))


def boss(tool: object, *answers: Answer | str, **fields: Any) -> Agent:
    big = ScriptedModel(answers=list(answers or (ask("How many live in Rome?"), "Many.")), name="big")
    return Agent(name="boss", model=big, tools=[tool], **fields)


def prompts(agent: Agent) -> list[str]:
    assert isinstance(agent.model, ScriptedModel)
    return [str(request) for request in agent.model.requests]


async def events_of(agent: Agent, **more: Any) -> list[Event]:
    return [event async for event in agent.stream("the boss's own task", **more)]


E = TypeVar("E")


def of(events: list[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


# -- the definition
@pytest.mark.parametrize(
    "options,message",
    [
        ({"max_concurrent": 0}, r"subagent\.max_concurrent: is from 1 to 32, got 0"),
        ({"output_max_chars": 30_000}, r"subagent\.output_max_chars: is from 1 to 20000, got 30000"),
        ({"timeout": 0}, r"subagent\.timeout: is a number of seconds above 0, or None"),
        ({"isolation": "thread"}, r"subagent\.isolation: is object .* or inline .*; got 'thread'"),
        ({"profiles": {"fast one": {}}}, r"profiles\['fast one'\]: makes the agent 'researcher-fast one'"),
        ({"profiles": {"fast": {"modell": "x/y"}}}, r"'modell' is no field of an agent that can be laid over"),
        ({"profiles": {"fast": {"name": "other"}}}, r"'name' is no field of an agent that can be laid over"),
        ({"profiles": {"fast": {"approval": "never"}}}, r"Agent\.approval: must be of autopilot"),
    ],
)
def test_a_definition_that_cannot_work_says_so(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        subagent(researcher(), **options)


def test_the_description_of_a_profile_is_appended_to_the_tools() -> None:
    spec = subagent(researcher(), profiles={"thorough": {"description": "Reads ten sources."}, "plain": {}}).spec
    assert spec.name == "researcher"
    assert spec.description.splitlines() == [
        "Give a task to researcher, who works on it alone and reports back. Looks things up.",
        "Profiles:",
        "- thorough: Reads ten sources.",
        "- plain",
    ]
    assert spec.parameters["properties"]["profile"]["enum"] == ["thorough", "plain"]
    assert "profile" not in subagent(researcher()).spec.parameters["properties"]


@pytest.mark.parametrize(
    "arguments,message",
    [
        ({}, "`task`: must be a text"),
        ({"task": "  "}, "`task`: must be a text"),
        ({"task": "x", "profile": "hasty"}, "`profile`: there is no 'hasty'. Profiles of researcher: thorough."),
        ({"task": "x", "profile": None}, "`profile`: there is no None"),
        ({"task": "x", "model": "y"}, "`model`: researcher takes nothing but"),
    ],
)
def test_arguments_that_do_not_fit_are_met_before_anything_is_started(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        subagent(researcher(), profiles={"thorough": {}}).check(arguments)


def test_two_agents_of_one_name_are_refused_also_below_each_other() -> None:
    one, other = subagent(researcher()), subagent(researcher(instructions="Be brief."))
    middle = Agent(name="middle", tools=[other])
    with pytest.raises(ConfigError, match="two agents are named researcher"):
        Deployment([boss(one), middle], Settings.from_env({}), model, source, cpython.fetcher)


# -- what the child knows
async def test_the_child_knows_its_task_and_nothing_else_of_its_parent() -> None:
    child = researcher(instructions="You look things up.")
    agent = boss(subagent(child), instructions="You are the boss.")
    events = await events_of(agent)
    assert "How many live in Rome?" in prompts(child)[0]
    assert "You look things up." in prompts(child)[0]
    assert "boss" not in prompts(child)[0].replace("'agent': 'researcher'", "")
    assert "2.8 million." in prompts(agent)[1]
    assert of(events, RunCompleted)[0].text == "Many."


async def test_a_profile_is_laid_over_the_agent_field_by_field() -> None:
    child, thorough = researcher(instructions="Be brief."), ScriptedModel(answers=["2 812 000."], name="thorough")
    agent = boss(
        subagent(child, profiles={"thorough": {"model": thorough}}), ask("How many?", profile="thorough"), "Many."
    )
    events = await events_of(agent)
    assert of(events, SubagentCompleted)[0].text == "2 812 000."
    assert "Be brief." in str(thorough.requests[0])
    assert not prompts(child)
    assert of(events, SubagentStarted)[0].profile == "thorough"


async def test_metadata_reaches_the_childs_tools_and_its_answer_is_cut_to_what_the_tool_lets_through() -> None:
    met: list[object] = []

    @tool(read_only=True)
    async def look(context: ToolContext) -> str:
        """Look."""
        met.append(context.metadata)
        return "seen"

    child = researcher(Answer(calls=(("look", {}),)), "x" * 500, tools=[look])
    events = await events_of(boss(subagent(child, output_max_chars=100)), metadata={"tenant": 7})
    assert met == [{"tenant": 7}]
    answer = of(events, SubagentCompleted)[0].text
    assert answer.startswith("x" * 100)
    assert "400 characters left out" in answer
    assert len(answer) < 200


async def test_a_child_that_fails_says_what_can_be_resumed_which_it_is_not() -> None:
    refused = ModelError("unauthorized", "the key is not taken", retryable=False)
    events = await events_of(boss(subagent(researcher(refused))))
    (end,) = [told.event for told in of(events, SubagentEvent) if told.event["type"] == "run.failed"]
    assert end["error"]["remedy"].startswith("Mend the cause, then resume the run that this one works for")
    assert of(events, RunCompleted)


async def test_every_record_of_a_child_is_told_at_its_parent_once_and_in_order() -> None:
    events = await events_of(boss(subagent(researcher("one", "two")), ask("a", "b"), "done"))
    by_child: dict[str, list[int]] = {}
    for event in of(events, SubagentEvent):
        by_child.setdefault(event.child_run_id, []).append(event.child_seq)
        assert event.event["run_id"] == event.child_run_id
    assert list(by_child.values()) == [[1, 2, 3, 4, 5, 6]] * 2


async def test_a_child_that_fails_is_told_to_the_model_and_the_run_goes_on() -> None:
    agent = boss(subagent(researcher(ModelError("unauthorized", "the key is wrong", retryable=False))))
    state = await agent.run("go")
    assert state.status == "completed"
    assert state.subagents[0].status == "failed"
    assert "researcher gave no answer: the key is wrong" in prompts(agent)[1]


async def test_the_same_task_three_times_in_a_row_is_answered_from_the_log() -> None:
    child = researcher("first", "second")
    agent = boss(subagent(child), ask("x"), ask("x"), ask("x"), "done")
    state = await agent.run("go")
    assert (state.status, len(state.subagents), len(prompts(child))) == ("completed", 2, 2)


async def test_on_approval_is_asked_about_calls_of_a_child_too() -> None:
    @tool(requires_approval=True)
    async def order() -> str:
        """Order."""
        return "ordered"

    asked: list[str] = []

    def decide(request: Any) -> Decision:
        asked.append(request.name)
        return Decision(approved=True)

    child = researcher(Answer(calls=(("order", {}),)), "It is ordered.", tools=[order])
    state = await boss(subagent(child)).run("go", on_approval=decide)
    assert (state.status, asked) == ("completed", ["order"])


async def test_a_child_that_promises_to_read_is_kept_to_it() -> None:
    paid: list[int] = []

    @tool
    async def pay() -> str:
        """Pay."""
        paid.append(1)
        return "paid"

    child = researcher(Answer(calls=(("pay", {}),)), "I could not.", tools=[pay])
    agent = boss(subagent(child, read_only=True), approval="read-only")
    state = await agent.run("go")
    assert (state.status, paid) == ("completed", [])
    assert "may only read" in prompts(child)[1]
    refused = boss(subagent(researcher()), approval="read-only")
    assert "may only read" in of(await events_of(refused), ToolRejected)[0].message


@pytest.mark.parametrize("isolation", ["object", "inline"])
async def test_a_run_in_this_process_does_not_care_in_which_object_its_children_would_lie(isolation: Any) -> None:
    middle = Agent(
        name="middle",
        model=ScriptedModel(answers=[ask("deeper"), "2.8 million."], name="middle"),
        tools=[subagent(researcher("2 812 000."), isolation=isolation)],
    )
    asks = Answer(calls=(("middle", {"task": "How many live in Rome?"}),))
    state = await boss(subagent(middle, isolation=isolation), asks, "Many.").run("go")
    assert (state.status, state.text, [child.status for child in state.subagents]) == (
        "completed",
        "Many.",
        ["completed"],
    )
    child = state.subagents[0].child_run_id
    assert (keys.object_of(child) == state.run_id) == (isolation == "inline")


# -- depth
async def test_a_run_three_below_the_first_has_no_subagents() -> None:
    def level(number: int, tools: list[Any]) -> Agent:
        below = Answer(calls=((f"level{number + 1}", {"task": "go on"}),))
        answers = ScriptedModel(answers=[below, f"level {number} is done"], name=f"m{number}")
        return Agent(name=f"level{number}", model=answers, tools=tools)

    agent = level(5, [])
    for number in (4, 3, 2, 1, 0):
        agent = level(number, [subagent(agent)])
    offered: dict[str, list[str]] = {}
    state = await agent.run("go")
    for _ in range(4):
        assert isinstance(agent.model, ScriptedModel)
        offered[agent.name] = [spec.name for spec in agent.model.requests[0].tools]
        agent = agent.tools[0].agents[None]
    assert state.status == "completed"
    assert offered == {"level0": ["level1"], "level1": ["level2"], "level2": ["level3"], "level3": []}


# -- money
async def test_what_a_child_used_counts_at_its_parent_and_its_reserve_is_given_back() -> None:
    limits = Limits(max_total_tokens=40_000, max_tool_calls=9)
    state = await boss(subagent(researcher("a", "b", "c")), ask("1", "2", "3"), "done", limits=limits).run("go")
    assert state.status == "completed"
    assert state.spent.tool_calls == 3
    assert state.spent.total < 2_000, "the reserves are given back"
    assert (state.usage.input, state.usage.output) == (50, 25), "five answers of 10 and 5 tokens"


async def test_children_of_one_answer_share_what_is_left() -> None:
    limits = Limits(max_total_tokens=60_000, max_tool_calls=11, max_output_tokens=30_000)
    child = researcher("a", "b", "c")
    runs, created = local(boss(subagent(child), ask("1", "2"), "done", limits=limits))
    run = runs.open("boss-1")
    await runs.start(run, created)
    starts = [record for record in run.journal.in_order() if record.type == "subagent.started"]
    reserves = [record.money[record.key.removesuffix("/call")] for record in starts]
    assert [reserve.tool_calls for reserve in reserves] == [1 + 4, 1 + 5], "eleven in all"
    assert abs(reserves[0].total - reserves[1].total) <= 1
    assert 20_000 < reserves[0].total < 30_000
    first = runs.open(run.state().subagents[0].child_run_id).journal.created
    assert first.limits.max_total_tokens == reserves[0].total
    assert first.limits.max_tool_calls == 4


async def test_children_of_one_answer_share_the_dollars_that_are_left_and_give_back_what_they_did_not_use() -> None:
    agent = boss(subagent(researcher("a", "b")), ask("1", "2"), "done", limits=Limits(max_cost_usd=0.1))
    run, state, children = await lived(agent)
    starts = [record for record in run.journal.in_order() if record.type == "subagent.started"]
    reserves = [record.money[record.key.removesuffix("/call")].usd for record in starts]
    assert reserves == pytest.approx([reserves[0]] * 2)
    assert 0.035 < reserves[0] < 0.05, "half of what the answer at the end leaves"
    assert [child.limits.max_cost_usd for child in children] == reserves
    used = [child.cost_usd for child in children]
    own = [amount.usd for key, amount in run.journal.money.items() if "/a" in key]
    assert (len(own), min(*used, *own) > 0) == (2, True)
    assert [child.cost_usd for child in state.subagents] == used
    assert state.cost_usd == pytest.approx(sum(used) + sum(own))
    end = run.journal.last.event
    assert isinstance(end, RunCompleted)
    assert end.cost_usd == state.cost_usd


async def test_a_child_with_a_lower_cap_on_dollars_keeps_its_own_and_no_more_is_reserved() -> None:
    child = researcher("a", limits=Limits(max_cost_usd=0.02))
    run, _, children = await lived(boss(subagent(child), limits=Limits(max_cost_usd=0.1)))
    assert [child.limits.max_cost_usd for child in children] == [0.02]
    assert run.journal.records["s1/r1/c0/call"].money["s1/r1/c0"].usd == 0.02


async def test_what_a_child_costs_counts_also_where_no_dollars_are_capped() -> None:
    run, state, _ = await lived(boss(subagent(researcher("a"))))
    assert run.journal.records["s1/r1/c0/call"].money["s1/r1/c0"].usd == 0.0
    assert state.cost_usd == pytest.approx(2 * (10 * 3e-6 + 5 * 15e-6) + 10 * 1e-6 + 5 * 4e-6)


async def test_under_a_cap_on_dollars_a_child_whose_price_nobody_knows_is_not_started() -> None:
    agent = boss(subagent(researcher("a")), limits=Limits(max_cost_usd=0.1))
    run, state, _ = await lived(agent, prices={"scripted/big": PRICES["scripted/big"]})
    assert (state.status, state.subagents) == ("completed", ())
    rejected = run.journal.event("s1/r1/c0/result", ToolRejected)
    assert rejected
    assert (rejected.reason, "price of every model, and that of scripted/small" in rejected.message) == ("budget", True)
    assert run.journal.spent.tool_calls == 0


async def test_a_child_that_does_not_fit_what_is_left_is_not_started() -> None:
    agent = boss(subagent(researcher()), ask("1", "2"), "done", limits=Limits(max_total_tokens=1_500))
    events = await events_of(agent)
    rejected = of(events, ToolRejected)
    assert [one.reason for one in rejected] == ["budget"] * len(rejected)
    assert rejected
    assert "cannot begin with what is left" in rejected[0].message
    assert of(events, RunCompleted)


PRICES = {"scripted/big": {"input": 3.0, "output": 15.0}, "scripted/small": {"input": 1.0, "output": 4.0}}


def local(agent: Agent, prices: Any = PRICES) -> tuple[LocalRuns, RunCreated]:
    settings = Settings.from_env({"EDGE_AGENT_PRICES": json.dumps(prices)})
    deployment = Deployment([agent], settings, model, source, cpython.fetcher)
    return LocalRuns(deployment), deployment.configure(StartRun(input="go"))


async def lived(agent: Agent, prices: Any = PRICES) -> tuple[InProcessRun, RunState, list[RunState]]:
    """A run that has ended, and its children; each answer is 10 tokens in and 5 out."""
    runs, created = local(agent, prices)
    run = runs.open("boss-1")
    state = await runs.start(run, created)
    return run, state, [runs.open(child.child_run_id).state() for child in state.subagents]


# -- fork, resume, replay
async def test_a_child_is_not_resumed_and_its_fork_works_for_itself() -> None:
    agent = boss(subagent(researcher(ModelError("unauthorized", "the key is wrong", retryable=False))))
    runs, created = local(agent)
    run = runs.open("boss-1", in_memory_log())
    state: RunState = await runs.start(run, created)
    child = runs.open(state.subagents[0].child_run_id)
    with pytest.raises(Refusal, match="Fork it, or resume the parent") as refused:
        child.inbox.resume()
    assert refused.value.code == "run_has_parent"
    deployment = Deployment([agent], Settings.from_env({}), model, source, cpython.fetcher)
    assert deployment.forked(child.journal.created, ForkChanges()).parent is None


async def test_a_log_with_subagents_is_replayed() -> None:
    log = await record(boss(subagent(researcher("a", "b")), ask("1", "2"), "done"), "go")
    assert await replay(boss(subagent(researcher())), log) is None
