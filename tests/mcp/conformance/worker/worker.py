"""A Worker that only the conformance suite talks to: each scenario in a Durable Object of its own.

What is tested is the product's: its sessions, its requests that pass through a connection, its logins. What is made up
here is what people do: they sign in where they are sent, and confirm what they are asked, with the defaults.
"""

import base64
import json
import traceback
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import js
from workers import DurableObject, Response, WorkerEntrypoint

from edge_agent.cloudflare.fetch_transport import WorkersTransport
from edge_agent.cloudflare.mcp_login import Connecting, LiveConnection
from edge_agent.cloudflare.sql import ObjectSql, raw_storage
from edge_agent.cloudflare.vault import WebCryptoVault
from edge_agent.core.errors import NeedsAnswer, NeedsSignIn, ToolError
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Answers
from edge_agent.http.mcp_links import ConnectionId
from edge_agent.loop import elicitation
from edge_agent.storage.mcp_connections import SqlConnection
from edge_agent.tools.mcp_elicitation import needs_answer
from edge_agent.tools.mcp_import import types
from edge_agent.tools.mcp_oauth import Parties
from edge_agent.tools.mcp_server import IdentityProvider, McpServer, OAuth
from edge_agent.tools.mcp_source import McpSource
from edge_agent.tools.mcp_tools import McpTool

NAME = "tested"
CALLBACK = "https://agent.example/v1/mcp/callback"
CIMD = "https://conformance-test.local/client-metadata.json"  # the document that the suite knows
BROWSER = "b" * 64
MOST_LOGINS = 3
PATIENCE = 12


async def key() -> bytes:
    return b"k" * 32


class NoRuns:
    async def call(self, run_id: str, method: str, payload: JsonObject) -> JsonObject:
        raise AssertionError("nobody waits here")


class Probe(DurableObject):
    async def fetch(self, request: Any) -> Response:
        given = json.loads(await request.text())
        try:
            said = await Scenario(given, raw_storage(self.ctx)).played()
        except Exception:  # noqa: BLE001 - it is for whoever reads the log of a scenario
            return Response(traceback.format_exc(), status=500)
        return Response(json.dumps(said))

    async def alarm(self) -> None:
        """Whoever waits for a login is told at one; here nobody does."""


