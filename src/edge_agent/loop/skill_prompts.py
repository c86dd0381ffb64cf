"""Every word the loop says to a model about skills. Without skills it says none."""

from collections.abc import Sequence

from edge_agent.core.skills import SkillEntry
from edge_agent.core.skills_in_play import MOST_ACTIVE, Active, headed

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


def active(skills: Sequence[Active]) -> str:
    """In the order in which they were activated, as much of them as fits."""
    shown = with_room(skills)
    return "\n\n".join(shown.get(skill.key, _left_out(skill.name)) for skill in skills)


def _left_out(name: str) -> str:
    return f"[the skill {name} is left out: the ones before it take all the room]"


def with_room(skills: Sequence[Active]) -> dict[str, str]:
    """Those that find room, by their keys: their texts, of which the last one may be cut."""
    left, shown = MOST_ACTIVE, dict[str, str]()
    for skill in skills:
        if left <= 0:
            break
        text = skill.event.text
        fitting = text if len(text) <= left else f"{text[:left]}\n[… the rest is left out]"
        left -= len(text)
        shown[skill.key] = headed(skill.name, fitting, lesson=skill.event.origin == "learned")
    return shown
