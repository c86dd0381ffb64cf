"""The connection to one MCP server: a session that is opened when needed, replaced when the server has forgotten it,
and closed at the end of each slice of work."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import httpx2
from pydantic import ValidationError

from edge_agent.core.errors import EdgeAgentError, NeedsSignIn, OutcomeUnknown, ToolError
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Answers, nobody
from edge_agent.tools.mcp_call import Call
from edge_agent.tools.mcp_elicitation import Ask
from edge_agent.tools.mcp_faults import Kind, Unreachable, cause_of, judged, why_unreachable
from edge_agent.tools.mcp_http import EXCHANGE, Exchange
from edge_agent.tools.mcp_import import MCPError, types
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.mcp_session import CallAnswer, Progress, Session

T = TypeVar("T")
SILENCE_SECONDS = 25.0  # beyond a call's timeout: by then it was cancelled, also where a person was waited for in it
Login = Callable[[], Awaitable[str]]


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
        self._current: Session | None = None
        self._sessions: set[Session] = set()
        self._speaks_older = False

    @property
    def is_open(self) -> bool:
        return self._current is not None and self._current.usable

    async def listed(self) -> tuple[types.Tool, ...]:
        """The server's tools, all pages, asked for once per session and when the server says that they have changed.

        Raises Unreachable, NeedsSignIn, and ToolError where the server answers but the list cannot be had."""
        return await self._asked(Session.listed, Exchange(), safe_to_repeat=True)

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

        async def called(session: Session) -> CallAnswer:
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

    async def _asked(self, work: Callable[[Session], Awaitable[T]], exchange: Exchange, *, safe_to_repeat: bool) -> T:
        for again in (True, False):
            session = await self._connected()
            exchange.reset()
            token = EXCHANGE.set(exchange)
            session.in_use += 1
            try:
                return await work(session)
            except (MCPError, ValidationError) as error:
                kind = judged(error, exchange)
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

    def _told(self, kind: Kind, error: Exception, exchange: Exchange, *, safe_to_repeat: bool) -> ToolError:
        if kind == "answered":
            return ToolError(str(error) or f"The MCP server {self.name} answered with an error without a message.")
        cause, way_out = cause_of(error, exchange, self.server)
        what = f"The MCP server {self.name} ({self.server.origin}) {cause}"
        if kind in ("unsent", "rejected"):
            return Unreachable(f"{what}. {way_out}")
        return ToolError(f"{what}.") if safe_to_repeat else OutcomeUnknown(f"{what}, so the call may have been made.")

    async def _connected(self) -> Session:
        async with self._lock:
            if self._current is None or not self._current.usable:
                session = Session(
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

    def _replace(self, session: Session) -> None:
        """The server has forgotten this session: the next call opens another. Calls still on it may yet be answered."""
        session.retired = True
        if self._current is session:
            self._current = None
