"""Logins to an MCP server behind a real authorization server, from runs of the deployed Worker in real workerd."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from scripts.serve import NODE_MODULES, ROOT, Server, serve
from tests.conftest import Figure
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, find, types

pytestmark = [
    pytest.mark.workerd,
    pytest.mark.mcp,
    pytest.mark.skipif(
        not (NODE_MODULES / ".bin" / "wrangler").exists() or not (ROOT / "python_modules").exists(),
        reason="the real runtime is not installed: run `make setup`",
    ),
]
SECRETS = re.compile(rb"access-[\w-]{22}|refresh-[\w-]{22}")


ROUNDS = 20


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": tool, "arguments": json.dumps(arguments)}]}


SCRIPT = {
    "look": [call("docs__lookup", q="one"), {"text": "Looked."}],
    "charge": [call("docs__charge", amount=3), call("docs__charge", amount=4), {"text": "Charged."}],
    "slowly": [call("docs__slow", steps=40), call("docs__charge", amount=5), {"text": "Charged."}],
    "endless": [call("docs__slow", steps=3_000)],
    "brief": [*(call("brief__slow", steps=steps) for steps in range(10, 10 + ROUNDS)), {"text": "Twenty times."}],
}


@dataclass(frozen=True)
class Place:
    """A Worker, and the servers that it may only use after a login. Tokens of `brief` live five seconds."""

    worker: Server
    docs: Running
    brief: Running

    def post(self, path: str, **params: str) -> None:
        httpx2.post(f"{self.docs.url}/{path}", params=params, timeout=30).raise_for_status()


def log_of(server: Running) -> dict[str, Any]:
    return httpx2.get(f"{server.url}/_log", timeout=30).json()


def count(server: Running, *entry: str) -> int:
    return sum(1 for logged in log_of(server)["log"] if logged[: len(entry)] == list(entry))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    state = tmp_path_factory.mktemp("oauth")
    (state / "script.json").write_text(json.dumps(SCRIPT))
    with (
        running("oauth_server.py") as docs,
        running("oauth_server.py", "--ttl", "5") as brief,
        running("model_server.py", "--script", str(state / "script.json")) as model,
    ):
        servers = {name: {"url": f"{one.url}/mcp", "auth": "oauth"} for name, one in (("docs", docs), ("brief", brief))}
        variables = {
            "EDGE_AGENT_TOKEN": "alice:token-of-alice,bob:token-of-bob",
            "EDGE_AGENT_MODEL": "openai-compatible/look",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_MCP_SERVERS": json.dumps(servers),
            "EDGE_AGENT_TOOL_SELECTION": "all",
            "EDGE_AGENT_LIMITS": json.dumps({"max_steps": ROUNDS + 1}),
        }
        with serve(state=state, variables=variables) as server:
            yield Place(server, docs, brief)


@pytest.fixture
def alice(place: Place) -> Iterator[Api]:
    with Api(place.worker.url, "token-of-alice") as client:
        yield client


@pytest.fixture
def bob(place: Place) -> Iterator[Api]:
    with Api(place.worker.url, "token-of-bob") as client:
        yield client


class Browser:
    """What a browser does with a link: it keeps cookies and follows redirects, one at a time."""

    def __init__(self, http: httpx2.Client) -> None:
        self.http = http

    def begins(self, link: str) -> httpx2.Response:
        """Presses the button of the page behind the link."""
        page = self.http.get(link)
        assert page.status_code == 200, page.text
        assert "<form method=post>" in page.text
        return self.http.post(link, headers={"origin": str(self.http.base_url).rstrip("/")})

    def allows(self, begun: httpx2.Response) -> str:
        """Lets the agent in, and returns where the authorization server sends the browser back to."""
        assert begun.status_code == 303, begun.text
        consent = self.http.get(begun.headers["location"])
        assert consent.status_code == 302, consent.text
        return self.http.post(consent.headers["location"]).headers["location"]

    def signs_in(self, link: str) -> httpx2.Response:
        done = self.http.get(self.allows(self.begins(link)))
        assert done.status_code == 200, done.text
        return done


@pytest.fixture
def browser(place: Place) -> Iterator[Browser]:
    with httpx2.Client(base_url=place.worker.url, timeout=60) as http:
        yield Browser(http)


@pytest.fixture
def another(place: Place) -> Iterator[Browser]:
    with httpx2.Client(base_url=place.worker.url, timeout=60) as http:
        yield Browser(http)


def asked(api: Api, run_id: str) -> list[Event]:
    """The questions of a run that waits for logins."""
    state = api.until(run_id, lambda state: state["status"] == "waiting")
    assert state["waiting_for"]["reasons"] == ["authorization"], state
    return state["waiting_for"]["questions"]


def links(api: Api, run_id: str) -> dict[str, str]:
    """By server, where the run waits for a login."""
    return {question["server"]: question["url"] for question in asked(api, run_id)}


def completed(api: Api, run_id: str) -> list[Event]:
    state = api.ended(run_id)
    assert state["status"] == "completed", state
    return api.records(run_id)


def connected(api: Api, browser: Browser, server: str) -> None:
    """The caller's login to the server is there."""
    answer = api.post(f"/v1/mcp/{server}/connect").json()
    if answer["state"] != "connected":
        browser.signs_in(answer["link"])


