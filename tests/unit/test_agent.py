"""An agent in this process: run to its end, or streamed event by event."""

import asyncio
import re
from typing import Any

import pytest

from edge_agent import Agent, ConfigError, Hooks, Limits, ToolContext, Turn, cpython, tool
from edge_agent.core.errors import ModelError
from edge_agent.core.events import RunCompleted, RunCreated, StepTextDelta, ToolResult
from edge_agent.core.hub import Hub
from edge_agent.core.model import ModelRequest
from edge_agent.core.ports import Clock
from edge_agent.deployment import Deployment
from edge_agent.in_process import AsyncioAlarm, InProcessRun
from edge_agent.loop.walk import Ports
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import VirtualClock, in_memory_log, in_virtual_time
from edge_agent.wire.http import StartRun
from edge_agent.wire.settings import Settings


@tool(read_only=True)
async def forecast(city: str) -> str:
    """Look up the weather forecast."""
    return f"sunny in {city}"


def sunny() -> ScriptedModel:
    return ScriptedModel(answers=[Answer(calls=(("forecast", {"city": "Rome"}),)), "Sunny in Rome."])


async def test_a_run_in_this_process_ends_with_its_state() -> None:
    model = sunny()
    history = [Turn(role="user", text="Hello"), Turn(role="assistant", text="Hi")]
    state = await Agent(name="weather", model=model, tools=[forecast]).run("How is Rome?", history=history)
    assert (state.status, state.text, state.agent, state.rounds) == ("completed", "Sunny in Rome.", "weather", 2)
    assert [message.role for message in model.requests[0].messages] == ["user", "assistant", "user"]
    model.assert_done()


async def test_a_failed_run_raises_nothing_and_its_state_says_why() -> None:
    model = ScriptedModel(answers=[ModelError("unauthorized", "the key is wrong", retryable=False)])
    state = await Agent(name="weather", model=model).run("How is Rome?")
    assert state.status == "failed"
    assert state.error is not None
    assert (state.error.code, state.error.message) == ("unauthorized", "the key is wrong")


async def test_a_stream_yields_every_event_recorded_and_passing_in_order() -> None:
    events = [event async for event in Agent(name="weather", model=sunny(), tools=[forecast]).stream("How is Rome?")]
    assert isinstance(events[0], RunCreated)
    assert isinstance(events[-1], RunCompleted)
    assert [event.output for event in events if isinstance(event, ToolResult)] == ["sunny in Rome"]
    assert "".join(event.delta for event in events if isinstance(event, StepTextDelta)) == "Sunny in Rome."


async def test_leaving_a_stream_detaches_and_the_run_goes_on_to_its_end() -> None:
    ended = asyncio.Event()
    hooks = Hooks(on_run_end=lambda end: ended.set())
    stream = Agent(name="weather", model=sunny(), tools=[forecast], hooks=hooks).stream("How is Rome?")
    async for _ in stream:
        break
    await stream.aclose()
    await asyncio.wait_for(ended.wait(), 10)


async def test_metadata_limits_and_a_declared_secret_reach_the_tool_and_no_event() -> None:
    met: list[object] = []

    @tool(read_only=True)
    async def look(context: ToolContext) -> str:
        """Look."""
        met.append(context.metadata)
        return "seen"

    model = ScriptedModel(answers=[Answer(calls=(("look", {}),)), "done"])
    agent = Agent(name="a", model=model, tools=[look], limits=Limits(max_output_tokens_per_call=77))
    await agent.run("Look", metadata={"user": 7})
    assert met == [{"user": 7}]
    assert model.requests[0].max_output_tokens == 77


async def test_a_run_that_is_cancelled_from_outside_leaves_no_task_and_its_log_goes_on_elsewhere() -> None:
    started = asyncio.Event()
    release = asyncio.Event()

    async def pause() -> None:
        started.set()
        await release.wait()

    answers = [Answer(text="slowly", pause=pause), "at last"]
    agent = Agent(name="a", model=ScriptedModel(answers=list(answers)))
    deployment = Deployment([agent], Settings.from_env({}), cpython.model, cpython.source, cpython.fetcher)
    created = deployment.configure(StartRun(input="hi"))

    def ports(hub: Hub, clock: Clock) -> Ports:
        return deployment.ports(created, hub, clock)

    log = in_memory_log()
    first = InProcessRun("run-1", ports, log=log)
    work = asyncio.ensure_future(first.start(created))
    await started.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert asyncio.all_tasks() == {asyncio.current_task()}
    second = InProcessRun("run-1", ports, log=log)
    second.driver.wake()
    state = await second.until_ended()
    assert (state.status, state.text) == ("completed", "at last")


def test_the_alarm_of_this_process_rings_at_its_time_and_an_earlier_one_counts() -> None:
    async def main() -> list[int]:
        clock = VirtualClock()
        began = clock.now()
        alarm = AsyncioAlarm(clock)
        rang: list[int] = []
        alarm.set(began + 60_000)
        await alarm.due()
        rang.append(clock.now() - began)
        alarm.set(began + 900_000)
        asyncio.get_running_loop().call_later(5, alarm.set, began + 70_000)
        await alarm.due()
        rang.append(clock.now() - began)
        asyncio.get_running_loop().call_later(5, alarm.set, 0)
        await alarm.due()
        return [*rang, clock.now() - began]

    assert in_virtual_time(main()) == [60_000, 70_000, 75_000]


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"name": "two words"}, 'Agent.name: .* Example: Agent(name="assistant")'),
        ({"mode": "plan"}, "Agent.mode: is one of direct, planned, not 'plan'. Example: Agent(mode=\"planned\")"),
        ({"tool_selection": "none"}, 'Agent.tool_selection: .* Example: Agent(tool_selection="search")'),
        ({"limits": {"max_steps": 3}}, "Agent.limits: .* Example: Agent(limits=Limits(max_steps=6))"),
        ({"compaction": {}}, "Agent.compaction: .* Example: Agent(compaction=Compaction(keep_recent_turns=6))"),
        ({"tools": [Agent(name="b")]}, "Agent.tools: holds the agent b itself: .* Example: Agent(tools=[subagent(b)])"),
    ],
    ids=["name", "mode", "tool_selection", "limits", "compaction", "tools"],
)
def test_an_agent_is_refused_when_it_is_defined_and_the_message_shows_how_it_would_work(
    wrong: dict[str, Any], told: str
) -> None:
    fields: dict[str, Any] = {"name": "a", **wrong}
    with pytest.raises(ConfigError, match=re.escape(told).replace(r"\.\*", ".*")):
        Agent(**fields)


async def test_a_hook_of_the_agent_is_called() -> None:
    seen: list[str] = []

    def before(request: ModelRequest) -> None:
        seen.append(request.system)

    agent = Agent(
        name="a", instructions="Be brief.", model=ScriptedModel(answers=["ok"]), hooks=Hooks(before_model=before)
    )
    await agent.run("hi")
    assert seen[0].startswith("Be brief.")
