"""A real MCP server (the official SDK's server half) that does as it is told, over real sockets.

    python -m tests.servers.mcp_server --port 8098 [--json] [--legacy] [--never] [--token TOKEN]

It has 165 tools over four pages: `echo`, `lookup` (read-only), `charge` (counts by idempotency key and arguments),
`slow` (reports progress, and whether it was cancelled), `book` (asks a person how many), `fail`, `structured`,
`bad_structured`, `nothing_structured`, `big` and `photo` (of megabytes), `image`, `linked`, `strange…`, and tool_000 to
tool_150. Its door (mcp_door.py) breaks what it is told to.

GET /_log: {"log", "charges", "seen"}. POST /_fault?kind=…, /_forget (sessions), /_grow (one more tool, announced).
"""

import argparse
import asyncio
import base64
import json
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.servers.mcp_door import Door, Fault, ListFault

Json = dict[str, Any]
App = Callable[[Json, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]
PAGE = 50
KEY = "edge-agent/idempotency-key"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(24)).decode()
_NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def _tool(name: str, schema: Json | None = None, *, read_only: bool = False, **more: Any) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=read_only)
    schema = {"type": "object"} if schema is None else schema
    return types.Tool(name=name, description=f"The tool {name}.", input_schema=schema, annotations=hints, **more)


NAMED = (
    _tool("echo", _TEXT),
    _tool("lookup", {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}, read_only=True),
    _tool("charge", {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}),
    _tool("slow", {"type": "object", "properties": {"steps": {"type": "integer"}}}),
    _tool("fail"),
    _tool("structured", output_schema=_NUMBER),
    _tool("bad_structured", output_schema=_NUMBER),
    _tool("nothing_structured", output_schema=_NUMBER),
    _tool("big", {"type": "object", "properties": {"megabytes": {"type": "number"}}}, read_only=True),
    _tool("book"),
    _tool("photo", {"type": "object", "properties": {"megabytes": {"type": "number"}}}, read_only=True),
    _tool("image"),
    _tool("linked"),
    _tool(
        "strange.näme/with spaces" + "x" * 60,
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/s"}}},
    ),
)


