"""Every JSON body that the HTTP API answers with, and the problem that may come instead."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from edge_agent.core.difference import Difference
from edge_agent.core.events import ApprovalMode, ForkedFrom, Mode, ToolRule
from edge_agent.core.limits import Limits
from edge_agent.core.messages import JsonObject
from edge_agent.core.state import Status
from edge_agent.wire.content import HistoryTurn


class CompactedAnswer(BaseModel):
    """`history`: in the form it was sent in. `compacted` False: just as it was sent, since it fits or nothing in it is
    older. Tokens are estimated."""

    history: tuple[HistoryTurn, ...]
    summary: str | None = None
    before_tokens: int
    after_tokens: int
    compacted: bool = False


class MessageTaken(BaseModel):
    """Queued, or known already."""

    run_id: str
    message_id: str


class CancelledStep(BaseModel):
    """`step`: the key of the step, for example s2."""

    run_id: str
    step: str


class CancelledSubagent(BaseModel):
    """`child_run_id`: the run that is told to stop."""

    run_id: str
    call_id: str
    child_run_id: str


class ConnectionAnswer(BaseModel):
    """How a login to an MCP server stands. `link`: the path of a page where a person signs in. `fault`: why the last
    try failed. `by_person`: false where the deployment gets its tokens by itself."""

    server: str
    state: Literal["connected", "sign-in", "failed"]
    by_person: bool = True
    link: str | None = None
    fault: str | None = None


class ClientDocument(BaseModel):
    """A client id metadata document: `client_id` is its own address."""

    client_id: str
    client_name: str
    client_uri: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...] = ("authorization_code", "refresh_token")
    response_types: tuple[str, ...] = ("code",)
    token_endpoint_auth_method: str = "none"  # noqa: S105 - a name


class Links(BaseModel):
    """Paths on this server."""

    self: str
    events: str
    ws: str


class RunStartedAnswer(BaseModel):
    """The run was created, or found by its Idempotency-Key. `stream_token` opens this run, and only it, for a while."""

    run_id: str
    status: Status
    agent: str
    links: Links
    stream_token: str


class RunForkedAnswer(RunStartedAnswer):
    """`forked_from.at`: the end of the batch that holds the record asked for. `inherited`: so many records of the fork,
    with its own first one, are those it began with."""

    forked_from: ForkedFrom


class ReplayAnswer(BaseModel):
    """Empty `differences`: the code of today asks for exactly what is on record. Else the first one."""

    run_id: str
    agent: str
    records: int
    differences: tuple[Difference, ...]


class AgentInfo(BaseModel):
    """An agent of this deployment. `models`: the model and its fallbacks. `tools`: those of its own code."""

    name: str
    description: str = ""
    default: bool = False
    models: tuple[str, ...]
    mode: Mode
    tools: tuple[str, ...] = ()
    limits: Limits
    approval: ApprovalMode = "autopilot"
    approval_modes: tuple[ApprovalMode, ...] = ()
    tool_rules: dict[str, ToolRule] = Field(default_factory=dict)


class AgentsAnswer(BaseModel):
    agents: tuple[AgentInfo, ...]


class ToolInfo(BaseModel):
    """A tool as models see it; `parameters` is a JSON Schema. `agents`: who has it, empty for all."""

    name: str
    description: str
    server: str | None = None
    parameters: JsonObject
    read_only: bool = False
    safe_to_repeat: bool = False
    requires_approval: bool = False
    agents: tuple[str, ...] = ()


class ToolsAnswer(BaseModel):
    """`unreachable`: a sentence for each MCP server whose tools are missing."""

    tools: tuple[ToolInfo, ...]
    unreachable: tuple[str, ...] = ()


class ConfigFault(BaseModel):
    """A variable that is wrong, without its value."""

    setting: str
    fault: str
    example: str


class Health(BaseModel):
    """`misconfigured`: it answers, and `faults` says what to mend."""

    status: Literal["ok", "misconfigured"]
    version: str
    runtime: str
    faults: tuple[ConfigFault, ...]


class FieldProblem(BaseModel):
    """`field`: a path with dots. `where`: the part of the request it stands in."""

    field: str
    where: Literal["body", "path", "query", "header"]
    message: str


class Problem(BaseModel):
    """RFC 9457. `code` is stable; `detail` is a sentence that says what to do. Some codes add fields."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": True})

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    field: str | None = None
    errors: tuple[FieldProblem, ...] | None = None
