"""Images and files in a run: who may be shown them, where their bytes are read, and what they count."""

import json
from typing import Any

import pytest

from edge_agent import Agent, Compaction, cpython, handoff
from edge_agent.core.attachments import TOKENS, Attachment
from edge_agent.core.errors import Refusal
from edge_agent.core.events import ContextCompacted, ModelAnswered, ModelRequested
from edge_agent.core.limits import Limits
from edge_agent.core.messages import MessageWithFiles, Turn, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Usage
from edge_agent.deployment import Deployment
from edge_agent.loop.fork import files_of
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.models.taking import takes_of
from edge_agent.storage.sql_log import Piece, SqlLog
from edge_agent.testing import in_memory_log
from edge_agent.wire.http import ForkChanges, StartRun
from edge_agent.wire.settings import Settings
from tests.unit.loop_kit import Lived, Setting, live
from tests.unit.test_content import PDF, image, start
from tests.unit.test_content import file as file_part

PNG = b"\x89PNG..."
IMAGE = Attachment(name="image-1.png", media_type="image/png", bytes=len(PNG))
SEEN = f"What is this?\n{IMAGE.mark}"
KEYS = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GOOGLE_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}
CLAUDE, GPT, GEMINI, DEEPSEEK = "anthropic/claude-opus-5", "openai/gpt-5", "google/gemini-3-pro", "deepseek/deepseek-v4"


# -- who may be shown them
def deployment(*agents: Agent, **env: str) -> Deployment:
    return Deployment(agents, Settings.from_env({**KEYS, **env}), cpython.model, cpython.source, cpython.fetcher)


def refused(deployed: Deployment, asked: StartRun) -> Refusal:
    with pytest.raises(Refusal) as no:
        deployed.configure(asked)
    assert (no.value.status, no.value.code, no.value.more["field"]) == (422, "unsupported_input", "input")
    return no.value


def test_a_model_that_takes_them_is_shown_images_and_files() -> None:
    for model in (CLAUDE, GPT, GEMINI):
        created = deployment(Agent(name="a", model=model)).configure(start(image(), file_part(PDF)))
        assert [file.media_type for file in created.files] == ["image/png", "application/pdf"]


@pytest.mark.parametrize(
    "fields",
    [
        {"model": DEEPSEEK},
        {"model": f"{CLAUDE},{DEEPSEEK}"},
        {"model": CLAUDE, "planner_model": DEEPSEEK},
        {"model": CLAUDE, "synthesizer_model": DEEPSEEK},
        {"model": CLAUDE, "tools": [handoff(Agent(name="b", model=DEEPSEEK))]},
    ],
)
def test_a_model_that_does_not_take_them_is_named_before_the_run_begins(fields: dict[str, Any]) -> None:
    deployed = deployment(Agent(name="a", **fields))
    told = refused(deployed, start(image()))
    assert told.more["model"] == DEEPSEEK
    assert f"{DEEPSEEK} is not known to take image/png; it takes text only" in told.message
    history = [{"role": "user", "parts": [image()]}]
    refused(deployed, StartRun.model_validate({"input": "go", "history": history}))
    assert deployed.configure(StartRun(input="go")).files == ()


def test_a_fork_is_not_switched_to_a_model_that_does_not_take_them() -> None:
    deployed = deployment(Agent(name="a", model=CLAUDE))
    created = deployed.configure(start(image()))
    assert deployed.forked(created, ForkChanges(model=GPT)).models == (GPT,)
    with pytest.raises(Refusal, match=DEEPSEEK):
        deployed.forked(created, ForkChanges(model=DEEPSEEK))


TAKEN = [
    ("anthropic/claude-3-haiku-20240307", "image/gif", True),
    ("anthropic/claude-3-haiku-20240307", "application/pdf", False),
    (CLAUDE, "application/pdf", True),
    (GEMINI, "image/gif", False),
    ("google/gemma-3", "image/png", False),
    ("openai/gpt-4o", "image/gif", True),
    ("openai/gpt-4o-mini", "image/png", False),
    ("openai/o3-mini", "image/png", False),
    ("openai-compatible/gpt-5", "image/png", False),
    ("mine/llava", "image/png", True),
    ("mine/llava", "image/gif", False),
    ("small/m", "image/png", False),
]


