"""The built-in tools of skills: `load_skill` and `read_skill_file`; `save_skill` and `forget_skill` of a learner."""

from collections.abc import Callable, Sequence
from typing import Any

from edge_agent.core.errors import Refusal, ToolError
from edge_agent.core.events import SkillForgotten, SkillLearned
from edge_agent.core.skill_library import MOST_LESSON, Lesson, SkillLibrary, SkillUse
from edge_agent.core.skills import LISTED_LENGTH, name_fault, path_fault
from edge_agent.core.skills_in_play import activated, headed
from edge_agent.core.tooling import ToolContext, ToolOutput
from edge_agent.tools.functions import FunctionTool, function_tool
from edge_agent.tools.secret_patterns import secrets_in

_TIMEOUT = 30  # seconds


def skill_tools(use: SkillUse, declared: Sequence[str] = ()) -> list[FunctionTool[..., Any]]:
    """Those of an agent that has skills; with learning also the two that write. declared: secrets of the deployment."""
    reading = [_built_in(make(use), read_only=True) for make in (_load_skill, _read_skill_file)] if use.any else []
    if use.learning is None:
        return reading
    # To write again what was written changes nothing: the library knows the call by its key.
    return [*reading, _built_in(_save_skill(use, declared)), _built_in(_forget_skill(use))]


def _built_in(function: Callable[..., Any], *, read_only: bool = False) -> FunctionTool[..., Any]:
    return function_tool(
        function,
        name=None,
        description=None,
        timeout=_TIMEOUT,
        read_only=read_only,
        idempotent=True,
        on_unknown="report",
        built_in=True,
    )


def _load_skill(use: SkillUse) -> Callable[..., Any]:
    async def load_skill(name: str) -> ToolOutput:
        """Load the instructions of a skill, and keep them in mind for the rest of the work.

        Args:
            name: As the list of skills has it.
        """
        loaded = await use.find(name)
        if loaded is None:
            raise ToolError(f"There is no skill {name[:64]!r}. Only those in the list of skills can be loaded.")
        text = headed(name, loaded.skill.instructions, lesson=loaded.origin == "learned")
        files = f"\n\nFiles, for read_skill_file: {', '.join(loaded.paths)}" if loaded.paths else ""
        return ToolOutput(text=text + files, skill=activated(loaded, by_plan=False))

    return load_skill


def _read_skill_file(use: SkillUse) -> Callable[..., Any]:
    async def read_skill_file(name: str, path: str) -> ToolOutput:
        """Read a text file of a skill.

        Args:
            name: The skill.
            path: As load_skill lists it, for example references/rates.md.
        """
        if fault := path_fault(path):
            raise ToolError(f"{path[:100]!r} cannot be read: {fault}.")
        content = await use.file(name, path)
        if content is None:
            raise ToolError(f"The skill {name[:64]!r} has no file {path[:100]!r}; load_skill lists those there are.")
        return ToolOutput(text=content)

    return read_skill_file


def _save_skill(use: SkillUse, declared: Sequence[str]) -> Callable[..., Any]:
    async def save_skill(context: ToolContext, name: str, description: str, text: str) -> ToolOutput:
        """Write down a lesson for later work: a problem that will come again, and the way around it. A lesson of the
        same name is rewritten.

        Args:
            name: Lower case letters, digits and hyphens, for example image-format-jpg.
            description: One line that says when the lesson helps.
            text: What to do, in general terms. No secrets, nothing that belongs to this request alone.
        """
        sources = tuple(page for page in context.pages() if not any(secrets_in(page, declared)))
        _require_lesson(use, name, description, text)
        if kinds := list(secrets_in(f"{name}: {description}\n{text}", declared)):  # as they stand together later
            raise ToolError(f"Not saved: it holds a secret ({', '.join(kinds)}). Leave it out and save it again.")
        lesson = Lesson(
            name=name,
            description=description.strip(),
            text=text.strip(),
            sources=sources,
            run_id=context.run_id,
            key=context.idempotency_key,
        )
        try:
            revision, update = await _library(use).learn(lesson)
        except Refusal as no:
            raise ToolError(no.message) from no
        learned = SkillLearned(
            name=name,
            description=lesson.description,
            update=update,
            revision=revision,
            chars=len(lesson.text),
            sources=sources,
        )
        return ToolOutput(text=f"Saved {name}, revision {revision}.", skill=learned)

    return save_skill


def _require_lesson(use: SkillUse, name: str, description: str, text: str) -> None:
    """Raises ToolError for what no lesson may be."""
    if fault := name_fault(name):
        raise ToolError(f"Not saved: {fault}.")
    if use.own(name) or name in use.taken:
        raise ToolError(f"Not saved: there is a skill {name} of the user's. Take another name.")
    if not 0 < len(description.strip()) <= LISTED_LENGTH or len(description.strip().splitlines()) > 1:
        raise ToolError(f"Not saved: the description is one line of up to {LISTED_LENGTH} characters.")
    if not 0 < len(text.strip()) <= MOST_LESSON:
        raise ToolError(f"Not saved: the text has 1 to {MOST_LESSON} characters, and this one has {len(text.strip())}.")


def _forget_skill(use: SkillUse) -> Callable[..., Any]:
    async def forget_skill(context: ToolContext, name: str) -> ToolOutput:
        """Delete a lesson that turned out to be wrong.

        Args:
            name: As the list of skills has it.
        """
        if use.own(name):
            raise ToolError(f"{name} is a skill of the user's, not a lesson: it stays.")
        try:
            await _library(use).forget(name, context.idempotency_key)
        except Refusal as no:
            raise ToolError(no.message) from no
        return ToolOutput(text=f"Forgotten: {name}.", skill=SkillForgotten(name=name))

    return forget_skill


def _library(use: SkillUse) -> SkillLibrary:
    if use.library is None:
        raise ToolError("There is no place to keep lessons in here.")
    return use.library
