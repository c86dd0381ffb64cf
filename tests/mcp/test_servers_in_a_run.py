"""What servers do to a run at work: they restart, change, stay silent, send us elsewhere, and answer in any order."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from scripts.serve import NODE_MODULES, ROOT, Server, free_port, serve
from tests.servers.running import Running, running, running_command
from tests.workerd.client import Api, Event

pytestmark = [
    pytest.mark.workerd,
    pytest.mark.mcp,
    pytest.mark.skipif(
        not (NODE_MODULES / ".bin" / "wrangler").exists() or not (ROOT / "python_modules").exists(),
        reason="the real runtime is not installed: run `make setup`",
    ),
]


def call(tool: str, **arguments: Any) -> dict[str, str]:
    return {"name": tool, "arguments": json.dumps(arguments)}


SCRIPT = {
    "restart": [
        {"calls": [call("old__charge", amount=1), call("docs__slow", steps=250)]},
        {"calls": [call("old__charge", amount=2)]},
        {"text": "Done."},
    ],
    "reverse": [{"calls": [call("docs__slow", steps=30), call("docs__lookup", q="two")]}, {"text": "Done."}],
    "grown": [{"calls": [call("docs__slow", steps=41)]}, {"calls": [call("docs__tool_151")]}, {"text": "Done."}],
    "rotated": [
        {"calls": [call("keyed__slow", steps=100)]},
        {"calls": [call("keyed__charge", amount=7)]},
        {"text": "Ok."},
    ],
    "misfit": [{"calls": [call("docs__bad_structured")]}, {"text": "Done."}],
}

AGENTS = """
import js
from edge_agent import Agent, McpServer


async def token():
    answer = await js.fetch("{url}/_token")
    return {{"authorization": "Bearer " + await answer.text()}}


