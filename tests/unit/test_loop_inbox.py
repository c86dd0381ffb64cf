"""What comes from outside: short handlers that wake first and append then, and refuse in words."""

import pytest

from edge_agent.core.errors import Refusal
from edge_agent.core.events import QuestionAnswered, QuestionAsked, RunResumed, ToolUnknown
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Draft, Journal
from edge_agent.loop import close
from edge_agent.loop.direct import Ending
from edge_agent.loop.driver import Driver
from edge_agent.loop.inbox import Inbox
from edge_agent.testing import in_memory_log
from tests.contracts.log_contract import created

NOW = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> int:
        return self.at


class Alarm:
    """Notes how long the log was when it was set."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.set_before = journal, list[int]()

    def set(self, at: int) -> None:
        self.set_before.append(len(self.journal.records))


class Box:
    def __init__(self) -> None:
        self.clock, self.log = Clock(), in_memory_log()
        self.journal = Journal(self.log, self.clock, Hub())
        self.alarm = Alarm(self.journal)

        def none() -> object:
            raise AssertionError("no slice runs here")

        self.driver = Driver("run-1", self.journal, self.alarm, none)  # pyright: ignore[reportArgumentType]  (never called)
        self.inbox = Inbox(self.journal, self.driver)

    def create(self) -> None:
        self.inbox.create(created(), "print", idempotent=True)

    def keys(self) -> list[str]:
        return list(self.journal.records)

    def ask(self) -> str:
        asked = QuestionAsked(
            question_id="q1", for_="unknown-outcome", cause="lost", question="?", expires_at=NOW + 500
        )
        self.journal.append("loop", Draft(key="s1/r1/c0/ask/0", event=asked))
        return "q1"


@pytest.fixture
def box() -> Box:
    return Box()


def refused(box: Box, act: str, *args: str) -> tuple[int, str]:
    with pytest.raises(Refusal) as no:
        getattr(box.inbox, act)(*args)
    assert no.value.message.endswith(".")
    return no.value.status, no.value.code


def test_an_unknown_run_is_refused_and_leaves_nothing(box: Box) -> None:
    for act, args in (("cancel", ()), ("resume", ()), ("answer", ("q", "a"))):
        assert refused(box, act, *args) == (404, "unknown_run")
    assert not box.log.exists()
    assert box.alarm.set_before == []


def test_the_alarm_is_set_before_the_append(box: Box) -> None:
    box.create()
    box.clock.at -= 1  # an earlier time than the one that is set: it is set again
    box.inbox.cancel("enough")
    assert box.alarm.set_before == [0, 1]
    assert box.keys() == ["run", "cancel/0"]


def test_the_same_create_finds_its_run_and_another_meets_a_conflict(box: Box) -> None:
    box.create()
    box.create()
    assert box.keys() == ["run"]
    with pytest.raises(Refusal) as other_body:
        box.inbox.create(created(), "other", idempotent=True)
    with pytest.raises(Refusal) as taken:
        box.inbox.create(created(), "print", idempotent=False)
    assert [(no.value.status, no.value.code) for no in (other_body, taken)] == [
        (409, "idempotency_conflict"),
        (409, "run_exists"),
    ]


def test_a_cancel_counts_once_and_not_after_the_end(box: Box) -> None:
    box.create()
    box.inbox.cancel()
    box.inbox.cancel()
    close.close(box.driver.run_id, box.journal, close.cancelled(box.journal))
    box.inbox.cancel()
    assert box.keys() == ["run", "cancel/0", "end/0"]


def test_only_a_failed_or_cancelled_run_is_resumed_and_its_cancel_is_spent(box: Box) -> None:
    box.create()
    assert refused(box, "resume") == (409, "run_not_ended")
    box.inbox.cancel()
    close.close(box.driver.run_id, box.journal, close.cancelled(box.journal))
    box.inbox.resume()
    assert box.keys()[-1] == "life/1"
    assert box.journal.life == 1
    box.inbox.cancel()
    assert box.keys()[-1] == "cancel/1"


def test_the_reason_of_a_resume_is_on_record(box: Box) -> None:
    box.create()
    close.close(box.driver.run_id, box.journal, close.cancelled(box.journal))
    box.inbox.resume("the key is mended")
    assert box.journal.last.event == RunResumed(reason="the key is mended")


def test_a_completed_run_is_not_resumed(box: Box) -> None:
    box.create()
    close.close(box.driver.run_id, box.journal, close.completed(box.journal, Ending("stop", "done")))
    assert refused(box, "resume") == (409, "run_completed")


def test_the_first_answer_stands(box: Box) -> None:
    box.create()
    question = box.ask()
    first = box.inbox.answer(question, "retry")
    assert box.inbox.answer(question, "retry") == first
    assert refused(box, "answer", question, "no") == (409, "already_answered")
    assert refused(box, "answer", "q2", "no") == (404, "unknown_question")
    assert box.keys()[-1] == "s1/r1/c0/ask/0/answer"


def test_an_answer_after_its_time_is_refused_also_before_the_alarm_has_rung(box: Box) -> None:
    box.create()
    question = box.ask()
    box.clock.at = NOW + 500
    assert refused(box, "answer", question, "retry") == (410, "question_expired")
    expired = QuestionAnswered(question_id=question, by="expiry")
    box.journal.append("input", Draft(key="s1/r1/c0/ask/0/answer", event=expired))
    assert refused(box, "answer", question, "retry") == (410, "question_expired")


def test_a_question_whose_call_has_ended_is_closed_also_in_a_later_life(box: Box) -> None:
    box.create()
    question = box.ask()
    unknown = ToolUnknown(call_id="c", name="t", cause="lost", policy="ask", message="?", step=1, round=1)
    box.journal.append("loop", Draft(key="s1/r1/c0/result", event=unknown))
    assert refused(box, "answer", question, "retry") == (410, "question_expired")
    close.close(box.driver.run_id, box.journal, close.cancelled(box.journal))
    assert refused(box, "answer", question, "retry") == (410, "question_expired")


def test_the_end_withdraws_a_question_and_an_answer_comes_too_late(box: Box) -> None:
    box.create()
    question = box.ask()
    close.close(box.driver.run_id, box.journal, close.cancelled(box.journal))
    given = box.journal.event("s1/r1/c0/ask/0/answer", QuestionAnswered)
    assert given is not None
    assert given.by == "cancel"
    box.inbox.resume()
    assert refused(box, "answer", question, "retry") == (410, "question_expired")
