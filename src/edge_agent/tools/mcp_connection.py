"""The connection to one MCP server: a session that is opened when needed, replaced when the server has forgotten it,
and closed at the end of each slice of work."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Literal, TypeVar

import httpx2
from pydantic import TypeAdapter, ValidationError

from edge_agent.core.errors import EdgeAgentError, NeedsSignIn, OutcomeUnknown, ToolError
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Answers, nobody
from edge_agent.tools.mcp_call import Call
from edge_agent.tools.mcp_elicitation import Ask, Elicited
from edge_agent.tools.mcp_faults import Unreachable, cause_of, why_unreachable
from edge_agent.tools.mcp_http import EXCHANGE, MAX_ANSWER_BYTES, Exchange, SessionTransport
from edge_agent.tools.mcp_import import (
    NO_ANSWER,
    ClientSession,
    MCPError,
    listen,
    negotiate_auto,
    streamable_http_client,
    types,
)
from edge_agent.tools.mcp_server import McpServer

T = TypeVar("T")

MAX_PAGES = 100
_CLOSE_SECONDS = 5.0
SILENCE_SECONDS = 25.0  # beyond a call's timeout: by then it was cancelled, also where a person was waited for in it

Login = Callable[[], Awaitable[str]]
Progress = Callable[[float, float | None, str | None], None]
CallAnswer = types.CallToolResult | types.InputRequiredResult

_ANSWER: TypeAdapter[CallAnswer] = TypeAdapter(CallAnswer)
# Errors a server answers with that speak of the request, not of its session.
_ABOUT_REQUEST = (types.INVALID_PARAMS, types.METHOD_NOT_FOUND, types.PARSE_ERROR)
_CUT_OFF = (types.CONNECTION_CLOSED, types.PARSE_ERROR, types.REQUEST_TIMEOUT)
# Cloudflare's own answers for an origin it could not reach: down, unreachable, two kinds of TLS fault, no such name.
_NOT_PASSED_ON = (521, 523, 525, 526, 530)


class McpConnection:
    """`open_client` makes the HTTP client of a session; it is closed with it. `client_name` names us to the server.
    `silence`: seconds beyond a call's timeout after which a server that says nothing is given up. `login`: finds where
    a person signs in, for a server that turns us away."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        open_client: Callable[[], httpx2.AsyncClient],
        client_name: str,
        *,
        silence: float = SILENCE_SECONDS,
        login: Login | None = None,
    ) -> None:
        self.name, self.server, self._login = name, server, login
        self._open_client, self._client_name, self._silence = open_client, client_name, server.timeout + silence
        self._lock = asyncio.Lock()
        self._current: _Session | None = None
        self._sessions: set[_Session] = set()
        self._speaks_older = False

    @property
    def is_open(self) -> bool:
        return self._current is not None and self._current.usable

    async def listed(self) -> tuple[types.Tool, ...]:
        """The server's tools, all pages, asked for once per session and when the server says that they have changed.

        Raises Unreachable, NeedsSignIn, and ToolError where the server answers but the list cannot be had."""
        return await self._asked(_Session.listed, Exchange(), safe_to_repeat=True)

    async def call(
        self,
        tool: str,
        arguments: JsonObject,
        *,
        idempotency_key: str,
        safe_to_repeat: bool,
        progress: Progress,
        answers: Sequence[Answers] = (),
        ask: Ask = nobody,
    ) -> CallAnswer:
        """One call by the server's own name of the tool. May be cancelled, and the server is told.

        Made again once if the server rejected the session before the tool ran, if it was never sent, or if the
        connection was lost and `safe_to_repeat`. Raises OutcomeUnknown where it was sent and may have run, ToolError
        for an error the server answered with, Unreachable when nothing was sent, NeedsSignIn when a person has to sign
        in first, NeedsAnswer where a server of the older generation asks what neither `answers` nor `ask` can
        answer."""
        wanted = Call(tool=tool, arguments=arguments, idempotency_key=idempotency_key, answers=answers)

        async def called(session: _Session) -> CallAnswer:
            return await session.call(wanted, ask, progress, exchange)

        exchange = Exchange()
        try:
            return await self._asked(called, exchange, safe_to_repeat=safe_to_repeat)
        except asyncio.CancelledError:
            exchange.abandon()
            raise

    async def take_new_headers(self) -> None:
        """A session whose headers are not those that get_headers gives now is replaced by the next request. Raises what
        get_headers raises."""
        session = self._current
        if session is not None and await self.server.current_headers() != session.headers:
            self._replace(session)
            await session.close_if_retired()

    async def close(self) -> None:
        """Ends every session and its task, whatever state it is in. The next listed() or call() connects again."""
        self._current = None
        await asyncio.gather(*(session.close() for session in self._sessions))
        self._sessions.clear()

    async def _asked(
        self, work: "Callable[[_Session], Awaitable[T]]", exchange: Exchange, *, safe_to_repeat: bool
    ) -> T:
        for again in (True, False):
            session = await self._connected()
            exchange.reset()
            token = EXCHANGE.set(exchange)
            session.in_use += 1
            try:
                return await work(session)
            except (MCPError, ValidationError) as error:
                kind = _judged(error, exchange)
                if kind == "rejected":
                    self._replace(session)
                if not again and kind == "rejected":
                    await self._require_login(exchange)
                if not (again and (kind in ("rejected", "unsent") or (kind == "lost" and safe_to_repeat))):
                    raise self._told(kind, error, exchange, safe_to_repeat=safe_to_repeat) from error
            finally:
                EXCHANGE.reset(token)
                session.in_use -= 1
                await session.close_if_retired()
        raise AssertionError("the second time always returns or raises")

    def _told(self, kind: str, error: Exception, exchange: Exchange, *, safe_to_repeat: bool) -> ToolError:
        if kind == "answered":
            return ToolError(str(error) or f"The MCP server {self.name} answered with an error without a message.")
        cause, way_out = cause_of(error, exchange, self.server)
        what = f"The MCP server {self.name} ({self.server.origin}) {cause}"
        if kind in ("unsent", "rejected"):
            return Unreachable(f"{what}. {way_out}")
        return ToolError(f"{what}.") if safe_to_repeat else OutcomeUnknown(f"{what}, so the call may have been made.")

    async def _connected(self) -> "_Session":
        async with self._lock:
            if self._current is None or not self._current.usable:
                session = _Session(
                    self.name, self.server, self._client_name, self._silence, skip_probe=self._speaks_older
                )
                self._sessions.add(session)
                try:
                    await session.open(self._open_client)
                except BaseException as error:
                    self._sessions.discard(session)
                    self._speaks_older = False
                    if isinstance(error, Exception):
                        await self._require_login(session.exchange)
                        raise Unreachable(why_unreachable(self.name, self.server, error, session.exchange)) from error
                    raise
                self._speaks_older = not session.is_modern
                self._current = session
            return self._current

    async def _require_login(self, exchange: Exchange) -> None:
        """Raises NeedsSignIn where the server turned us away and somebody can sign in, Unreachable where it turned us
        away and nobody can."""
        if self._login is None or not exchange.turned_away:
            return
        try:
            url = await self._login()
        except EdgeAgentError as error:
            what = f"The MCP server {self.name} ({self.server.origin}) cannot be used: {error}"
            raise Unreachable(f"{what}. Look at its auth.") from error
        raise NeedsSignIn(self.name, url)

    def _replace(self, session: "_Session") -> None:
        """The server has forgotten this session: the next call opens another. Calls still on it may yet be answered."""
        session.retired = True
        if self._current is session:
            self._current = None


class _Session:
    """One session, and the task that owns it: what anyio enters in a task, it must leave in the same."""

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


Kind = Literal["answered", "rejected", "unsent", "lost"]


def _judged(error: MCPError | ValidationError, exchange: Exchange) -> Kind:
    """What a failed request means for the call: whether it can have run decides over everything that follows."""
    lost: Kind = "lost" if exchange.began else "unsent"
    if exchange.error is not None:
        return "unsent" if exchange.never_sent else lost
    if isinstance(error, ValidationError):
        return lost  # it answered, but with something that is no answer
    status = exchange.status
    forgotten = status == HTTPStatus.NOT_FOUND or (
        status == HTTPStatus.BAD_REQUEST and error.code not in _ABOUT_REQUEST
    )
    if (exchange.in_session and forgotten) or status == HTTPStatus.UNAUTHORIZED:
        return "rejected"
    if status in _NOT_PASSED_ON and error.message == NO_ANSWER:
        return "unsent"
    if error.code in _CUT_OFF or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and error.message == NO_ANSWER):
        return lost
    return "answered"
