"""What a client may send as parts, what comes of it, and what it is told where it may not."""

import base64
import zlib
from typing import Any

import pytest

from edge_agent.core.attachments import pieces
from edge_agent.wire.content import HistoryTurn, parts_of, said
from edge_agent.wire.http import StartRun
from edge_agent.wire.pdf import pages_of
from tests.unit.http_fakes import Api, problem

Json = dict[str, Any]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def packed(objects: bytes) -> bytes:
    return b"<</Type /ObjStm /N 2>>stream\r\n" + zlib.compress(objects) + b"\nendstream "


PDF = b"%PDF-1.7\n1 0 obj <</Type /Pages /Count 1>> 2 0 obj << /Type /Page >>"


def image(content: bytes = PNG, **more: Any) -> Json:
    return {"type": "image", "media_type": "image/png", "data": base64.b64encode(content).decode(), **more}


def file(content: bytes, name: str = "report.pdf", media_type: str = "application/pdf", **more: Any) -> Json:
    data = base64.b64encode(content).decode()
    return {"type": "file", "media_type": media_type, "name": name, "data": data, **more}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def start(*parts: Json, **more: Any) -> StartRun:
    return StartRun.model_validate({"input": list(parts), **more})


def test_parts_become_one_text_with_marks_and_files_named_by_their_bytes() -> None:
    told = said(start(text("Compare"), image(), text("with"), file(PDF), file(b"a,b\n1,2", "t.csv", "text/csv")).input)
    assert told.attachments is not None
    picture, report = told.attachments
    assert told.text == f"Compare\n[image: {picture.name}]\nwith\n[report.pdf: {report.name}]\n[t.csv]\na,b\n1,2"
    assert [(one.name, one.content) for one in told.files] == [(picture.name, PNG), (report.name, PDF)]
    assert (picture.name[:6], picture.name[-4:], picture.bytes, report.pages) == ("image-", ".png", len(PNG), 1)
    assert said(start(text("x"), image()).input).files == (told.files[0],), "the same bytes are the same file"


def test_a_string_and_parts_of_text_alone_have_no_files() -> None:
    assert said(StartRun(input="go").input) == said("go")
    assert said(start(text("go")).input) == said("go")


def test_what_was_said_with_files_can_be_sent_again_as_parts() -> None:
    asked = [image(), text(" two\n\nlines "), file(PDF), image(), text("end")]
    told = said(start(*asked).input)
    content = {one.name: base64.b64encode(one.content).decode() for one in told.files}
    assert list(parts_of(told.text, told.attachments or (), content)) == asked


def test_what_has_lost_its_mark_stands_at_the_end() -> None:
    told = said(start(text("see"), image()).input)
    assert list(pieces("see", told.attachments or ())) == ["see", *(told.attachments or ())]


def test_pages_are_counted_also_where_they_are_packed() -> None:
    two = packed(b"<</Type/Page>> <</Type /Page /P 1>>")
    assert [pages_of(one) for one in (PDF, two, b"%PDF-1.7", two + PDF + two)] == [1, 2, 0, 5]


def test_a_pdf_made_to_be_unpacked_for_ever_is_not() -> None:
    blank = packed(bytes(20_000_000))
    page = packed(b"/Type /Page")
    assert pages_of(blank + page) == 1
    assert pages_of(blank + blank + page) == 0, "more than is unpacked of one file"
    assert pages_of(b"/ObjStm stream" * 70_000 + PDF) == 1
    assert pages_of(b"/ObjStm stream x endstream" * 30_000 + b"<<" * 100_000) == 0


