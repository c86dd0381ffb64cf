"""Recorded: a boundary and the attempts of a model call."""

from dataclasses import dataclass
from typing import Literal

from edge_agent.core.errors import ModelErrorKind
from edge_agent.core.events.plan_events import ReplanCause
from edge_agent.core.messages import AssistantMessage
from edge_agent.core.usage import Usage

Stage = Literal["plan", "round", "replan", "final", "compact"]
FinishReason = Literal["stop", "length", "tool-calls", "filtered", "paused", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTools:
    """The tools a round offered: their names in order and a hash of their descriptions."""

    names: tuple[str, ...] = ()
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredMessage:
    """A steering message a boundary took in."""

    id: str
    text: str


Part = Literal["history", "trace", "rounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """What is folded before the model is asked, in that order: turns of the history, steps of a plan (the trace),
    rounds. tokens: of the request as it would have been. window: of what the writer of a summary is shown a share."""

    parts: tuple[Part, ...]
    tokens: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The one place that looks at the tail: the conversation is built from it and only from it.

    stop: why no further round or step is made (cancelled: the cancel of the step). final: the last round, without
    tools, from the reserve. clipped: characters of each tool's result that are seen, where not all of them fit. replan:
    after a step, why the replanner is asked, or why not. cleared: keys of calls for whose results a line stands from
    here on. compact: what is folded first.
    """

    stop: Literal["max_steps", "budget", "cancelled"] | None = None
    final: bool = False
    clipped: int | None = None
    messages: tuple[DeliveredMessage, ...] = ()
    replan: ReplanCause | None = None
    tools: OfferedTools = OfferedTools()
    cleared: tuple[str, ...] = ()
    compact: Folding | None = None
    type: Literal["boundary"] = "boundary"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted:
    """`summary` stands for what was folded since the beginning: the first `turns` of the history, or the steps or
    rounds up to the last of `replaces`, which names those that are folded now. `reason`: why nobody could write it, so
    that it only says what is missing. Scope `tool-results` (their calls are named) and `overflow` (the request was too
    long, so it is folded harder) are for readers. Tokens are estimated, of the whole request."""

    scope: Part | Literal["tool-results", "overflow"]
    before_tokens: int
    after_tokens: int
    replaces: tuple[str, ...] = ()
    turns: int = 0
    summary: str | None = None
    reason: str | None = None
    type: Literal["context.compacted"] = "context.compacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequested:
    """prompt_hash: of what is sent. built_hash: of what the loop had built, where a before_model hook sent something
    else. tools: what the prompt knows of tools, where no boundary says it or not all of those are there any more."""

    stage: Stage
    model: str
    provider: str
    attempt: int
    prompt_hash: str
    estimated_input: int
    output_cap: int | None = None
    built_hash: str | None = None
    tools: OfferedTools | None = None
    type: Literal["model.requested"] = "model.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswered:
    """`estimated`: the provider reported no usage, or the answer was left before its end. `cut_by`: the cap that cut
    it, by name. Under a cap, what is charged (the record's money) may be more than `usage`: a count that is not
    plausible is not believed. `gateway_log_id`: of the gateway that the call went through."""

    stage: Stage
    message: AssistantMessage
    finish_reason: FinishReason
    usage: Usage
    estimated: bool
    latency_ms: int
    cut_by: str | None = None
    cost_usd: float = 0.0
    gateway_log_id: str | None = None
    type: Literal["model.answered"] = "model.answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """`error`: how it failed; `lost` after a restart, `run-ended` in the terminal batch.

    usage: estimated; a lost one costs its reserve. retry_at: ms since the epoch."""

    stage: Stage
    attempt: int
    error: ModelErrorKind | Literal["lost", "cancelled", "run-ended"]
    message: str
    retryable: bool
    usage: Usage
    retry_at: int | None = None
    type: Literal["model.failed"] = "model.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRefused:
    """An attempt that is not made: it does not fit the caps any more, its step was cancelled, or the request, of so
    many estimated tokens, is longer than the context window."""

    stop: Literal["budget", "cancelled", "context-overflow"]
    estimated_input: int | None = None
    type: Literal["model.refused"] = "model.refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRejected:
    """An after_model hook turned the answer down: it leaves the history, its tools never run, its round is used up."""

    attempt: int
    reason: str
    reminder: str | None = None
    type: Literal["model.rejected"] = "model.rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """The next rounds are another agent's."""

    from_: str
    to: str
    reason: str | None = None
    type: Literal["handoff"] = "handoff"
