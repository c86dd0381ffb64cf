"""The official conformance suite of MCP, both of its lines, against the product's client in real workerd.

Each scenario starts a server of its own and runs `conformance/drive.py`, which hands its address to the Worker of
`conformance/worker`. What fails is listed by name, with the reason; a scenario that passes although it is listed fails
the test as well.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.serve import NODE_MODULES, ROOT, Server, serve
from tests.conftest import Figure

STABLE = NODE_MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NEXT = NODE_MODULES / "conformance-next" / "dist" / "index.js"
pytestmark = [
    pytest.mark.workerd,
    pytest.mark.mcp,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (STABLE.exists() and NEXT.exists() and (ROOT / "python_modules").exists()),
        reason="the runtime or the conformance suite is not installed: run `make setup`",
    ),
]
HERE = Path(__file__).parent / "conformance"
SETTINGS: dict[str, Any] = {
    "durable_objects": {"bindings": [{"name": "PROBE", "class_name": "Probe"}]},
    "migrations": [{"tag": "v1", "new_sqlite_classes": ["Probe"]}],
    "assets": {"directory": "web", "binding": "ASSETS", "run_worker_first": ["/*"]},
}
AT_ONCE = 4
SCENARIO_SECONDS = 45

# By name: why it fails.
NOT_PASSED: Mapping[str, str] = {
    "auth/2025-03-26-oauth-metadata-backcompat": "its metadata name another issuer than the one they are asked of, and "
    "we check the issuer (RFC 8414, section 3.3)",
}


@dataclass(frozen=True, slots=True)
class Played:
    scenario: str
    passed: bool
    checks: Sequence[Mapping[str, Any]]
    said: str

    @property
    def faults(self) -> str:
        failed = [check for check in self.checks if check["status"] == "FAILURE"]
        return "; ".join(f"{check['id']}: {check.get('errorMessage', '')}" for check in failed) or self.said[-600:]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    state = tmp_path_factory.mktemp("conformance")
    with serve(state=state, overlay=HERE / "worker", settings=SETTINGS, ready_path="/ready") as server:
        yield server


def listed(suite: Path, version: str = "") -> list[str]:
    """The scenarios of a version of the protocol."""
    command = ["node", str(suite), "list", "--client"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.strip().removeprefix("- ") for line in said.splitlines() if line.strip().startswith("- ")]
    return [line.split(" ", 1)[0] for line in lines if version in line]


def play(suite: Path, scenario: str, worker: Server, results: Path, *options: str) -> Played:
    folder = results / scenario.replace("/", "-")
    client = f"{sys.executable} {HERE / 'drive.py'} {worker.url}"
    command = ["node", str(suite), "client", "--command", client, "--scenario", scenario, "-o", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SCENARIO_SECONDS)
    checks = [check for path in folder.rglob("checks.json") for check in json.loads(path.read_text())]
    passed = done.returncode == 0 and bool(checks) and not any(check["status"] == "FAILURE" for check in checks)
    return Played(scenario, passed, checks, done.stdout + done.stderr)


def judged(suite: Path, scenarios: Sequence[str], worker: Server, results: Path, *options: str) -> list[Played]:
    def one_of(scenario: str) -> Played:
        return play(suite, scenario, worker, results, *options)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one_of, scenarios))


def told(played: Sequence[Played]) -> str:
    failed = "; ".join(
        f"{one.scenario} fails: {NOT_PASSED.get(one.scenario, one.faults)}" for one in played if not one.passed
    )
    return f"{sum(one.passed for one in played)} of {len(played)} scenarios. {failed}"


def as_listed(played: Sequence[Played]) -> None:
    failed = {one.scenario for one in played if not one.passed}
    expected = {one.scenario for one in played} & NOT_PASSED.keys()
    assert failed == expected, f"failed: {failed - expected}; passed although listed: {expected - failed}"


def test_the_stable_suite_passes_but_for_what_is_listed(worker: Server, tmp_path: Path, figure: Figure) -> None:
    played = judged(STABLE, listed(STABLE), worker, tmp_path)
    figure(f"conformance 0.1.16: {told(played)}")
    assert len(played) == 26
    as_listed(played)


def test_the_next_suite_passes_for_the_newest_protocol_but_for_what_is_listed(
    worker: Server, tmp_path: Path, figure: Figure
) -> None:
    scenarios = listed(NEXT, "2026-07-28")
    played = judged(NEXT, scenarios, worker, tmp_path, "--spec-version", "2026-07-28")
    figure(f"conformance 0.2.0-alpha.12, 2026-07-28: {told(played)}")
    assert len(played) == 33
    as_listed(played)
