"""The contract of the log, inside workerd on an object's own SQLite; the same file as on sqlite3."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from scripts.serve import Server, serve
from tests.contracts import log_contract
from tests.contracts.log_contract import CONTRACT

pytestmark = pytest.mark.workerd
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def contract_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    state, overlay = tmp_path_factory.mktemp("log"), tmp_path_factory.mktemp("log-worker")
    shutil.copytree(HERE / "log_worker", overlay, dirs_exist_ok=True)
    (overlay / "tests/contracts").mkdir(parents=True)  # so that it is imported there as it is here
    shutil.copy(str(log_contract.__file__), overlay / "tests/contracts/log_contract.py")
    with serve(state=state, overlay=overlay) as server:
        yield server


@pytest.mark.parametrize("name", [check.__name__ for check in CONTRACT])
def test_the_log_of_an_object_keeps_its_contract(contract_worker: Server, name: str) -> None:
    answer = httpx2.get(f"{contract_worker.url}/{name}", timeout=60)
    assert answer.status_code == 200
    assert answer.json() == ""
