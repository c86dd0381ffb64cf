"""What a tool is to the loop, and what a tool gets to see of its run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from edge_agent.core.egress import Fetch, no_egress
from edge_agent.core.errors import NeedsAnswer, ToolError
from edge_agent.core.events import OnUnknown, SkillActivated, SkillForgotten, SkillLearned
from edge_agent.core.messages import JsonObject, ToolSpec

HANDOFF = "transfer_to_"  # and the name of an agent: a tool that gives the work to it
FIND_TOOLS, READ_RESULT, LOAD_SKILL = "find_tools", "read_result", "load_skill"
SKILL_TOOLS = frozenset({LOAD_SKILL, "read_skill_file", "save_skill", "forget_skill"})
ALWAYS_RUN = frozenset({FIND_TOOLS, READ_RESULT, LOAD_SKILL, "read_skill_file"})  # and count as no tool call
BUILT_IN = ALWAYS_RUN | SKILL_TOOLS | {"web_fetch"}

ToolSelection = Literal["auto", "all", "plan-narrowed", "search"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFile:
    """A binary result of a tool; becomes a file of the run."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Names of tools that a search came to, the best one first."""

    query: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What came of a call that ran to its end. `ok` False: the tool itself says that it failed. skill: what the call
    did to the skills of the run, found: tools that the next rounds offer; of the built-in tools alone."""

    text: str
    ok: bool = True
    structured: JsonObject | None = None
    files: tuple[ToolFile, ...] = ()
    skill: SkillActivated | SkillLearned | SkillForgotten | None = None
    found: Found | None = None


class Files(Protocol):
    """The files of a run, as a tool sees them."""

    def save(self, name: str, content: bytes | str, media_type: str) -> str:
        """Keeps a file with the result of the call, also where that is a failure; text is kept as UTF-8. Returns the
        name it has in the run: that of the call, then `name` with letters, digits, ., _ and - alone."""
        ...

    def read(self, name: str) -> ToolFile:
        """A file of this run, by the name it has there. ToolError for one there is not."""
        ...


class FilesInMemory:
    """The `Files` of a call outside of any run, as in a tool's own test."""

    def __init__(self) -> None:
        self.kept: dict[str, ToolFile] = {}

    def save(self, name: str, content: bytes | str, media_type: str) -> str:
        kept = content.encode() if isinstance(content, str) else content
        self.kept[name] = ToolFile(name=name, media_type=media_type, content=kept)
        return name

    def read(self, name: str) -> ToolFile:
        if name not in self.kept:
            raise ToolError(f"There is no file {name}.")
        return self.kept[name]


def no_results(call_id: str) -> str:
    raise ToolError(f"There is no call {call_id}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a person said to one question of a server: {"action": accept | decline | cancel, "content"?} by the server's
    keys."""

    responses: Mapping[str, JsonObject]
    request_state: str | None = None

    @classmethod
    def to(cls, requests: Sequence[str], state: str | None, action: str, content: JsonObject | None) -> "Answers":
        """`content`: by key where there are several."""
        single = len(requests) == 1
        said = {key: content if single or content is None else content.get(key) for key in requests}
        made = {key: {"action": action, **({} if one is None else {"content": one})} for key, one in said.items()}
        return cls(responses=made, request_state=state)


async def nobody(_question: NeedsAnswer) -> Answers | None:
    """Nobody answers in time."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The first parameter of a tool that asks for it.

    idempotency_key: equal for a repeat of this call, different for every other: send it along with every write.
    progress(done, total, message): shown to whoever watches, never stored.
    answers: what a person has answered to the server of this tool, when the call is made again for that.
    ask(question): what a person answers while the call is held open; None: nobody did in time, so raise the question.
    secret(name): a secret of the deployment by its variable's name; KeyError when it is not set.
    pages(): what this run has read on the web so far, origin and path of each.
    files: of the run, see `Files`. result(call_id): the whole text of an earlier call's result; ToolError without one.
    max_output: characters of this call's result that the model sees; 0: all of them.
    cancelled: whether the run or the step was cancelled, for a tool that holds off its own cancellation to clean up.
    fetch(url): a request to the outside by the rules of the agent's Egress, see `Fetch`; ToolError when it has none.
    """

    run_id: str
    call_id: str
    step: int
    idempotency_key: str
    metadata: JsonObject = field(default_factory=dict[str, object])
    answers: tuple[Answers, ...] = ()
    ask: Callable[[NeedsAnswer], Awaitable[Answers | None]] = field(default=nobody, repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    report: Callable[[float, float | None, str | None], None] = field(
        default=lambda _done, _total, _message: None, repr=False
    )
    fetch: Fetch = field(default=no_egress, repr=False)
    pages: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False)
    files: Files = field(default_factory=FilesInMemory, repr=False)
    result: Callable[[str], str] = field(default=no_results, repr=False)
    max_output: int = 0
    is_cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)

    @property
    def cancelled(self) -> bool:
        return self.is_cancelled()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        self.report(done, total, message)

    def secret(self, name: str) -> str:
        return self.secrets[name]


LOCAL = "local"  # who calls without a token, and whose logins a run uses that names no user


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A server whose tools cannot be had until a person has signed in at `url`, a path of this deployment."""

    server: str
    url: str


class Tool(Protocol):
    """One tool. `timeout` is in seconds. `safe_to_repeat`: read-only or idempotent, so a lost call may run again.
    `requires_approval`: a person is asked before each call, unless a rule says otherwise. `max_output`: characters of a
    result that the model sees, where that is to be less than the run allows."""

    @property
    def spec(self) -> ToolSpec: ...
    @property
    def server(self) -> str | None: ...
    @property
    def timeout(self) -> float: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def safe_to_repeat(self) -> bool: ...
    @property
    def on_unknown(self) -> OnUnknown: ...
    @property
    def requires_approval(self) -> bool: ...
    @property
    def max_output(self) -> int | None: ...

    def check(self, arguments: JsonObject) -> None:
        """Raises InvalidArguments naming the field. Does nothing else, and may be called any number of times."""
        ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """Runs once. Any exception is told to the model by its message. May be cancelled at any await."""
        ...


class Tools(Protocol):
    """The tools of one run."""

    async def refresh(self) -> tuple[str, ...]:
        """Take in what remote servers offer now. Never raises; returns a sentence for each server that was not reached.
        Called before a new round only, so a walk through recorded rounds connects to nothing."""
        ...

    def sign_ins(self) -> tuple[SignIn, ...]:
        """The servers that the last refresh could not use because nobody has signed in; no sentence speaks of them."""
        ...

    def offered(self) -> tuple[ToolSpec, ...]:
        """In declared order. Must not change between two calls of refresh."""
        ...

    def find(self, name: str) -> Tool | None: ...

    async def close(self) -> None:
        """Ends every connection and task; the next refresh opens them again. Called at the end of each slice of work.
        Never raises."""
        ...
