"""A planned run with skills that learns, killed at each of its records, while somebody else changes the library."""

import asyncio
import json
from collections import Counter

import pytest

from edge_agent.core.errors import Refusal
from edge_agent.core.events import (
    Fault,
    RecordedEvent,
    SkillActivated,
    SkillForgotten,
    SkillLearned,
    SkillsListed,
    StepCompleted,
    ToolResult,
)
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import ModelRequest
from edge_agent.core.skill_library import Learning, LibraryMethod, SkillLibrary, SkillUse
from edge_agent.core.skills import Skill
from edge_agent.loop.recorded import NoClock, Unheard
from edge_agent.loop.replay import replay
from edge_agent.loop.walk import Ports
from edge_agent.models.scripted import Answer
from edge_agent.testing import Kill, ScriptedModel, VirtualClock, assert_sound, in_virtual_time, memory_library
from edge_agent.testing.faults import When
from edge_agent.tools.skill_tools import skill_tools
from edge_agent.tools.toolbox import Toolbox
from tests.conftest import Figure
from tests.unit.loop_kit import Lived, Setting, live

STORED = (
    "---\nname: measure\ndescription: Measure with care.\nallowed-tools: save_skill forget_skill\n---\nRevision {}."
)
BUNDLED = Skill(name="tidy", description="Tidy up.", instructions="Put it away.")
STEPS = ("learn it", "use it", "drop it")
CALLS = {
    "learn it": ("save_skill", {"name": "cm", "description": "Lengths are in cm.", "text": "All of them."}),
    "use it": ("load_skill", {"name": "cm"}),
    "drop it": ("forget_skill", {"name": "cm"}),
}


def says(request: ModelRequest) -> Answer:
    """By what it is shown, so that a difference in that shows."""
    stage, shown = (request.metadata or {}).get("stage"), "\n".join(message.text for message in request.messages)
    if stage == "plan":
        steps = [{"id": name, "description": name} for name in STEPS]
        return Answer(text=json.dumps({"thought": "so", "steps": steps, "skills": ["measure", "tidy"]}))
    assert "# Skill: measure\nRevision 1.\n\n# Skill: tidy\nPut it away." in request.system
    if stage == "final":
        return Answer(text=f"done, {request.system.count('# Note: cm')} notes")
    step = next(name for name in reversed(STEPS) if f")\n{name}" in shown)
    known = "- cm: Lengths are in cm. (a note of an earlier run)" in request.system
    assert known == (step != "learn it"), "a lesson is in the index of the next step"
    if request.messages[-1].role == "user":
        return Answer(calls=(CALLS[step],))
    return Answer(text=f"{step}: {'loaded' if '# Note: cm' in request.system else 'not loaded'} before it")


class Library:
    """Counts the writes that came, and changes the stored skill behind the back of the run, once it is active."""

    def __init__(self) -> None:
        self.kept = memory_library(VirtualClock())
        self.asked: Counter[str] = Counter()
        self.revision = 0

    async def ask(self, method: LibraryMethod, payload: JsonObject) -> JsonObject:
        await asyncio.sleep(0.01)
        if method in ("list", "get") and self.revision == 0:
            await self.store()
        self.asked[method] += 1
        answer = await self.kept.ask(method, payload)
        await asyncio.sleep(0.01)
        if method == "learn":
            await self.store()
        return answer

    async def store(self) -> None:
        self.revision += 1
        text = STORED.format(self.revision)
        await self.kept.ask("put", {"name": "measure", "description": "Measure with care.", "text": text})


def use_of(library: Library) -> SkillUse:
    return SkillUse(
        bundled=(BUNDLED,),
        library=SkillLibrary(ask=library.ask),
        origins=("stored", "learned"),
        learning=Learning(nudge=False),
    )


def run_of(*kills: Kill) -> tuple[Lived, Library]:
    library = Library()
    use, model = use_of(library), ScriptedModel(answers=[says] * 60)
    return live(Setting(model=model, mode="planned", skills=use, tools=skill_tools(use), kills=kills)), library


def of_skills(lived: Lived) -> list[tuple[str, RecordedEvent]]:
    kinds = SkillsListed | SkillActivated | SkillLearned | SkillForgotten
    return [(record.key, record.event) for record in lived.records if isinstance(record.event, kinds)]


def test_undisturbed_it_learns_uses_and_drops_its_lesson() -> None:
    lived, library = run_of()
    assert [key for key, _ in of_skills(lived)] == [
        "skills",
        "plan/skill/0",
        "plan/skill/1",
        "s1/r1/c0/skill",
        "s2/r1/c0/skill",
        "s3/r1/c0/skill",
    ]
    assert lived.state.text == "done, 0 notes"
    assert lived.of(StepCompleted)[2].summary == "drop it: loaded before it"
    assert (library.asked["learn"], library.asked["forget"]) == (1, 1)


def test_its_log_replays_without_a_difference_though_the_library_has_changed() -> None:
    lived, library = run_of()
    assert library.revision == 2
    use = use_of(library)
    agent, tools = AgentSpec(name="a", skills=use), Toolbox(skill_tools(use))
    ports = Ports(clock=NoClock(), sink=Unheard(), agent=agent, tools=tools, model=lambda _: ScriptedModel(answers=[]))
    assert in_virtual_time(replay("run-1", lived.records, ports)) is None


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_record_it_is_the_same_run_and_learns_once(when: When, figure: Figure) -> None:
    """Also between the save and its record: the library knows the call by its key."""
    whole, _ = run_of()
    appends = range(2, len({record.batch for record in whole.records}) + 1)
    repeats = 0
    for append in appends:
        lived, library = run_of(Kill(append, when))
        assert of_skills(lived) == of_skills(whole), append
        assert lived.state.text == whole.state.text, append
        assert_sound(lived.records)
        repeats += library.asked["learn"] + library.asked["forget"] - 2
    figure(f"killed {when} each append: {len(appends)} kills, {repeats} saves and forgets came twice and counted once")
    assert len(appends) > 20
    assert repeats == (2 if when == "before" else 0)


def test_a_library_that_does_not_answer_costs_the_run_its_skills_and_nothing_else() -> None:
    async def silent(method: LibraryMethod, payload: JsonObject) -> JsonObject:
        raise Refusal(503, "skills_unavailable", f"no answer to {method} {payload}")

    use = SkillUse(library=SkillLibrary(ask=silent), origins=("stored",))
    call = Answer(calls=(("load_skill", {"name": "measure"}),))
    model = ScriptedModel(answers=[call, "done without"])
    lived = live(Setting(model=model, skills=use, tools=skill_tools(use)))
    assert lived.state.text == "done without"
    assert (
        lived.of(SkillsListed)[0].reason
        == "The stored skills could not be listed: no answer to list {'origins': ['stored']}"
    )
    assert lived.of(Fault)[0].action == "continued"
    assert lived.of(ToolResult)[0].ok is False