class Scenario:
    def __init__(self, given: JsonObject, storage: Any) -> None:
        self.name, self.url = str(given["scenario"]), str(given["url"])
        self.context: JsonObject = given["context"]
        self.said: list[str] = []
        self.logins, self._storage = 0, storage
        self.secrets = {
            "SECRET": self.context.get("client_secret", ""),
            "KEY": self.context.get("private_key_pem", ""),
            "ID_TOKEN": self.context.get("idp_id_token", ""),
        }

    async def played(self) -> list[str]:
        server = McpServer(url=self.url, auth=await self._auth(), timeout=PATIENCE, connect_timeout=PATIENCE)
        source = self._source(server)
        try:
            await self._refreshed(source)
            for tool, arguments in await self._calls(source):
                await self._called(tool, arguments)
        finally:
            await source.close()
        return self.said

    def _source(self, server: McpServer) -> McpSource:
        if server.oauth is None:
            return McpSource(NAME, server, transport=WorkersTransport)
        parties = Parties(
            server=server,
            client_name="edge-agent",
            secrets=self.secrets,
            vault=WebCryptoVault(key),
            open_client=lambda: httpx2.AsyncClient(transport=WorkersTransport(), timeout=PATIENCE),
        )
        shelf = SqlConnection(ObjectSql(self._storage))
        whose = ConnectionId(server=NAME, user="suite")
        self.live = LiveConnection.open(
            whose, shelf, Connecting(parties=parties, key=key, runs=NoRuns()), self._storage
        )

        async def fetch(url: str, init: Any) -> Any:
            return await self.live.passed_on(js.Request.new(url, init))

        async def login() -> str:
            status = await self.live.status()
            if "link" in status and "fault" not in status:
                return str(status["link"])
            raise ToolError(str(status.get("fault")))

        return McpSource(NAME, server, transport=lambda: WorkersTransport(fetch), login=login)

    async def _auth(self) -> OAuth | None:
        """What an operator would have configured."""
        if not self.name.startswith("auth/"):
            return None
        client = self.context.get("client_id")
        if self.name == "auth/basic-cimd":
            return OAuth(client_id=CIMD)
        if "idp_id_token" in self.context:
            provider = IdentityProvider(
                token_endpoint=self.context["idp_token_endpoint"],
                client_id=self.context["idp_client_id"],
                id_token="ID_TOKEN",
            )
            issuer = await self._issuer()
            return OAuth(
                grant="cross_app",
                client_id=client,
                client_secret="SECRET",
                issuer=issuer,
                identity_provider=provider,
            )
        if "private_key_pem" in self.context:
            return OAuth(grant="client_credentials", client_id=client, private_key="KEY", issuer=await self._issuer())
        if self.name == "auth/client-credentials-basic":
            return OAuth(
                grant="client_credentials", client_id=client, client_secret="SECRET", issuer=await self._issuer()
            )
        return OAuth(client_id=client, client_secret="SECRET" if client else None)

    async def _issuer(self) -> str:
        parts = urlsplit(self.url)
        async with httpx2.AsyncClient(transport=WorkersTransport()) as http:
            place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
            return str((await http.get(place)).json()["authorization_servers"][0])

    # -- what people do
    async def _refreshed(self, source: McpSource) -> None:
        while True:
            self.said += await source.refresh()
            if source.sign_in() is None or not await self._signed_in():
                return

    async def _signed_in(self) -> bool:
        """As often as a person would."""
        self.logins += 1
        if self.logins > MOST_LOGINS:
            self.said.append("nobody signs in once more")
            return False
        begun = await self.live.answer("begin", {"redirect_uri": CALLBACK, "browser": BROWSER})
        async with httpx2.AsyncClient(transport=WorkersTransport()) as http:
            back = (await http.get(begun["url"])).headers["location"]
        came = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
        await self.live.answer("finish", {**came, "browser": BROWSER})
        return True

    async def _called(self, tool: McpTool, arguments: JsonObject) -> None:
        """By the connection itself: the suite has arguments that our own check would turn down."""
        answers: tuple[Answers, ...] = ()
        while True:
            try:
                answer = await tool.connection.call(
                    tool.original,
                    arguments,
                    idempotency_key="k",
                    safe_to_repeat=tool.safe_to_repeat,
                    progress=_unheard,
                    answers=answers,
                    ask=_answered,
                )
                if not isinstance(answer, types.InputRequiredResult):
                    self.said.append(f"{tool.original}: {answer.content}"[:200])
                    return
                raise needs_answer(NAME, answer)
            except NeedsSignIn:
                if not await self._signed_in():
                    return
            except NeedsAnswer as asked:
                answers = (*answers, await _answered(asked))
            except ToolError as error:
                self.said.append(f"{tool.original}: {error}")
                return

    async def _calls(self, source: McpSource) -> list[tuple[McpTool, JsonObject]]:
        tools = {tool.original: tool for tool in source.tools() if isinstance(tool, McpTool)}
        if wanted := self.context.get("toolCalls"):
            return [(tools[call["name"]], call["arguments"]) for call in wanted]
        if self.name == "json-schema-2020-12-preservation":
            focal, echo = list(tools.values())[:2]
            schemas = {tool.name: tool.input_schema for tool in await focal.connection.listed()}
            return [(echo, {"schema": schemas[focal.original]})]
        return [(tool, _made_up(tool.spec.parameters)) for tool in tools.values()]


def _unheard(_done: float, _total: float | None, _message: str | None) -> None: ...


async def _answered(asked: NeedsAnswer) -> Answers:
    """At once, and with what the form has no default for."""
    fields: Mapping[str, Any] = (asked.schema or {}).get("properties", {})
    said = {name: _MADE_UP.get(one.get("type"), "x") for name, one in fields.items() if "default" not in one}
    return elicitation.given(elicitation.question(asked, "asked", 0), json.dumps(said))


_MADE_UP: Mapping[Any, Any] = {"number": 5, "integer": 5, "boolean": True, "array": [], "object": {}, "string": "x"}


def _made_up(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties", {})
    return {name: _MADE_UP.get(properties.get(name, {}).get("type"), "x") for name in schema.get("required", ())}


class Default(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        if urlsplit(str(request.url)).path == "/ready":
            return Response("ready")
        name = base64.b64encode(js.crypto.getRandomValues(js.Uint8Array.new(12)).to_bytes()).decode()
        return await self.env.PROBE.getByName(name).fetch(request)
