"""The skills of a run: what it knows of, what is active, and what that does to prompts and tools.

Stored and learned skills change while a run works and after it. So what a run goes by is on record: the list as it was
at its beginning, and the text of each skill at the moment it was activated.
"""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from http import HTTPStatus
from typing import cast

from edge_agent.core.errors import EdgeAgentError
from edge_agent.core.events import EgressRequest, Fault, SkillActivated, SkillForgotten, SkillLearned, SkillsListed
from edge_agent.core.journal import Draft
from edge_agent.core.messages import ToolSpec
from edge_agent.core.skill_library import SkillUse
from edge_agent.core.skills import SkillEntry
from edge_agent.core.skills_in_play import InPlay, activated
from edge_agent.core.tooling import ALWAYS_RUN
from edge_agent.loop import skill_prompts
from edge_agent.loop.walk import Cut, Stray, Walk

KEY = "skills"
MOST_PAGES = 20  # that a lesson names as its sources
CHANGES = (SkillActivated, SkillLearned, SkillForgotten)


# -- what there is
async def take_in(walk: Walk) -> None:
    """What the library holds, once for the run. One that does not answer costs the run its skills, not its answer."""
    if walk.created.library is None:
        return
    if walk.seen(KEY, SkillsListed) is None:
        walk.frontier(KEY)
        walk.ready()
        found = await _listed(walk)
        walk.ready()
        notes = [_fault(KEY, found.reason)] if found.reason else []
        walk.write(Draft(key=KEY, event=found), *notes)
    walk.skills = replace(walk.skills, listed=walk.kept(KEY, SkillsListed).skills)


async def _listed(walk: Walk) -> SkillsListed:
    library = walk.ports.agent.skills.library
    if library is None:
        return SkillsListed()
    try:
        return SkillsListed(skills=await walk.effect(KEY, library.listed(walk.created.library or ())))
    except (EdgeAgentError, Cut, Stray) as error:
        return SkillsListed(reason=f"The stored skills could not be listed: {error}")


def _fault(key: str, message: str) -> Draft:
    return Draft(key=f"{key}/fault", event=Fault(kind="storage", message=message, action="continued"), by="note")


def known(use: SkillUse, skills: InPlay) -> tuple[SkillEntry, ...]:
    """Those of an agent: of its code first, then what the library adds for it."""
    own = {skill.name: skill.entry("bundled") for skill in use.bundled}
    added = (entry for entry in skills.listed if entry.name not in own and entry.origin in use.origins)
    return (*own.values(), *added)


def names(use: SkillUse, skills: InPlay) -> tuple[str, ...]:
    return tuple(entry.name for entry in known(use, skills))


def pages_read(walk: Walk) -> tuple[str, ...]:
    """Origin and path of what has answered so far. For a tool at its frontier, where the log is all there is."""
    asked = [cast(EgressRequest, record.event) for record in walk.journal.types.get("egress.request", ())]
    read = (one.url for one in asked if (one.method, one.allowed, one.status) == ("GET", True, HTTPStatus.OK))
    return tuple(dict.fromkeys(read))[:MOST_PAGES]


# -- what is active
def after_calls(walk: Walk, calls: Sequence[str]) -> None:
    """In the order of the calls, whatever finished first."""
    for key in calls:
        if event := walk.seen(f"{key}/skill", *CHANGES):
            walk.skills = walk.skills.after(key, event)


def after_step(walk: Walk, before: InPlay, step: str) -> None:
    """What a step's calls made of the skills, also where it was not entered again."""
    walk.skills = before
    found = [key.removesuffix("/skill") for key in walk.journal.under.get(step, ()) if key.endswith("/skill")]
    after_calls(walk, sorted(found, key=lambda call: [int(part[1:]) for part in call.split("/")[1:3]]))


def of_plan(key: str) -> str:
    """Where the skills of a plan stand that was made under `key`."""
    return f"{key}/skill"


async def to_activate(walk: Walk, key: str, plan: Sequence[str] | None) -> tuple[list[Draft], list[str]]:
    """For the append of a plan: the skills it names, as they are now; and a sentence for each that cannot be had."""
    drafts, missing = list[Draft](), list[str]()
    for number, name in enumerate(plan or ()):
        if any(skill.name == name for skill in walk.skills.active):
            continue
        try:
            loaded = await walk.effect(key, walk.agent.skills.find(name))
        except (EdgeAgentError, Cut, Stray) as error:
            loaded = None
            missing.append(f"the skill {name} could not be loaded: {error}")
        else:
            missing += [] if loaded else [f"the skill {name} is not there any more"]
        walk.ready()
        if loaded:
            drafts.append(Draft(key=f"{of_plan(key)}/{number}", event=activated(loaded, by_plan=True)))
    return drafts, missing


def after_plan(walk: Walk, key: str, plan: Sequence[str] | None) -> None:
    for place in (f"{of_plan(key)}/{number}" for number in range(len(plan or ()))):
        if event := walk.seen(place, SkillActivated):
            walk.skills = walk.skills.after(place, event)


# -- what that does
def in_system(
    use: SkillUse, skills: InPlay, system: str, *more: str, index: bool = True, plans: bool = False, works: bool = False
) -> str:
    """The run-stable part of a prompt: `system`, the index, `more`, then the active skills."""
    entries = known(use, skills) if index else ()
    nudge = skill_prompts.NUDGE if works and use.learning and use.learning.nudge else ""
    parts = [system, skill_prompts.index(entries, plans=plans), *more, nudge, skill_prompts.active(skills.active)]
    return "\n\n".join(part for part in parts if part)


def loaded_in(walk: Walk, scope: str) -> dict[str, str]:
    """What calls of this scope loaded and is active, as far as it finds room: its text by the key of the call."""
    shown = skill_prompts.with_room(walk.skills.active)
    return {key: text for key, text in shown.items() if key.startswith(f"{scope}/")}


def allowed(walk: Walk, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """What active skills leave of the tools: of several with a list, whatever one of them names. A lesson has none."""
    lists = [one.event.allowed_tools for one in walk.skills.active if one.event.allowed_tools is not None]
    if not lists:
        return tools
    globs = [glob.partition("(")[0] for one in lists for glob in one]  # of a pattern in brackets no tool is a part
    return tuple(t for t in tools if t.name in ALWAYS_RUN or any(fnmatchcase(t.name, glob) for glob in globs))
