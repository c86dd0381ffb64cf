"""A conversation that begins with one provider and goes on with others, in real workerd.

Each server checks every request by its rules; thoughts and signatures that are not its own would end the run."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from scripts.serve import Server, serve
from tests.conftest import Figure
from tests.servers.running import Running, running
from tests.workerd.client import Api, find
from tests.workerd.conftest import HERE, variables

pytestmark = pytest.mark.workerd
# In order: each is the fallback of the one before.
MODELS = {"gemini": "gemini-3-flash-preview", "claude": "claude-opus-5", "deep": "deep-chat"}
ADAPTERS = {"gemini": "google", "claude": "anthropic", "deep": "openai_chat"}
OPAQUE = {"gemini": "thoughtSignature", "claude": "signature", "deep": "reasoning_content"}
THOUGHTS = {"gemini": "Gemini thinks.", "claude": "Claude thinks.", "deep": "Deep thinks."}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Running]]:
    with ExitStack() as stack:
        script = ("--script", str(HERE / "moves_script.json"))
        yield {
            name: stack.enter_context(running(f"{kind}_server.py", *script))
            for name, kind in (("gemini", "google"), ("claude", "anthropic"), ("deep", "openai"))
        }


@pytest.fixture(scope="module")
def worker(
    tmp_path_factory: pytest.TempPathFactory, servers: dict[str, Running], tool_server: Running
) -> Iterator[Server]:
    paths = {"gemini": "v1beta", "claude": "v1", "deep": "v1"}
    providers = {
        name: {"adapter": ADAPTERS[name], "base_url": f"{servers[name].url}/{paths[name]}", "key": "SOME_API_KEY"}
        for name in MODELS
    }
    providers["deep"]["profile"] = "deepseek"
    own = {
        **variables(servers["deep"], tool_server),
        "EDGE_AGENT_MODEL": ",".join(f"{name}/{model}" for name, model in MODELS.items()),
        "EDGE_AGENT_PROVIDERS": json.dumps(providers),
        "EDGE_AGENT_MAX_RETRIES": "0",
        "EDGE_AGENT_THINKING": "low",
        "SOME_API_KEY": "sk-planted-for-all",
    }
    with serve(state=tmp_path_factory.mktemp("moves"), overlay=HERE / "worker", variables=own) as server:
        yield server


@pytest.fixture
def api(worker: Server) -> Iterator[Api]:
    with Api(worker.url) as client:
        yield client


@pytest.fixture(scope="module")
def moved(worker: Server) -> str:
    """A run of three rounds, each by another provider, and a fourth by the first again."""
    with Api(worker.url) as api:
        run_id = api.start("please: moves", agent="counter", run_id="moved-1")
        assert api.ended(run_id)["status"] == "completed"
        return run_id


def asked(server: Running) -> list[dict[str, Any]]:
    return [seen["body"] for seen in server.log() if seen["status"] == 200]


def foreign(name: str, bodies: list[dict[str, Any]]) -> list[str]:
    """What of others' thoughts stands in the requests to this provider."""
    told = json.dumps(bodies)
    others = [word for other in MODELS if other != name for word in (f'"{OPAQUE[other]}"', THOUGHTS[other])]
    return [word for word in others if word in told]


def test_each_fallback_takes_over_in_the_middle_and_the_first_goes_on_at_the_end(
    api: Api, moved: str, servers: dict[str, Running], figure: Figure
) -> None:
    records = api.records(moved)
    requested = {record["key"]: record["provider"] for record in records if record["type"] == "model.requested"}
    ended = [record for record in records if record["type"] in ("model.answered", "model.failed")]
    tries = [(requested[record["key"].removesuffix("/end")], record["type"].removeprefix("model.")) for record in ended]
    assert tries == [
        ("gemini", "answered"),
        *(("gemini", "failed"), ("claude", "answered")),
        *(("gemini", "failed"), ("claude", "failed"), ("deep", "answered")),
        ("gemini", "answered"),
    ]
    assert [record["error"] for record in records if record["type"] == "model.failed"] == ["overloaded"] * 3
    assert find(records, "run.completed")["text"] == "Gemini ends it."
    results = [record for record in records if record["type"] == "tool.result"]
    assert len(results) == 6
    for name, server in servers.items():
        assert [seen["status"] for seen in server.log() if seen["status"] == 400] == []
        assert foreign(name, asked(server)) == []
    figure(f"one conversation over three providers: {[f'{who} {what}' for who, what in tries]}")


@pytest.mark.parametrize("name", ["claude", "deep", "gemini"])
def test_a_fork_goes_on_with_another_provider_and_shows_it_its_own_thoughts_alone(
    api: Api, moved: str, servers: dict[str, Running], name: str
) -> None:
    records = api.records(moved)
    at = [record["seq"] for record in records if record["type"] == "tool.result"][-1]
    before = len(servers[name].log())
    changes = {"model": f"{name}/{MODELS[name]}"}
    forked = api.post(f"/v1/runs/{moved}/fork", {"at": at, "changes": changes})
    assert forked.status_code == 202, forked.text
    assert api.ended(forked.json()["run_id"])["text"] == f"{name.capitalize()} ends it."
    (seen,) = servers[name].log()[before:]
    assert seen["status"] == 200
    assert foreign(name, [seen["body"]]) == []
    assert f'"{OPAQUE[name]}"' in json.dumps(seen["body"]), "its own come back"