def test_a_run_waits_for_a_login_and_goes_on_by_itself_when_somebody_has_signed_in(
    place: Place, alice: Api, browser: Browser
) -> None:
    run_id = alice.start(model="look")
    found = links(alice, run_id)
    assert found.keys() == {"docs", "brief"}
    waiting = find(alice.records(run_id), "run.waiting")
    assert (waiting["for"], waiting["url"]) == (["authorization"], found["docs"])
    assert "Signed in to docs" in browser.signs_in(found["docs"]).text
    browser.signs_in(found["brief"])
    records = completed(alice, run_id)
    assert find(records, "tool.result")["output"] == "found one"
    assert types(records).count("question.asked") == 2
    assert {event["by"] for event in records if event["type"] == "question.answered"} == {"person"}
    assert alice.post("/v1/mcp/docs/connect").json()["state"] == "connected"


def test_a_login_is_of_one_user_and_serves_all_runs_of_it(place: Place, alice: Api, bob: Api, browser: Browser) -> None:
    for server in ("docs", "brief"):
        connected(alice, browser, server)
    assert "question.asked" not in types(completed(alice, alice.start(model="look")))
    run_id = bob.start(model="look")
    assert {question["server"] for question in asked(bob, run_id)} == {"docs", "brief"}
    for question in asked(bob, run_id):
        bob.post(f"/v1/runs/{run_id}/answers/{question['question_id']}", {"answer": "skip"})
    records = completed(bob, run_id)
    said = {event["message"] for event in records if event["type"] == "fault"}
    assert "Nobody has signed in to the MCP server docs. Its tools are left out." in said
    assert find(records, "tool.rejected")["reason"] == "unknown-tool"


def test_a_state_is_good_for_one_callback_in_the_browser_that_began(
    place: Place, bob: Api, browser: Browser, another: Browser
) -> None:
    link = bob.post("/v1/mcp/docs/connect").json()["link"]
    back = browser.allows(browser.begins(link))
    stolen = another.http.get(back)
    assert (stolen.status_code, "not begun in this browser" in stolen.text) == (403, True)
    assert bob.post("/v1/mcp/docs/connect").json()["state"] == "sign-in"
    assert browser.http.get(back).status_code == 200
    again = browser.http.get(back)
    assert (again.status_code, "was finished before" in again.text) == (403, True)
    forged = browser.http.get(back.replace("state=es1.docs.", "state=es1.brief."))
    assert forged.status_code == 403
    assert browser.http.get(link.replace("em1.docs", "em1.brief")).status_code == 403
    assert bob.post("/v1/mcp/docs/connect").json()["state"] == "connected"


def test_a_login_that_is_refused_says_so_and_may_be_tried_again(place: Place, bob: Api, browser: Browser) -> None:
    link = bob.post("/v1/mcp/brief/connect").json()["link"]
    back = browser.allows(browser.begins(link))
    refused = browser.http.get(re.sub(r"code=[^&]+", "error=access_denied", back))
    assert (refused.status_code, "was not allowed to let the agent in" in refused.text) == (502, True)
    status = bob.post("/v1/mcp/brief/connect").json()
    assert status["state"] == "failed"
    browser.signs_in(status["link"])
    assert bob.post("/v1/mcp/brief/connect").json()["state"] == "connected"


def test_a_token_that_is_refused_in_the_middle_of_a_run_is_renewed_and_the_call_made_once(
    place: Place, alice: Api, browser: Browser
) -> None:
    for server in ("docs", "brief"):
        connected(alice, browser, server)
    before = count(place.docs, "refreshed")
    place.post("_revoke")
    records = completed(alice, alice.start(model="charge"))
    assert [event["output"] for event in records if event["type"] == "tool.result"] == ["charged 3", "charged 4"]
    assert "question.asked" not in types(records)
    assert count(place.docs, "refreshed") == before + 1


