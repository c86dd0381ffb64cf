"""In real workerd: a real server with 165 tools, of which a round shows a few, and results too large to be shown."""

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scripts.serve import NODE_MODULES, ROOT, Server, serve
from tests.conftest import Figure
from tests.servers.mcp_server import PNG
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, find

pytestmark = [
    pytest.mark.workerd,
    pytest.mark.mcp,
    pytest.mark.skipif(
        not (NODE_MODULES / ".bin" / "wrangler").exists() or not (ROOT / "python_modules").exists(),
        reason="the real runtime is not installed: run `make setup`",
    ),
]
HERE = Path(__file__).parent
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def docs() -> Iterator[Running]:
    with running("mcp_server.py") as server:
        yield server


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, docs: Running) -> Iterator[Server]:
    with running("model_server.py", "--script", str(HERE / "catalogue_script.json")) as model:
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/seek",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_MCP_SERVERS": json.dumps({"docs": {"url": f"{docs.url}/mcp"}}),
        }
        with serve(state=tmp_path_factory.mktemp("catalogue"), variables=variables) as server:
            yield server


@pytest.fixture
def api(worker: Server) -> Iterator[Api]:
    with Api(worker.url) as client:
        yield client


def log_of(server: Running) -> list[Any]:
    return httpx2.get(f"{server.url}/_log", timeout=30).json()["log"]


def offered(records: list[Event]) -> list[list[str]]:
    return [record["tools"]["names"] for record in records if record["type"] == "boundary"]


def results(records: list[Event]) -> dict[str, Event]:
    return {record["name"]: record for record in records if record["type"] == "tool.result"}


def file(api: Api, run_id: str, name: str) -> httpx2.Response:
    answer = api.http.get(f"/v1/runs/{run_id}/files/{name}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    return answer


def test_a_tool_of_a_large_catalogue_is_found_and_called_and_is_still_there_after_a_kill(
    api: Api, worker: Server, docs: Running, figure: Figure
) -> None:
    httpx2.post(f"{docs.url}/_fault", params={"kind": "hang"}, timeout=30).raise_for_status()
    run_id = api.start(model="seek")
    while ["hanging"] not in log_of(docs):
        assert api.state(run_id)["status"] in ("queued", "running")
    worker.kill_runtime()
    worker.wait_until_ready()
    with Api(worker.url) as again:
        assert again.ended(run_id)["text"] == "Found."
        records = again.records(run_id)
    listed = find(records, "tools.changed")
    assert (listed["server"], len(listed["added"])) == ("docs", 165)
    assert find(records, "tools.discovered")["names"] == ["docs__tool_137", "docs__lookup"]
    few = ["find_tools", "docs__lookup", "docs__tool_137"]
    assert offered(records) == [["find_tools"], few, few, few]
    assert results(records)["docs__lookup"]["output"] == "found Rome"
    assert results(records)["docs__tool_137"]["output"] == "tool_137"
    assert sum(record["type"] == "tool.called" and record["name"] == "docs__lookup" for record in records) == 2
    figure(f"{len(listed['added'])} tools, {max(map(len, offered(records)))} of them shown at most")


def test_results_of_four_megabytes_are_files_and_the_model_reads_on(api: Api, figure: Figure) -> None:
    run_id = api.start(model="large")
    assert api.ended(run_id)["text"] == "Read."
    records = api.records(run_id)
    assert ["read_result" in names for names in offered(records)] == [False, False, True, True]
    found = results(records)
    text, photo = found["docs__big"], found["docs__photo"]
    assert text["model_chars"] <= 20_000
    whole = file(api, run_id, text["files"][0]["name"])
    assert whole.text == "x" * 4 * MEGABYTE
    assert found["read_result"]["output"].endswith("; this is the end]\nxxxxxxxxxx")
    picture = file(api, run_id, photo["files"][0]["name"])
    content = b"\xff\xd8\xff" + bytes(range(256)) * 16_000
    assert hashlib.sha256(picture.content).digest() == hashlib.sha256(content).digest()
    assert picture.headers["content-type"] == photo["files"][0]["media_type"] == "image/jpeg"
    figure(f"a text of {len(whole.content)} and an image of {len(picture.content)} bytes come back as they were")


def test_an_image_and_a_blob_of_a_server_are_files_of_the_run(api: Api) -> None:
    run_id = api.start(model="image")
    assert api.ended(run_id)["text"] == "Seen."
    kept = results(api.records(run_id))["docs__image"]["files"]
    assert [entry["media_type"] for entry in kept] == ["image/png", "application/pdf"]
    for entry in kept:
        assert file(api, run_id, entry["name"]).content == base64.b64decode(PNG)


def test_a_tool_that_a_server_gets_in_the_middle_of_a_run_is_told_and_can_be_found(api: Api, docs: Running) -> None:
    run_id = api.start(model="grow")
    while ["call", "slow"] not in log_of(docs):
        assert api.state(run_id)["status"] in ("queued", "running")
    httpx2.post(f"{docs.url}/_grow", timeout=30).raise_for_status()
    assert api.ended(run_id)["text"] == "Grown."
    records = api.records(run_id)
    changes = [(record["added"], record["removed"]) for record in records if record["type"] == "tools.changed"]
    assert changes[1:] == [(["docs__tool_151"], [])]
    assert [record["names"] for record in records if record["type"] == "tools.discovered"][1:] == [["docs__tool_151"]]
