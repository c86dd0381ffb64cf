import asyncio
from contextlib import aclosing

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.messages import AssistantMessage, UserMessage
from edge_agent.core.model import CalledTool, Finished, ModelEvent, ModelRequest, Opaque, TextDelta, UsageSeen
from edge_agent.core.usage import Usage
from edge_agent.models.scripted import Answer, ScriptedModel

ASKED = ModelRequest(system="", messages=(UserMessage(text="hello"),))


async def listen(model: ScriptedModel, request: ModelRequest = ASKED) -> list[ModelEvent]:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


async def test_a_text_is_streamed_in_pieces() -> None:
    events = await listen(ScriptedModel(answers=["hello world"], piece=6))
    assert events[:2] == [TextDelta(text="hello "), TextDelta(text="world")]
    assert events[-1] == Finished(reason="stop")


async def test_an_answer_says_everything_it_holds() -> None:
    answer = Answer(calls=(("f", {"x": "ü"}), ("g", "{")), opaque=({"k": 1},), usage=Usage(input=3))
    events = await listen(ScriptedModel(answers=[answer]))
    assert UsageSeen(usage=Usage(input=3)) in events
    assert any(isinstance(event, Opaque) and event.part.data == {"k": 1} for event in events)
    assert events[-3:] == [
        CalledTool(name="f", arguments='{"x": "ü"}'),
        CalledTool(name="g", arguments="{"),
        Finished(reason="tool-calls"),
    ]


async def test_an_answer_may_be_made_of_the_request() -> None:
    model = ScriptedModel(answers=[lambda request: f"{len(request.messages)} messages"], piece=99)
    assert (await listen(model))[0] == TextDelta(text="1 messages")
    assert model.requests == [ASKED]


async def test_a_call_beyond_the_script_fails_also_when_its_error_is_swallowed() -> None:
    model = ScriptedModel(answers=["one"])
    await listen(model)
    with pytest.raises(AssertionError, match="1 answers and was asked for number 1"):
        await listen(model)
    with pytest.raises(AssertionError, match="came after the last answer"):
        model.assert_done()


async def test_an_answer_that_is_left_over_fails() -> None:
    model = ScriptedModel(answers=["one", "two"])
    await listen(model)
    with pytest.raises(AssertionError, match="the first is number 1"):
        model.assert_done()
    await listen(model)
    model.assert_done()


async def test_an_error_is_raised_and_ends_the_stream() -> None:
    error = ModelError("overloaded", "Too much.", retryable=True)
    model = ScriptedModel(answers=[error, Answer(text="half", error=error)])
    for _ in range(2):
        with pytest.raises(ModelError, match="Too much"):
            await listen(model)
    assert model.closed == 0


async def test_a_cut_stream_ends_without_finished() -> None:
    events = await listen(ScriptedModel(answers=[Answer(text="half", calls=(("f", {}),), cut=True)]))
    assert not any(isinstance(event, Finished | CalledTool) for event in events)


async def test_by_turn_an_answer_is_given_again_to_whoever_asks_again() -> None:
    model = ScriptedModel(answers=["first", "second"], by_turn=True, piece=99)
    later = ModelRequest(system="", messages=(*ASKED.messages, AssistantMessage(text="first")))
    said = [(await listen(model, request))[0] for request in (ASKED, ASKED, later, ASKED)]
    assert said == [TextDelta(text=text) for text in ("first", "first", "second", "first")]
    model.assert_done()


@pytest.mark.parametrize("text", ["some words", ""])
async def test_a_pause_holds_the_stream_until_the_test_lets_it_go(text: str) -> None:
    reached, go = asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        reached.set()
        await go.wait()

    model = ScriptedModel(answers=[Answer(text=text, pause=pause, delay=0.001)])
    task = asyncio.ensure_future(listen(model))
    await reached.wait()
    assert not task.done()
    go.set()
    assert (await task)[-1] == Finished(reason="stop")
    assert model.closed == 0