REFUSED: list[tuple[Json, str, str]] = [
    ({"type": "image", "url": "https://x.example/a.png"}, "input.0", "nothing is fetched"),
    ({"type": "image", "media_type": "image/png", "data": "https://x.example/a.png"}, "input.0", "nothing is fetched"),
    ({"type": "image", "media_type": "image/png", "data": "data:image/png;base64,aGk="}, "input.0.data", "comma"),
    ({"type": "image", "media_type": "image/png", "data": "not base64!"}, "input.0.data", "is not base64"),
    (image(b"GIF89a"), "input.0", "other bytes than those of image/png"),
    (image(media_type="image/tiff"), "input.0.media_type", "image/png"),
    (file(b"hello"), "input.0", "other bytes than those of application/pdf"),
    (file(b"%PDF-1.7 encrypted"), "input.0", "pages cannot be counted"),
    (file(b"\xff\xfe", "a.txt", "text/plain"), "input.0", "not UTF-8"),
    (file(PDF, "../up.pdf"), "input.0.name", "pattern"),
    (file(PDF, media_type="application/zip"), "input.0.media_type", "pattern"),
    ({"type": "audio", "data": "aGk="}, "input.0", "none of text, image and file"),
    (text(" "), "input.0.text", "must not be empty"),
]


@pytest.mark.parametrize("part, field, words", REFUSED)
async def test_a_part_that_cannot_be_taken_is_told_why(part: Json, field: str, words: str) -> None:
    told = problem(await Api().post("/v1/runs", {"input": [part]}), 422, "invalid_request")
    assert told["field"] == field
    assert words in told["detail"]


async def test_a_field_that_may_have_two_forms_is_named_as_the_client_knows_it() -> None:
    nothings: list[Any] = ["", " ", [], 7, None]
    for nothing in nothings:
        assert problem(await Api().post("/v1/runs", {"input": nothing}), 422, "invalid_request")["field"] == "input"


async def test_more_images_than_a_run_may_have_are_refused() -> None:
    many = [image(PNG + bytes([n])) for n in range(21)]
    told = problem(await Api().post("/v1/runs", {"input": many}), 422, "invalid_request")
    assert "21 images and PDF files" in told["detail"]
    assert (await Api().post("/v1/runs", {"input": [image()] * 21})).status_code == 202, "one file, however often"


async def test_a_turn_has_text_or_parts_and_parts_are_a_users() -> None:
    both = {"role": "user", "text": "x", "parts": [text("x")]}
    for turn, words in (
        (both, "either"),
        ({"role": "user"}, "either"),
        ({"role": "assistant", "parts": [image()]}, "user"),
    ):
        answer = await Api().post("/v1/runs", {"input": "go", "history": [turn]})
        assert words in problem(answer, 422, "invalid_request")["detail"]


async def test_the_runs_object_gets_the_bytes_beside_the_record() -> None:
    api = Api()
    body: Json = {"input": [image(), text("?")], "history": [{"role": "user", "parts": [image(), text("a")]}]}
    assert (await api.post("/v1/runs", body)).status_code == 202
    ((_, _, payload),) = api.runs.asked
    (sent,) = payload["files"]
    assert base64.b64decode(sent["base64"]) == PNG
    assert sent["base64"] not in str(payload["created"])


async def test_a_run_that_continues_another_is_sent_what_that_one_was() -> None:
    api = Api()
    await api.post("/v1/runs", {"input": "x", "run_id": "r1"})
    turn = HistoryTurn.model_validate({"role": "user", "parts": [text("see"), image()]})
    (stored,) = turn.said.files
    told = turn.turn()
    assert told.attachments is not None
    seen = told.attachments[0]
    kept = {"name": seen.name, "media_type": seen.media_type, "bytes": seen.bytes}
    api.runs.turns = [{"role": "user", "text": told.text, "attachments": [kept]}]
    api.runs.files = [{"name": stored.name, "media_type": "image/png", "base64": base64.b64encode(PNG).decode()}]
    assert (await api.post("/v1/runs", {"input": "and?", "continues": "r1"})).status_code == 202
    payload = api.runs.asked[-1][2]
    assert payload["created"]["history"][0]["text"] == told.text
    assert [one["name"] for one in payload["files"]] == [seen.name]
