"""The fetch transport, and the MCP client over it, in real workerd against real sockets."""

import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from scripts.serve import NODE_MODULES, ROOT, Server, serve
from tests.mcp.http_server import HttpServer, http_server
from tests.servers.mcp_server import McpTestServer, mcp_server

pytestmark = [
    pytest.mark.workerd,
    pytest.mark.skipif(
        not (NODE_MODULES / ".bin" / "wrangler").exists() or not (ROOT / "python_modules").exists(),
        reason="the real runtime is not installed: run `make setup`",
    ),
]
SETTINGS: dict[str, Any] = {
    "durable_objects": {"bindings": [{"name": "PROBE", "class_name": "Probe"}]},
    "migrations": [{"tag": "v1", "new_sqlite_classes": ["Probe"]}],
    "assets": {"directory": "web", "binding": "ASSETS", "run_worker_first": ["/*"]},
}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    overlay = Path(__file__).parent / "worker"
    state = tmp_path_factory.mktemp("transport")
    with serve(state=state, overlay=overlay, settings=SETTINGS, ready_path="/ready") as server:
        yield server


@pytest.fixture
async def http() -> AsyncIterator[HttpServer]:
    async with http_server() as server:
        yield server


@pytest.fixture(params=["event-stream", "json"])
async def mcp(request: pytest.FixtureRequest) -> AsyncIterator[McpTestServer]:
    async with mcp_server(json_response=request.param == "json") as server:
        yield server


class Probes:
    def __init__(self, worker: Server) -> None:
        self.worker = worker

    async def __call__(self, probe: str, url: str, **given: str | float) -> Any:
        async with httpx2.AsyncClient(timeout=60) as client:
            answer = await client.get(f"{self.worker.url}/{probe}?{urlencode({'url': url, **given})}")
        assert answer.status_code == 200, f"{answer.text}\n{self.worker.log_tail()}"
        return json.loads(answer.text)


@pytest.fixture
def probe(worker: Server) -> Probes:
    return Probes(worker)


async def test_headers_and_body_arrive_as_given(probe: Probes, http: HttpServer) -> None:
    echoed = (await probe("get", f"{http.origin}/echo"))["text"]
    assert "x-secret: s3cret" in echoed
    assert "user-agent: probe/1" in echoed
    assert (await probe("post", f"{http.origin}/echo"))["text"].startswith("POST 5000\n")


@pytest.mark.parametrize("code", [204, 304])
async def test_an_answer_without_a_body_is_an_answer(probe: Probes, http: HttpServer, code: int) -> None:
    assert (await probe("get", f"{http.origin}/status/{code}"))["status"] == code


async def test_head_is_answered(probe: Probes, http: HttpServer) -> None:
    answer = await probe("get", f"{http.origin}/status/200", method="HEAD")
    assert answer["status"] == 200
    assert ["x-method", "HEAD"] in answer["headers"]


async def test_a_redirect_is_never_followed(probe: Probes, http: HttpServer) -> None:
    async with http_server() as other:
        answer = await probe("get", f"{http.origin}/redirect/{other.port}")
        assert answer["status"] == 307
        assert ["location", f"{other.origin}/elsewhere"] in answer["headers"]
        assert other.seen == []


async def test_every_cookie_is_kept_and_a_squeezed_body_unpacked_once(probe: Probes, http: HttpServer) -> None:
    cookies = [
        value for name, value in (await probe("get", f"{http.origin}/cookies"))["headers"] if name == "set-cookie"
    ]
    assert cookies == ["a=1; Path=/", "b=2"]
    assert (await probe("get", f"{http.origin}/gzip"))["text"] == "squeezed" * 100


async def test_chunks_come_as_they_are_sent(probe: Probes, http: HttpServer) -> None:
    came = (await probe("arrivals", f"{http.origin}/drip/4"))["came"]
    assert len(came) == 4
    assert came[-1] - came[0] > 400


