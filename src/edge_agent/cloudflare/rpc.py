"""How a method and its answer cross between two objects: as JSON text, since tuples and models cannot, and with a
refusal as data, since an exception loses its type on the way and shows a traceback."""

import json
from collections.abc import Awaitable, Callable

from pyodide.ffi import JsException

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject

Sender = Callable[[str], Awaitable[str]]  # a method of the other object's stub
Answerer = Callable[[str, JsonObject], Awaitable[JsonObject]]  # of a method and its payload; may raise Refusal


async def answered(text: str, answer: Answerer) -> str:
    """{"method", "payload"} -> {"ok": answer} | {"refusal": {"status", "code", "message", …}}

    What else fails reaches the other side as an exception."""
    request = json.loads(text)
    try:
        return json.dumps({"ok": await answer(request["method"], request["payload"])})
    except Refusal as no:
        return json.dumps({"refusal": {"status": no.status, "code": no.code, "message": no.message, **no.more}})


async def ask(send: Sender, method: str, payload: JsonObject, *, silent: tuple[str, str]) -> JsonObject:
    """`silent`: code and sentence of the refusal where nothing comes back.

    Raises Refusal: the object's own, or 503 when it did not answer."""
    try:
        answer = json.loads(await send(json.dumps({"method": method, "payload": payload})))
    except JsException as error:
        code, sentence = silent
        raise Refusal(503, code, f"{sentence} Nothing is lost: try again.", retry_after=1) from error
    if no := answer.get("refusal"):
        raise Refusal(no.pop("status"), no.pop("code"), no.pop("message"), **no)
    return answer["ok"]
