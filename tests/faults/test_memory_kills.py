"""Every scripted run, killed before and after each of its records: nothing is done twice, and the end is the same."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.hooks import Hooks, Reject
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from edge_agent.testing import Kill
from tests.conftest import Figure
from tests.faults.memory_laws import check, compare, loop_made
from tests.faults.memory_world import REMINDER, Person, Scenario, World

DOWN = ModelError("unavailable", "the model is down", retryable=True)
BUSY = ModelError("rate-limited", "too many requests", retryable=True, retry_after=30)


def calls(*names: str) -> Answer:
    return Answer(text="let me see", calls=tuple((name, {"q": str(index)}) for index, name in enumerate(names)))


def answers(text: str) -> Callable[[Inbox], object]:
    def act(inbox: Inbox) -> object:
        for record in inbox.journal.types.get("question.asked", ()):
            if f"{record.key}/answer" not in inbox.journal.records and record.event.type == "question.asked":
                inbox.answer(record.event.question_id, text)
        return None

    return act


def cancels(inbox: Inbox) -> None:
    inbox.cancel("enough")


def resumes(inbox: Inbox) -> None:
    inbox.resume()


def rejects(message: AssistantMessage) -> Reject | None:
    return Reject(reason="too short", reminder=REMINDER) if message.text == "hm" else None


def raises(*_: object) -> None:
    raise RuntimeError("the hook is broken")


RICH = Scenario(
    name="rounds, side by side, of every kind",
    script=[
        calls("read", "read"),
        Answer(
            calls=(
                ("read", {"q": "1"}),
                ("pay", {"q": "10"}),
                ("flaky", {}),
                ("broken", {}),
                ("ghost", {}),
                ("pay", {"bad": 1}),
                ("pay", "{not json"),
                ("slow", {}),
                ("read", ""),
            )
        ),
        calls("pay", "pay"),
        "that is all there is to say about it",
    ],
    failing={"s1/r1/a0": DOWN, "s1/r2/a0": BUSY},
)

ASKING = Scenario(
    name="a question, a sibling that takes longer, a wait before a retry",
    script=[calls("doubt_ask", "slow", "read"), calls("pay", "read"), "done at last"],
    people=(Person("s1/r1/c0/ask/0", answers("it was booked"), 5.0),),
    failing={"s1/r2/a0": BUSY},
)

SCENARIOS = [
    ASKING,
    RICH,
    Scenario(name="nothing but an answer", script=["hello there"]),
    Scenario(
        name="a fallback model",
        script=[calls("read"), "done by the other"],
        models=("m1", "m2"),
        broken=frozenset({"m1"}),
    ),
    Scenario(name="every model is down", script=["never"], broken=frozenset({"m1"}), ends="run.failed"),
    Scenario(
        name="a long wait before a retry", script=[calls("read"), "done"], failing={"s1/r2/a0": BUSY, "s1/r2/a1": BUSY}
    ),
    Scenario(name="a rejected answer", script=["hm", calls("pay"), "done"], hooks=Hooks(after_model=rejects)),
    Scenario(name="rejected until it stands", script=["hm", "hm", "hm"], hooks=Hooks(after_model=rejects)),
    Scenario(name="no steps left", script=[calls("read"), calls("pay"), calls("read")], limits=Limits(max_steps=2)),
    Scenario(
        name="no tokens left",
        script=[calls("read"), calls("pay"), calls("read"), calls("pay")],
        limits=Limits(max_total_tokens=3_600, max_output_tokens_per_call=200),
        same_when_lost=False,
    ),
    Scenario(
        name="no tool calls left", script=[calls("pay", "read", "pay", "read"), "done"], limits=Limits(max_tool_calls=2)
    ),
    Scenario(name="a forced text", script=[calls("pay"), calls("pay")], force_text=True),
    Scenario(
        name="an answer cut by its cap",
        script=[Answer(text="cut", calls=(("pay", {}),), finish="length"), "done"],
    ),
    Scenario(name="an unknown outcome is reported", script=[calls("doubt", "read"), "done"]),
    Scenario(name="an unknown outcome is tried again", script=[calls("doubt_retry", "read"), "done"]),
    Scenario(
        name="a person lets it be tried again",
        script=[calls("doubt_ask", "read", "pay"), "done"],
        people=(Person("s1/r1/c0/ask/0", answers("retry"), 5.0), Person("s1/r1/c0/ask/1", answers("retry"), 5.0)),
    ),
    Scenario(
        name="a person says what happened",
        script=[calls("doubt_ask", "read"), "done"],
        people=(Person("s1/r1/c0/ask/0", answers("it was booked"), 5.0),),
    ),
    Scenario(name="nobody answers", script=[calls("doubt_ask", "doubt_ask"), "done"]),
    Scenario(name="an unknown outcome ends the run", script=[calls("doubt_fail", "read"), "no"], ends="run.failed"),
    Scenario(
        name="a failed run is resumed",
        script=[calls("pay"), calls("read"), "done"],
        down_in_first_life="s1/r2",
        people=(Person("end/0", resumes, 5.0),),
    ),
    Scenario(
        name="a cancelled run is resumed",
        script=[calls("pay"), calls("pay", "read"), "done"],
        people=(Person("s1/r2", cancels, 0.05), Person("end/0", resumes, 5.0)),
    ),
    Scenario(
        name="a forbidden outcome, and the run resumed after it",
        script=[calls("doubt_fail", "pay"), "done"],
        people=(Person("end/0", resumes, 5.0),),
    ),
    Scenario(name="slices of one effect", script=RICH.script, slices=SliceBudget(effects=1), failing=RICH.failing),
    Scenario(name="long output, files, structure", script=[calls("big", "read"), "done"]),
    Scenario(
        name="hooks that raise",
        script=[calls("read", "pay"), "done"],
        hooks=Hooks(on_run_start=raises, after_tool=raises, on_run_end=raises),
    ),
    Scenario(
        name="a hook ends the run at an error",
        script=[calls("broken", "read"), "no"],
        hooks=Hooks(on_error=lambda kind, tool, error: False),
        ends="run.failed",
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_run_killed_at_every_record_does_nothing_twice_and_ends_the_same(scenario: Scenario, figure: Figure) -> None:
    calm = World(scenario, followers=True).lived()
    check(calm)
    assert calm.records[-1].type == scenario.ends, calm.records[-1]
    points = unknown = 0
    for vanish in (True, False):
        for append in range(1, calm.appends + 1):
            for kill in (Kill(append, "before"), Kill(append, "after")):
                points += 1
                unknown += compare(calm, World(scenario, [kill], vanish=vanish).lived())
    figure(f"{points} kills, {unknown} outcomes became unknown")


def test_two_kills_in_a_row_change_nothing_either(figure: Figure) -> None:
    calm, points = World(RICH).lived(), 0
    for append in range(1, calm.appends, 3):
        for distance in (1, 2, 5):
            points += 1
            compare(calm, World(RICH, [Kill(append, "after"), Kill(append + distance, "before")]).lived())
    figure(f"{points} pairs of kills")


def test_a_slice_of_one_effect_makes_the_same_log_as_one_slice() -> None:
    whole = World(RICH).lived()
    sliced = World(replace(RICH, slices=SliceBudget(effects=1))).lived()
    timed = World(replace(RICH, slices=SliceBudget(seconds=0.001))).lived()
    assert sliced.object.rings > 2 * whole.object.rings
    compare(whole, sliced)
    compare(whole, timed)
    assert loop_made(sliced) == loop_made(whole) == loop_made(timed)


@pytest.mark.parametrize("after", [0.0, 0.11, 0.35])
def test_a_cancel_at_every_record_ends_the_run_once_and_nothing_begins_after_it(after: float, figure: Figure) -> None:
    calm, cancelled, points = World(ASKING).lived(), 0, 0
    for seq in range(1, len(calm.records) + 1):
        kills = [(), (Kill(seq, "after"),), (Kill(seq + 1, "before"),), (Kill(seq + 1, "after"),)]
        for kill in kills if after == 0.0 else kills[:1]:
            points += 1
            world = World(ASKING, kill, people=[Person(seq, cancels, after)]).lived()
            check(world)
            asked = next((r for r in world.records if r.type == "cancel.requested"), None)
            if asked is None:
                assert world.records[-1].type == "run.completed"
                continue
            cancelled += world.records[-1].type == "run.cancelled"
            begun = [r.key for r in world.records[asked.seq :] if r.type in ("tool.called", "model.requested")]
            assert not begun, f"began after the cancel at {seq}: {begun}"
            open_ = [r.key for r in world.records if r.type == "question.asked"]
            assert all(f"{key}/answer" in {r.key for r in world.records} for key in open_)
    assert cancelled > points / 2
    figure(f"{points} cancels, {cancelled} of them in time")


def test_a_run_cancelled_at_every_record_goes_on_when_it_is_resumed() -> None:
    calm, resumed = World(RICH).lived(), 0
    for seq in range(2, len(calm.records)):
        for kill in ((), (Kill(seq + 2, "after"),)):
            people = [Person(seq, cancels, 0.05), Person("end/0", resumes, 1.0)]
            world = World(RICH, kill, people=people).lived()
            check(world)
            assert world.records[-1].type == "run.completed"
            resumed += world.records[-1].life == 1
    assert resumed > 60


def test_what_is_on_record_is_acted_on_although_nobody_asks_again() -> None:
    """The object dies right after the append of an answer, and no request comes: the alarm was set before."""
    answered = 0
    for append in range(1, World(ASKING).lived().appends + 1):
        world = World(ASKING, [Kill(append, "after")])
        world.patient = False
        check(world.lived())
        at = {record.key: record.at for record in world.records}
        if "s1/r1/c0/ask/0/answer" in at:
            answered += 1
            assert at["s1/r1/c0/result"] - at["s1/r1/c0/ask/0/answer"] < 5_000, "the answer lay there"
    assert answered > 10


def test_an_answer_that_comes_while_a_sibling_runs_or_while_the_run_lets_go_is_not_lost() -> None:
    for after in (0.0, 0.05, 0.2, 0.3, 0.4, 0.41, 0.45, 0.6, 1.0, 2.0):
        world = World(replace(ASKING, people=(Person("s1/r1/c0/ask/0", answers("it was booked"), after),))).lived()
        check(world)
        at = {record.key: record.at for record in world.records}
        assert at["s1/r1/c0/result"] - at["s1/r1/c0/ask/0/answer"] < 5_000, "the answer lay there"


def test_followers_who_join_at_every_record_hear_everything_once_also_when_the_object_dies() -> None:
    for kills in ((), (Kill(9, "after"), Kill(20, "before"), Kill(31, "after"))):
        world = World(RICH, kills, followers=True).lived()
        check(world)
        assert world.followers is not None
        assert len(world.followers) >= 30
        assert sum(follower.whole for follower in world.followers) > 60


@pytest.mark.parametrize(
    "old,new",
    [
        ("/r", "/round"),
        ("/a0", "/b0"),
        ("/end", "/ended"),
        ("/call", "/begun"),
        ("/result", "/done"),
        ("/c0", "/tool0"),
    ],
)
def test_a_deploy_that_renames_a_key_stops_the_run_before_anything_is_done_again(old: str, new: str) -> None:
    """The log of an earlier code, cut after each of its batches, meets the code of today."""
    calm = World(RICH).lived()
    renamed = [replace(r, key=r.key.replace(old, new)) if r.by == "loop" else r for r in calm.records[:-1]]
    drifted = 0
    for cut in {record.batch for record in renamed if record.batch < len(calm.records)}:
        log = renamed[:cut]
        world = World(RICH, log=log).lived()
        known = {record.key for record in log}
        other = {r.key for r, was in zip(log, calm.records, strict=False) if r.key != was.key}
        if not {key for key in other if f"{key.partition('/begun')[0]}/result" not in known}:
            assert world.records[-1].type == "run.completed"  # nothing is renamed yet that a walk would ask for
            continue
        drifted += 1
        end = world.records[-1].event
        assert end.type == "run.failed"
        assert end.error.kind == "drift"
        assert not world.happened
        assert not world.parts
    assert drifted >= 8