@pytest.mark.parametrize("model, media_type, takes", TAKEN)
def test_what_a_model_takes_is_known_by_its_name_or_said_by_its_entry(model: str, media_type: str, takes: bool) -> None:
    own = {"base_url": "https://m.example/v1", "takes": ["image/png"]}
    entries = {"mine": own, "small": {**own, "tool_mode": "json"}}
    variables = {"EDGE_AGENT_PROVIDERS": json.dumps(entries), "EDGE_AGENT_BASE_URL": "https://x.example/v1"}
    assert (media_type in takes_of(model, Settings.from_env({**KEYS, **variables}))) is takes


# -- in a run
def stored() -> SqlLog:
    log = in_memory_log()
    log.put_piece(IMAGE.name, 0, Piece("image/png", PNG, 1))
    return log


def lived(model: ScriptedModel, **more: Any) -> Lived:
    fields: dict[str, Any] = {"input": SEEN, "attachments": (IMAGE,), "log": stored(), **more}
    return live(Setting(model=model, **fields))


def shown(request: ModelRequest) -> list[Attachment]:
    said = (message for message in request.messages if isinstance(message, MessageWithFiles))
    return [file for message in said for file in message.attachments]


def test_the_bytes_go_with_the_request_and_into_no_record() -> None:
    model = ScriptedModel(answers=["a cat"])
    run = lived(model)
    (asked,) = model.requests
    assert asked.messages[-1] == MessageWithFiles(text=SEEN, attachments=(IMAGE,))
    assert asked.files == {IMAGE.name: PNG}
    assert files_of(run.records) == [IMAGE.name]
    assert run.state.input == SEEN


def test_every_stage_of_a_planned_run_is_shown_them() -> None:
    plan = json.dumps({"thought": "", "steps": [{"id": "look", "description": "look at it"}]})
    model = ScriptedModel(answers=[plan, "it is a cat", "A cat."])
    lived(model, mode="planned")
    assert [(shown(asked), asked.files) for asked in model.requests] == [([IMAGE], {IMAGE.name: PNG})] * 3


def test_an_image_counts_and_a_small_one_is_charged_with_what_its_provider_says() -> None:
    model = ScriptedModel(answers=[Answer(text="a cat", usage=Usage(input=300, output=2))])
    run = lived(model, limits=Limits(max_input_tokens=50_000))
    (asked,), (answered,) = run.of(ModelRequested), run.of(ModelAnswered)
    assert TOKENS < asked.estimated_input < TOKENS + 500
    assert answered.usage.input == 300
    assert run.state.spent.input == 300


def test_a_pdf_counts_by_its_pages() -> None:
    report = Attachment(name="file-1.pdf", media_type="application/pdf", bytes=9, title="r.pdf", pages=7)
    assert report.tokens == 7 * TOKENS


def test_what_is_folded_leaves_a_line_and_its_bytes_are_sent_no_more() -> None:
    old = [Turn(role="user", text=SEEN, attachments=(IMAGE,)), Turn(role="assistant", text="a cat")]
    newer = [Turn(role="user", text="and?"), Turn(role="assistant", text="nothing")]
    model = ScriptedModel(answers=["there was a cat", "as I said"])
    how = Compaction(keep_recent_turns=2, summary_max_tokens=64)
    run = lived(model, input="so?", attachments=None, history=(*old, *newer), window=5_500, compaction=how)
    summary, asked = model.requests
    assert IMAGE.mark in summary.messages[0].text
    assert type(summary.messages[0]) is UserMessage
    assert (shown(asked), asked.files) == ([], {})
    (folded,) = run.of(ContextCompacted)
    assert folded.before_tokens - folded.after_tokens > TOKENS - 500
