"""What can go wrong, drawn.

EdgeAgentError
├── ConfigError             the deployment or the agent is wrong; says which setting and an example
├── Refusal                 an answer to a caller: nothing was recorded (becomes problem details)
├── ModelError              one model call failed; `kind` says how, `retryable` whether another try is worth it
├── ToolError               a tool's failure, told to the model
│   ├── InvalidArguments    ... before it ran
│   ├── NeedsAnswer         ... before it ran to its end, until a person has answered its server
│   ├── NeedsSignIn         ... before it ran, until a person has signed in
│   ├── OutcomeUnknown      ... and it may have happened
│   └── EgressRefused       ... a request to the outside that no rule allows: it was not sent
├── Drift                   the code asks for something else than what is on record
└── Closed                  the run has its terminal record; nothing was appended

Signals (Suspend, Yield, Cancelled) are no errors: see signals.py.
"""

from typing import Any, Literal

ModelErrorKind = Literal[
    "rate-limited", "overloaded", "unavailable", "timeout", "connection", "stalled", "truncated",
    "bad-request", "unauthorized", "not-found", "quota", "context-overflow", "bad-answer", "refused",
    "thinking-refused",
]  # fmt: skip


class EdgeAgentError(Exception):
    """The root of every error raised on purpose."""


class ConfigError(EdgeAgentError):
    """Names the setting, the fault and an example."""

    def __init__(self, setting: str, fault: str, example: str) -> None:
        super().__init__(f"{setting}: {fault}. Example: {example}")
        self.setting, self.fault, self.example = setting, fault, example


class Refusal(EdgeAgentError):
    """An HTTP status with a stable code and a sentence a person can act on; `more` adds fields to the problem."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.more = status, code, message, more


class ModelError(EdgeAgentError):
    """`retry_after` is in seconds, as the provider asked."""

    def __init__(
        self, kind: ModelErrorKind, message: str, *, retryable: bool, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind: ModelErrorKind = kind
        self.message, self.retryable, self.retry_after = message, retryable, retry_after


class ToolError(EdgeAgentError):
    """Raise it in a tool to tell the model what went wrong; any other exception is told by its message as well."""


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's schema; the message names the field."""


class NeedsAnswer(ToolError):
    """A server asks a person in the middle of a call, and has ended the call for that.

    schema: of the answer, where it is a form. url: where the person is sent instead. requests: the server's keys of
    what it asks; with several of them the answer is an object by these keys. request_state: goes back with it."""

    def __init__(
        self,
        server: str,
        question: str,
        requests: tuple[str, ...],
        *,
        schema: dict[str, Any] | None = None,
        url: str | None = None,
        request_state: str | None = None,
    ) -> None:
        super().__init__(f"{server} asks something that only a person can answer: {question}")
        self.server, self.question, self.requests = server, question, requests
        self.schema, self.url, self.request_state = schema, url, request_state


class NeedsSignIn(ToolError):
    """The server turned the call away unread: a person has to sign in at `url`, a path of this deployment."""

    def __init__(self, server: str, url: str) -> None:
        super().__init__(f"Nobody has signed in to the server {server}.")
        self.server, self.url = server, url


class OutcomeUnknown(ToolError):
    """The call was sent and no answer came: it may have happened. Becomes tool.unknown, never an error result."""


class EgressRefused(ToolError):
    """A request to the outside that the agent's Egress forbids; it was not sent. The message holds no query."""


class Drift(EdgeAgentError):
    """The code asks for another record than the log holds: keys or their order changed without a version gate."""


class Closed(EdgeAgentError):
    """An append to a run that has ended."""
