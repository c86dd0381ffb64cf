"""Handing over, keeping to the palette, and not going round in circles."""

import pytest

from edge_agent import Agent, ConfigError, Limits, cpython, handoff, tool
from edge_agent.core.events import Event, Handoff, ModelRequested, ToolRejected, ToolResult
from edge_agent.cpython import model, source
from edge_agent.deployment import Deployment
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.wire.settings import Settings

made: list[str] = []


@tool(read_only=True)
async def weather(city: str) -> str:
    """Look up the weather."""
    made.append(city)
    return f"{city}: sunny"


def clerk(*answers: Answer | str) -> Agent:
    return Agent(
        name="clerk",
        instructions="You are the clerk.",
        tools=[weather],
        model=ScriptedModel(answers=list(answers), name="small"),
    )


async def events_of(agent: Agent) -> list[Event]:
    return [event async for event in agent.stream("help")]


async def test_the_target_takes_over_with_its_own_instructions_model_and_tools() -> None:
    target = clerk(Answer(calls=(("weather", {"city": "Rome"}),)), "Sunny in Rome.")
    desk = ScriptedModel(answers=[Answer(calls=(("transfer_to_clerk", {"reason": "weather"}),))], name="big")
    agent = Agent(name="desk", tools=[handoff(target, when="it is about the weather")], model=desk)
    events = await events_of(agent)
    handed = next(event for event in events if isinstance(event, Handoff))
    assert (handed.from_, handed.to, handed.reason) == ("desk", "clerk", "weather")
    assert [event.model for event in events if isinstance(event, ModelRequested)] == ["big", "small", "small"]
    assert isinstance(target.model, ScriptedModel)
    first = target.model.requests[0]
    assert first.system.startswith("You are the clerk.")
    assert [spec.name for spec in first.tools] == ["weather"]
    assert "it is about the weather" in desk.requests[0].tools[0].description


async def test_siblings_of_a_handoff_are_run_and_answered_first() -> None:
    target = clerk("Done.")
    calls = (("transfer_to_clerk", {"reason": "x"}), ("weather", {"city": "Oslo"}))
    desk = Agent(name="desk", tools=[handoff(target), weather], model=ScriptedModel(answers=[Answer(calls=calls)]))
    events = await events_of(desk)
    results = [event.name for event in events if isinstance(event, ToolResult)]
    assert sorted(results) == ["transfer_to_clerk", "weather"]
    assert events[-1].type == "run.completed"


async def test_handing_to_and_fro_ends_with_a_clear_failure() -> None:
    tools: list[object] = []
    back = Agent(
        name="b", tools=tools, model=ScriptedModel(answers=[Answer(calls=(("transfer_to_a", {}),))] * 9, name="b")
    )
    first = Agent(
        name="a", tools=[handoff(back)], model=ScriptedModel(answers=[Answer(calls=(("transfer_to_b", {}),))] * 9)
    )
    tools.append(handoff(first))
    state = await first.run("go")
    assert state.error is not None
    assert (state.error.kind, state.error.code) == ("handoff", "handoff-cycle")


async def test_one_call_outside_of_a_strict_palette_and_nothing_of_the_answer_runs() -> None:
    made.clear()
    calls = (("weather", {"city": "Bonn"}), ("shred", {"what": "all"}))
    agent = Agent(name="a", tools=[weather], strict_tools=True, model=ScriptedModel(answers=[Answer(calls=calls)]))
    events = await events_of(agent)
    assert [event.reason for event in events if isinstance(event, ToolRejected)] == ["off-palette"] * 2
    assert made == []
    assert events[-1].type == "run.failed"


async def test_the_same_call_three_times_in_a_row_is_answered_from_the_log_and_text_is_asked_for() -> None:
    made.clear()
    again = Answer(calls=(("weather", {"city": "Kiel"}),))
    model = ScriptedModel(answers=[again, again, again, "It is sunny."])
    agent = Agent(name="a", tools=[weather], model=model, limits=Limits(max_steps=9))
    events = await events_of(agent)
    assert made == ["Kiel", "Kiel"]
    results = [event for event in events if isinstance(event, ToolResult)]
    assert [result.output for result in results] == ["Kiel: sunny"] * 3
    assert len({result.call_id for result in results}) == 3
    assert model.requests[-1].tools == ()


def test_two_agents_of_one_name_are_refused() -> None:
    one = Agent(name="a", model=ScriptedModel(answers=[]))
    other = Agent(name="b", model=ScriptedModel(answers=[]), tools=[handoff(Agent(name="a"))])
    with pytest.raises(ConfigError, match="two agents are named a"):
        Deployment([one, other], Settings.from_env({}), model, source, cpython.fetcher)
