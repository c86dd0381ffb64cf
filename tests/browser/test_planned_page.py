"""Planned runs and messages on the page at /, in a real browser: the plan, its steps, the answer, and steering."""

import json
from typing import Any

import pytest

from scripts.serve import Server
from tests.browser.devtools import Page
from tests.workerd.client import Api, find, types

pytestmark = [pytest.mark.browser, pytest.mark.workerd, pytest.mark.timeout(900)]
STEPS = "#timeline > li.step"


def start(page: Page, task: str, mode: str = "planned") -> str:
    page.type("#task", task)
    page.evaluate(f"document.querySelector('#mode').value = '{mode}'")
    page.click("#go")
    page.until_shown("#about", task)
    return str(page.evaluate("location.hash.slice(1)"))


def texts(page: Page, selector: str) -> list[str]:
    return list(page.evaluate(f"[...document.querySelectorAll('{selector}')].map((found) => found.innerText.trim())"))


def count(page: Page, selector: str) -> int:
    return int(page.evaluate(f"document.querySelectorAll('{selector}').length"))


def test_a_planned_run_shows_its_plans_its_steps_and_its_answer_once(page: Page) -> None:
    start(page, "Plan my trip")
    page.until_shown("#status", "Done.")

    def shown_as_it_should() -> None:
        assert texts(page, "#timeline > li.plan h3") == ["Plan", "Plan revision 1"]
        assert texts(page, "#timeline > li.plan li") == ["look up the price", "add it up", "add up the other price"]
        assert page.text("#timeline").count("First the price, then the sum.") == 1
        assert texts(page, f"{STEPS} > h3") == [
            "Step 1: look up the price blocked",
            "Step 2: add up the other price done",
        ]
        assert texts(page, f"{STEPS} .tool h4") == ["calculator done"]
        assert page.text("#timeline").count("Together 46.") == 1
        assert texts(page, f"{STEPS} .summary")[-1] == "Together 46."
        assert "The plan changes: the first price is gone" in page.text("#timeline")
        assert texts(page, ".answer p.text:not(.quiet)") == ["Two tickets cost 46 euros."]
        assert page.text("#timeline").count("Two tickets cost") == 1
        assert '"mode"' not in page.text("#timeline"), "what stages tell the loop in JSON is not for people"

    shown_as_it_should()
    assert "Both steps agree." not in page.text("#timeline"), "the reasoning is folded"
    assert page.evaluate("document.querySelector('.answer details').textContent.includes('Both steps agree.')")
    assert page.evaluate("document.querySelector('#steer').hidden && document.querySelector('#end-step').hidden")
    page.reload()
    page.until_shown("#status", "Done.")
    shown_as_it_should()


def test_an_answer_that_is_being_written_stands_once_after_a_reload(page: Page, worker: Server) -> None:
    run_id = start(page, "Tell me the tale")
    page.until_shown("#timeline > li.text", "The answer is here")
    page.reload()
    page.until_shown("#about", "Tell me the tale")
    with Api(worker.url) as api:
        assert api.state(run_id)["status"] == "running", "the reload came too late to prove anything"
        page.until_shown("#status", "Done.")
        assert texts(page, ".answer") == [api.state(run_id)["text"].strip()]
    assert count(page, "#timeline > li.text:not([hidden])") == 1


def test_a_message_shows_its_receipt_and_the_open_step_is_ended(page: Page, worker: Server) -> None:
    run_id = start(page, "Plan a stroll")
    page.until_shown(STEPS, "The answer is here")
    page.type("#message", "go by the <b>south</b>")
    page.press_control_and_enter()
    page.until_shown("#timeline .message", "queued")
    page.until("document.querySelector('#message').value === ''")
    assert page.text("#end-step") == "End step 1"
    page.click("#end-step")
    page.until_shown("#status", "Done.")
    assert texts(page, "#timeline .message") == ["go by the <b>south</b>\n\nMessage: delivered to the look at the plan"]
    assert texts(page, f"{STEPS} > h3") == [
        "Step 1: tell slow-text-900 blocked: it was ended",
        "Step 2: end the stroll done",
    ]
    assert "The plan stands: the rest still serves, after a message" in page.text("#timeline")
    assert texts(page, ".answer") == ["You walked by the south."]
    assert count(page, "#timeline b") == 0
    with Api(worker.url) as api:
        records = api.records(run_id)
    assert types(records).count("message.queued") == 1
    assert find(records, "cancel.requested")["step"] == "s1"


def test_a_message_to_a_run_that_is_cancelled_is_said_to_be_undelivered(page: Page) -> None:
    start(page, "Tell me slow-text-900", mode="direct")
    page.until_shown("#timeline", "The answer is here")
    assert page.evaluate("document.querySelector('#end-step').hidden"), "a direct run has no step"
    page.type("#message", "hurry up")
    page.click("#send")
    page.until_shown("#timeline .message", "queued")
    page.click("#cancel")
    page.until_shown("#status", "Cancelled.")
    page.until_shown("#timeline .message", "undelivered, the run ended first")
    assert page.evaluate("document.querySelector('#steer').hidden")


