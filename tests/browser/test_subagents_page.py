"""Subagents on the page: each below its call with what it does, stopped there, its own run a link away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.serve import Server, serve
from tests.browser.devtools import Browser, Page
from tests.servers.running import running
from tests.workerd.client import Api

pytestmark = [pytest.mark.browser, pytest.mark.workerd, pytest.mark.timeout(900)]
WORKER = Path(__file__).parent.parent / "workerd" / "subagents_worker"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with (
        running("model_server.py", "--script", str(WORKER / "model_script.json")) as model,
        running("tool_server.py") as tools,
    ):
        variables = {"EDGE_AGENT_BASE_URL": f"{model.url}/v1", "TOOL_SERVER_URL": tools.url}
        with serve(state=tmp_path_factory.mktemp("page"), overlay=WORKER, variables=variables) as server:
            yield server


def test_a_subagent_is_shown_below_its_call_and_stopped_there(browser: Browser, server: Server) -> None:
    with Api(server.url) as api:
        run_id = api.start(agent="boss-object", model="patient")
    page = Page(browser, f"{server.url}/#{run_id}")
    page.until_shown("#timeline", "Find out about number 1. (patient)")
    page.click("#timeline .tool button")
    page.until_shown("#status", "Done.")
    shown = page.text("#timeline")
    assert "stopped" in shown
    assert shown.count("It is a number like any other.") == 3
    assert "What could be known is known." in shown
    assert page.evaluate("document.querySelectorAll('#timeline .tool button').length") == 0
    with Api(server.url) as api:
        state = api.state(run_id)
    used = state["usage"]
    assert page.text("#usage") == f"{used['input']} tokens in, {used['output']} out", "of the run, not of a child"
    page.click("#timeline .tool a")
    page.until_shown("#status", "Cancelled.")
    assert page.evaluate("location.hash.slice(1)") == state["subagents"][0]["child_run_id"]
    assert page.complaints() == []
