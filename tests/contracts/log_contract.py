"""What every `Log` promises, as plain functions: run on sqlite3 by test_log.py, and inside workerd by tests/workerd.

Nothing here knows a test framework. Each function takes a `Subject` and raises AssertionError.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from edge_agent.core.events import (
    Boundary,
    Fault,
    ModelAnswered,
    OfferedTools,
    RecordedEvent,
    RunCreated,
    RunStarted,
    ToolCalled,
    ToolResult,
)
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage, OpaquePart, ToolCall
from edge_agent.core.ports import Log, Record, Send, StoredFile, Unsent
from edge_agent.core.usage import Amount, Usage

AT = 1_764_510_796_123  # ms since the epoch: more than 32 bits


@dataclass(frozen=True, slots=True)
class Subject:
    """fresh: an empty log. again: another one over the storage of the last fresh one, as after a restart."""

    fresh: Callable[[], Log]
    again: Callable[[], Log]


def record(
    seq: int, key: str, event: RecordedEvent, *, batch: int | None = None, money: dict[str, Amount] | None = None
) -> Record:
    return Record(
        seq=seq,
        key=key,
        batch=batch or seq,
        life=0,
        by="loop",
        at=AT,
        agent="assistant",
        event=event,
        money=money or {},
    )


def created(text: str = "hello") -> RunCreated:
    return RunCreated(version=1, input=text, agent_name="assistant", models=("m",), limits=Limits(max_seconds=1.5))


def result(output: str = "ok", **more: object) -> ToolResult:
    structured = dict(more) or None
    return ToolResult(
        call_id="c",
        name="t",
        ok=True,
        output=output,
        structured=structured,
        model_chars=2,
        duration_ms=1,
        step=1,
        round=1,
    )


def fault(message: str) -> Fault:
    return Fault(kind="tool", message=message, action="continued")


def rejected(work: Callable[[], object]) -> str:
    """The message of the ValueError that `work` must raise."""
    try:
        work()
    except ValueError as error:
        return str(error)
    raise AssertionError("nothing was raised")


# -- the contract
async def asking_for_an_unknown_run_leaves_nothing_behind(subject: Subject) -> None:
    log = subject.fresh()
    assert not log.exists()
    assert log.load() == []
    assert log.meta("restarts") is None
    assert log.file("nothing") is None
    assert not subject.again().exists()


async def what_is_appended_is_loaded_as_it_was_and_in_order(subject: Subject) -> None:
    log = subject.fresh()
    call = ToolCall(id="c", name="t", arguments={"a": [1, None, {"b": 2.5}], "n": 2**60}, malformed=None)
    message = AssistantMessage(
        text="é 👍 \x00 \u2028", calls=(call,), opaque=(OpaquePart(provider="p", data={"x": 1}),)
    )
    answered = ModelAnswered(
        stage="round", message=message, finish_reason="stop", usage=Usage(input=3), estimated=False, latency_ms=9
    )
    records = [
        record(1, "run", created()),
        record(2, "life/0", RunStarted(reason="created"), batch=4),
        record(3, "s1/r1", Boundary(tools=OfferedTools(names=("t",), version="v")), batch=4),
        record(4, "s1/r1/a0/end", answered, money={"s1/r1/a0": Amount(input=3, output=4, reasoning=1, usd=0.25)}),
        record(5, "s1/r1/c0/result", result(at={"deep": ["er"]}), money={"s1/r1/c0": Amount(tool_calls=1)}),
    ]
    log.append(records[:1])
    log.append(records[1:4])
    log.append(records[4:])
    loaded = subject.again().load()
    assert loaded == records
    assert all(
        type(r.seq) is int and type(r.at) is int and type(r.batch) is int and type(r.life) is int for r in loaded
    )


async def a_batch_is_appended_whole_or_not_at_all(subject: Subject) -> None:
    log = subject.fresh()
    log.append([record(1, "run", created())], (), {"restarts": "0"})
    file = StoredFile(name="f", media_type="text/plain", content=b"x")
    taken = [record(2, "a", fault("a"), batch=3), record(3, "run", fault("again"))]
    assert "run" in rejected(lambda: log.append(taken, [file], {"restarts": "7"}))
    assert [r.key for r in subject.again().load()] == ["run"]
    assert log.file("f") is None
    assert log.meta("restarts") == "0"


async def a_seq_that_is_taken_is_refused(subject: Subject) -> None:
    log = subject.fresh()
    log.append([record(1, "run", created())])
    assert "other" in rejected(lambda: log.append([record(1, "other", fault("other"))]))
    assert [r.key for r in log.load()] == ["run"]


async def words_beside_the_log_are_set_with_an_append_or_alone(subject: Subject) -> None:
    log = subject.fresh()
    log.append([record(1, "run", created())], (), {"fingerprint": "f"})
    log.set_meta("slice", "open")
    log.set_meta("slice", "closed")
    again = subject.again()
    assert again.exists()
    assert (again.meta("fingerprint"), again.meta("slice"), again.meta("nothing")) == ("f", "closed", None)


async def long_strings_come_back_whole(subject: Subject) -> None:
    log = subject.fresh()
    texts = ["a" * 65_536, "b" * 65_537, "é" * 700_000, "👍" * 70_000, "\x00" * 66_000]
    records = [record(1, "run", created("y" * 3_000_000))]
    records += [record(at, f"t/{at}", result(text)) for at, text in enumerate(texts, start=2)]
    records.append(record(7, "deep", result("z", nested=[{"long": "w" * 100_000}, "short"])))
    for one in records:
        log.append([one])
    assert subject.again().load() == records


async def a_record_of_many_strings_that_is_too_large_for_a_row_is_taken_apart(subject: Subject) -> None:
    log = subject.fresh()
    many = record(1, "run", result(**{f"field{number}": str(number) * 30_000 for number in range(90)}))
    log.append([many])
    assert subject.again().load() == [many]


async def a_record_that_cannot_fit_a_row_is_refused_with_its_size(subject: Subject) -> None:
    log = subject.fresh()
    log.append([record(1, "run", created())])
    endless = ToolCalled(
        call_id="c",
        name="t",
        arguments={"numbers": list(range(400_000))},
        idempotency_key="k",
        read_only=True,
        safe_to_repeat=True,
        on_unknown="report",
        step=1,
        round=1,
    )
    said = rejected(lambda: log.append([record(2, "s1/r1/c0/call", endless)]))
    assert "s1/r1/c0/call" in said
    assert "bytes" in said
    assert [r.key for r in log.load()] == ["run"]


async def files_of_any_size_come_back_and_the_last_of_a_name_counts(subject: Subject) -> None:
    log = subject.fresh()
    big = bytes(range(256)) * 20_000
    files = [
        StoredFile(name="big", media_type="application/octet-stream", content=big),
        StoredFile(name="empty", media_type="text/plain", content=b""),
    ]
    log.append([record(1, "run", created())], files)
    log.append([record(2, "a", fault("a"))], [StoredFile(name="empty", media_type="image/png", content=b"not")])
    again = subject.again()
    assert again.file("big") == files[0]
    assert again.file("empty") == StoredFile(name="empty", media_type="image/png", content=b"not")
    assert again.file("none") is None


async def durable_returns_when_everything_is_on_the_disk(subject: Subject) -> None:
    log = subject.fresh()
    log.append([record(1, "run", created())])
    await log.durable()
    assert [r.key for r in subject.again().load()] == ["run"]


def send(key: str, **arguments: object) -> Send:
    return Send(key=key, destination="directory", method="report", arguments=dict(arguments))


async def what_is_to_be_sent_is_written_with_its_records_or_not_at_all(subject: Subject) -> None:
    log = subject.fresh()
    assert log.outbox() == []
    told = send("listed/1", created=AT, big=2**60, text="é 👍 \x00", nested={"a": [None, 1.5]})
    log.append([record(1, "run", created())], sends=[told, send("other")])
    assert subject.again().outbox() == [Unsent(send=told, tries=0, due=0), Unsent(send=send("other"), tries=0, due=0)]
    rejected(lambda: log.append([record(2, "run", fault("again"))], sends=[send("never")]))
    said = rejected(lambda: log.append([record(2, "a", fault("a"))], sends=[send("huge", text="x" * 2_000_000)]))
    assert "huge" in said
    assert "bytes" in said
    assert [r.key for r in log.load()] == ["run"]
    assert [unsent.send.key for unsent in log.outbox()] == ["listed/1", "other"]
    log.append([record(2, "a", fault("a"))], sends=[send("listed/1", another="text")])
    assert log.outbox()[0].send == told, "a key is sent once"
    assert len(log.outbox()) == 2


async def what_was_tried_in_vain_is_due_later_and_what_arrived_is_gone(subject: Subject) -> None:
    log = subject.fresh()
    log.append([record(1, "run", created())], sends=[send("a"), send("b"), send("c")])
    log.postpone("b", AT)
    log.postpone("b", AT + 60_000)
    log.acknowledge("a")
    log.acknowledge("nobody knows this one")
    log.postpone("a", AT)
    left = [Unsent(send=send("b"), tries=2, due=AT + 60_000), Unsent(send=send("c"), tries=0, due=0)]
    assert log.outbox() == left
    again = subject.again()
    assert again.outbox() == left
    assert all(type(unsent.due) is int and type(unsent.tries) is int for unsent in again.outbox())


async def an_erasure_leaves_a_tombstone_and_what_is_to_be_sent(subject: Subject) -> None:
    log = subject.fresh()
    assert not log.erased()
    assert not subject.again().exists(), "asking made nothing"
    file = StoredFile(name="f", media_type="text/plain", content=b"x")
    log.append([record(1, "run", created("x" * 70_000))], [file], {"fingerprint": "f"}, [send("a")])
    assert not log.erased()
    log.erase(AT, [send("forget")])
    log.set_meta("slice", "closed")
    for seen in (log, subject.again()):
        assert seen.erased()
        assert not seen.exists()
        assert seen.load() == []
        assert (seen.meta("fingerprint"), seen.meta("slice"), seen.file("f")) == (None, None, None)
        assert [unsent.send.key for unsent in seen.outbox()] == ["a", "forget"]
    log.acknowledge("a")
    log.acknowledge("forget")
    assert subject.again().outbox() == []
    assert subject.again().erased()


CONTRACT: tuple[Callable[[Subject], Awaitable[None]], ...] = (
    asking_for_an_unknown_run_leaves_nothing_behind,
    what_is_appended_is_loaded_as_it_was_and_in_order,
    a_batch_is_appended_whole_or_not_at_all,
    a_seq_that_is_taken_is_refused,
    words_beside_the_log_are_set_with_an_append_or_alone,
    long_strings_come_back_whole,
    a_record_of_many_strings_that_is_too_large_for_a_row_is_taken_apart,
    a_record_that_cannot_fit_a_row_is_refused_with_its_size,
    files_of_any_size_come_back_and_the_last_of_a_name_counts,
    durable_returns_when_everything_is_on_the_disk,
    what_is_to_be_sent_is_written_with_its_records_or_not_at_all,
    what_was_tried_in_vain_is_due_later_and_what_arrived_is_gone,
    an_erasure_leaves_a_tombstone_and_what_is_to_be_sent,
)
