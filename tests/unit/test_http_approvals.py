"""Approvals over HTTP: what the run's object is asked, links that open one request, and the page behind them."""

from typing import Any

import httpx2
import pytest

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.http.approval_links import LIFETIME, link_to, opened_link
from edge_agent.http.routing import is_link, opened_by_run_token
from tests.unit.http_fakes import KEY, TOKEN, Api, problem

HASH = "ab" * 32
NOW = 1_000_000_000
ASKED: JsonObject = {
    "call_id": "88l7qct9y",
    "name": "pay",
    "server": "bank",
    "arguments": {"to": "<script>alert(1)</script>"},
    "arguments_hash": HASH,
    "read_only": False,
    "step": 1,
    "round": 1,
    "status": "pending",
    "expires_at": NOW + 60_000,
}
PATH = "/v1/runs/r1/approvals/88l7qct9y"
BROWSER = {"accept": "text/html"}


def api_with(**asked: Any) -> Api:
    api = Api("https://agent.example", TOKEN=TOKEN)
    api.runs.known["r1"] = {}
    api.runs.approval = {**ASKED, **asked}
    return api


def link(**asked: Any) -> str:
    return link_to(KEY, "r1", {**ASKED, **asked}, NOW)


async def decided(api: Api, body: Any, path: str = PATH) -> httpx2.Response:
    return await api.post(path, body, authorization=f"Bearer {TOKEN}")


# -- for callers with a token
async def test_a_decision_goes_to_the_runs_object_as_it_was_sent() -> None:
    api = api_with()
    body = {"approved": True, "arguments": {"n": 1}, "arguments_hash": HASH, "remember": {"arguments": {"n": "1*"}}}
    assert (await decided(api, body)).json()["name"] == "pay"
    assert api.runs.asked == [("r1", "decision", {"call_id": "88l7qct9y", **body})]


@pytest.mark.parametrize(
    "body, field",
    [
        ({}, "approved"),
        ({"approved": "yes"}, "approved"),
        ({"approved": True, "arguments": "x"}, "arguments"),
        ({"approved": True, "arguments_hash": "x"}, "arguments_hash"),
        ({"approved": True, "remember": {"argument": {}}}, "remember.RememberCalls.arguments"),
        ({"approved": True, "sure": 1}, "sure"),
    ],
)
async def test_a_decision_that_says_too_little_or_something_else_is_refused_with_its_field(
    body: JsonObject, field: str
) -> None:
    api = api_with()
    answer = problem(await decided(api, body), 422, "invalid_request")
    assert field in [found["field"] for found in answer["errors"]]
    assert api.runs.asked == []


async def test_the_state_and_the_request_carry_a_link_for_api_tokens_and_none_for_run_tokens() -> None:
    api = api_with()
    bearer = {"authorization": f"Bearer {TOKEN}"}
    expected = link()
    assert (await api.get("/v1/runs/r1", **bearer)).json()["approvals"][0]["link"] == expected
    assert (await api.get(PATH, **bearer)).json()["link"] == expected
    started = (await api.post("/v1/runs", {"input": "x", "run_id": "r2"}, **bearer)).json()
    shown = {"authorization": f"Bearer {started['stream_token']}"}
    assert "link" not in (await api.get("/v1/runs/r2", **shown)).json()["approvals"][0]
    assert "link" not in (await api.get("/v1/runs/r2/approvals/c", **shown)).json()
    problem(await api.get(PATH, **shown), 403, "token_scope")


async def test_a_request_that_is_decided_has_no_link() -> None:
    api = api_with(status="approved")
    assert "link" not in (await api.get(PATH, authorization=f"Bearer {TOKEN}")).json()


async def test_a_run_token_may_only_tighten_and_an_api_token_may_do_what_the_agent_allows() -> None:
    api = api_with()
    started = (await api.post("/v1/runs", {"input": "x", "run_id": "r2"}, authorization=f"Bearer {TOKEN}")).json()
    for token, tighten in ((TOKEN, False), (started["stream_token"], True)):
        answer = await api.client.put(
            "/v1/runs/r2/approval-mode", json={"mode": "ask-all"}, headers={"authorization": f"Bearer {token}"}
        )
        assert answer.status_code == 200
        assert api.runs.asked[-1] == ("r2", "approval-mode", {"mode": "ask-all", "tighten": tighten})
    wrong = await api.client.put(
        "/v1/runs/r2/approval-mode", json={"mode": "never"}, headers={"authorization": f"Bearer {TOKEN}"}
    )
    problem(wrong, 422, "invalid_request")


