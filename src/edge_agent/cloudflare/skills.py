"""The library of skills by RPC to its object."""

from typing import Any

from workers import DurableObject

from edge_agent.cloudflare import rpc
from edge_agent.cloudflare.sql import ObjectClock, ObjectSql, raw_storage
from edge_agent.core.messages import JsonObject
from edge_agent.core.skill_library import LibraryMethod
from edge_agent.storage.skills import SqlSkills

NAME = "library"
_SILENT = "skills_unavailable", "The library of skills did not answer."


class SkillsObject(DurableObject):
    """What fails in it, other than a refusal, reaches the other side as an exception, which becomes a 503."""

    def __init__(self, ctx: Any, env: Any) -> None:
        """Touches no storage and must not raise: a broken instance would be kept."""
        super().__init__(ctx, env)
        self._skills = SqlSkills(ObjectSql(raw_storage(ctx)))

    async def ask(self, text: str) -> str:
        return await rpc.answered(text, self._answer)

    async def _answer(self, method: str, payload: JsonObject) -> JsonObject:
        return self._skills.answer(method, payload, ObjectClock().now())


class ObjectSkills:
    """Over the namespace binding."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    async def ask(self, method: LibraryMethod, payload: JsonObject) -> JsonObject:
        """Raises Refusal: that of the object, or 503 where it does not answer."""
        return await rpc.ask(self._namespace.getByName(NAME).ask, method, payload, silent=_SILENT)
