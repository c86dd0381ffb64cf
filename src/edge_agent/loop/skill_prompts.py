"""Every word the loop says to a model about skills. Without skills it says none."""

from collections.abc import Sequence

from edge_agent.core.events import SkillActivated
from edge_agent.core.skills import SkillEntry
from edge_agent.core.skills_in_play import MOST_ACTIVE, headed

NUDGE = (
    "When you have found the way around a problem that others will meet as well (an error and what mends it, a wrong "
    "assumption, a procedure you had to look up), write it down with save_skill: short, general, without secrets and "
    "without what belongs to this request alone. When a note turns out to be wrong, rewrite or forget it."
)
TO_PLAN = "Skills are instructions for special work. Name in `skills` those this request needs, and no others."
TO_WORK = "Skills are instructions for special work. Load one with load_skill before you do what it is for."


def index(entries: Sequence[SkillEntry], *, plans: bool) -> str:
    if not entries:
        return ""
    lines = [f"- {entry.name}: {entry.description}{_of_whom(entry)}" for entry in entries]
    return "\n".join(["# Skills", TO_PLAN if plans else TO_WORK, *lines])


def _of_whom(entry: SkillEntry) -> str:
    return " (a note of an earlier run)" if entry.origin == "learned" else ""


def active(skills: Sequence[SkillActivated]) -> str:
    """In the order in which they were activated, as much of them as fits."""
    left, parts = MOST_ACTIVE, list[str]()
    for skill in skills:
        if left <= 0:
            parts.append(f"[the skill {skill.name} is left out: the ones before it take all the room]")
            continue
        shown = skill.text if len(skill.text) <= left else f"{skill.text[:left]}\n[… the rest is left out]"
        left -= len(skill.text)
        parts.append(headed(skill.name, shown, lesson=skill.origin == "learned"))
    return "\n\n".join(parts)
