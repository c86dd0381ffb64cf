"""Images and PDF files on every wire, and in the record that names them."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from edge_agent.core.attachments import Attachment
from edge_agent.core.events import RunCreated
from edge_agent.core.messages import MessageWithFiles, Turn, UserMessage, user_message
from edge_agent.core.model import ModelRequest
from edge_agent.models.adapter import Adapter
from edge_agent.models.anthropic import Anthropic
from edge_agent.models.endpoint import Endpoint, Profile
from edge_agent.models.google import Google
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.workers_ai import WorkersAI
from edge_agent.wire import codec
from tests.wire import google_rules, openai_rules, test_workers_ai_request
from tests.wire.anthropic_rules import faults
from tests.wire.event_samples import RECORDED

Json = dict[str, Any]
PNG, PDF = b"\x89PNG\r\n\x1a\n...", b"%PDF-1.7 /Type /Page"
IMAGE = Attachment(name="image-1.png", media_type="image/png", bytes=len(PNG))
REPORT = Attachment(name="file-2.pdf", media_type="application/pdf", bytes=len(PDF), title="report.pdf", pages=1)
FILES = {IMAGE.name: PNG, REPORT.name: PDF}
BOTH = MessageWithFiles(text=f"Compare\n{IMAGE.mark}\nwith\n{REPORT.mark}", attachments=(IMAGE, REPORT))
ALONE = MessageWithFiles(text=IMAGE.mark, attachments=(IMAGE,))


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def body(adapter: Adapter, model: str, *messages: UserMessage, **more: Any) -> Json:
    """As it is sent, by the rules of its wire."""
    fields: Json = {"system": "", "messages": messages, "max_output_tokens": 1_000, "files": FILES, **more}
    request = ModelRequest(**fields)
    at = Endpoint(provider="p", base_url="https://x", key="k", key_header="x-api-key", profile=Profile())
    made = adapter.call(request, at, model)
    match adapter:
        case Anthropic():
            assert faults(made.body, made.headers) == []
        case Google():
            google_rules.check(model, made.body)
        case WorkersAI():
            test_workers_ai_request.check(made.body)
        case _:
            openai_rules.check(made.body, "default")
    return made.body


def test_claude_gets_blocks_in_the_order_in_which_they_were_sent() -> None:
    (turn,) = body(Anthropic(), "claude-opus-5", BOTH)["messages"]
    assert turn["content"] == [
        {"type": "text", "text": "Compare"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64_of(PNG)}},
        {"type": "text", "text": "with"},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": base64_of(PDF)},
            "title": "report.pdf",
        },
    ]


def test_gemini_gets_inline_data() -> None:
    (turn,) = body(Google(), "gemini-3-flash-preview", BOTH)["contents"]
    assert turn["parts"] == [
        {"text": "Compare"},
        {"inlineData": {"mimeType": "image/png", "data": base64_of(PNG)}},
        {"text": "with"},
        {"inlineData": {"mimeType": "application/pdf", "data": base64_of(PDF)}},
    ]


def test_chat_completions_get_data_addresses() -> None:
    (turn,) = body(OpenAIChat(), "gpt-5", BOTH)["messages"]
    file = {"filename": "report.pdf", "file_data": f"data:application/pdf;base64,{base64_of(PDF)}"}
    assert turn["content"] == [
        {"type": "text", "text": "Compare"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64_of(PNG)}", "detail": "high"}},
        {"type": "text", "text": "with"},
        {"type": "file", "file": file},
    ]


def test_workers_ai_gets_images_without_details() -> None:
    (turn,) = body(WorkersAI(), "meta/llama-4-scout-17b-16e-instruct", ALONE)["messages"]
    assert turn["content"] == [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64_of(PNG)}"}}]


ADAPTERS = [
    (Anthropic(), "claude-opus-5"),
    (Google(), "gemini-3-flash-preview"),
    (OpenAIChat(), "gpt-5"),
    (WorkersAI(), "meta/llama-4-scout-17b-16e-instruct"),
]


@pytest.mark.parametrize("adapter, model", ADAPTERS)
def test_a_file_whose_bytes_are_gone_leaves_its_mark(adapter: Adapter, model: str) -> None:
    assert IMAGE.mark in str(body(adapter, model, ALONE, files={}))


@pytest.mark.parametrize("adapter, model", ADAPTERS)
def test_text_alone_is_told_as_it_always_was(adapter: Adapter, model: str) -> None:
    plain = user_message("hi", None)
    assert type(plain) is UserMessage
    assert body(adapter, model, plain) == body(adapter, model, UserMessage(text="hi"), files={})


def test_the_rules_refuse_what_the_wires_do_not_take() -> None:
    gif = replace(IMAGE, media_type="image/gif")
    with pytest.raises(google_rules.Refused, match="image/gif"):
        body(Google(), "gemini-3-flash-preview", MessageWithFiles(text=gif.mark, attachments=(gif,)))
    odd = replace(IMAGE, media_type="image/tiff")
    with pytest.raises(AssertionError, match="malformed"):
        body(Anthropic(), "claude-opus-5", MessageWithFiles(text=odd.mark, attachments=(odd,)))
    with pytest.raises(openai_rules.Refused, match="data: address"):
        body(OpenAIChat(), "gpt-5", MessageWithFiles(text=odd.mark, attachments=(odd,)))


def test_the_record_names_the_files_and_reads_back() -> None:
    turn = Turn(role="user", text=ALONE.text, attachments=(IMAGE,))
    plain = RECORDED[0]
    assert isinstance(plain, RunCreated)
    created = replace(plain, input=BOTH.text, attachments=(IMAGE, REPORT), history=(turn,))
    told = codec.encode(created)
    image = {"name": "image-1.png", "media_type": "image/png", "bytes": len(PNG)}
    report = {
        "name": "file-2.pdf",
        "media_type": "application/pdf",
        "bytes": len(PDF),
        "title": "report.pdf",
        "pages": 1,
    }
    assert told["attachments"] == [image, report]
    assert told["history"] == [{"role": "user", "text": "[image: image-1.png]", "attachments": [image]}]
    assert codec.decode("run.created", told) == created
