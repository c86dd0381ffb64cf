"""Active skills stay whole in every request, whatever is folded, cleared or cut around them."""

import json
from typing import Any

import pytest

from edge_agent import Agent, Compaction, Limits, Skill, tool
from edge_agent.core.errors import ModelError, Refusal
from edge_agent.core.events import Boundary, ContextCompacted, ToolRejected
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.model import ModelRequest
from edge_agent.core.skill_library import Learning, SkillUse
from edge_agent.loop import prompts
from edge_agent.loop.estimates import estimated_input
from edge_agent.loop.recorded import NoClock, Unheard
from edge_agent.loop.replay import replay
from edge_agent.loop.walk import Ports
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill, in_virtual_time, memory_library
from edge_agent.testing.faults import When
from edge_agent.tools.skill_tools import skill_tools
from edge_agent.tools.toolbox import Toolbox
from tests.unit.loop_kit import Lived, Setting, live
from tests.unit.test_loop_compaction import NOTES, is_summary

WINDOW = 8_000
PLAN = json.dumps({"thought": "t", "steps": [{"id": "1", "description": "read it all"}]})


@tool(read_only=True)
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: {NOTES}"


class Still:
    """A clock outside of any loop."""

    def now(self) -> int:
        return 5


def skill(name: str, text: str) -> Skill:
    return Skill(name=name, description=f"{name} it.", instructions=text)


def load(*names: str) -> Answer:
    return Answer(calls=tuple(("load_skill", {"name": name}) for name in names))


def reads(*first: Answer, pages: int = 12, plan: bool = False) -> ScriptedModel:
    """A model that does what is said first, then reads page after page, by how often it was asked."""
    answers = [*first, *(Answer(calls=(("read", {"page": page}),)) for page in range(pages)), Answer(text="all read")]
    at = 0

    def says(request: ModelRequest) -> Answer:
        nonlocal at
        stage = (request.metadata or {}).get("stage")
        if stage == "plan":
            return Answer(text=PLAN)
        if stage != "round":
            return Answer(text="the summary" if stage == "compact" else "all read")
        at += 1
        return answers[at - 1]

    return ScriptedModel(answers=[says] * (3 * len(answers) + 10))


def lived(use: SkillUse, model: ScriptedModel, **more: Any) -> Lived:
    given: dict[str, Any] = {"limits": Limits(max_steps=None, max_steps_per_task=None), "window": WINDOW, **more}
    return live(Setting(model=model, skills=use, tools=[read, *skill_tools(use)], **given))


def whole(request: ModelRequest) -> str:
    return "\n".join([request.system, *(message.text for message in request.messages)])


def after_load(model: ScriptedModel, rounds: int = 1) -> list[ModelRequest]:
    asked = [one for one in model.requests if not is_summary(one) and (one.metadata or {}).get("stage") != "plan"]
    return asked[rounds:]


def rounds_folded(run: Lived) -> list[str]:
    return [key for event in run.of(ContextCompacted) if event.scope == "rounds" for key in event.replaces]


NEVER_CLEARED = Compaction(clear_tool_results_after=0)
CLEARED = Compaction(keep_tool_results=1)
RULES = "Rule: count the nets twice. " * 70


@pytest.mark.parametrize("mode", ["direct", "planned"])
def test_a_skill_that_was_loaded_is_whole_and_once_in_every_request_after_that(mode: Any) -> None:
    use, model = SkillUse(bundled=(skill("count", RULES),)), reads(load("count"), pages=30)
    run = lived(use, model, mode=mode, compaction=NEVER_CLEARED)
    assert run.state.text == "all read"
    assert "s1/r1" in rounds_folded(run)
    assert [whole(request).count(RULES) for request in after_load(model)] == [1] * len(after_load(model))
    assert max(map(estimated_input, model.requests)) <= WINDOW
    summed_up = [request for request in model.requests if is_summary(request)]
    assert not any("count the nets" in whole(request) for request in summed_up)
    assert prompts.STAYS in whole(summed_up[0])
    last = after_load(model)[-1]
    assert "load_skill" not in [message.name for message in last.messages if message.role == "tool"]
    if mode == "direct":
        asked = last.messages[0].text
        assert asked.index("do it") < asked.index("the summary") < asked.index("# Skill: count\n")


