"""The skills of a deployment that are not in its code: stored over the API, or learned."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from edge_agent.core.messages import JsonObject
from edge_agent.core.skills import Origin, Skill, SkillEntry

LibraryMethod = Literal["list", "get", "put", "delete", "file", "put_file", "delete_file", "learn", "forget"]
Ask = Callable[[LibraryMethod, JsonObject], Awaitable[JsonObject]]
MOST_LESSONS, MOST_LESSON = 50, 6_000  # lessons, characters of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """An agent that writes lessons down. nudge: whether its prompts ask it to."""

    nudge: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A skill as it is now, and the paths of its files. revision: of one of the library."""

    skill: Skill
    origin: Origin
    paths: tuple[str, ...]
    revision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """key: of the call that saves it; the same call again changes nothing and gets the same answer."""

    name: str
    description: str
    text: str
    sources: tuple[str, ...]
    run_id: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillLibrary:
    """`ask`: see edge_agent.storage.skills for the methods. Every method raises Refusal: what it says for what cannot
    be, 503 where the object does not answer."""

    ask: Ask

    async def listed(self, origins: Sequence[Origin]) -> tuple[SkillEntry, ...]:
        found: list[JsonObject] = (await self.ask("list", {"origins": [*origins]}))["skills"]
        return tuple(
            SkillEntry(name=one["name"], description=one["description"], origin=one["origin"]) for one in found
        )

    async def find(self, name: str, origins: Sequence[Origin]) -> Loaded | None:
        found = (await self.ask("get", {"name": name})).get("skill")
        if found is None or found["origin"] not in origins:
            return None
        return Loaded(
            skill=skill_of(found),
            origin=found["origin"],
            paths=tuple(file["path"] for file in found["files"]),
            revision=int(found["revision"]),
        )

    async def file(self, name: str, path: str) -> str | None:
        return (await self.ask("file", {"name": name, "path": path})).get("content")

    async def learn(self, lesson: Lesson) -> tuple[int, bool]:
        """(its revision, whether there was one before)."""
        payload: JsonObject = {
            "name": lesson.name,
            "description": lesson.description,
            "text": lesson.text,
            "sources": [*lesson.sources],
            "run_id": lesson.run_id,
            "key": lesson.key,
        }
        answer = await self.ask("learn", payload)
        return int(answer["revision"]), bool(answer["update"])

    async def forget(self, name: str, key: str) -> None:
        await self.ask("forget", {"name": name, "key": key})


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillUse:
    """Which skills an agent has. bundled: of its code, which win over others of the same name. origins: what it takes
    from the library. learning: whether it may add to that; None: not. taken: names of skills of the code, those of
    other agents too, which no lesson may have."""

    bundled: tuple[Skill, ...] = ()
    library: SkillLibrary | None = None
    origins: tuple[Origin, ...] = ()
    learning: Learning | None = None
    taken: Collection[str] = ()

    @property
    def any(self) -> bool:
        return bool(self.bundled or self.origins)

    def own(self, name: str) -> Skill | None:
        return next((skill for skill in self.bundled if skill.name == name), None)

    async def find(self, name: str) -> Loaded | None:
        if own := self.own(name):
            return Loaded(skill=own, origin="bundled", paths=tuple(sorted(own.files)))
        return await self.library.find(name, self.origins) if self.library and self.origins else None

    async def file(self, name: str, path: str) -> str | None:
        """None where there is no such skill, or no such file of it."""
        if own := self.own(name):
            return own.files.get(path)
        return await self.library.file(name, path) if self.library and await self.find(name) else None


def skill_of(kept: JsonObject) -> Skill:
    """Of what `get` answers: the SKILL.md of a stored one, the text of a lesson. Raises ConfigError."""
    if kept["origin"] == "learned":
        return Skill(name=kept["name"], description=kept["description"], instructions=kept["text"])
    return Skill.parse(kept["text"])


async def _nothing(method: LibraryMethod, payload: JsonObject) -> JsonObject:  # noqa: ARG001
    return {"skills": []} if method == "list" else {}


EMPTY = SkillLibrary(ask=_nothing)  # and stays so
