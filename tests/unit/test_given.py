"""What Python code gives to a run and to a summary: parts with their bytes, turns in either form, and histories that
came back."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest

from edge_agent import Agent, Compaction, Turn
from edge_agent.core.attachments import Attachment
from edge_agent.core.errors import Refusal
from edge_agent.core.events import RunCreated
from edge_agent.core.messages import Message, MessageWithFiles
from edge_agent.core.model import ModelRequest
from edge_agent.given import GivenTurn, Task
from edge_agent.models.scripted import ScriptedModel
from tests.unit.test_content import PDF, PNG

PICTURE = {"type": "image", "media_type": "image/png", "data": PNG}
REPORT = {"type": "file", "media_type": "application/pdf", "name": "r.pdf", "data": base64.b64encode(PDF).decode()}
TABLE = {"type": "file", "media_type": "text/csv", "name": "t.csv", "data": b"a,b"}
ASKED: Task = [{"type": "text", "text": "Compare"}, PICTURE, REPORT, TABLE]


def seeing(*answers: Any, takes: tuple[str, ...] = ("image/png", "application/pdf"), **more: Any) -> Agent:
    return Agent(name="clerk", model=ScriptedModel(answers=[*answers], takes=takes), **more)


def requests(agent: Agent) -> list[ModelRequest]:
    assert isinstance(agent.model, ScriptedModel)
    return agent.model.requests


def attached(message: Message, request: ModelRequest) -> list[bytes]:
    """The bytes that go with a message, in order."""
    assert isinstance(message, MessageWithFiles)
    return [request.files[one.name] for one in message.attachments]


async def test_parts_reach_the_model_with_their_bytes_in_the_order_they_were_given() -> None:
    agent = seeing("the same")
    state = await agent.run(ASKED)
    (request,) = requests(agent)
    assert attached(request.messages[0], request) == [PNG, PDF]
    assert request.messages[0].text.startswith("Compare\n[image: image-")
    assert request.messages[0].text.endswith("\n[t.csv]\na,b")
    assert (state.text, state.input) == ("the same", request.messages[0].text)


async def test_a_stream_takes_them_too_and_its_records_hold_no_bytes() -> None:
    agent = seeing("the same")
    events = [event async for event in agent.stream(ASKED)]
    created = next(event for event in events if isinstance(event, RunCreated))
    assert [one.media_type for one in created.attachments or ()] == ["image/png", "application/pdf"]
    assert {type(one) for one in created.attachments or ()} == {Attachment}
    assert attached(requests(agent)[0].messages[0], requests(agent)[0]) == [PNG, PDF]


async def test_a_turn_of_the_history_is_a_turn_or_what_the_http_api_takes() -> None:
    agent = seeing("with tax")
    history: list[GivenTurn] = [
        {"role": "user", "parts": ASKED},
        Turn(role="assistant", text="They are the same."),
        {"role": "user", "text": "Sure?"},
        {"role": "assistant", "text": "Yes."},
    ]
    await agent.run("With tax?", history=history)
    (request,) = requests(agent)
    assert attached(request.messages[0], request) == [PNG, PDF]
    assert [message.text for message in request.messages[1:]] == ["They are the same.", "Sure?", "Yes.", "With tax?"]


LONG = "of nets and ropes " * 12_000


@pytest.mark.parametrize("shape", ["parts", "turns"])
async def test_a_history_that_a_run_has_folded_is_given_back_with_its_images(shape: str) -> None:
    folding = seeing("a summary", "it is a net", compaction=Compaction(keep_recent_turns=2))
    first: list[GivenTurn] = [{"role": "user", "parts": [PICTURE, {"type": "text", "text": LONG}]}]
    parts = [
        *first,
        Turn(role="assistant", text=LONG),
        {"role": "user", "parts": ASKED},
        Turn(role="assistant", text="x"),
    ]
    history = parts if shape == "parts" else (await seeing().compact(parts)).history
    state = await folding.run("Which is it?", history=history)
    assert state.compacted_history is not None
    assert len(state.compacted_history) == 3
    again = seeing("a net", takes=("image/png", "application/pdf"))
    await again.run("Sure?", history=state.compacted_history)
    (request,) = requests(again)
    assert "a summary" in request.messages[0].text
    assert attached(request.messages[1], request) == [PNG, PDF]


async def test_a_history_that_was_compacted_is_given_back_with_its_images() -> None:
    history: list[GivenTurn] = [
        {"role": "user", "parts": [PICTURE]},
        Turn(role="assistant", text="a net"),
        {"role": "user", "parts": ASKED},
    ]
    agent = seeing("they saw a net", compaction=Compaction(keep_recent_turns=1))
    made = await agent.compact(history, force=True)
    assert (made.compacted, len(made.history)) == (True, 2)
    assert requests(agent)[0].files == {}, "a summary is made of text alone"
    assert "[image: image-" in requests(agent)[0].messages[0].text
    assert made.before_tokens - made.after_tokens > 4_000, "an image less"
    again = seeing("the same")
    await again.run("And now?", history=made.history)
    (request,) = requests(again)
    assert attached(request.messages[1], request) == [PNG, PDF]


async def test_the_bytes_that_travel_with_a_turn_are_not_shown_with_it() -> None:
    made = await seeing().compact([{"role": "user", "parts": [PICTURE]}])
    assert "PNG" not in repr(made)
    assert made.history[0].attachments is not None


def refused(work: Any) -> Refusal:
    with pytest.raises(Refusal) as no:
        asyncio.run(work)
    return no.value


def test_a_model_that_does_not_take_them_is_named_before_anything_begins() -> None:
    agent = seeing(takes=("image/png",))
    for work in (agent.run(ASKED), agent.run("go", history=[{"role": "user", "parts": ASKED}])):
        told = refused(work)
        assert (told.status, told.code, told.more["model"]) == (422, "unsupported_input", "scripted/scripted")
        assert "not known to take application/pdf; it takes image/png" in told.message
    assert refused(Agent(name="a", model=ScriptedModel(answers=[])).run([PICTURE])).more["takes"] == []


@pytest.mark.parametrize(
    "fields, field, said",
    [
        ({"task": " "}, "input", "must not be empty"),
        ({"task": []}, "input", "at least 1 item"),
        ({"task": [{**PICTURE, "data": PDF}]}, "input.0", "other bytes than those of image/png"),
        ({"task": [{**PICTURE, "data": "%"}]}, "input.0.data", "is not base64"),
        (
            {"task": [{"type": "image", "media_type": "image/png", "url": "https://x.example/a.png"}]},
            "input.0",
            "bytes",
        ),
        ({"task": ["a text"]}, "input.0", "none of text, image and file"),
        ({"history": [{"role": "user"}]}, "history.0", "either `text` or `parts`"),
        ({"history": [{"role": "assistant", "parts": [PICTURE]}]}, "history.0", "only a user's turn"),
        ({"history": [Turn(role="user", text="")]}, "history.0.text", "must not be empty"),
    ],
)
def test_what_is_not_right_is_refused_and_the_field_named(fields: Mapping[str, Any], field: str, said: str) -> None:
    given: dict[str, Any] = {"task": "go", **fields}
    told = refused(seeing().run(**given))
    assert (told.status, told.code, told.more["field"]) == (422, "invalid_request", field)
    assert told.message.startswith(f"`{field}` ")
    assert said in told.message
    if "history" in fields:
        assert refused(seeing().compact(fields["history"])).more["field"] == field


def test_a_turn_that_has_lost_its_bytes_says_how_to_give_it() -> None:
    image = Attachment(name="image-1.png", media_type="image/png", bytes=3)
    turn = Turn(role="user", text=image.mark, attachments=(image,))
    told = refused(seeing().run("go", history=[Turn(role="user", text="a"), turn]))
    assert (told.code, told.more["field"]) == ("missing_file", "history.1")
    assert "names image-1.png and does not hold the bytes" in told.message