def test_a_run_token_opens_the_requests_and_the_mode_of_its_run_by_the_right_methods_only() -> None:
    assert opened_by_run_token("GET", PATH) == opened_by_run_token("POST", PATH) == "r1"
    assert opened_by_run_token("PUT", "/v1/runs/r1/approval-mode") == "r1"
    assert [opened_by_run_token(method, PATH) for method in ("PUT", "DELETE")] == [None, None]
    assert opened_by_run_token("POST", "/v1/runs/r1/approval-mode") is None


# -- by a link
async def test_a_link_needs_no_token_shows_and_decides_once() -> None:
    api = api_with()
    about = {"call_id": "88l7qct9y", "arguments_hash": HASH}
    assert (await api.get(link())).json()["name"] == "pay"
    assert (await api.post(link(), {"approved": False, "reason": "no"})).json()["name"] == "pay"
    assert api.runs.asked == [
        ("r1", "approval", about),
        ("r1", "decision", {**about, "approved": False, "reason": "no", "once": True}),
    ]
    problem(await api.get(PATH), 401, "token_required")


async def test_a_link_takes_no_arguments_and_nothing_that_is_no_decision() -> None:
    api = api_with()
    wrong: list[JsonObject] = [{"approved": True, "arguments": {}}, {"approved": True, "remember": True}, {}]
    for body in (*wrong, {"approved": 1}):
        problem(await api.post(link(), body), 422, "invalid_request")
    for text in (b"approved=perhaps", b"", b"reason=x"):
        form = {"content-type": "application/x-www-form-urlencoded"}
        problem(await api.client.post(link(), content=text, headers=form), 422, "invalid_request")
    problem(await api.client.post(link(), content=b"<x/>", headers={"content-type": "text/xml"}), 415,
            "unsupported_media_type")  # fmt: skip
    assert api.runs.asked == []


async def test_a_form_is_taken_by_links_alone() -> None:
    api = api_with()
    form = {"content-type": "application/x-www-form-urlencoded", "authorization": f"Bearer {TOKEN}"}
    problem(await api.client.post(PATH, content=b"approved=true", headers=form), 415, "unsupported_media_type")
    assert (await api.client.post(link(), content=b"approved=true", headers=form)).status_code == 200


def test_every_part_of_a_link_is_signed() -> None:
    good = link().rsplit("/", 1)[1]
    assert opened_link(KEY, good, NOW).run_id == "r1"
    others = [
        good.replace(".r1.", ".r2."),
        good.replace("88l7qct9y", "88l7qct9z"),
        good.replace(HASH, "cd" * 32),
        good.replace(f".{NOW // 1000 + 60}.", f".{NOW // 1000 + 61}."),
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good.replace("el1.", "er1."),
        good + "x",
        "",
    ]
    for other in others:
        with pytest.raises(Refusal) as no:
            opened_link(KEY, other, NOW)
        assert (no.value.status, no.value.code) == (403, "wrong_link")
    with pytest.raises(Refusal):
        opened_link(b"o" * 32, good, NOW)


def test_a_link_lasts_as_long_as_its_request_and_a_week_where_that_lasts_for_ever() -> None:
    for until, seconds in ((NOW + 60_000, 60), (None, LIFETIME)):
        text = link(expires_at=until).rsplit("/", 1)[1]
        assert opened_link(KEY, text, NOW + seconds * 1000 - 1)
        with pytest.raises(Refusal) as no:
            opened_link(KEY, text, NOW + seconds * 1000)
        assert (no.value.status, no.value.code) == (410, "link_expired")


def test_only_the_one_path_of_links_needs_no_caller() -> None:
    assert is_link("/v1/approvals/x")
    assert not any(is_link(path) for path in ("/v1/approvals", "/v1/approvals/", "/v1/approvals/x/y", PATH))


# -- the page
async def test_the_page_shows_arguments_as_text_and_loads_and_runs_nothing() -> None:
    api = api_with(cause="lost")
    page = await api.get(link(), **BROWSER)
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src" not in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert "<script" not in page.text
    assert "nobody knows whether it happened" in page.text
    assert "1970-01-12 13:47 UTC" in page.text


@pytest.mark.parametrize("status", ["approved", "denied", "expired", "withdrawn"])
async def test_the_page_of_what_is_decided_has_no_form(status: str) -> None:
    page = await api_with(status=status, expires_at=None, server=None).get(link(), **BROWSER)
    assert "<form" not in page.text
    assert "<strong>" in page.text


async def test_a_link_that_opens_nothing_says_so_on_a_page_to_a_browser() -> None:
    page = await api_with().get("/v1/approvals/nonsense", **BROWSER)
    assert (page.status_code, "no link of this server" in page.text) == (403, True)
    problem(await api_with().get("/v1/approvals/nonsense"), 403, "wrong_link")
