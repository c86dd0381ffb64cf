"""Which skills the runs of an agent have: what the code says, under what the deployment's variables say."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from edge_agent.core.errors import ConfigError
from edge_agent.core.skill_library import Learning, SkillLibrary, SkillUse
from edge_agent.core.skills import Origin, Skill
from edge_agent.wire.settings import Settings

_EXAMPLE = 'Agent(skills=[Skill.from_dir("skills/invoice-check")])'


class Asks(Protocol):
    """What an agent says of its skills."""

    @property
    def skills(self) -> Sequence[Skill]: ...
    @property
    def stored_skills(self) -> bool: ...
    @property
    def learning(self) -> bool | Learning: ...


def require_skills(skills: Sequence[Any]) -> None:
    """Raises ConfigError for what is no skill, and for two of one name."""
    for skill in skills:
        if not isinstance(skill, Skill):
            raise ConfigError("Agent.skills", f"holds {skill!r}, which is no Skill", _EXAMPLE)
    names = [skill.name for skill in skills]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError("Agent.skills", f"two skills are named {twice[0]!r}", _EXAMPLE)


def skills_of(agent: Asks, settings: Settings, library: SkillLibrary, taken: Collection[str] = ()) -> SkillUse:
    """`taken`: see SkillUse. Raises ConfigError for a variable that is wrong."""
    said = agent.learning if settings.learning is None else settings.learning
    learning = (Learning() if said else None) if isinstance(said, bool) else said
    stored = agent.stored_skills if settings.stored_skills is None else settings.stored_skills
    origins: list[Origin] = [*(["stored"] if stored else []), *(["learned"] if learning else [])]
    bundled = tuple(agent.skills)
    return SkillUse(bundled=bundled, library=library, origins=tuple(origins), learning=learning, taken=taken)


def origins_of(uses: Iterable[SkillUse]) -> tuple[Origin, ...] | None:
    """What a run takes from the library where agents with these take turns in it."""
    return tuple(dict.fromkeys(origin for use in uses for origin in use.origins)) or None
