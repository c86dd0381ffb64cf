"""The door of the MCP server of the tests: it turns away, delays and breaks what comes and goes, as told.

A fault strikes the next tools/call:

    drop      the tool runs, then the connection closes without an answer     500    the tool runs, then HTTP 500
    garbage   the tool runs, then an answer that is no MCP                    html   the tool runs, then an HTML page
    error     a JSON-RPC error                                                401    turned away
    hang      no answer at all until the client goes away                     mute   as hang, and its cancel too
"""

import json
from typing import Any, Literal, Protocol

Json = dict[str, Any]
Fault = Literal["drop", "500", "garbage", "html", "error", "401", "hang", "mute"]
ListFault = Literal["circle", "endless", "broken"]


class Guarded(Protocol):
    """The server behind it. `legacy`: it knows no discovery. `never`: it never answers. `seen`: the headers of each
    request."""

    legacy: bool
    never: bool
    token: str | None
    fault: Fault | None
    list_fault: ListFault | None
    seen: list[dict[str, str]]

    async def note(self, *entry: Any) -> None: ...


class Door:
    def __init__(self, state: Guarded, inner: Any) -> None:
        self.state, self.inner = state, inner
        self.mute = False

    async def __call__(self, scope: Json, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(("/mcp", "/moved")):
            await self.inner(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.state.seen.append(headers)
        if scope["path"].startswith("/moved"):
            target = headers.get("host", "") if scope["path"] == "/moved" else scope["query_string"].decode()
            await _answer(send, 307, b"", location=f"http://{target}/mcp")
        elif self.state.token is not None and headers.get("authorization") != f"Bearer {self.state.token}":
            await _answer(send, 401, b"")
        else:
            await self._admitted(scope, receive, send)

    async def _admitted(self, scope: Json, receive: Any, send: Any) -> None:
        state = self.state
        body, receive = await _read(receive) if scope["method"] == "POST" else (b"{}", receive)
        message = json.loads(body)
        method = message.get("method")
        await state.note(scope["method"], method)
        if state.never or (self.mute and method == "notifications/cancelled"):
            await _hang(receive)
            return
        if state.legacy and method == "server/discover":
            await _answer_json(send, 200, {"jsonrpc": "2.0", "id": message["id"], "error": _UNKNOWN})
            return
        if state.list_fault == "broken" and method == "tools/list":
            await _answer_json(send, 200, {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [{"name": 5}]}})
            return
        fault = state.fault if method == "tools/call" else None
        if fault is None:
            await self.inner(scope, receive, send)
            return
        state.fault = None
        await self._break(fault, message, scope, receive, send)

    async def _break(self, fault: Fault, message: Json, scope: Json, receive: Any, send: Any) -> None:
        if fault in ("hang", "mute"):
            self.mute = fault == "mute"
            await self.state.note("hanging")
            await _hang(receive)
            await self.state.note("gone")
            return
        if fault == "401":
            await _answer(send, 401, b"")
            return
        if fault == "error":
            error = {"code": -32603, "message": "the database is down"}
            await _answer_json(send, 200, {"jsonrpc": "2.0", "id": message["id"], "error": error})
            return
        await self.inner(scope, receive, _swallow)
        if fault == "500":
            await _answer(send, 500, b"oops")
        elif fault == "html":
            await _answer(send, 200, b"<html></html>", **{"content-type": "text/html"})
        elif fault == "garbage":
            result = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": "nonsense"}}
            await _answer_json(send, 200, result)
        else:
            start = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
            await send({"type": "http.response.start", "status": 200, "headers": start})
            await send({"type": "http.response.body", "body": b"{", "more_body": True})
            raise ConnectionAbortedError("dropped on purpose")


_UNKNOWN = {"code": -32601, "message": "Method not found"}


async def _read(receive: Any) -> tuple[bytes, Any]:
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event.get("body", b""), event.get("more_body", False)
    replayed = False

    async def again() -> Any:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return body, again


async def _hang(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _swallow(_event: Any) -> None: ...


async def _answer(send: Any, status: int, body: bytes, **headers: str) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def _answer_json(send: Any, status: int, body: Json) -> None:
    await _answer(send, status, json.dumps(body).encode(), **{"content-type": "application/json"})
