"""What an attempt is charged with and what comes of a cap, in whole runs."""

from collections.abc import AsyncGenerator

import pytest

from edge_agent import Limits, tool
from edge_agent.core.errors import ModelError
from edge_agent.core.events import (
    Boundary,
    BudgetExceeded,
    ModelAnswered,
    ModelFailed,
    ModelRequested,
    RunCompleted,
    RunFailed,
    ToolRejected,
    UsageSoFar,
)
from edge_agent.core.model import CallGrew, Finished, ModelEvent, ModelRequest, TextDelta
from edge_agent.core.price import Price
from edge_agent.core.usage import Usage
from edge_agent.models.scripted import Answer, ScriptedModel
from tests.unit.loop_kit import Lived, Setting, cancels_after, live

PRICE = Price(input=2.0, cached=0.5, output=10.0)
DOWN = ModelError("unavailable", "503", retryable=True)
BUSY = ModelError("rate-limited", "busy", retryable=True)
ENDLESS = "and so it goes on and on " * 2_000


@tool(read_only=True)
def look(q: str) -> str:
    """Look it up."""
    return f"nothing about {q}"


def looks(q: str) -> Answer:
    return Answer(text="let me see", calls=(("look", {"q": q}),), usage=Usage(input=200, output=20))


def completed(lived: Lived) -> RunCompleted:
    assert isinstance(lived.end, RunCompleted), lived.end
    return lived.end


# -- an answer that is cut
def test_a_model_that_keeps_to_no_cap_is_left_and_the_answer_comes_from_the_reserve() -> None:
    final = Answer(text="in short: on and on", usage=None)
    model = ScriptedModel(answers=[Answer(text=ENDLESS, usage=None), final])
    lived = live(Setting(model=model, limits=Limits(max_total_tokens=2_000)))
    cut, last = lived.of(ModelAnswered)
    requested = lived.of(ModelRequested)[0]
    assert (cut.finish_reason, cut.cut_by, cut.estimated) == ("length", "max_total_tokens", True)
    assert requested.output_cap is not None
    assert requested.output_cap < cut.usage.output < 1.5 * requested.output_cap
    assert model.closed == 1
    assert (completed(lived).stop_reason, completed(lived).text) == ("budget", last.message.text)
    assert [one.kind for one in lived.of(BudgetExceeded)] == ["total"]
    assert lived.state.spent.total <= 2_000


def test_an_answer_that_its_own_cap_cut_names_that_and_stands() -> None:
    cut = Answer(text="half of it", usage=Usage(input=100, output=50), finish="length")
    lived = live(Setting(model=ScriptedModel(answers=[cut]), limits=Limits(max_output_tokens_per_call=50)))
    assert lived.of(ModelAnswered)[0].cut_by == "max_output_tokens_per_call"
    assert (completed(lived).stop_reason, completed(lived).text) == ("max_tokens", "half of it")
    assert not lived.of(BudgetExceeded)


def test_an_answer_that_ended_at_a_limit_of_the_provider_names_none_of_ours() -> None:
    cut = Answer(text="half of it", usage=Usage(input=100, output=5), finish="length")
    assert live(Setting(model=ScriptedModel(answers=[cut]))).of(ModelAnswered)[0].cut_by is None


def test_without_a_cap_of_the_run_an_answer_is_left_at_twice_its_share_of_the_window() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[Answer(text=ENDLESS * 4, usage=None)], piece=400)))
    cut = lived.of(ModelAnswered)[0]
    assert (cut.finish_reason, cut.cut_by) == ("length", "1/16 of the context window")
    assert 16_000 < cut.usage.output < 17_000


def test_when_the_time_is_up_the_answer_is_left_and_the_last_one_is_not_hurried() -> None:
    slow = Answer(text="word " * 200, delay=0.1, usage=None)
    model = ScriptedModel(answers=[slow, Answer(text="an end that takes longer than all of it", delay=3.0)])
    lived = live(Setting(model=model, limits=Limits(max_seconds=5)))
    assert lived.of(ModelAnswered)[0].cut_by == "max_seconds"
    assert [one.kind for one in lived.of(BudgetExceeded)] == ["seconds"]
    assert completed(lived).stop_reason == "budget"
    assert completed(lived).text == "an end that takes longer than all of it"


