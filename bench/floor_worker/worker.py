"""The floor: the same rounds in a Durable Object in Python with nothing around them.

No validation, no budgets, no resume: a streamed model call by a callback for its chunks, the tool, three rows a round,
and each delta to whoever follows.
"""

import asyncio
import json
from typing import Any

import js
from pyodide.ffi import create_once_callable, create_proxy, to_js
from workers import DurableObject, Request, Response, WorkerEntrypoint

LINE = "The ledger of the harbour lists nets, ropes, two anchors and a barge with its papers. "
PARAMETERS = {"type": "object", "properties": {"number": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "read", "description": "Read a page.", "parameters": PARAMETERS}}


class Run(DurableObject):
    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self._ctx = ctx._ctx  # noqa: SLF001 - the platform's own context, as fast as it gets
        self._sql = self._ctx.storage.sql

    async def fetch(self, request: Request) -> Response:
        if request.url.endswith("/ws"):
            client, server = js.WebSocketPair.new().object_values()
            self._ctx.acceptWebSocket(server)
            return Response(None, status=101, web_socket=client)
        return Response(json.dumps(await self._rounds(json.loads(await request.text()))))

    async def _rounds(self, asked: dict[str, Any]) -> list[int]:
        """When each round began, and when the last had ended (ms since the epoch)."""
        self._sql.exec("create table if not exists log (seq integer primary key, data text)")
        messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        began: list[int] = []
        while True:
            began.append(int(js.Date.now()))
            self._insert({"type": "requested"})
            text, call = await self._model(asked["url"], asked["model"], messages)
            self._insert({"type": "answered", "text": text, "call": call})
            if call is None:
                return [*began, int(js.Date.now())]
            result = f"Page {call['arguments']}. {LINE * 3}"
            self._insert({"type": "result", "text": result})
            function = {"name": call["name"], "arguments": call["arguments"]}
            calls = [{"id": call["id"], "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    async def _model(self, url: str, model: str, messages: list[Any]) -> tuple[str, dict[str, Any] | None]:
        body = json.dumps({"model": model, "messages": messages, "stream": True, "tools": [TOOL]})
        init = {"method": "POST", "headers": {"content-type": "application/json"}, "body": body}
        answer = await js.fetch(f"{url}/chat/completions", to_js(init, dict_converter=js.Object.fromEntries))
        pieces: list[bytes] = []
        more, ended = asyncio.Event(), False

        def write(chunk: Any, *_: Any) -> None:
            pieces.append(chunk.to_bytes())
            more.set()

        def close(*_: Any) -> None:
            nonlocal ended
            ended = True
            more.set()

        taken = create_proxy(write)
        sink = js.WritableStream.new(to_js({"write": taken}, dict_converter=js.Object.fromEntries))
        answer.body.pipeTo(sink).then(create_once_callable(close))
        text, rest = "", b""
        call: dict[str, Any] | None = None
        while not ended or pieces:
            await more.wait()
            more.clear()
            *frames, rest = (rest + b"".join(pieces)).split(b"\n\n")
            pieces.clear()
            for frame in frames:
                if frame.startswith(b"data: {"):
                    choices: list[dict[str, Any]] = json.loads(frame[6:]).get("choices") or [{}]
                    delta: dict[str, Any] = choices[0].get("delta", {})
                    text += delta.get("content") or ""
                    call = self._called(call, delta)
                    self._broadcast(delta)
        taken.destroy()
        return text, call

    def _called(self, call: dict[str, Any] | None, delta: dict[str, Any]) -> dict[str, Any] | None:
        for part in delta.get("tool_calls") or ():
            function = part.get("function", {})
            call = call or {"id": part.get("id"), "name": function.get("name"), "arguments": ""}
            call["arguments"] += function.get("arguments") or ""
        return call

    def _insert(self, data: dict[str, Any]) -> None:
        self._sql.exec("insert into log(data) values(?)", json.dumps(data))
        self._broadcast(data)

    def _broadcast(self, data: dict[str, Any]) -> None:
        for socket in self._ctx.getWebSockets():
            socket.send(json.dumps(data))


class KeyStore(DurableObject):
    """Named in the configuration, not used here."""


class Directory(DurableObject):
    """Likewise."""


class McpConnection(DurableObject):
    """Likewise."""


class Skills(DurableObject):
    """Likewise."""


class Default(WorkerEntrypoint):
    async def fetch(self, request: Request) -> Response:
        if request.url.endswith("/healthz"):
            return Response("ok")
        name = request.url.split("/")[4]
        return await self.env.RUN.getByName(name).fetch(request)
