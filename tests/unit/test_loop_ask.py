"""A model call: retries, waits, fallbacks, losses, and what each attempt costs."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from edge_agent import Hooks
from edge_agent.core.errors import ModelError
from edge_agent.core.events import (
    Fault,
    ModelAnswered,
    ModelFailed,
    ModelRequested,
    RunCompleted,
    RunFailed,
    RunWaiting,
    StepTextDelta,
    Timer,
)
from edge_agent.core.model import ModelEvent, ModelRequest, TextDelta
from edge_agent.core.usage import Usage
from edge_agent.loop.tries import MOST_LOST
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill
from edge_agent.wire import codec
from tests.unit.loop_kit import Setting, live

DOWN = ModelError("unavailable", "down", retryable=True)
WRONG = ModelError("unauthorized", "the key is wrong", retryable=False)


def test_a_failure_is_retried_after_a_growing_pause_and_each_attempt_is_on_record() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[DOWN, DOWN, "done"])))
    assert [(r.attempt, r.error) for r in lived.of(ModelFailed)] == [(0, "unavailable"), (1, "unavailable")]
    assert [r.attempt for r in lived.of(ModelRequested)] == [0, 1, 2]
    at = [r.at for r in lived.records if r.type in ("model.failed", "model.requested")]
    first, second = (at[2] - at[1]) / 1000, (at[4] - at[3]) / 1000
    assert 0.5 <= first <= 0.75
    assert 1.0 <= second <= 1.5
    assert isinstance(lived.end, RunCompleted)


def test_after_two_retries_the_run_fails_and_says_why() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[DOWN, DOWN, DOWN])))
    assert (lived.error.kind, lived.error.code, lived.error.message) == ("provider", "unavailable", "down")
    assert "resume" in lived.error.remedy


def test_what_cannot_get_better_is_not_retried() -> None:
    model = ScriptedModel(answers=[WRONG])
    assert live(Setting(model=model)).error.code == "unauthorized"
    assert len(model.requests) == 1


def test_a_short_wait_the_provider_asks_for_is_kept_in_memory() -> None:
    busy = ModelError("rate-limited", "busy", retryable=True, retry_after=4)
    lived = live(Setting(model=ScriptedModel(answers=[busy, "done"])))
    at = {r.key: r.at for r in lived.records}
    assert at["s1/r1/a1"] - at["s1/r1/a0/end"] == 4_000
    assert not lived.of(RunWaiting)


def test_a_long_wait_lets_go_of_the_object_and_comes_back_at_the_time_asked_for() -> None:
    busy = ModelError("rate-limited", "busy", retryable=True, retry_after=90)
    lived = live(Setting(model=ScriptedModel(answers=[busy, "done"])))
    at = {r.key: r.at for r in lived.records}
    waiting = lived.of(RunWaiting)
    assert [(w.for_, w.keys) for w in waiting] == [(("retry",), ("s1/r1/a0/due",))]
    assert lived.of(ModelFailed)[0].retry_at == waiting[0].until == at["s1/r1/a0/end"] + 90_000
    assert at["s1/r1/a0/due"] - at["s1/r1/a0/end"] in range(89_999, 90_001)
    assert lived.of(Timer)
    assert lived.object.rings == 2


def test_no_wait_is_promised_after_the_last_try() -> None:
    busy = ModelError("rate-limited", "busy", retryable=True, retry_after=90)
    lived = live(Setting(model=ScriptedModel(answers=[busy]), max_retries=0))
    assert lived.of(ModelFailed)[0].retry_at is None
    assert isinstance(lived.end, RunFailed)


def test_when_one_model_gives_up_the_next_is_asked_and_has_its_own_retries() -> None:
    first = ScriptedModel(answers=[DOWN, DOWN, DOWN], name="one")
    second = ScriptedModel(answers=[DOWN, "done by two"], name="two")
    lived = live(Setting(model={"m1": first, "m2": second}))
    assert [r.model for r in lived.of(ModelRequested)] == ["one"] * 3 + ["two"] * 2
    assert isinstance(lived.end, RunCompleted)
    lived = live(Setting(model={"m1": ScriptedModel(answers=[WRONG]), "m2": ScriptedModel(answers=[WRONG])}))
    assert lived.error.code == "unauthorized"


def test_a_stream_without_its_end_is_a_failure_and_none_of_its_calls_run() -> None:
    model = ScriptedModel(answers=[Answer(text="half an ans", cut=True), "whole"])
    lived = live(Setting(model=model))
    assert lived.of(ModelFailed)[0].error == "truncated"
    assert lived.of(ModelFailed)[0].usage == Usage(input=10, output=5)
    assert isinstance(lived.end, RunCompleted)
    assert lived.end.text == "whole"


def test_a_failure_before_anything_was_sent_costs_nothing_and_one_in_the_middle_what_was_said() -> None:
    offline = ModelError("connection", "no route", retryable=True)
    at_once = Answer(usage=None, error=offline)
    half = Answer(text="a few words", usage=None, error=offline)
    lived = live(Setting(model=ScriptedModel(answers=[at_once, half, "done"])))
    nothing, some = (f.usage for f in lived.of(ModelFailed))
    assert nothing == Usage()
    assert some.input > 0
    assert some.output > 0


class Odd:
    """A model that breaks its promise."""

    name, provider, force_text_after_tool = "odd", "odd", False

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield TextDelta(text="so")
        raise self.error


def test_an_adapter_that_raises_anything_else_fails_the_run_with_its_words() -> None:
    lived = live(Setting(model=Odd(KeyError("choices"))))
    assert lived.error.code == "bad-answer"
    assert lived.error.message == "the model adapter raised KeyError: 'choices'"


def test_an_adapter_cancelled_by_nobody_is_a_lost_connection_and_not_the_end_of_the_run() -> None:
    lived = live(Setting(model={"m1": Odd(asyncio.CancelledError()), "m2": ScriptedModel(answers=["done"])}))
    assert [f.error for f in lived.of(ModelFailed)] == ["connection"] * 3
    assert isinstance(lived.end, RunCompleted)


def test_a_lost_attempt_costs_its_reserve_and_is_no_retry() -> None:
    kills = [Kill(5, "before"), Kill(8, "before"), Kill(11, "before"), Kill(14, "before")]
    lived = live(Setting(model=ScriptedModel(answers=["hello"] * 9), kills=kills))
    lost = [f for f in lived.of(ModelFailed) if f.error == "lost"]
    assert len(lost) == 4
    reserve = lived.of(ModelRequested)[0]
    assert lost[0].usage == Usage(input=reserve.estimated_input, output=reserve.output_cap or 0)
    assert isinstance(lived.end, RunCompleted)


def test_a_call_that_is_lost_again_and_again_is_given_up() -> None:
    kills = [Kill(5 + 3 * number, "before") for number in range(30)]
    lived = live(Setting(model=ScriptedModel(answers=["hello"] * 40), kills=kills))
    assert lived.error.code == "lost"
    assert len([f for f in lived.of(ModelFailed) if f.error == "lost"]) == MOST_LOST + 1


def test_offsets_count_the_characters_of_a_part() -> None:
    lived = live(Setting(model=ScriptedModel(answers=["one 👍 two three four"], piece=3)))
    said = ""
    for delta in lived.passing(StepTextDelta):
        assert delta.part == "s1/r1/a0"
        assert delta.offset == len(said)
        said += delta.delta
    assert said == "one 👍 two three four"


def test_on_error_may_end_the_run_although_a_retry_and_a_fallback_are_left() -> None:
    told: list[tuple[str, str | None, str]] = []

    def on_error(kind: str, name: str | None, error: Exception) -> bool:
        told.append((kind, name, str(error)))
        return False

    models = {"m1": ScriptedModel(answers=[DOWN, "back again"]), "m2": ScriptedModel(answers=[])}
    lived = live(Setting(model=models, hooks=Hooks(on_error=on_error)))
    assert told == [("provider", None, "down")]
    assert (lived.error.kind, lived.error.message) == ("hook", "down")
    assert [f.kind for f in lived.of(Fault)] == ["provider"]


def test_a_run_ended_by_on_error_makes_a_new_attempt_when_it_is_resumed() -> None:
    model = ScriptedModel(answers=[DOWN, "back again"])
    hooks = Hooks(on_error=lambda kind, name, error: False)
    lived = live(Setting(model=model, hooks=hooks, acts={"end/0": lambda inbox: inbox.resume()}))
    assert isinstance(lived.end, RunCompleted)
    assert lived.records[-1].life == 1


@pytest.mark.parametrize("give", [None, True])
def test_on_error_that_allows_it_changes_nothing(give: bool | None) -> None:
    model = ScriptedModel(answers=[DOWN, "done"])
    lived = live(Setting(model=model, hooks=Hooks(on_error=lambda kind, name, error: give)))
    assert isinstance(lived.end, RunCompleted)


def test_half_a_character_in_a_stream_breaks_nothing() -> None:
    lived = live(Setting(model=ScriptedModel(answers=["a\ud83d\udc4d b\ud800"], piece=2)))
    assert isinstance(lived.end, RunCompleted)
    assert lived.end.text == "a👍 b\ufffd"
    assert "".join(d.delta for d in lived.passing(StepTextDelta)) == lived.end.text


def test_a_declared_secret_in_a_models_words_is_in_no_delta_and_no_record() -> None:
    def mask(text: str) -> str:
        return text.replace("hunter22", "[secret]")

    setting = Setting(
        model=ScriptedModel(answers=[Answer(text="it is hunter22!", reasoning="hunter22?")], piece=3),
        declared=("hunter22",),
        mask=lambda event: codec.masked(event, mask),
    )
    lived = live(setting)
    assert "hunter22" not in repr(lived.items)
    assert "".join(d.delta for d in lived.passing(StepTextDelta)) == "it is [secret]!"
    assert lived.of(ModelAnswered)[0].message.text == "it is [secret]!"
