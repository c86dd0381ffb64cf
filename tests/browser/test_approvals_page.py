"""A call that waits for a person, decided in a real browser: by mouse, by keyboard, with other arguments, by a link."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.serve import Server, serve
from tests.browser.devtools import Browser, Page
from tests.servers.running import running
from tests.workerd.client import Api, find, types

pytestmark = [pytest.mark.browser, pytest.mark.workerd, pytest.mark.timeout(900)]
FORM = "#timeline form"


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Asks before every call."""
    with running("model_server.py", "--script", str(Path(__file__).parent / "model_script.json")) as model:
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/by-task",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_APPROVAL": "ask-all",
        }
        with serve(state=tmp_path_factory.mktemp("asking"), variables=variables) as server:
            yield server


@pytest.fixture
def page(browser: Browser, asking: Server) -> Iterator[Page]:
    opened = Page(browser, f"{asking.url}/")
    opened.type("#task", "What is the product")
    opened.click("#go")
    opened.until_shown("#timeline", "May calculator run?")
    yield opened
    assert opened.complaints() == []


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.innerText || document.activeElement.id"))


def run_of(page: Page) -> str:
    return str(page.evaluate("location.hash.slice(1)"))


def test_a_call_is_approved_with_other_arguments_by_keyboard_alone(page: Page, asking: Server) -> None:
    assert "17 * 23" in str(page.evaluate(f"document.querySelector('{FORM} textarea').value"))
    page.evaluate(f"document.querySelector('{FORM} textarea').focus()")
    page.evaluate(f"document.querySelector('{FORM} textarea').select()")
    page.insert('{"expression": "6 * 7"')
    stops: list[str] = []
    while not stops or (stops[-1] != "Approve" and len(stops) < 10):
        page.press("Tab", 9)
        stops.append(focused(page))
    page.press("Enter", 13, "\r")
    page.until_shown(FORM, "The arguments are no JSON")
    page.evaluate("document.activeElement.setSelectionRange(1e6, 1e6)")
    page.insert("}")
    while focused(page) != "Approve":
        page.press("Tab", 9)
    page.press("Enter", 13, "\r")
    page.until_shown("#status", "Done.")
    assert "approved with other arguments" in page.text("#timeline")
    with Api(asking.url) as api:
        records = api.records(run_of(page))
        assert find(records, "tool.called")["arguments"] == {"expression": "6 * 7"}
        assert find(records, "tool.result")["output"] == "42"
    assert page.evaluate(f"document.querySelectorAll('{FORM}').length") == 0


def test_enter_in_a_field_decides_nothing_and_a_denial_takes_its_reason_along(page: Page, asking: Server) -> None:
    page.type(f"{FORM} input:not([type])", "not <b>today</b>")
    page.press("Enter", 13, "\r")
    with Api(asking.url) as api:
        run_id = run_of(page)
        assert api.state(run_id)["approvals"][0]["status"] == "pending"
        page.click(f"{FORM} button:last-of-type")
        page.until_shown("#status", "Done.")
        assert "calculator was denied: not <b>today</b>" in page.text("#timeline")
        assert page.evaluate("document.querySelectorAll('#timeline b').length") == 0
        assert "tool.called" not in types(api.records(run_id))


def test_the_page_of_a_link_decides_without_the_run(page: Page, browser: Browser, asking: Server) -> None:
    with Api(asking.url) as api:
        run_id = run_of(page)
        link = Page(browser, asking.url + api.state(run_id)["approvals"][0]["link"])
        link.until_shown("main", "May this call be made?")
        assert "17 * 23" in link.text("pre")
        link.click_to_another_page("button[value=true]")
        link.until_shown("main", "This call was approved.")
        page.until_shown("#status", "Done.")
        assert find(api.records(run_id), "tool.approval-resolved")["by"] == "person"
    assert link.complaints() == []
