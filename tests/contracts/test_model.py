"""What every model keeps to, whoever provides it: one suite over each implementation of the port."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

import httpx2
import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.messages import AssistantMessage, ToolCall, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import (
    CalledTool,
    Finished,
    Model,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from edge_agent.models.adapter import Adapter
from edge_agent.models.anthropic import Anthropic
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.google import Google
from edge_agent.models.httpx_transport import HttpxTransport
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.provider_model import ProviderModel
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.models.workers_ai import WorkersAI
from tests.servers.anthropic_server import AnthropicServer
from tests.servers.google_server import GoogleServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.scripted_server import ScriptedServer, serving
from tests.servers.workers_ai_rest import WorkersAiRest

TOOL = ToolSpec(
    name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}}
)
REQUEST = ModelRequest(system="Be brief.", messages=(UserMessage(text="hello"),), tools=(TOOL,))
CALLS = [{"name": "add", "arguments": '{"a": 1}'}, {"name": "add", "arguments": "{"}]
SCRIPT = {
    "speaks": [{"reasoning": "hm", "text": "one two three"}],
    "calls": [{"text": "Let me see.", "calls": CALLS}, {"text": "done"}],
    "cut-off": [{"calls": CALLS[1:], "finish": "length"}],
}


@dataclass(frozen=True, slots=True)
class World:
    """`model` plays a scenario by name. `asked`: calls so far. `left`: those whose stream was closed early. `half`: as
    what broken arguments arrive."""

    model: Callable[[str], Model]
    asked: Callable[[], int]
    left: Callable[[], int]
    until_left: Callable[[int], "asyncio.Future[None]"]
    half: str = "{"


def _scripted(scenario: str, held: asyncio.Event) -> ScriptedModel:
    calls = tuple((call["name"], call["arguments"]) for call in CALLS)
    overloaded = ModelError(
        "overloaded", "The model test/x at y is overloaded. Try again.", retryable=True, retry_after=2.0
    )
    answers = {
        "speaks": Answer(text="one two three", reasoning="hm"),
        "calls": Answer(text="Let me see.", calls=calls),
        "cut-off": Answer(calls=calls[1:], finish="length"),
        "429-retry-after-2": overloaded,
        "error-in-stream": Answer(text="half", error=overloaded),
        "slow-text-400": Answer(text="slow " * 400, pause=held.wait),
    }
    return ScriptedModel(answers=[answers[scenario], *(["done"] if scenario == "calls" else [])])


WIRES: dict[str, tuple[Adapter, type[ScriptedServer], str]] = {
    "openai_chat": (OpenAIChat(), OpenAIServer, "authorization"),
    "anthropic": (Anthropic(), AnthropicServer, "x-api-key"),
    "google": (Google(), GoogleServer, "x-goog-api-key"),
    "workers_ai": (WorkersAI(), WorkersAiRest, "authorization"),
}


@pytest.fixture(params=["scripted", *WIRES])
async def world(request: pytest.FixtureRequest) -> AsyncGenerator[World]:
    if request.param == "scripted":
        made: list[ScriptedModel] = []

        def model(scenario: str) -> Model:
            made.append(_scripted(scenario, asyncio.Event()))
            return made[-1]

        async def now(count: int) -> None:
            assert sum(one.closed for one in made) == count

        yield World(
            model=model,
            asked=lambda: sum(len(one.requests) for one in made),
            left=lambda: sum(one.closed for one in made),
            until_left=lambda count: asyncio.ensure_future(now(count)),
        )
        return
    adapter, kind, key_header = WIRES[request.param]
    async with serving(kind(SCRIPT)) as server:
        endpoint = Endpoint(provider="test", base_url=server.url, key="sk-secret-key", key_header=key_header)
        transport = HttpxTransport(httpx2.AsyncClient)

        def left() -> int:
            return sum(seen.closed_early for seen in server.seen)

        yield World(
            model=lambda scenario: ProviderModel(
                adapter=adapter, name=scenario, endpoint=endpoint, transport=transport, stall_timeout=5
            ),
            asked=lambda: len(server.seen),
            left=left,
            until_left=lambda count: asyncio.ensure_future(server.until(lambda _: left() == count)),
            half="{}" if request.param == "google" else "{",  # its wire has objects, and no text of them
        )


async def listen(model: Model, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_a_model_says_its_name_and_provider(world: World) -> None:
    model = world.model("speaks")
    assert model.name
    assert model.provider
    assert model.force_text_after_tool is False


async def test_text_and_reasoning_come_in_pieces_and_finished_comes_last(world: World) -> None:
    events = await listen(world.model("speaks"))
    assert text_of(events).strip() == "one two three"
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "hm"
    assert events[-1] == Finished(reason="stop")
    assert sum(isinstance(event, Finished) for event in events) == 1
    assert all(event.text for event in events if isinstance(event, TextDelta | ReasoningDelta))


async def test_usage_comes_before_the_end(world: World) -> None:
    events = await listen(world.model("speaks"))
    usage = [event.usage for event in events if isinstance(event, UsageSeen)]
    assert usage[-1].input > 0
    assert usage[-1].output > 0


async def test_calls_come_whole_in_order_with_the_text_the_model_wrote(world: World) -> None:
    events = await listen(world.model("calls"))
    calls = [event for event in events if isinstance(event, CalledTool)]
    assert calls == [CalledTool(name="add", arguments='{"a": 1}'), CalledTool(name="add", arguments=world.half)]
    assert events[-1] == Finished(reason="tool-calls")
    assert text_of(events).strip() == "Let me see."


async def test_a_conversation_with_tools_goes_on(world: World) -> None:
    model = world.model("calls")
    await listen(model)
    call = ToolCall(id="abc123def", name="add", arguments={"a": 1})
    result = ToolMessage(call_id="abc123def", name="add", text="2", ok=True)
    messages = (*REQUEST.messages, AssistantMessage(text="Let me see.", calls=(call,)), result)
    events = await listen(model, ModelRequest(system="", messages=messages, tools=(TOOL,)))
    assert text_of(events).strip() == "done"


async def test_a_cut_answer_says_so_although_it_holds_calls(world: World) -> None:
    assert (await listen(world.model("cut-off")))[-1] == Finished(reason="length")


async def test_a_failure_is_a_model_error_that_says_when_to_try_again(world: World) -> None:
    with pytest.raises(ModelError) as caught:
        await listen(world.model("429-retry-after-2"))
    assert (caught.value.retryable, caught.value.retry_after) == (True, 2.0)
    assert "sk-secret-key" not in str(caught.value)


async def test_a_model_never_tries_again_by_itself(world: World) -> None:
    with pytest.raises(ModelError):
        await listen(world.model("429-retry-after-2"))
    assert world.asked() == 1


async def test_a_failure_in_the_middle_comes_after_what_was_said(world: World) -> None:
    events: list[ModelEvent] = []

    async def follow() -> None:
        async with aclosing(world.model("error-in-stream").stream(REQUEST)) as stream:
            async for event in stream:
                events.append(event)  # noqa: PERF401 (what came before the error is kept)

    with pytest.raises(ModelError) as caught:
        await follow()
    assert text_of(events)
    assert not any(isinstance(event, Finished | CalledTool) for event in events)
    assert caught.value.kind == "overloaded"


async def test_leaving_a_stream_closes_it(world: World) -> None:
    async with aclosing(world.model("slow-text-400").stream(REQUEST)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break
    await world.until_left(1)
    assert world.left() == 1


async def test_cancelling_the_task_closes_the_stream(world: World) -> None:
    started = asyncio.Event()

    async def follow() -> None:
        async with aclosing(world.model("slow-text-400").stream(REQUEST)) as stream:
            async for _ in stream:
                started.set()

    task = asyncio.ensure_future(follow())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await world.until_left(1)
    assert world.left() == 1


async def test_two_calls_at_once_do_not_mix(world: World) -> None:
    first, second = await asyncio.gather(listen(world.model("speaks")), listen(world.model("calls")))
    assert text_of(first).strip() == "one two three"
    assert text_of(second).strip() == "Let me see."


async def test_a_stream_that_is_never_begun_asks_nothing(world: World) -> None:
    await world.model("speaks").stream(REQUEST).aclose()
    assert world.asked() == 0
