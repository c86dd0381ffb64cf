"""What is sent and answered about skills."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from edge_agent.wire.http import Asked, Text


class PutSkill(Asked):
    """`content`: the text of a SKILL.md."""

    content: Text


class PutSkillFile(Asked):
    content: str


class SkillInfo(BaseModel):
    """`at`: when it was last written, ms since the epoch. `run_id`, `sources`: of a lesson, which run wrote it and what
    pages that had read."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    origin: Literal["bundled", "stored", "learned"]
    revision: int | None = None
    at: int | None = None
    run_id: str | None = None
    sources: tuple[str, ...] | None = None


class SkillFile(BaseModel):
    path: str
    bytes: int


class SkillShown(SkillInfo):
    """`instructions`: what is loaded when the skill is."""

    instructions: str
    license: str | None = None
    compatibility: str | None = None
    metadata: dict[str, str] = {}
    allowed_tools: tuple[str, ...] | None = None
    files: tuple[SkillFile, ...] = ()


class SkillsAnswer(BaseModel):
    skills: tuple[SkillInfo, ...]


class SkillFileShown(BaseModel):
    path: str
    content: str