agents = [Agent(name="assistant", mcp_servers={{"keyed": McpServer(url="{url}/mcp", get_headers=token)}})]
"""


@dataclass
class Restartable:
    """The older generation, as a process that a test may end and start again at the same port."""

    port: int = field(default_factory=free_port)
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.servers.mcp_server", "--port", str(self.port), "--legacy"]
        self.stack.enter_context(running_command(command, self.port))

    def restart(self) -> None:
        self.stack.close()
        self.start()


@dataclass(frozen=True)
class Place:
    worker: Server
    docs: Running
    elsewhere: Running
    keyed: Running
    old: Restartable


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    state, old = tmp_path_factory.mktemp("servers"), Restartable()
    (state / "script.json").write_text(json.dumps(SCRIPT))
    with (
        running("mcp_server.py") as docs,
        running("mcp_server.py") as elsewhere,
        running("mcp_server.py", "--never") as mute,
        running("mcp_server.py", "--token", "first") as keyed,
        running("model_server.py", "--script", str(state / "script.json")) as model,
        old.stack,
    ):
        old.start()
        away = f"{docs.url}/moved-away?{elsewhere.url.removeprefix('http://')}"
        servers = {
            "docs": {"url": f"{docs.url}/mcp"},
            "old": {"url": f"{old.url}/mcp"},
            "mute": {"url": f"{mute.url}/mcp", "connect_timeout": 1},
            "moved": {"url": away, "headers": {"x-secret": "s3cret-of-moved"}},
        }
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/misfit",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_MCP_SERVERS": json.dumps(servers),
            "EDGE_AGENT_TOOL_SELECTION": "all",
        }
        overlay = state / "overlay"
        overlay.mkdir()
        (overlay / "agents.py").write_text(AGENTS.format(url=keyed.url))
        with serve(state=state, overlay=overlay, variables=variables) as server:
            yield Place(server, docs, elsewhere, keyed, old)


@pytest.fixture
def api(place: Place) -> Iterator[Api]:
    with Api(place.worker.url) as client:
        yield client


def log_of(url: str) -> dict[str, Any]:
    return httpx2.get(f"{url}/_log", timeout=30).json()


def slow_calls(place: Place) -> int:
    return log_of(place.docs.url)["log"].count(["call", "slow"])


def completed(api: Api, run_id: str) -> list[Event]:
    state = api.ended(run_id)
    assert state["status"] == "completed", state
    return api.records(run_id)


def outputs(records: list[Event]) -> dict[str, str]:
    return {event["key"]: event["output"] for event in records if event["type"] == "tool.result"}


def faults(records: list[Event]) -> str:
    return " ".join(event["message"] for event in records if event["type"] == "fault")


def test_a_server_that_restarts_in_the_middle_of_a_run_is_used_again_and_each_call_made_once(
    place: Place, api: Api
) -> None:
    before = slow_calls(place)
    run_id = api.start(model="restart")
    api.until(run_id, lambda state: slow_calls(place) > before and len(outputs(api.records(run_id))) == 1)
    place.old.restart()
    assert outputs(completed(api, run_id)) == {
        "s1/r1/c0/result": "charged 1",
        "s1/r1/c1/result": "slept",
        "s1/r2/c0/result": "charged 2",
    }
    assert sum(log_of(place.old.url)["charges"].values()) == 1  # of the process that is up now


def test_two_calls_that_are_answered_in_reverse_keep_their_own_answers(api: Api) -> None:
    records = completed(api, api.start(model="reverse"))
    assert outputs(records) == {"s1/r1/c0/result": "slept", "s1/r1/c1/result": "found two"}
    order = [event["key"] for event in records if event["type"] == "tool.result"]
    assert order == ["s1/r1/c1/result", "s1/r1/c0/result"]


def test_a_tool_that_is_announced_in_the_middle_of_a_run_can_be_called_in_its_next_round(
    place: Place, api: Api
) -> None:
    before = slow_calls(place)
    run_id = api.start(model="grown")
    api.until(run_id, lambda _: slow_calls(place) > before)
    httpx2.post(f"{place.docs.url}/_grow", timeout=30).raise_for_status()
    records = completed(api, run_id)
    offered = [event["tools"]["names"] for event in records if event["type"] == "boundary"]
    assert ["docs__tool_151" in names for names in offered] == [False, True, True]
    assert outputs(records)["s1/r2/c0/result"] == "tool_151"


def test_new_headers_are_sent_from_the_next_round_of_a_run_that_is_under_way(place: Place, api: Api) -> None:
    run_id = api.start(model="rotated")
    api.until(run_id, lambda _: ["call", "slow"] in log_of(place.keyed.url)["log"])
    httpx2.post(f"{place.keyed.url}/_token", params={"value": "second"}, timeout=30).raise_for_status()
    assert api.post("/v1/mcp/reconnect").status_code == 200
    before = len(log_of(place.keyed.url)["seen"])
    assert outputs(completed(api, run_id)) == {"s1/r1/c0/result": "slept", "s1/r2/c0/result": "charged 7"}
    after = log_of(place.keyed.url)["seen"][before:]
    assert {headers["authorization"] for headers in after} == {"Bearer second"}


def test_a_server_that_never_answers_is_left_out_and_the_run_goes_on(api: Api) -> None:
    said = faults(completed(api, api.start(model="misfit")))
    assert "The MCP server mute" in said
    assert "did not answer within 1 s" in said


def test_a_server_that_sends_us_to_another_origin_is_not_followed_and_no_header_leaks(place: Place, api: Api) -> None:
    assert "not followed" in faults(completed(api, api.start(model="misfit")))
    assert log_of(place.elsewhere.url)["seen"] == []
    assert "s3cret-of-moved" not in json.dumps(api.records(api.start(model="misfit")))


def test_a_structured_result_that_misses_its_schema_is_kept_with_a_warning(api: Api) -> None:
    (output,) = outputs(completed(api, api.start(model="misfit"))).values()
    assert output.startswith("all of it")
    assert "does not fit the tool's own output schema" in output
