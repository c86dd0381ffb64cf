"""The state of a run is a fold over its log, at any point of it."""

from edge_agent.core.errors import ModelError
from edge_agent.core.skill_library import Learning, SkillUse
from edge_agent.core.skills import Skill
from edge_agent.core.skills_in_play import SkillState
from edge_agent.core.state import fold
from edge_agent.core.usage import Amount, Usage
from edge_agent.models.scripted import Answer, Item, ScriptedModel
from edge_agent.testing import VirtualClock, memory_library
from edge_agent.tools.skill_tools import skill_tools
from tests.unit.loop_kit import Lived, Setting, cancels, live, resumes
from tests.unit.test_loop_direct import look
from tests.unit.test_loop_unknown_outcomes import doubtful


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


def test_the_state_lists_active_skills_where_they_are_from_and_their_revision_at_any_point() -> None:
    def call(tool: str, **arguments: str) -> Answer:
        return Answer(calls=((tool, arguments),))

    save = call("save_skill", name="cm", description="Lengths.", text="In cm.")
    use = SkillUse(
        bundled=(Skill(name="tidy", description="Tidy up.", instructions="Put it away."),),
        library=memory_library(VirtualClock()),
        origins=("learned",),
        learning=Learning(),
    )
    loads = (call("load_skill", name="cm"), call("load_skill", name="tidy"))
    answers: list[Item] = [save, save, *loads, call("forget_skill", name="cm"), "done"]
    lived = live(Setting(model=ScriptedModel(answers=answers), skills=use, tools=skill_tools(use)))
    at = {record.key: fold("run-1", lived.records[: record.batch]).skills for record in lived.records}
    lesson = SkillState(name="cm", origin="learned", by="tool", revision=2)
    tidy = SkillState(name="tidy", origin="bundled", by="tool")
    assert at["s1/r2/c0/result"] == ()
    assert at["s1/r3/c0/result"] == (lesson,)
    assert at["s1/r4/c0/result"] == (lesson, tidy)
    assert lived.state.skills == (tidy,)
