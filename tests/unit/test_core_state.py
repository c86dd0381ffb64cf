"""The state of a run is a fold over its log, at any point of it."""

from edge_agent.core.errors import ModelError
from edge_agent.core.state import fold
from edge_agent.core.usage import Amount, Usage
from edge_agent.models.scripted import Answer, ScriptedModel
from tests.unit.loop_kit import Lived, Setting, cancels, live, resumes
from tests.unit.test_loop_calls import doubtful
from tests.unit.test_loop_direct import look


def statuses(lived: Lived) -> dict[str, str]:
    records = lived.records
    return {record.key: fold("run-1", records[: record.seq]).status for record in records}


def test_a_run_is_queued_then_running_then_completed() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[Answer(calls=(("look", {}),)), "done"]), tools=[look]))
    assert list(statuses(lived).values()) == ["queued", *["running"] * (len(lived.records) - 2), "completed"]
    state = fold("run-1", lived.records, restarts=3)
    assert (state.text, state.stop_reason, state.rounds, state.restarts, state.life) == ("done", "stop", 2, 3, 0)
    assert state.usage == Usage(input=20, output=10)
    assert state.spent == Amount(input=20, output=10, tool_calls=1)
    assert state.error is None


def test_a_run_waits_as_long_as_nothing_it_waits_for_has_come() -> None:
    pay, _ = doubtful("ask")
    lived = live(Setting(model=ScriptedModel(answers=[Answer(calls=(("pay", {}),)), "done"]), tools=[pay]))
    at = statuses(lived)
    assert at["wait/8"] == "waiting"
    assert at["s1/r1/c0/ask/0/answer"] == "running"
    waiting = fold("run-1", lived.records[:8]).waiting_for
    assert waiting is not None
    assert waiting.reasons == ("answer",)
    assert [question.for_ for question in waiting.questions] == ["unknown-outcome"]
    assert lived.state.waiting_for is None


def test_a_failed_run_says_why_and_a_resumed_one_runs_again() -> None:
    wrong = ModelError("unauthorized", "the key is wrong", retryable=False)
    model = ScriptedModel(answers=[wrong, "done"])
    lived = live(Setting(model=model, acts={"end/0": resumes}))
    at = statuses(lived)
    assert (at["end/0"], at["life/1"], at["end/1"]) == ("failed", "running", "completed")
    failed = fold("run-1", lived.records[: list(at).index("end/0") + 1])
    assert failed.error is not None
    assert failed.error.code == "unauthorized"
    assert (failed.text, failed.stop_reason) == ("", "error")


def test_a_wait_of_an_earlier_life_is_over() -> None:
    busy = ModelError("rate-limited", "busy", retryable=True, retry_after=600)
    acts = {"s1/r1/a0/due": cancels, "end/0": resumes}
    lived = live(Setting(model=ScriptedModel(answers=[busy, "done"]), acts=acts))
    at = statuses(lived)
    assert at["end/0"] == "cancelled"
    assert at["life/1"] == "running"
    assert lived.state.status == "completed"
