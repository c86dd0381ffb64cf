"""The library of skills by its object: RPC, JSON text both ways, what is refused as data."""

import json
from typing import Any

from pyodide.ffi import JsException
from workers import DurableObject

from edge_agent.cloudflare.sql import ObjectClock, ObjectSql, raw_storage
from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.core.skill_library import LibraryMethod
from edge_agent.storage.skills import SqlSkills

NAME = "library"


class SkillsObject(DurableObject):
    """What fails in it, other than a refusal, reaches the other side as an exception, which becomes a 503."""

    def __init__(self, ctx: Any, env: Any) -> None:
        """Touches no storage and must not raise: a broken instance would be kept."""
        super().__init__(ctx, env)
        self._skills = SqlSkills(ObjectSql(raw_storage(ctx)))

    async def ask(self, text: str) -> str:
        """{"method", "payload"} -> {"ok": answer} | {"refusal": {"status", "code", "message"}}"""
        request = json.loads(text)
        try:
            return json.dumps({"ok": self._skills.answer(request["method"], request["payload"], ObjectClock().now())})
        except Refusal as no:
            return json.dumps({"refusal": {"status": no.status, "code": no.code, "message": no.message}})


class ObjectSkills:
    """Over the namespace binding."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    async def ask(self, method: LibraryMethod, payload: JsonObject) -> JsonObject:
        """Raises Refusal: that of the object, or 503 where it does not answer."""
        try:
            answer = json.loads(
                await self._namespace.getByName(NAME).ask(json.dumps({"method": method, "payload": payload}))
            )
        except JsException as error:
            message = "The library of skills did not answer. Nothing is lost: try again."
            raise Refusal(503, "skills_unavailable", message, retry_after=1) from error
        if no := answer.get("refusal"):
            raise Refusal(no["status"], no["code"], no["message"])
        return answer["ok"]