def test_no_retry_is_made_when_the_time_is_up() -> None:
    model = ScriptedModel(answers=[Answer(text="so", delay=3.0, error=DOWN, usage=None), "the end"])
    lived = live(Setting(model=model, limits=Limits(max_seconds=2)))
    assert completed(lived).stop_reason == "budget"
    assert len(model.requests) == 2


# -- what the provider says of it
def test_a_provider_that_counts_more_than_the_cap_ends_the_run_there() -> None:
    model = ScriptedModel(
        answers=[Answer(text="one", calls=(("look", {"q": "a"}),), usage=Usage(input=9_000, output=9))]
    )
    lived = live(Setting(model=model, tools=[look], limits=Limits(max_total_tokens=5_000)))
    assert (completed(lived).stop_reason, completed(lived).text) == ("budget", "one")
    assert [(one.kind, one.used, one.cap) for one in lived.of(BudgetExceeded)] == [("total", 9_009, 5_000)]
    assert len(model.requests) == 1


def test_under_a_cap_a_count_that_cannot_be_is_not_believed_but_is_told_as_it_came() -> None:
    answer = Answer(text="word " * 100, usage=Usage(input=1, output=1))
    capped = live(Setting(model=ScriptedModel(answers=[answer]), limits=Limits(max_total_tokens=5_000)))
    assert capped.of(ModelAnswered)[0].usage == completed(capped).usage == Usage(input=1, output=1)
    assert capped.state.spent.output > 100
    free = live(Setting(model=ScriptedModel(answers=[answer])))
    assert (free.state.spent.input, free.state.spent.output) == (1, 1)


# -- failed attempts
def test_a_refusal_costs_nothing_a_5xx_its_input_and_a_broken_answer_what_came_of_it() -> None:
    broken = Answer(text="half of what was to come", usage=None, cut=True)
    model = ScriptedModel(answers=[Answer(usage=None, error=BUSY), Answer(usage=None, error=DOWN), broken, "done"])
    lived = live(Setting(model=model, max_retries=3))
    refused, down, half = (failed.usage for failed in lived.of(ModelFailed))
    estimated = lived.of(ModelRequested)[0].estimated_input
    assert refused == Usage()
    assert down == Usage(input=estimated)
    assert half.input == estimated
    assert 5 <= half.output <= 9


class Writing:
    """A model that writes the arguments of a call, so many pieces of them, and is not heard of again."""

    name, provider, force_text_after_tool = "writing", "test", False

    def __init__(self, pieces: int) -> None:
        self.pieces, self.written = pieces, 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        for _ in range(self.pieces if request.tools else 0):
            self.written += 1
            yield CallGrew(text='{"q": "a long question"} ')
        if request.tools:
            raise ModelError("truncated", "it broke off", retryable=False)
        yield TextDelta(text="without any")
        yield Finished(reason="stop")


def test_calls_that_were_being_written_are_paid_for_when_the_stream_breaks() -> None:
    lived = live(Setting(model=Writing(10), tools=[look]))
    assert 60 < lived.of(ModelFailed)[0].usage.output < 120


def test_a_model_that_writes_a_call_for_ever_is_left_too() -> None:
    model = Writing(10**6)
    lived = live(Setting(model=model, tools=[look], limits=Limits(max_total_tokens=2_000)))
    assert (completed(lived).stop_reason, completed(lived).text) == ("budget", "without any")
    assert model.written < 400
    assert not lived.of(ToolRejected), "what was not written to its end is no call"


