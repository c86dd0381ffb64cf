"""ASGI middleware around the API: who calls, what the body is, and a problem for whatever goes wrong inside."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge_agent.core.errors import Refusal
from edge_agent.http.cors import is_preflight, preflight_answer
from edge_agent.http.door import let_in, page_headers, told
from edge_agent.http.ports import Deps
from edge_agent.http.problems import Answer, unreadable_json
from edge_agent.http.routing import OPEN_PATHS, is_link, most_body, takes_a_log

_MOST_DIGITS = 15
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Gate:
    """Answers what must not come through; else hands on a whole body that is known to be JSON."""

    def __init__(self, app: ASGIApp, deps: Deps) -> None:
        self.app, self.deps = app, deps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = _headers(scope)
        answering = _Answering(send, page_headers(self.deps, headers.get("origin")))
        try:
            await self._pass(scope, headers, receive, answering)
        except Exception as error:  # noqa: BLE001 - each becomes a problem; what is not foreseen is logged
            answer = told(self.deps, error, headers.get("origin"))
            if not answering.started:
                await send_answer(send, answer)

    async def _pass(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: "_Answering") -> None:
        method, path = scope["method"], scope["path"]
        if is_preflight(method, headers):
            await send_answer(send.send, preflight_answer(self.deps.settings.cors, headers["origin"]))
            return
        if path not in OPEN_PATHS and not is_link(path):
            raw_path = scope.get("raw_path") or path.encode()
            url_path = raw_path.split(b"?", 1)[0].decode("latin-1")
            caller = await let_in(self.deps, scope["scheme"], method, url_path, headers)
            scope.setdefault("state", {})["caller"] = caller
        if method in _WITH_BODY:
            body = await _whole_body(headers, receive, most_body(path, self.deps.settings.max_body))
            if takes_a_log(path):
                _check_log(headers, body)
            else:
                _check_json(headers, body, form=is_link(path))
            receive = _replay(body, receive)
        await self.app(scope, receive, send)


class _Answering:
    """`send`, which remembers whether the answer has begun and adds the headers every answer has."""

    def __init__(self, send: Send, extra: Mapping[str, str]) -> None:
        self.send, self.started = send, False
        own = {"cache-control": "no-store", "x-content-type-options": "nosniff", **extra}
        self._extra = [(name.encode(), value.encode("latin-1")) for name, value in own.items()]

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            present = {name.lower() for name, _ in message["headers"]}
            added = [pair for pair in self._extra if pair[0] not in present]
            message = {**message, "headers": [*message["headers"], *added]}
        await self.send(message)


async def send_answer(send: Send, answer: Answer) -> None:
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in answer.headers.items()]
    headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


async def _whole_body(headers: Mapping[str, str], receive: Receive, most: int) -> bytes:
    """Raises Refusal 413 as soon as it is known to be too large, by what it says and by what comes."""
    declared = headers.get("content-length", "0")
    if not declared.isascii() or not declared.isdigit():
        raise Refusal(400, "bad_request", "The Content-Length header is not a number.")
    too_large = Refusal(
        413, "body_too_large", f"A body may have at most {most} bytes (EDGE_AGENT_MAX_BODY).", limit=most
    )
    if len(declared) > _MOST_DIGITS or int(declared) > most:
        raise too_large
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "bad_request", "The connection ended before the body did.")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > most:
            raise too_large
        more = message.get("more_body", False)
    return b"".join(chunks)


def strict_json(text: str | bytes) -> Any:
    """Stricter than the framework's parser: no NaN, no half surrogates, no nesting that would exhaust the stack.

    Raises Refusal 400."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise unreadable_json(str(error)) from None


def _check_json(headers: Mapping[str, str], body: bytes, *, form: bool) -> None:
    """form: the page of a link may send one instead."""
    if not body:
        return
    kind, _, parameters = headers.get("content-type", "").partition(";")
    if form and kind.strip().lower() == "application/x-www-form-urlencoded":
        return
    charset = parameters.strip().lower().partition("charset=")[2].strip('" ')
    if kind.strip().lower() != "application/json" or charset not in ("", "utf-8", "utf8"):
        raise Refusal(415, "unsupported_media_type", "Send the body as JSON, with the header "
                      "`Content-Type: application/json`.")  # fmt: skip
    strict_json(body)


def _check_log(headers: Mapping[str, str], body: bytes) -> None:
    """Only what it says of itself: its lines are parsed once, by who reads them."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind not in ("application/x-ndjson", "application/json"):
        raise Refusal(415, "unsupported_media_type", "Send the log as it was exported, with the header "
                      "`Content-Type: application/x-ndjson`.")  # fmt: skip


def _replay(body: bytes, receive: Receive) -> Receive:
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


def _headers(scope: Scope) -> dict[str, str]:
    """By lower-case names; a header that comes twice is joined by a comma, so that two Hosts are none."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
