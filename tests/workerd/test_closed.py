"""A deployment with a token and planted secrets: closed, and nothing secret in any table, frame, log line or error."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from scripts.serve import Server, serve
from tests.servers.running import Running
from tests.workerd.client import Api, find
from tests.workerd.conftest import HERE, variables

pytestmark = pytest.mark.workerd
TOKEN, API_KEY, PIN = "tok-planted-in-config-1", "key-planted-in-config-2", "pin-4711-0815"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running) -> Iterator[Server]:
    own = {**variables(model_server, tool_server), "EDGE_AGENT_TOKEN": f"alice:{TOKEN}", "EDGE_AGENT_API_KEY": API_KEY}
    own["EDGE_AGENT_LOG_LEVEL"] = "debug"
    state = tmp_path_factory.mktemp("closed")
    with serve(state=state, overlay=HERE / "worker", variables=own) as server:
        yield server


def test_no_token_a_wrong_token_and_the_right_one(closed: Server) -> None:
    url = f"{closed.url}/v1/agents"
    assert httpx2.get(url).status_code == 401
    assert httpx2.get(url, headers={"authorization": "Bearer nope"}).status_code == 401
    assert httpx2.get(url, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert httpx2.get(f"{closed.url}/v1/runs/x/events").status_code == 401


def test_planted_secrets_are_found_nowhere(closed: Server, model_server: Running) -> None:
    told = f"remember {API_KEY} and {TOKEN} please"
    with Api(closed.url, TOKEN) as api:
        run_id = api.start(told, agent="discreet", model="login")
        frames = list(api.stream(run_id))
        texts = [str(frames), str(api.log(run_id)), str(api.state(run_id))]
        failing = api.start(told, agent="counter", model="status-401")
        api.ended(failing)
        texts += [str(api.records(failing)), api.post("/v1/runs", {"input": 1, "agent": API_KEY}).text]
    assert find(frames, "tool.result")["output"] == "logged in with (hidden)"
    sent = [seen for seen in model_server.log() if seen["headers"].get("authorization")]
    assert sent[0]["headers"]["authorization"] == f"Bearer {API_KEY}", "the key reaches its own provider"
    texts += [closed.log.read_text(), *_tables(closed.state)]
    for secret in (TOKEN, API_KEY, PIN):
        assert not any(secret in text for text in texts), secret


def _tables(state: Path) -> Iterator[str]:
    """Every row of every object's tables, and the raw files as well."""
    files = [path for path in (state / "storage").rglob("*") if path.is_file()]
    assert any(path.suffix == ".sqlite" for path in files)
    for path in files:
        yield path.read_bytes().decode("latin-1")
        if path.suffix == ".sqlite":
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
                names = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
                for name in names:
                    yield str(database.execute(f'select * from "{name}"').fetchall())
