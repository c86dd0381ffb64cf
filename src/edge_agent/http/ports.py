"""What the API needs from outside, one page."""

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from edge_agent.core.difference import Difference
from edge_agent.core.errors import ConfigError
from edge_agent.core.events import RunCreated
from edge_agent.core.history import Compacted
from edge_agent.core.messages import JsonObject, Turn
from edge_agent.core.model_calls import LoggedCall
from edge_agent.core.ports import Clock
from edge_agent.core.skill_library import SkillLibrary
from edge_agent.core.skills import Skill
from edge_agent.http.mcp_links import ConnectionId
from edge_agent.wire.console import Console
from edge_agent.wire.export import Exported
from edge_agent.wire.http import StartRun
from edge_agent.wire.http_answers import AgentInfo, ToolsAnswer
from edge_agent.wire.settings import Settings

RunMethod = Literal[
    "create",
    "state",
    "cancel",
    "cancel_step",
    "cancel_subagent",
    "message",
    "resume",
    "fork",
    "answer",
    "delete",
    "turns",
    "calls",
    "approval",
    "decision",
    "approval-mode",
]
DirectoryMethod = Literal["page", "active", "usage"]


class Runs(Protocol):
    """The runs of this deployment, by RPC to the objects they lie in."""

    async def call(self, run_id: str, method: RunMethod, payload: JsonObject) -> JsonObject:
        """Ask the run's object; every method answers with the state of the run.

        create  {"created": RunCreated, "fingerprint": str, "idempotent": bool}: with `idempotent` the same fingerprint
                is answered like the first time; else, and for another fingerprint, 409.
        state   {"at"?: int, "messages"?: bool}: as of the end of the batch that holds `at`; with the conversation
        cancel  {"reason": str | null}
        cancel_step  {"reason": str | null}, answers with "cancelled_step" as well
        cancel_subagent  {"call_id": str, "reason": str | null}, answers with "cancelled_subagent", a run id, as well
        message {"message_id": str, "text": str}
        resume  {"reason": str | null}
        fork    {"source": run id, "user": str, "at": int, "changes": ForkChanges, "fingerprint": str,
                "idempotent": bool}: like create, for a run that begins with records of the source, of whom 404 and
                410 are said then
        approval  {"call_id": str, "arguments_hash"?}, answers with "approval" as well
        decision  {"call_id": str, "once"?: bool, and the fields of DecideCall}, answers with "approval" as well
        approval-mode  {"mode": ApprovalMode, "tighten": bool}
        answer  {"question_id": str, "answer": str}
        delete  {}, answers with nothing, also the second time
        turns   {}, answers with "turns" as well: what was said in a run that has ended
        calls   {}, answers with "calls" as well: the model calls that were answered (core/model_calls.py)

        Raises Refusal; 404 unknown_run (and nothing is stored) for a run that was never created, 410 run_deleted for
        one that was deleted.
        """
        ...


class Directory(Protocol):
    """What the runs have told of themselves, in parts of which each knows some of them."""

    async def ask(self, method: DirectoryMethod, payload: JsonObject) -> Sequence[JsonObject]:
        """The answer of each part; the methods are those of edge_agent.storage.directory. Raises Refusal 503 where a
        part does not answer."""
        ...


ConnectionMethod = Literal["status", "begin", "finish", "renew"]


class Connections(Protocol):
    """The logins to MCP servers, each in an object of its own."""

    async def call(self, whose: ConnectionId, method: ConnectionMethod, payload: JsonObject) -> JsonObject:
        """Every method but `begin` answers with how the login stands: {"state": "connected" | "sign-in" | "failed",
        "by_person": bool, "link"?, "fault"?}.

        begin   {"redirect_uri": str, "browser": digest of its cookie} -> {"url": where the browser goes}
        finish  {"state": str, "browser": the same, "code": str | null, "iss": str | null}
        renew   {}: a new token

        Raises Refusal: 403 wrong_login for a login that was not begun so, 502 login_failed, 503."""
        ...


class Offer(Protocol):
    """What there is in this deployment."""

    @property
    def version(self) -> str: ...

    def agents(self) -> Sequence[AgentInfo]: ...

    def skills(self) -> Mapping[str, Skill]:
        """Those that come with the code, by name."""
        ...

    async def tools(self, user: str) -> ToolsAnswer:
        """Those of servers as `user` sees them. Never raises for a server that cannot be reached: that is a sentence in
        the answer."""
        ...

    def logins(self) -> Sequence[str]:
        """The names of the MCP servers that ask for a login."""
        ...

    def faults(self) -> Sequence[ConfigError]:
        """Everything wrong with variables and agents. Connects to nothing."""
        ...


class Deployed(Protocol):
    """What the code of this deployment makes of a request."""

    def configure(self, request: StartRun) -> RunCreated:
        """The frozen configuration of the run that is asked for.

        Raises Refusal (422, with `field`) for an unknown agent or model and for limits above the agent's, and
        ConfigError where a variable it needs is wrong."""
        ...

    async def replay(self, log: Exported) -> Difference | None:
        """The first difference between what the code asks for and what the log holds. Calls nothing. Raises Refusal."""
        ...

    async def compact(self, history: Sequence[Turn], *, force: bool) -> Compacted:
        """The history with a summary in the place of its older turns, where it needs one, or by `force`. Asks the
        default agent's model. Raises Refusal 503 where no summary can be had, and ConfigError."""
        ...


def random_run_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """Everything the API is made of. `run_token_key` is asked only where a run token is made or shown. gateway_log:
    what the gateway keeps of a call, by its id there; it raises EdgeAgentError. None: no gateway can be asked."""

    settings: Settings
    runs: Runs
    directory: Directory
    connections: Connections
    offer: Offer
    deployment: Deployed
    library: SkillLibrary
    clock: Clock
    console: Console
    run_token_key: Callable[[], Awaitable[bytes]]
    gateway_log: Callable[[str], Awaitable[LoggedCall | None]] | None = None
    runtime: str = "unknown"
    new_run_id: Callable[[], str] = random_run_id