def test_a_run_does_not_ask_for_a_login_where_the_authorization_server_is_what_is_broken(
    place: Place, alice: Api, browser: Browser
) -> None:
    for server in ("docs", "brief"):
        connected(alice, browser, server)
    place.post("_revoke")
    place.post("_break")
    try:
        records = completed(alice, alice.start(model="look"))
        status = alice.post("/v1/mcp/docs/connect").json()
    finally:
        place.post("_break", mend="1")
    assert "question.asked" not in types(records)
    assert any(
        "could not renew the token (HTTP 500)" in event["message"] for event in records if event["type"] == "fault"
    )
    assert (status["state"], "HTTP 500" in status["fault"]) == ("failed", True)
    assert find(completed(alice, alice.start(model="look")), "tool.result")["output"] == "found one"
    assert alice.post("/v1/mcp/docs/connect").json()["state"] == "connected"


def test_a_call_that_nobody_may_make_any_more_waits_for_a_login_and_is_made_once(
    place: Place, alice: Api, browser: Browser
) -> None:
    for server in ("docs", "brief"):
        connected(alice, browser, server)
    before = count(place.docs, "call", "slow")
    run_id = alice.start(model="slowly")
    alice.until(run_id, lambda _: count(place.docs, "call", "slow") > before)
    place.post("_revoke", refresh="1")
    (question,) = asked(alice, run_id)
    browser.signs_in(question["url"])
    records = completed(alice, run_id)
    assert [event["output"] for event in records if event["type"] == "tool.result"] == ["slept", "charged 5"]
    assert next(event["key"] for event in records if event["type"] == "question.asked") == "s1/r2/c0/ask/0"
    called = [event["key"] for event in records if event["type"] == "tool.called"]
    assert called == ["s1/r1/c0/call", "s1/r2/c0/call", "s1/r2/c0/call/1"]
    charges = log_of(place.docs)["charges"]
    assert [charges[name] for name in charges if '"amount": 5' in name] == [1]


def test_a_call_that_is_cancelled_is_cancelled_at_the_server_behind_the_login(
    place: Place, alice: Api, browser: Browser
) -> None:
    for server in ("docs", "brief"):
        connected(alice, browser, server)
    called, cancelled = count(place.docs, "call", "slow"), count(place.docs, "cancelled")
    run_id = alice.start(model="endless")
    alice.until(run_id, lambda _: count(place.docs, "call", "slow") > called)
    assert alice.post(f"/v1/runs/{run_id}/cancel").status_code < 300
    alice.until(run_id, lambda _: count(place.docs, "cancelled") == cancelled + 1)
    assert alice.ended(run_id)["status"] == "cancelled"
    assert find(alice.records(run_id), "tool.unknown")["cause"] == "cancelled"


def test_a_run_of_twenty_calls_outlives_its_tokens_of_five_seconds(
    place: Place, alice: Api, browser: Browser, figure: Figure
) -> None:
    for server in ("docs", "brief"):
        connected(alice, browser, server)
    before = count(place.brief, "refreshed")
    records = completed(alice, alice.start(model="brief"))
    assert [event["ok"] for event in records if event["type"] == "tool.result"] == [True] * ROUNDS
    assert "question.asked" not in types(records)
    renewed = count(place.brief, "refreshed") - before
    figure(f"{ROUNDS} calls, {renewed} tokens renewed on the way")
    assert renewed >= 1


def test_a_login_outlives_the_kill_of_the_runtime_between_redirect_and_callback(
    place: Place, bob: Api, browser: Browser
) -> None:
    place.post("_revoke", refresh="1")
    connected(bob, browser, "brief")
    run_id = bob.start(model="look")
    back = browser.allows(browser.begins(links(bob, run_id)["docs"]))
    place.worker.kill_runtime()
    place.worker.wait_until_ready()
    assert browser.http.get(back).status_code == 200
    assert find(completed(bob, run_id), "tool.result")["output"] == "found one"


def test_no_token_rests_in_the_open_or_is_told_to_anyone(
    place: Place, alice: Api, browser: Browser, figure: Figure
) -> None:
    """Of everything that the tests above have written: storage, log of the runtime, records."""
    connected(alice, browser, "docs")
    issued = count(place.docs, "issued") + count(place.docs, "refreshed")
    files = [place.worker.log, *(path for path in (place.worker.state / "storage").rglob("*") if path.is_file())]
    found = [path for path in files if SECRETS.search(path.read_bytes())]
    stored = [path for path in files if path.suffix == ".sqlite"]
    figure(f"{issued} tokens issued, {len(stored)} databases searched, {len(found)} files hold one")
    assert issued
    assert stored
    assert found == []