@dataclass(kw_only=True)
class McpTestServer:
    """The state of a server: what it was told to do, and what it saw."""

    json_response: bool = False
    legacy: bool = False
    never: bool = False
    token: str | None = None
    list_fault: ListFault | None = None
    page_delay: float = 0
    port: int = 0
    fault: Fault | None = None
    extra: int = 0
    log: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    charges: Counter[str] = field(default_factory=Counter[str])
    seen: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    meta: list[Json] = field(default_factory=list[Json])
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.responses: Any = None
        self.state_shown: str | None = None
        self.sessions: list[Any] = []
        self.server = Server(
            "test",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self.bus),
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def count(self, *entry: Any) -> int:
        """How many entries of the log begin like this."""
        return sum(1 for logged in self.log if logged[: len(entry)] == entry)

    async def logged(self, *entry: Any, times: int = 1) -> None:
        """Returns when entries that begin like this stand that often in the log."""
        async with asyncio.timeout(10), self.changed:
            await self.changed.wait_for(lambda: self.count(*entry) >= times)

    async def note(self, *entry: Any) -> None:
        self.log.append(entry)
        async with self.changed:
            self.changed.notify_all()

    # -- the tools
    def tools(self) -> list[types.Tool]:
        return [*NAMED, *(_tool(f"tool_{number:03d}") for number in range(151 + self.extra))]

    async def _list(
        self, _context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        at = int((params.cursor if params else None) or 0)
        await self.note("page", at)
        await asyncio.sleep(self.page_delay)
        tools = self.tools()
        after = str(at + PAGE) if at + PAGE < len(tools) else None
        if self.list_fault == "circle":
            after = "50" if at else "0"
        elif self.list_fault == "endless":
            return types.ListToolsResult(tools=[], next_cursor=str(at + 1))
        return types.ListToolsResult(tools=tools[at : at + PAGE], next_cursor=after)

    async def _call(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        arguments = params.arguments or {}
        self.responses, self.state_shown = params.input_responses, params.request_state
        self.meta.append(dict(context.meta or {}))
        if context.session not in self.sessions:
            self.sessions.append(context.session)
        await self.note("call", params.name)
        made = getattr(self, f"_{params.name}", None)
        if made is None:
            return types.CallToolResult(content=[types.TextContent(text=params.name)])
        return await made(context, arguments)

    async def _echo(self, _context: Any, arguments: Json) -> types.CallToolResult:
        return _said(arguments["text"])

    async def _lookup(self, _context: Any, arguments: Json) -> types.CallToolResult:
        return _said(f"found {arguments['q']}")

    async def _charge(self, context: Any, arguments: Json) -> types.CallToolResult:
        meta: Json = dict(context.meta or {})
        self.charges[f"{meta.get(KEY)} {json.dumps(arguments, sort_keys=True)}"] += 1
        return _said(f"charged {arguments['amount']}")

    async def _slow(self, context: Any, arguments: Json) -> types.CallToolResult:
        steps = arguments.get("steps", 1000)
        try:
            for step in range(steps):
                await context.session.report_progress(step, steps, f"step {step}")
                await asyncio.sleep(0.02)
        except BaseException as error:
            self.log.append(("cancelled", type(error).__name__))
            asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self.note("cancel noted")))
            raise
        return _said("slept")

    async def _fail(self, _context: Any, _arguments: Json) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="boom")], is_error=True)

    async def _structured(self, _context: Any, _arguments: Json) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text='{"n": 1}')], structured_content={"n": 1})

    async def _bad_structured(self, _context: Any, _arguments: Json) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="all of it")], structured_content={"n": "x"})

    async def _nothing_structured(self, _context: Any, _arguments: Json) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text="no number")])

    async def _big(self, _context: Any, arguments: Json) -> types.CallToolResult:
        return _said("x" * int(arguments["megabytes"] * 1_000_000))

    async def _book(self, context: Any, _arguments: Json) -> types.CallToolResult | types.InputRequiredResult:
        """Asks how many seats, in the way of each generation."""
        asked = types.ElicitRequestFormParams.model_validate({"message": "How many seats?", "requestedSchema": _NUMBER})
        if self.legacy:
            try:
                said = await context.session.elicit_form(asked.message, _NUMBER)
            except BaseException:
                self.log.append(("cancelled", "book"))
                raise
        elif self.responses is None:
            return types.InputRequiredResult(
                input_requests={"seats": types.ElicitRequest(params=asked)}, request_state="state-of-book"
            )
        else:
            assert self.state_shown == "state-of-book"
            said = types.ElicitResult.model_validate(self.responses["seats"].model_dump())
        await self.note("booked", said.action, said.content)
        return _said(f"{said.action} {json.dumps(said.content)}")

    async def _photo(self, _context: Any, arguments: Json) -> types.CallToolResult:
        data = base64.b64encode(b"\xff\xd8\xff" + bytes(range(256)) * int(arguments["megabytes"] * 4_000)).decode()
        return types.CallToolResult(content=[types.ImageContent(data=data, mime_type="image/jpeg")])

    async def _image(self, _context: Any, _arguments: Json) -> types.CallToolResult:
        blob = types.BlobResourceContents(uri="file:///data/report.pdf", blob=PNG, mime_type="application/pdf")
        text = types.TextResourceContents(uri="file:///notes.txt", text="some notes")
        return types.CallToolResult(
            content=[
                types.TextContent(text="a picture"),
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.EmbeddedResource(resource=blob),
                types.EmbeddedResource(resource=text),
            ]
        )

    async def _linked(self, _context: Any, _arguments: Json) -> types.CallToolResult:
        link = types.ResourceLink(name="manual", uri="https://example.com/manual", description="The whole manual")
        return types.CallToolResult(content=[link])

    # -- what a test does to it
    async def grow(self) -> None:
        """One more tool, announced to everyone who listens."""
        self.extra += 1
        await self.bus.publish(ToolsListChanged())
        for session in self.sessions:
            await session.send_tool_list_changed()

    def forget(self) -> None:
        """Every session, as after a restart."""
        getattr(self.server.session_manager, "_server_instances").clear()  # noqa: B009 - private

    # -- the door
    def app(self) -> App:
        routes = [
            Route("/_log", self._show, methods=["GET"]),
            Route("/health", self._do_nothing, methods=["GET"]),
            Route("/_fault", self._set_fault, methods=["POST"]),
            Route("/_forget", self._do_forget, methods=["POST"]),
            Route("/_grow", self._do_grow, methods=["POST"]),
            Route("/_token", self._tell_token, methods=["GET"]),
            Route("/_token", self._set_token, methods=["POST"]),
        ]
        inner = self.server.streamable_http_app(
            json_response=self.json_response, custom_starlette_routes=[*routes, *self.own_routes()], **self.protection()
        )
        return Door(self, inner)

    def own_routes(self) -> list[Route]:
        return []

    def protection(self) -> Json:
        """What the server is built with to ask for tokens, once its port is known."""
        return {}

    async def _show(self, _request: Request) -> Response:
        return JSONResponse({"log": self.log, "charges": self.charges, "seen": self.seen})

    async def _set_fault(self, request: Request) -> Response:
        self.fault = request.query_params.get("kind")  # pyright: ignore[reportAttributeAccessIssue]  (any text, so that a test can send a wrong one)
        return Response()

    async def _tell_token(self, _request: Request) -> Response:
        return Response(self.token)

    async def _set_token(self, request: Request) -> Response:
        self.token = request.query_params["value"]
        return Response()

    async def _do_nothing(self, _request: Request) -> Response:
        return Response()

    async def _do_forget(self, _request: Request) -> Response:
        self.forget()
        return Response()

    async def _do_grow(self, _request: Request) -> Response:
        await self.grow()
        return Response()


