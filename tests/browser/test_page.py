"""The page at / in a real browser, in front of the real Worker."""

import pytest

from scripts.serve import Server
from tests.browser.devtools import Browser, Page
from tests.workerd.client import Api, types

pytestmark = [pytest.mark.browser, pytest.mark.workerd, pytest.mark.timeout(900)]


def _run_id(page: Page) -> str:
    return str(page.evaluate("location.hash.slice(1)"))


def _answers(page: Page) -> list[str]:
    return list(page.evaluate("[...document.querySelectorAll('.answer')].map((item) => item.innerText)"))


def test_a_task_is_typed_and_its_answer_appears(page: Page) -> None:
    page.type("#task", "What is the product")
    page.click("#go")
    page.until_shown("#status", "Done.")
    assert _answers(page) == ["17 times 23 is 391."]
    shown = page.text("#timeline")
    assert "calculator" in shown
    assert "17 * 23" in shown
    assert "391" in shown


def test_control_and_enter_start_a_run_too(page: Page) -> None:
    page.type("#task", "Say a text")
    page.press_control_and_enter()
    page.until_shown("#status", "Done.")
    assert len(_answers(page)) == 1


def test_a_slow_run_is_cancelled_in_the_middle_of_its_text(page: Page, worker: Server) -> None:
    page.type("#task", "Tell me slow-text-900")
    page.click("#go")
    page.until_shown("#timeline", "The answer")
    page.click("#cancel")
    page.until_shown("#status", "Cancelled.")
    assert page.evaluate("document.getElementById('cancel').hidden")
    with Api(worker.url) as api:
        assert types(api.records(_run_id(page)))[-1] == "run.cancelled"


def test_a_page_that_is_reloaded_in_the_middle_of_a_run_shows_all_of_it(page: Page, worker: Server) -> None:
    page.type("#task", "Tell me slow-text-100")
    page.click("#go")
    page.until_shown("#timeline", "The answer is here")
    run_id = _run_id(page)
    page.reload()
    assert _run_id(page) == run_id
    page.until_shown("#about", "Tell me slow-text-100")
    with Api(worker.url) as api:
        assert api.state(run_id)["status"] == "running", "the reload came too late to prove anything"
        page.until_shown("#status", "Done.")
        assert _answers(page) == [api.state(run_id)["text"].strip()]
    assert page.evaluate("document.querySelectorAll('#timeline > li.text:not([hidden])').length") == 1


def test_runs_are_listed_newest_first_and_open_by_a_click(page: Page, worker: Server) -> None:
    with Api(worker.url) as api:
        older, newer = (api.start(f"{word} text") for word in ("<b>older</b>", "newer"))
        api.ended(older)
        api.ended(newer)
    page.reload()
    page.until_shown("#runs", "newer text")
    assert page.evaluate("[...document.querySelectorAll('#run-list a')].slice(0, 2).map((link) => link.innerText)") == [
        "newer text",
        "<b>older</b> text",
    ]
    page.click(f"#run-list a[href='#{older}']")
    page.until_shown("#status", "Done.")
    assert _run_id(page) == older
    assert page.evaluate("document.querySelector('#run-list [aria-current]').hash.slice(1)") == older


def test_what_a_model_says_is_text_and_never_markup(page: Page) -> None:
    page.type("#task", "<img src=x onerror=alert(1)> text")
    page.click("#go")
    page.until_shown("#status", "Done.")
    assert "<img" in page.text("#about")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0


def test_a_run_that_does_not_exist_is_said_so(browser: Browser, worker: Server) -> None:
    page = Page(browser, f"{worker.url}/#no-such-run")
    page.until_shown("#status", "There is no run")


def test_the_page_of_the_api_shows_every_operation(browser: Browser, worker: Server) -> None:
    page = Page(browser, f"{worker.url}/docs")
    page.until_shown("#schemas", "RunState")
    shown = page.text("#operations")
    for operation in ("POST /v1/runs", "GET /v1/runs/{run_id}/events", "POST /v1/runs/{run_id}/cancel", "GET /healthz"):
        assert operation in shown
    assert page.complaints() == []
