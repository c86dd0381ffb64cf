"""A Chromium, and the real Worker with the agents of this repository and a scripted model server behind it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.serve import Server, serve
from tests.browser.devtools import Browser, Page, browser_at, on_path
from tests.servers.running import running

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program: one on PATH, else Debian's where we may install it."""
    reason = "no Chromium is on PATH"
    if (found := on_path()) is None and os.geteuid() == 0:
        reason = f"{reason}, and apt could not install one: {_install()}"
        found = on_path()
    if found is None:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up(f"the page is not tested: {reason}")
    return found


def _install() -> str:
    """What apt said last."""
    said = ""
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "there is no apt-get"
        said = (done.stderr or done.stdout).strip()[-500:]
    return said


@pytest.fixture(scope="session")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser_at(chromium, tmp_path_factory.mktemp("chromium") / "profile") as started:
        yield started


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The scenario of the model server is a word of the task."""
    with running("model_server.py", "--script", str(HERE / "model_script.json")) as model:
        variables = {"EDGE_AGENT_MODEL": "openai-compatible/by-task", "EDGE_AGENT_BASE_URL": f"{model.url}/v1"}
        with serve(state=tmp_path_factory.mktemp("page"), variables=variables) as server:
            yield server


@pytest.fixture
def page(browser: Browser, worker: Server) -> Iterator[Page]:
    """The page at /. After the test: nothing complained, and nothing was asked of anyone but our own server."""
    opened = Page(browser, f"{worker.url}/")
    yield opened
    assert opened.complaints() == []
    own = (f"{worker.url}/", f"{worker.url.replace('http', 'ws', 1)}/", "data:")
    assert [url for url in opened.requests() if not url.startswith(own)] == []
