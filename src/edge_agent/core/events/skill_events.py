"""Recorded: the skills a run knows of, which of them it uses, and the lessons it wrote down."""

from dataclasses import dataclass
from typing import Literal

from edge_agent.core.skills import Origin, SkillEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillsListed:
    """The stored and learned skills as they were when the run began; its index is made of them and of those of the
    code. `reason`: why none could be listed."""

    skills: tuple[SkillEntry, ...] = ()
    reason: str | None = None
    type: Literal["skills.listed"] = "skills.listed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillActivated:
    """From the next step on its text is in the prompts. `text`: as much of it as a prompt can hold. `allowed_tools`:
    what it restricts the tools to; never that of a lesson. `revision`: of one that is not of the code."""

    name: str
    by: Literal["plan", "tool"]
    origin: Origin
    text: str
    allowed_tools: tuple[str, ...] | None = None
    revision: int | None = None
    type: Literal["skill.activated"] = "skill.activated"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillLearned:
    """update: an earlier lesson of that name was rewritten. chars: of its text. sources: pages this run has read,
    origin and path alone."""

    name: str
    description: str
    update: bool
    revision: int
    chars: int
    sources: tuple[str, ...] = ()
    type: Literal["skill.learned"] = "skill.learned"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillForgotten:
    name: str
    type: Literal["skill.forgotten"] = "skill.forgotten"
