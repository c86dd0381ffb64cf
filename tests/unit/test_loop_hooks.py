"""The author's hooks: plain and async, what they may change, and what happens when one raises, hangs or is cut."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from edge_agent import Hooks, Reject, tool
from edge_agent.core.errors import ModelError
from edge_agent.core.events import (
    Boundary,
    Fault,
    ModelAnswered,
    ModelFailed,
    ModelRejected,
    RunCancelled,
    RunCompleted,
    Terminal,
    ToolCalled,
    ToolResult,
)
from edge_agent.core.messages import AssistantMessage, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.loop.hooking import HOOK_SECONDS
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill
from tests.unit.loop_kit import Lived, Setting, cancels_after, hooked, live, resumes


@tool
async def work() -> str:
    """Work."""
    return "worked"


def works() -> ScriptedModel:
    return ScriptedModel(answers=[Answer(calls=(("work", {}),)), "done"])


def with_hooks(hooks: Hooks, model: ScriptedModel | None = None) -> Lived:
    return live(Setting(model=model or works(), tools=[work], hooks=hooks))


def boom(*_: object) -> Any:
    raise RuntimeError("boom")


async def aboom(*_: object) -> Any:
    await asyncio.sleep(1)
    raise RuntimeError("boom")


async def hang(*_: object) -> None:
    await asyncio.Event().wait()


def test_each_hook_is_called_at_its_point_plain_or_async() -> None:
    called: list[str] = []

    def plain(name: str) -> Any:
        def hook(*_: object) -> None:
            called.append(name)

        return hook

    def later(name: str) -> Any:
        async def hook(*_: object) -> None:
            await asyncio.sleep(1)
            called.append(name)

        return hook

    points = ("on_run_start", "before_model", "after_model", "after_tool", "on_run_end")
    expected = [*points[:3], "after_tool", "before_model", "after_model", "on_run_end"]
    for make in (plain, later):
        called.clear()
        lived = with_hooks(hooked(**{name: make(name) for name in points}))
        assert called == expected
        assert isinstance(lived.end, RunCompleted)


def test_hooks_are_not_called_again_for_what_is_on_record() -> None:
    called: list[str] = []
    hooks = Hooks(
        on_run_start=lambda task: called.append("start"),
        before_model=lambda request: called.append("before"),
        after_model=lambda message: called.append("after"),
        after_tool=lambda call, result: called.append("tool"),
    )
    model = ScriptedModel(answers=[Answer(calls=(("work", {}),)), "done"], by_turn=True)
    live(Setting(model=model, tools=[work], hooks=hooks, kills=[Kill(8, "after")]))
    assert called == ["start", "before", "after", "tool", "before", "after"]


def test_before_model_may_change_the_request_of_this_call_alone() -> None:
    def before(request: ModelRequest) -> ModelRequest:
        return ModelRequest(system="other", messages=(*request.messages, UserMessage(text="and be short")))

    model = works()
    with_hooks(Hooks(before_model=before), model)
    assert [r.system for r in model.requests] == ["other", "other"]
    assert sum(isinstance(m, UserMessage) and m.text == "and be short" for m in model.requests[1].messages) == 1


@pytest.mark.parametrize("hook", [boom, aboom])
@pytest.mark.parametrize("name", ["before_model", "after_model"])
def test_a_model_hook_that_raises_fails_the_run_and_a_resume_tries_again(name: str, hook: Any) -> None:
    lived = with_hooks(hooked(**{name: hook}))
    assert (lived.error.kind, lived.error.message) == ("hook", f"the hook {name} raised RuntimeError: boom")
    assert [f.error for f in lived.of(ModelFailed)] == (["run-ended"] if name == "after_model" else [])
    assert not lived.of(ToolCalled)
    first = [True]

    def once(*_: object) -> None:
        if first.pop() if first else False:
            raise RuntimeError("boom")

    model = ScriptedModel(answers=["done"], by_turn=True)
    hooks = hooked(**{name: once})
    lived = live(Setting(model=model, hooks=hooks, acts={"end/0": resumes}))
    assert isinstance(lived.end, RunCompleted)


@pytest.mark.parametrize("name,wanted", [("before_model", "ModelRequest"), ("after_model", "Reject")])
def test_a_model_hook_that_gives_back_something_else_fails_the_run_and_says_so(name: str, wanted: str) -> None:
    def seven(_: object) -> int:
        return 7

    lived = with_hooks(hooked(**{name: seven}))
    assert lived.error.message == f"the hook {name} returned a int, not a {wanted} or None"


@pytest.mark.parametrize("hook", [boom, aboom])
@pytest.mark.parametrize("name", ["on_run_start", "after_tool", "on_run_end"])
def test_any_other_hook_that_raises_is_a_fault_and_the_run_goes_on(name: str, hook: Any) -> None:
    lived = with_hooks(hooked(**{name: hook}))
    assert [f.message for f in lived.of(Fault)] == [f"the hook {name} raised RuntimeError: boom"]
    assert isinstance(lived.end, RunCompleted)


def test_on_error_is_told_of_a_raising_hook_and_may_end_the_run() -> None:
    lived = with_hooks(Hooks(on_run_start=boom, on_error=lambda kind, name, error: False))
    assert (lived.error.kind, lived.error.message) == ("hook", "the hook on_run_start raised RuntimeError: boom")
    lived = with_hooks(Hooks(on_run_start=boom, on_error=lambda kind, name, error: True))
    assert isinstance(lived.end, RunCompleted)


def test_an_on_error_that_raises_itself_is_a_fault_and_decides_nothing() -> None:
    model = ScriptedModel(answers=[ModelError("unavailable", "down", retryable=True), "done"])
    lived = with_hooks(Hooks(on_error=boom), model)
    assert [f.message for f in lived.of(Fault)] == ["the hook on_error raised RuntimeError: boom"]
    assert isinstance(lived.end, RunCompleted)


def test_a_hook_that_hangs_counts_as_one_that_raised() -> None:
    lived = with_hooks(Hooks(after_tool=hang))
    assert lived.of(Fault)[0].message == f"the hook after_tool did not return within {HOOK_SECONDS:g} s"
    assert isinstance(lived.end, RunCompleted)
    assert "did not return within" in with_hooks(hooked(before_model=hang)).error.message


def test_a_hook_that_waits_for_something_cancelled_is_one_that_raised() -> None:
    def cancelled(*_: object) -> Any:
        raise asyncio.CancelledError

    lived = with_hooks(Hooks(after_tool=cancelled))
    assert "something it waited for was cancelled" in lived.of(Fault)[0].message
    assert isinstance(lived.end, RunCompleted)


@pytest.mark.parametrize("name", ["on_run_start", "before_model", "after_model", "after_tool"])
def test_a_cancel_ends_a_hook_that_hangs_and_nothing_begins_after_it(name: str) -> None:
    acts = {"life/0": cancels_after(5)}
    lived = live(Setting(model=works(), tools=[work], hooks=hooked(**{name: hang}), acts=acts))
    assert isinstance(lived.end, RunCancelled)
    assert not lived.of(Fault)
    at = {r.key: r.at for r in lived.records}
    assert at["end/0"] - at["cancel/0"] < 100
    assert lived.records[-1].seq - next(r.seq for r in lived.records if r.key == "cancel/0") <= 2


def test_a_cancel_while_on_run_end_hangs_ends_the_hook_and_the_run_is_completed() -> None:
    lived = live(
        Setting(model=ScriptedModel(answers=["done"]), hooks=Hooks(on_run_end=hang), acts={"run": cancels_after(5)})
    )
    assert isinstance(lived.end, RunCompleted)


def test_on_run_end_is_told_the_end_and_a_restart_in_it_does_no_harm() -> None:
    told: list[Terminal] = []

    def on_run_end(end: Terminal) -> None:
        told.append(end)
        raise RuntimeError("boom")

    model = ScriptedModel(answers=["done"], by_turn=True)
    hooks = Hooks(on_run_end=on_run_end)
    lived = live(Setting(model=model, hooks=hooks, kills=[Kill(6, "after"), Kill(7, "before"), Kill(8, "before")]))
    assert len(told) >= 3
    assert told[0] == lived.end
    assert len(lived.of(Fault)) == 1


# -- after_model
def rejecting(*texts: str) -> Callable[[AssistantMessage], Reject | None]:
    return lambda message: Reject(reason="no good", reminder="again") if message.text in texts else None


def test_a_rejected_answer_leaves_the_history_its_tools_never_run_and_a_round_is_used_up() -> None:
    bad = Answer(text="bad", calls=(("work", {}),))
    model = ScriptedModel(answers=[bad, "good"])
    lived = with_hooks(Hooks(after_model=rejecting("bad")), model)
    assert lived.of(ModelRejected) == [ModelRejected(attempt=0, reason="no good", reminder="again")]
    assert not lived.of(ToolResult)
    assert model.requests[1].messages[-1] == UserMessage(text="again")
    assert not any(isinstance(message, AssistantMessage) for message in model.requests[1].messages)
    assert len(lived.of(Boundary)) == 2
    rejected = next(r for r in lived.records if r.type == "model.rejected")
    assert rejected.batch == rejected.seq
    assert lived.records[rejected.seq - 2].event.type == "model.answered"
    assert lived.records[rejected.seq - 2].batch == rejected.seq


def test_a_rejection_without_a_reminder_says_nothing_to_the_model() -> None:
    model = ScriptedModel(answers=["bad", "good"])
    with_hooks(Hooks(after_model=lambda message: Reject(reason="no") if message.text == "bad" else None), model)
    assert model.requests[1].messages == model.requests[0].messages


def test_after_two_rejections_in_a_row_the_answer_stands() -> None:
    lived = with_hooks(Hooks(after_model=rejecting("bad")), ScriptedModel(answers=["bad", "bad", "bad"]))
    assert len(lived.of(ModelRejected)) == 2
    assert isinstance(lived.end, RunCompleted)
    assert lived.end.text == "bad"


def test_rejections_are_counted_anew_after_an_answer_that_stood() -> None:
    works_ = Answer(text="fine", calls=(("work", {}),))
    model = ScriptedModel(answers=["bad", "bad", works_, "bad", "bad", "bad"])
    lived = with_hooks(Hooks(after_model=rejecting("bad")), model)
    assert len(lived.of(ModelRejected)) == 4
    assert len(lived.of(ModelAnswered)) == 6
