"""One Worker in real workerd for the tests of this folder, with a scripted model server and a counting tool server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.serve import Server, serve
from tests.servers.running import Running, running
from tests.workerd.client import Api

HERE = Path(__file__).parent
LIMITS = '{"max_steps": 40}'


def variables(model: Running, tools: Running) -> dict[str, str]:
    return {
        "EDGE_AGENT_MODEL": "openai-compatible/text",
        "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
        "EDGE_AGENT_LIMITS": LIMITS,
        "EDGE_AGENT_STALL_TIMEOUT": "2",
        "EDGE_AGENT_PROVIDERS": '{"elsewhere": {"base_url": "https://models.example.com/v1"}}',
        "EDGE_AGENT_PRICES": '{"openai-compatible/priced": {"input": 1.0, "output": 4.0}}',
        "TOOL_SERVER_URL": tools.url,
    }


@pytest.fixture(scope="session")
def tool_server() -> Iterator[Running]:
    with running("tool_server.py") as server:
        yield server


@pytest.fixture(scope="session")
def model_server() -> Iterator[Running]:
    with running("model_server.py", "--script", str(HERE / "model_script.json")) as server:
        yield server


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running) -> Iterator[Server]:
    state = tmp_path_factory.mktemp("workerd")
    with serve(state=state, overlay=HERE / "worker", variables=variables(model_server, tool_server)) as server:
        yield server


@pytest.fixture
def api(worker: Server) -> Iterator[Api]:
    with Api(worker.url) as client:
        yield client