# -- dollars
def test_dollars_are_kept_account_of_wherever_something_is_spent() -> None:
    answer = Answer(text="done", usage=Usage(input=1_000, cached=400, output=100))
    lived = live(Setting(model=ScriptedModel(answers=[Answer(usage=None, error=DOWN), answer]), price=lambda _: PRICE))
    cost = (600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6
    failed = lived.of(ModelFailed)[0].usage.input * 2.0 / 1e6
    assert lived.of(ModelAnswered)[0].cost_usd == pytest.approx(cost)
    assert completed(lived).cost_usd == lived.state.cost_usd == pytest.approx(cost + failed)
    assert [so_far.cost_usd for so_far in lived.passing(UsageSoFar)] == pytest.approx([failed, failed + cost])


def test_a_cap_on_dollars_ends_a_run_like_a_cap_on_tokens() -> None:
    def look_or_end(request: ModelRequest) -> Answer:
        if request.tools:
            return looks(f"more after {len(request.messages)}")
        return Answer(text="enough", usage=Usage(input=200, output=20))

    model = ScriptedModel(answers=[look_or_end] * 40)
    limits = Limits(max_steps=None, max_cost_usd=0.02, max_output_tokens_per_call=300)
    lived = live(Setting(model=model, tools=[look], limits=limits, price=lambda _: PRICE))
    assert (completed(lived).stop_reason, completed(lived).text) == ("budget", "enough")
    assert [one.kind for one in lived.of(BudgetExceeded)] == ["usd"]
    assert 0.005 < completed(lived).cost_usd <= 0.02


def test_a_cancelled_run_has_cost_what_it_had_reserved_for_the_attempt_under_way() -> None:
    slow = ScriptedModel(answers=[Answer(text="word " * 50, delay=1.0)])
    setting = Setting(model=slow, acts={"s1/r1/a0": cancels_after(5)}, price=lambda _: PRICE)
    lived = live(setting)
    reserved = next(record.money[record.key] for record in lived.records if record.type == "model.requested")
    assert lived.end.type == "run.cancelled"
    assert lived.state.cost_usd == reserved.usd > 0


def test_a_run_whose_price_is_gone_fails_and_says_how_to_add_it() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[]), limits=Limits(max_cost_usd=1)))
    assert isinstance(lived.end, RunFailed)
    assert lived.error.code == "config"
    assert 'EDGE_AGENT_PRICES={"m": {"input": 1.0, "cached": 0.1, "output": 4.0}}' in lived.error.message


# -- the end
def test_each_cap_is_told_once_in_a_life() -> None:
    lived = live(
        Setting(
            model=ScriptedModel(answers=[Answer(text=ENDLESS, usage=None), Answer(text=ENDLESS, usage=None)]),
            limits=Limits(max_output_tokens=600),
        )
    )
    assert [one.kind for one in lived.of(BudgetExceeded)] == ["output"]
    assert completed(lived).stop_reason == "budget"


def test_when_calls_had_to_be_turned_down_the_answer_is_due() -> None:
    model = ScriptedModel(
        answers=[Answer(text="a", calls=(("look", {"q": "a"}), ("look", {"q": "b"}))), Answer(text="what I know")]
    )
    lived = live(Setting(model=model, tools=[look], limits=Limits(max_tool_calls=1)))
    assert [one.reason for one in lived.of(ToolRejected)] == ["budget"]
    assert model.requests[-1].tools == ()
    assert (completed(lived).stop_reason, completed(lived).text) == ("budget", "what I know")
    assert [one.kind for one in lived.of(BudgetExceeded)] == ["tool-calls"]


def test_the_last_round_sees_long_results_shortened_where_they_would_not_fit() -> None:
    @tool(read_only=True)
    def read() -> str:
        """Read all of it."""
        return "a line of the book\n" * 900

    model = ScriptedModel(
        answers=[Answer(text="", calls=(("read", {}),), usage=None), Answer(text="short", usage=None)]
    )
    lived = live(Setting(model=model, tools=[read], limits=Limits(max_total_tokens=3_000)))
    assert (completed(lived).stop_reason, completed(lived).text) == ("budget", "short")
    clipped = lived.of(Boundary)[-1].clipped
    assert clipped in (4_000, 1_000)
    shown = model.requests[-1].messages[2].text
    assert clipped < len(shown) < clipped + 100
    assert shown.endswith("characters left out …]\n")
    assert lived.state.spent.total <= 3_000
