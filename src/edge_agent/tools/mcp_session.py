"""One session with an MCP server, and the task that owns it: what anyio enters in a task, it must leave in the same."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
from pydantic import TypeAdapter

from edge_agent.core.errors import ToolError
from edge_agent.tools.mcp_call import Call
from edge_agent.tools.mcp_elicitation import Ask, Elicited
from edge_agent.tools.mcp_http import EXCHANGE, MAX_ANSWER_BYTES, Exchange, SessionTransport
from edge_agent.tools.mcp_import import (
    ClientSession,
    MCPError,
    listen,
    negotiate_auto,
    streamable_http_client,
    types,
)
from edge_agent.tools.mcp_server import McpServer

MAX_PAGES = 100
_CLOSE_SECONDS = 5.0

Progress = Callable[[float, float | None, str | None], None]
CallAnswer = types.CallToolResult | types.InputRequiredResult

_ANSWER: TypeAdapter[CallAnswer] = TypeAdapter(CallAnswer)


class Session:
    """It is opened once. `retired`: the server has forgotten it, and it is closed when nobody uses it any more."""

    def __init__(self, name: str, server: McpServer, client_name: str, silence: float, *, skip_probe: bool) -> None:
        self._name, self._under_way = name, list[Elicited]()
        self.exchange = Exchange()
        self.headers: dict[str, str] = {}
        self.in_use = 0
        self.retired = False
        self._server, self._client_name, self._silence, self._skip_probe = server, client_name, silence, skip_probe
        self._opened, self._stop = asyncio.Event(), asyncio.Event()
        self._session: ClientSession | None = None
        self._failure: Exception | None = None
        self._owner: asyncio.Task[None] | None = None
        self._tools: tuple[types.Tool, ...] | None = None
        self._changes = 0
        self._listing = asyncio.Lock()

    @property
    def usable(self) -> bool:
        return self._session is not None and not self.retired

    @property
    def is_modern(self) -> bool:
        return self._session is not None and self._session.discover_result is not None

    async def open(self, open_client: Callable[[], httpx2.AsyncClient]) -> None:
        """Raises what went wrong; TimeoutError when the server does not answer in time. Leaves no task behind then."""
        self._owner = asyncio.create_task(self._own(open_client))
        try:
            async with asyncio.timeout(self._server.connect_timeout):
                await self._opened.wait()
        except BaseException:
            self._owner.cancel()
            await asyncio.wait({self._owner})
            raise
        if self._failure is not None:
            raise self._failure

    async def _own(self, open_client: Callable[[], httpx2.AsyncClient]) -> None:
        EXCHANGE.set(self.exchange)
        try:
            self.headers = await self._server.current_headers()
            headers = {"user-agent": self._client_name, **self.headers}
            timeout = httpx2.Timeout(self._server.connect_timeout, read=self._silence)
            async with (
                open_client() as client,
                httpx2.AsyncClient(
                    transport=SessionTransport(client), headers=headers, timeout=timeout, max_redirects=3
                ) as guarded,
                streamable_http_client(self._server.url, http_client=guarded, max_sse_event_size=MAX_ANSWER_BYTES) as (
                    read,
                    write,
                ),
                ClientSession(
                    read,
                    write,
                    message_handler=self._heard,
                    elicitation_callback=self._elicit,
                    client_info=types.Implementation(name=self._client_name, version="1"),
                ) as session,
            ):
                await (session.initialize() if self._skip_probe else negotiate_auto(session))
                self._session = session
                self._opened.set()
                async with self._listening(session):
                    await self._stop.wait()
        except Exception as error:  # noqa: BLE001 - whoever waits for the session is told
            self._failure = error
        finally:
            self._session = None
            self._opened.set()

    async def _heard(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._tools, self._changes = None, self._changes + 1

    @asynccontextmanager
    async def _listening(self, session: ClientSession) -> AsyncGenerator[None]:
        """Newer servers announce a changed list only to those who ask; older ones do by the session's own stream."""
        capabilities = session.server_capabilities
        announces = capabilities is not None and capabilities.tools is not None and capabilities.tools.list_changed
        if not (announces and session.discover_result is not None):
            yield
            return

        async def listens() -> None:
            # What it hears arrives at _heard as well. A server that will not tell costs nothing but the news.
            with suppress(MCPError, RuntimeError):
                async with listen(session, tools_list_changed=True) as changes:
                    async for _ in changes:
                        pass

        task = asyncio.create_task(listens())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def listed(self) -> tuple[types.Tool, ...]:
        async with self._listing:
            if (tools := self._tools) is None:
                before = self._changes
                tools = await self._pages()
                if self._changes == before:
                    self._tools = tools
            return tools

    async def _pages(self) -> tuple[types.Tool, ...]:
        capabilities = self._open().server_capabilities
        if capabilities is not None and capabilities.tools is None:
            return ()
        tools: list[types.Tool] = []
        cursors: set[str | None] = set()
        cursor: str | None = None
        while cursor not in cursors:
            if len(cursors) == MAX_PAGES:
                raise ToolError(f"its list of tools goes on after {MAX_PAGES} pages")
            cursors.add(cursor)
            params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
            page = await self._open().list_tools(params=params)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                return tuple(tools)
        raise ToolError("its list of tools runs in a circle: a page points back to an earlier one")

    async def call(self, wanted: Call, ask: Ask, report: Progress, exchange: Exchange) -> CallAnswer:
        if self.is_modern:
            await self.listed()  # by it the SDK knows which arguments this server wants as headers too

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            report(progress, total, message)

        # Not call_tool: that lists the tools again where it does not know one, and throws away a result that does not
        # fit the tool's output schema.
        request = wanted.request(with_answers=self.is_modern)
        elicited = Elicited(self._name, wanted.answers)
        exchange.began = True
        self._under_way.append(elicited)
        try:
            sent = self._open().send_request(request, _ANSWER, progress_callback=on_progress)
            return await elicited.unless_asked(asyncio.ensure_future(sent), ask, exchange.abandon)
        finally:
            self._under_way.remove(elicited)

    async def _elicit(
        self,
        context: Any,  # noqa: ARG002 - the SDK gives it by name
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        """The protocol does not say for which call it is: for the one that has an answer, else for the oldest that is
        not asked anything yet."""
        calls = sorted(self._under_way, key=lambda call: (not call.knows(params), call.is_asked))
        if not calls:
            return types.ErrorData(code=types.INVALID_REQUEST, message="nothing is under way that could be asked about")
        return await calls[0].answer(params)

    def _open(self) -> ClientSession:
        if self._session is None:
            raise MCPError(types.CONNECTION_CLOSED, "Connection closed")
        return self._session

    async def close_if_retired(self) -> None:
        if self.retired and not self.in_use:
            await self.close()

    async def close(self) -> None:
        """Says goodbye to the server, then ends the task, by force if need be."""
        owner = self._owner
        if owner is None or owner.done():
            return
        self._stop.set()
        try:
            await asyncio.wait({owner}, timeout=_CLOSE_SECONDS)
        finally:
            if not owner.done():
                owner.cancel()
        await asyncio.wait({owner})