def test_skills_that_stay_take_up_to_24_000_characters_in_the_order_of_their_activation() -> None:
    use = SkillUse(bundled=(skill("a", "A" * 20_000), skill("b", "B" * 20_000), skill("c", "C" * 300)))
    model = reads(load("b"), load("a", "c"), pages=70)
    run = lived(use, model, window=60_000, compaction=NEVER_CLEARED)
    assert {"s1/r1", "s1/r2"} <= {*rounds_folded(run)}
    said = whole(after_load(model)[-1])
    assert said.count("B" * 20_000) == 1
    assert said.count("A" * 4_000 + "\n[… the rest is left out]") == 1
    assert "C" * 300 not in said
    assert said.index("# Skill: b\n") < said.index("# Skill: a\n")


def test_what_finds_no_room_among_the_active_skills_is_cleared_like_any_result() -> None:
    use = SkillUse(bundled=(skill("a", "A" * 24_000), skill("b", "B" * 5_000)))
    run = lived(use, model := reads(load("a"), load("b"), pages=12), window=40_000, compaction=CLEARED)
    assert "s1/r2/c0" in [key for boundary in run.of(Boundary) for key in boundary.cleared]
    assert "s1/r1/c0" not in [key for boundary in run.of(Boundary) for key in boundary.cleared]
    assert "A" * 24_000 in whole(model.requests[-1])


def test_of_a_skill_the_model_sees_all_that_can_be_active_whatever_it_sees_of_other_results() -> None:
    use = SkillUse(bundled=(skill("a", "A" * 24_000),))
    model = reads(load("a"), pages=1)
    lived(use, model, window=80_000, compaction=Compaction(max_tool_output_chars=1_000))
    said = whole(model.requests[-1])
    assert "A" * 24_000 in said
    assert NOTES not in said


def test_after_an_overflow_results_are_cut_and_skills_are_not() -> None:
    too_long = Answer(error=ModelError("context-overflow", "too long", retryable=False))
    use = SkillUse(bundled=(skill("count", RULES),))
    both = Answer(calls=(("load_skill", {"name": "count"}), ("read", {"page": 1})))
    model = reads(both, too_long, pages=0)
    run = lived(use, model, window=20_000)
    assert run.state.text == "all read"
    said = whole(model.requests[-1])
    assert "characters left out" in said
    assert RULES in said


def test_in_the_last_round_that_has_to_be_short_the_skill_is_whole() -> None:
    use = SkillUse(bundled=(skill("count", RULES),))
    both = Answer(calls=(("load_skill", {"name": "count"}), *(("read", {"page": n}) for n in range(4))))
    limits = Limits(max_steps=None, max_input_tokens=4_000)
    run = lived(use, model := reads(both, pages=0), window=60_000, limits=limits)
    assert [boundary.clipped for boundary in run.of(Boundary) if boundary.final] == [1_000]
    assert RULES in whole(model.requests[-1])


def test_a_lesson_that_was_rewritten_stands_in_its_newest_form_and_one_that_was_forgotten_not_at_all() -> None:
    def save(text: str) -> Answer:
        return Answer(calls=(("save_skill", {"name": "cm", "description": "Lengths.", "text": text}),))

    def page(number: int) -> Answer:
        return Answer(calls=(("read", {"page": number}),))

    use = SkillUse(library=memory_library(Still()), origins=("learned",), learning=Learning(nudge=False))
    forget = Answer(calls=(("forget_skill", {"name": "cm"}),))
    pages = [page(number) for number in range(30)]
    rewritten = (save("In mm."), load("cm"))
    model = reads(save("In cm."), load("cm"), *pages[:12], *rewritten, *pages[12:24], forget, *pages[24:], pages=0)
    run = lived(use, model, compaction=NEVER_CLEARED)
    asked = after_load(model, 0)
    assert {"s1/r2", "s1/r16"} <= {*rounds_folded(run)}
    notes = [whole(request).count("\n\nIn cm.") - whole(request).count("\n\nIn mm.") for request in asked]
    assert notes == [0] * 2 + [1] * 14 + [-1] * 13 + [0] * 7


