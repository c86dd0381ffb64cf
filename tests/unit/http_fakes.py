"""The real application with runs and an offer in memory, for the tests of the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from pydantic import TypeAdapter

from edge_agent.core.difference import Difference
from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.events import RunCreated
from edge_agent.core.history import Compacted, compact_history
from edge_agent.core.limits import Limits
from edge_agent.core.messages import JsonObject, Turn
from edge_agent.core.skills import Skill
from edge_agent.core.state import RunState
from edge_agent.core.usage import Amount, Usage
from edge_agent.http.app import create_app
from edge_agent.http.mcp_links import ConnectionId
from edge_agent.http.ports import ConnectionMethod, Deps, RunMethod
from edge_agent.testing import MemoryDirectory, memory_library
from edge_agent.wire.console import Console
from edge_agent.wire.content import said
from edge_agent.wire.export import Exported
from edge_agent.wire.http import StartRun
from edge_agent.wire.http_answers import AgentInfo, ToolInfo, ToolsAnswer
from edge_agent.wire.settings import Settings

TOKEN = "token-of-alice"
KEY = b"k" * 32


@dataclass
class MemoryRuns:
    """Runs as their objects answer, without a loop in them."""

    known: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    asked: list[tuple[str, RunMethod, JsonObject]] = field(default_factory=list[tuple[str, RunMethod, JsonObject]])
    turns: list[JsonObject] = field(default_factory=list[JsonObject])
    files: list[JsonObject] = field(default_factory=list[JsonObject])
    approval: JsonObject = field(default_factory=dict[str, Any])
    calls: list[JsonObject] = field(default_factory=list[JsonObject])

    async def call(self, run_id: str, method: RunMethod, payload: JsonObject) -> JsonObject:
        self.asked.append((run_id, method, payload))
        if method == "create":
            return self._create(run_id, payload)
        if method == "fork":
            return self._fork(run_id, payload)
        if run_id not in self.known:
            raise Refusal(404, "unknown_run", "There is no run with this id.")
        if method in ("approval", "decision"):
            return {**state_of(run_id), "approval": self.approval}
        if method == "state" and self.approval:
            return {**state_of(run_id), "approvals": [self.approval]}
        if method == "calls":
            return {"calls": self.calls}
        return {"turns": self.turns, "files": self.files} if method == "turns" else state_of(run_id)

    def _fork(self, run_id: str, payload: JsonObject) -> JsonObject:
        if payload["source"] not in self.known:
            raise Refusal(404, "unknown_run", "There is no run with this id.")
        came = {"run_id": payload["source"], "at": payload["at"] + 1, "inherited": payload["at"]}
        return {**self._create(run_id, payload), "forked_from": came}

    def _create(self, run_id: str, payload: JsonObject) -> JsonObject:
        if earlier := self.known.get(run_id):
            if not payload["idempotent"]:
                raise Refusal(409, "run_exists", "This run id is taken.")
            if earlier["fingerprint"] != payload["fingerprint"]:
                raise Refusal(409, "idempotency_conflict", "This key was used with another body.")
        self.known.setdefault(run_id, payload)
        return state_of(run_id)


def state_of(run_id: str) -> JsonObject:
    state = RunState(
        run_id=run_id,
        agent="assistant",
        status="queued",
        mode="direct",
        input="x",
        models=("a/b",),
        limits=Limits(),
        rounds=0,
        usage=Usage(),
        spent=Amount(),
        seq=1,
        life=0,
    )
    return TypeAdapter(RunState).dump_python(state, mode="json", exclude_none=True)


class MemoryConnections:
    """Logins as their objects answer: to be made, until one is finished."""

    def __init__(self) -> None:
        self.asked: list[tuple[ConnectionId, ConnectionMethod, JsonObject]] = []
        self.refusal: Refusal | None = None
        self.done = False

    async def call(self, whose: ConnectionId, method: ConnectionMethod, payload: JsonObject) -> JsonObject:
        self.asked.append((whose, method, payload))
        if self.refusal:
            raise self.refusal
        if method == "begin":
            return {"url": "https://auth.example/authorize?state=s"}
        self.done = self.done or method == "finish"
        return {"state": "connected" if self.done else "sign-in", "by_person": True}


class OneAgent:
    """A deployment of one agent with one tool, and what there is in it."""

    version = "1.2.3"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def configure(self, request: StartRun) -> RunCreated:
        if request.agent not in (None, "assistant"):
            raise Refusal(422, "unknown_agent", "There is no such agent. Known are: assistant.", field="agent")
        if request.input == "misconfigured":
            raise ConfigError("EDGE_AGENT_MODEL", f"is wrong, near {TOKEN}", "EDGE_AGENT_MODEL=a/b")
        if request.input == "broken":
            raise ZeroDivisionError(f"a secret stands here: {TOKEN}")
        turns = tuple(turn.turn() for turn in request.history)
        try:
            limits = Limits().lowered_by(request.limits.wanted() if request.limits else {})
        except ValueError as error:
            raise Refusal(422, "limit_too_high", str(error), field="limits") from error
        return RunCreated(
            version=1,
            input=said(request.input).text,
            agent_name="assistant",
            models=("a/b",),
            limits=limits,
            history=turns,
        )

    async def replay(self, log: Exported) -> Difference | None:
        differs = log.records[-1].type != "run.created"
        return Difference(kind="key", key="s1/r1", seq=2, message="other", asked="s1/r9") if differs else None

    async def compact(self, history: Sequence[Turn], *, force: bool) -> Compacted:
        if history[0].text == "down":
            raise Refusal(503, "no_summary", "The model wrote no summary, so nothing was changed.")
        if not force:
            return Compacted(history=tuple(history), before_tokens=9, after_tokens=9)
        folded = compact_history(history, "they met", keep_recent_turns=1)
        return Compacted(history=folded, summary="they met", before_tokens=9, after_tokens=5, compacted=True)

    def agents(self) -> Sequence[AgentInfo]:
        return [
            AgentInfo(name="assistant", default=True, models=("a/b",), mode="direct", tools=("clock",), limits=Limits())
        ]

    def logins(self) -> Sequence[str]:
        return ("docs",)

    async def tools(self, user: str) -> ToolsAnswer:
        tool = ToolInfo(name="clock", description="The time.", parameters={"type": "object"}, read_only=True)
        return ToolsAnswer(tools=(tool,), unreachable=("docs could not be reached: connection refused.",))

    def skills(self) -> Mapping[str, Skill]:
        return {"tidy": Skill(name="tidy", description="Tidy up.", instructions="1. Tidy.", files={"a.md": "A"})}

    def faults(self) -> Sequence[ConfigError]:
        return self._settings.faults()


class StoppedClock:
    """Always the same moment."""

    def now(self) -> int:
        return 1_000_000_000


class Api:
    """A client of the application with these variables, as if it ran at `url`."""

    def __init__(self, url: str = "http://localhost:8787", **env: str) -> None:
        self.runs, self.directory = MemoryRuns(), MemoryDirectory(StoppedClock())
        self.connections, self.library = MemoryConnections(), memory_library(StoppedClock())
        self.lines: list[str] = []  # of the console
        read = Settings.from_env({f"EDGE_AGENT_{name}": value for name, value in env.items()})
        one = OneAgent(read)

        async def key() -> bytes:
            return KEY

        deps = Deps(
            settings=read,
            runs=self.runs,
            directory=self.directory,
            connections=self.connections,
            offer=one,
            deployment=one,
            library=self.library,
            clock=StoppedClock(),
            console=Console("debug", lambda level, line: self.lines.append(line), read.mask),
            run_token_key=key,
        )
        self.client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=create_app(deps)), base_url=url)

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.client.get(path, headers=headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, bytes | type(None)):
            return await self.client.post(path, content=body, headers=named)
        return await self.client.post(path, json=body, headers=named)


def problem(answer: httpx2.Response, status: int, code: str) -> JsonObject:
    """The problem an answer is, checked for what every problem has."""
    assert answer.headers["content-type"] == "application/problem+json"
    content = answer.json()
    assert (answer.status_code, content["status"], content["code"]) == (status, status, code), content
    assert content["title"]
    assert content["detail"]
    assert "Traceback" not in answer.text
    return content