def test_a_message_that_is_refused_is_kept_and_says_why(page: Page, worker: Server) -> None:
    run_id = start(page, "Tell me slow-text-900", mode="")
    page.until_shown("#timeline", "The answer is here")
    page.evaluate("window.fetch = () => Promise.reject(new Error('no network'))")
    page.type("#message", "hurry up")
    page.click("#send")
    page.until_shown("#steer-trouble", "cannot be reached")
    assert page.evaluate("document.querySelector('#message').value") == "hurry up"
    with Api(worker.url) as api:
        assert api.state(run_id)["mode"] == "direct"
        assert api.post(f"/v1/runs/{run_id}/cancel").status_code == 200
    page.until_shown("#status", "Cancelled.")


def test_why_a_step_could_not_be_ended_is_said_in_words(page: Page, worker: Server) -> None:
    run_id = start(page, "Plan a stroll")
    page.until_shown(STEPS, "The answer is here")
    page.evaluate("""window.fetch = async () => new Response('{"detail": "No step is open now."}', {status: 409})""")
    page.click("#end-step")
    page.until_shown("#connection", "No step is open now.")
    with Api(worker.url) as api:
        assert api.post(f"/v1/runs/{run_id}/cancel").status_code == 200
    page.until_shown("#status", "Cancelled.")
    assert page.evaluate("document.querySelector('#end-step').hidden")


def take(page: Page, kind: str, **fields: Any) -> None:
    page.evaluate(f"shown.take({json.dumps({'type': kind, **fields})})")


@pytest.fixture
def events(page: Page) -> Page:
    """A timeline that is told events by hand, for what passes too quickly to be looked at."""
    page.evaluate("""import('/timeline.js').then(({Timeline}) => {
      const page = {changed: () => {}, list: document.getElementById('timeline')};
      for (const id of ['log', 'status', 'about', 'usage']) page[id] = document.getElementById(id);
      document.getElementById('run').hidden = false;
      window.shown = new Timeline(page);
    })""")
    return page


def test_a_plan_is_shown_as_it_forms_and_gives_way_to_the_one_that_was_made(events: Page) -> None:
    page, plan = events, "#timeline > li.plan"
    take(page, "plan.thought-delta", part="plan/a0", offset=0, delta="Wrong")
    take(page, "retry", part="plan/a0", error="overloaded")
    assert count(page, plan) == 0
    take(page, "plan.thought-delta", part="plan/a1", offset=0, delta="First 👍")
    take(page, "plan.step-added", part="plan/a1", index=0, step="look <i>up</i>")
    take(page, "plan.thought-delta", part="plan/a1", offset=0, delta="First 👍 look")  # all of it, after a reconnect
    take(page, "plan.thought-delta", part="plan/a1", offset=12, delta=".")
    take(page, "plan.step-added", part="plan/a1", index=0, step="look <i>up</i>")
    assert texts(page, f"{plan} h3") == ["Plan forms…"]
    assert texts(page, f"{plan} p") == ["First 👍 look."]
    assert texts(page, f"{plan} li") == ["look <i>up</i>"]
    steps = [{"description": "look it up", "expected_outcome": "a source", "suggested_tools": ["search"]}]
    made = {"thought": "First look.", "steps": steps}
    take(page, "plan.created", plan=made, revision=0, fallback=False, warnings=["2 steps were cut"])
    assert texts(page, f"{plan} h3") == ["Plan"]
    assert texts(page, f"{plan} p") == ["First look.", "Warning: 2 steps were cut"]
    assert texts(page, f"{plan} li") == ["look it up a source · with search"]


def test_the_end_of_a_step_and_what_follows_it_are_told_in_words(events: Page) -> None:
    page = events
    take(page, "step.started", step=1, index=0, id="look", description="Look it up.")
    take(page, "handoff", **{"from": "assistant", "to": "clerk", "reason": "a form"})
    assert texts(page, f"{STEPS} li.note") == ["assistant hands over to clerk: a form"]
    take(page, "step.completed", step=1, summary="Found half.", calls=[], blocked=False, stop="max_steps")
    assert texts(page, f"{STEPS} h3") == ["Step 1: Look it up. done early: it used up its rounds"]
    assert texts(page, f"{STEPS} .summary") == ["Found half."]
    for decision in (
        {"mode": "continue", "reason": "", "cause": "clean-step"},
        {"mode": "finish", "reason": "it is enough", "cause": "user-message", "warnings": ["a tool is not there"]},
        {"mode": "finish", "reason": "nothing more fits the caps", "cause": "llm-decision", "stop": "budget"},
    ):
        take(page, "replan.decision", **decision)
    take(page, "revisions.exceeded", cap=3)
    assert texts(page, "#timeline > li.note") == [
        "The step went well: the plan stands.",
        "The rest of the plan is left out: it is enough, after a message · a tool is not there",
        "The rest of the plan is left out: the budget leaves no look at the plan.",
        "The plan was revised 3 times, as often as it may be; the answer is next.",
    ]