def _said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


@asynccontextmanager
async def mcp_server(**options: Any) -> AsyncGenerator[McpTestServer]:
    """A server on a free port of loopback (or `port`), in this event loop; gone when the context is left."""
    state = McpTestServer(**options)
    async with served(state):
        yield state


@asynccontextmanager
async def served(state: McpTestServer) -> AsyncGenerator[None]:
    # Named, or asyncio does not turn off Nagle's algorithm: 40 ms a call.
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", state.port))
        state.port = listening.getsockname()[1]
        config = uvicorn.Config(
            state.app(), log_level="critical", ws="none", timeout_graceful_shutdown=1, lifespan="on"
        )
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # pyright: ignore[reportAttributeAccessIssue]  (older uvicorn has it)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            while not server.started:
                if task.done():
                    task.result()
                await asyncio.sleep(0.005)
            yield
        finally:
            server.should_exit = True
            await asyncio.wait({task}, timeout=2)
            server.force_exit = True
            await asyncio.wait({task})


async def _main() -> None:
    parser = argparse.ArgumentParser(description="A real MCP server for tests.")
    parser.add_argument("--port", type=int, default=8098)
    parser.add_argument("--json", action="store_true", help="answer with JSON instead of event streams")
    parser.add_argument("--legacy", action="store_true", help="speak 2025-11-25, with sessions")
    parser.add_argument("--never", action="store_true", help="never answer")
    parser.add_argument("--token", help="turn away whoever does not send this bearer token")
    given = parser.parse_args()
    async with mcp_server(
        port=given.port, json_response=given.json, legacy=given.legacy, never=given.never, token=given.token
    ) as state:
        print(state.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