async def test_a_large_body_arrives_whole_at_a_slow_reader(probe: Probes, http: HttpServer) -> None:
    assert (await probe("arrivals", f"{http.origin}/big/9", pause=0.005))["size"] == 9_000_000


@pytest.mark.parametrize("kind", ["endless", "silent"])
async def test_a_cancel_in_the_body_closes_the_connection(probe: Probes, http: HttpServer, kind: str) -> None:
    answer = await probe("cancelled", f"{http.origin}/{kind}", when="body")
    assert answer["cancelled"]
    await http.saw(f"{kind} gone")


async def test_a_cancel_before_the_headers_closes_the_connection(probe: Probes, http: HttpServer) -> None:
    assert (await probe("cancelled", f"{http.origin}/hang", when="headers"))["cancelled"]
    await http.saw("hang gone")


async def test_an_answer_that_is_closed_unread_closes_the_connection(probe: Probes, http: HttpServer) -> None:
    assert (await probe("closed_unread", f"{http.origin}/endless"))["status"] == 200
    await http.saw("endless gone")


async def test_a_server_that_works_longer_than_the_connect_timeout_is_waited_for(
    probe: Probes, http: HttpServer
) -> None:
    assert (await probe("get", f"{http.origin}/late/0.6", connect=0.2, read=5))["text"] == "late"


async def test_silence_is_a_read_timeout_before_the_headers_and_in_the_body(probe: Probes, http: HttpServer) -> None:
    assert (await probe("get", f"{http.origin}/hang", connect=0.2, read=0.2))["raised"] == "ReadTimeout"
    await http.saw("hang gone")
    assert (await probe("get", f"{http.origin}/silent", read=0.3))["raised"] == "ReadTimeout"
    await http.saw("silent gone")


async def test_a_refused_and_a_lost_connection_are_both_one_that_may_have_arrived(
    probe: Probes, http: HttpServer
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        refused = await probe("get", f"http://127.0.0.1:{free.getsockname()[1]}/")
    unanswered = await probe("get", f"{http.origin}/unanswered")
    assert (refused["raised"], unanswered["raised"]) == ("ReadError", "ReadError")
    # If these ever differ, the transport can say ConnectError and an unsafe call to a dead server is no longer unknown.
    assert refused["message"] == unanswered["message"] == "Network connection lost."


async def test_a_body_that_is_cut_off_is_a_read_error(probe: Probes, http: HttpServer) -> None:
    assert (await probe("get", f"{http.origin}/cut"))["raised"] == "ReadError"


async def test_a_whole_session_works_in_workerd(probe: Probes, mcp: McpTestServer) -> None:
    answer = await probe("mcp", mcp.url)
    assert (answer["refresh"], answer["tools"], answer["echo"]) == ([], 165, [True, "hi"])
    assert answer["slow"] == [True, "slept"]
    assert answer["bad_structured"][1].startswith("all of it")
    assert answer["progress"] == ([] if mcp.json_response else [0, 1, 2])


async def test_an_older_session_works_in_workerd_and_is_ended(probe: Probes) -> None:
    async with mcp_server(legacy=True) as mcp:
        answer = await probe("mcp", mcp.url)
        assert (answer["refresh"], answer["echo"], answer["progress"]) == ([], [True, "hi"], [0, 1, 2])
        await mcp.logged("DELETE")


@pytest.mark.parametrize("legacy", [False, True])
async def test_a_cancel_in_workerd_reaches_the_server(probe: Probes, *, legacy: bool) -> None:
    async with mcp_server(legacy=legacy) as mcp:
        assert (await probe("mcp_call", mcp.url, tool="slow", after=0.5))["raised"] == "TimeoutError"
        await mcp.logged("cancelled")


async def test_an_unsafe_call_whose_answer_is_lost_in_workerd_has_an_unknown_outcome(
    probe: Probes, mcp: McpTestServer
) -> None:
    mcp.fault = "drop"
    answer = await probe("mcp_call", mcp.url, tool="charge", arguments='{"amount": 5}')
    assert answer["raised"] == "OutcomeUnknown", answer
    assert sum(mcp.charges.values()) == 1