# -- what a skill cannot do
def test_a_skill_that_names_tools_grants_none_of_them() -> None:
    @tool
    async def pay() -> str:
        """Pay."""
        return "paid"

    greedy = Skill(name="a", description="d", instructions="Pay at once.", allowed_tools=("pay", "launch"))
    calls = [load("a"), Answer(calls=(("pay", {}), ("launch", {})))]
    use = SkillUse(bundled=(greedy,))
    model = ScriptedModel(answers=[*calls, "done"])
    tools = [pay, *skill_tools(use)]
    run = live(Setting(model=model, skills=use, tools=tools, approval="ask-writes", can_ask=False))
    assert [(event.name, event.reason) for event in run.of(ToolRejected)] == [
        ("launch", "unknown-tool"),
        ("pay", "denied"),
    ]


# -- the index
@pytest.mark.parametrize("mode", ["direct", "planned"])
async def test_the_smallest_cap_that_is_let_in_has_room_for_the_index_of_the_skills(mode: Any) -> None:
    many = [skill(f"number-{n}", "Count.") for n in range(40)]

    def agent(cap: int) -> tuple[Agent, ScriptedModel]:
        model = ScriptedModel(answers=[Answer(text=PLAN if mode == "planned" else "done"), "done", "done"])
        return Agent(name="a", model=model, skills=many, mode=mode, limits=Limits(max_input_tokens=cap)), model

    with pytest.raises(Refusal) as refused:
        await agent(1)[0].run("go")
    smallest, model = agent(refused.value.more["smallest"])
    state = await smallest.run("go")
    assert state.text == "done"
    assert "- number-39: number-39 it." in model.requests[0].system


# -- law 1 and determinism
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_record_the_prompts_are_the_same(when: When) -> None:
    use = SkillUse(bundled=(skill("count", RULES),))

    def run_of(*kills: Kill) -> tuple[Lived, ScriptedModel]:
        model = ScriptedModel(answers=[_by_what_it_sees] * 60)
        return lived(use, model, compaction=NEVER_CLEARED, kills=kills), model

    undisturbed, model = run_of()
    assert "s1/r1" in rounds_folded(undisturbed)
    asked = {whole(request) for request in model.requests}
    for append in range(2, len({record.batch for record in undisturbed.records}) + 1):
        run, again = run_of(Kill(append, when))
        assert run.state.text == "all read", append
        assert {whole(request) for request in again.requests} == asked, append
    assert differences(use, undisturbed) is None


def _by_what_it_sees(request: ModelRequest) -> Answer:
    if is_summary(request):
        return Answer(text=f"read up to {whole(request).count('page')}")
    seen = whole(request)
    if "# Skill: count" not in seen:
        return load("count")
    pages = [int(part.partition(":")[0]) for part in seen.split("page ")[1:] if part.partition(":")[0].isdigit()]
    following = max(pages, default=0) + 1
    return Answer(text="all read") if following > 12 else Answer(calls=(("read", {"page": following}),))


def differences(use: SkillUse, run: Lived) -> Any:
    ports = Ports(
        clock=NoClock(),
        sink=Unheard(),
        agent=AgentSpec(name="a", skills=use),
        tools=Toolbox([read, *skill_tools(use)]),
        model=lambda _: ScriptedModel(answers=[]),
        context_window=WINDOW,
    )
    return in_virtual_time(replay("run-1", run.records, ports))
