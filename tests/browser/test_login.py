"""A login to an MCP server in a real browser, from the link of a waiting run; the runtime dies on the way."""

import json
from collections.abc import Iterator

import pytest

from scripts.serve import Server, serve
from tests.browser.devtools import Browser, Page
from tests.servers.running import running
from tests.workerd.client import Api, find

pytestmark = [pytest.mark.browser, pytest.mark.workerd, pytest.mark.mcp, pytest.mark.timeout(900)]
SCRIPT = {"login": [{"calls": [{"name": "docs__lookup", "arguments": '{"q": "one"}'}]}, {"text": "Looked."}]}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Its one MCP server asks for a login."""
    state = tmp_path_factory.mktemp("login")
    (state / "script.json").write_text(json.dumps(SCRIPT))
    with (
        running("oauth_server.py") as docs,
        running("model_server.py", "--script", str(state / "script.json")) as model,
    ):
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/login",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_MCP_SERVERS": json.dumps({"docs": {"url": f"{docs.url}/mcp", "auth": "oauth"}}),
            "EDGE_AGENT_TOOL_SELECTION": "all",
        }
        with serve(state=state, variables=variables) as server:
            yield server


def test_the_run_goes_on_by_itself_after_a_login_although_the_runtime_was_killed_before_the_callback(
    browser: Browser, locked: Server
) -> None:
    page = Page(browser, f"{locked.url}/")
    page.type("#task", "Look it up")
    page.click("#go")
    page.until_shown("#timeline", "Sign in to docs")
    run_id = str(page.evaluate("location.hash.slice(1)"))
    login = Page(browser, str(page.evaluate("document.querySelector('#timeline form a').href")))
    login.until_shown("main", "will use the tools of docs")
    login.click_to_another_page("button")
    login.until_shown("body", "Let the agent in?")
    locked.kill_runtime()
    locked.wait_until_ready()
    login.click_to_another_page("button")
    login.until_shown("main", "Signed in to docs")
    page.until_shown("#status", "Done.")
    assert [said for said in login.complaints() if locked.url in said] == []
    with Api(locked.url) as api:
        records = api.records(run_id)
    assert find(records, "tool.result")["output"] == "found one"
    assert find(records, "question.answered")["by"] == "person"
