"""Every JSON body that is sent to the HTTP API."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from edge_agent.core.approval import Decision
from edge_agent.core.canonical import canonical
from edge_agent.core.events import ApprovalMode, Mode
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import StoredFile
from edge_agent.wire.asked import Asked, Text
from edge_agent.wire.content import MAX_ATTACHMENTS, HistoryTurn, Said, TextOrParts, said
from edge_agent.wire.entries import TOOL_GLOB
from edge_agent.wire.run_ids import CHOSEN_ID_PATTERN, RUN_ID_PATTERN

MAX_METADATA = 16_384
MAX_TURNS = 1_000
_MAX_COUNT = 1_000_000_000_000


def _small_json(value: JsonObject) -> JsonObject:
    try:
        size = len(canonical(value).encode())
    except ValueError:
        raise ValueError("holds a number that is not finite") from None
    if size > MAX_METADATA:
        raise ValueError(f"takes {size} bytes as JSON; at most {MAX_METADATA} are kept")
    return value


Metadata = Annotated[JsonObject, AfterValidator(_small_json)]
Count = Annotated[int, Field(strict=True, gt=0, le=_MAX_COUNT)]
Dollars = Annotated[float, Field(gt=0, le=_MAX_COUNT, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=_MAX_COUNT, allow_inf_nan=False)]


class WantedLimits(Asked):
    """Lower caps for this run. Absent or null: the agent's own."""

    max_steps: Count | None = None
    max_input_tokens: Count | None = None
    max_output_tokens: Count | None = None
    max_reasoning_tokens: Count | None = None
    max_total_tokens: Count | None = None
    max_tool_calls: Count | None = None
    max_seconds: Seconds | None = None
    max_output_tokens_per_call: Count | None = None
    max_cost_usd: Dollars | None = None
    max_plan_steps: Count | None = None
    max_steps_per_task: Count | None = None
    max_revisions: Count | None = None
    max_iterations: Count | None = None

    def wanted(self) -> dict[str, float]:
        """What `Limits.lowered_by` takes."""
        return self.model_dump(exclude_none=True)


# `provider/model`, or a name the agent has for one.
ModelName = Annotated[str, Field(max_length=256, pattern=r"^((@cf|[a-z0-9][a-z0-9_-]*)/\S+|[a-z0-9][a-z0-9_-]{0,63})$")]


class StageModels(Asked):
    """Those that are absent are the run's model."""

    planner: ModelName | None = None
    executor: ModelName | None = None
    synthesizer: ModelName | None = None


ToolRules = dict[Annotated[str, Field(pattern=TOOL_GLOB)], Literal["ask", "deny"]]


class StartRun(Asked):
    """POST /v1/runs. Only `input` is needed."""

    input: TextOrParts = Field(
        description="The task: a text, or parts: texts, images and files with their bytes.",
        examples=["What is 17 * 23?"],
    )
    agent: str | None = Field(default=None, min_length=1, max_length=128, description="One of GET /v1/agents.")
    mode: Mode | None = None
    model: ModelName | None = None
    models: StageModels | None = Field(default=None, description="Models of the stages of a planned run.")
    approval: ApprovalMode | None = Field(default=None, description="The agent's own mode, or a stricter one.")
    tool_rules: ToolRules | None = Field(
        default=None,
        max_length=200,
        description="By a tool's name or a glob; in addition to the agent's.",
        examples=[{"github__delete_*": "deny"}],
    )
    history: tuple[HistoryTurn, ...] = Field(default=(), max_length=MAX_TURNS)
    continues: str | None = Field(
        default=None,
        pattern=RUN_ID_PATTERN,
        description="A run that has ended: what was said in it becomes the history. Not together with `history`.",
    )
    limits: WantedLimits | None = None
    output_schema: JsonObject | None = Field(
        default=None, description="A JSON Schema: the answer is JSON of that form, and `output` of the last event."
    )
    metadata: Metadata | None = Field(default=None, description=f"At most {MAX_METADATA} bytes as JSON.")
    run_id: str | None = Field(default=None, pattern=CHOSEN_ID_PATTERN, description="Absent: the server chooses one.")

    @field_validator("continues")
    @classmethod
    def _one_history(cls, run_id: str | None, info: ValidationInfo) -> str | None:
        if run_id is not None and info.data.get("history"):
            raise ValueError("names a run whose turns become the history, and `history` is given as well: send one")
        return run_id

    @model_validator(mode="after")
    def _not_too_many(self) -> "StartRun":
        if (count := len({file.name for one in self.said for file in one.files})) > MAX_ATTACHMENTS:
            raise ValueError(f"has {count} images and PDF files in `input` and `history`; at most {MAX_ATTACHMENTS}")
        return self

    @property
    def said(self) -> tuple[Said, ...]:
        """The input, then the turns of the history."""
        return (said(self.input), *(turn.said for turn in self.history))

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """What is sent along, each once."""
        return tuple({file.name: file for one in self.said for file in one.files}.values())


class CompactHistory(Asked):
    """POST /v1/compact."""

    history: tuple[HistoryTurn, ...] = Field(min_length=1, max_length=MAX_TURNS)
    force: bool = Field(default=False, strict=True, description="Also where the history fits the context window.")


class ForkChanges(Asked):
    """What the fork has otherwise; everything that is absent is as in the run it comes from. `limits`: up to the
    agent's own, also where the run had lower ones. Instructions and tools are those of the code, the input is history.
    """

    model: ModelName | None = Field(default=None, description="Of every stage.")
    models: StageModels | None = Field(default=None, description="Of single stages.")
    limits: WantedLimits | None = None
    approval: ApprovalMode | None = None
    tool_rules: ToolRules | None = Field(default=None, max_length=200)
    metadata: Metadata | None = None


class ForkRun(Asked):
    """POST /v1/runs/{run_id}/fork."""

    at: Annotated[int, Field(strict=True, ge=1, le=_MAX_COUNT)] = Field(
        description="The seq of a record. Everything that was appended together with it comes along."
    )
    changes: ForkChanges = ForkChanges()
    run_id: str | None = Field(default=None, pattern=CHOSEN_ID_PATTERN, description="Absent: the server chooses one.")


class SendMessage(Asked):
    """POST /v1/runs/{run_id}/messages. `id`: the client's own; a repeat is the same message."""

    text: Annotated[Text, Field(max_length=100_000)]
    id: str | None = Field(default=None, pattern=r"^[a-zA-Z0-9_-]{1,64}$")


class CancelRun(Asked):
    """POST /v1/runs/{run_id}/cancel; the body may be absent."""

    reason: str | None = Field(default=None, max_length=1_000)


class ResumeRun(Asked):
    """POST /v1/runs/{run_id}/resume; the body may be absent."""

    reason: str | None = Field(default=None, max_length=1_000)


class GiveAnswer(Asked):
    """What a person answers to a question of a waiting run."""

    answer: Annotated[Text, Field(max_length=100_000)]


Glob = Annotated[str, Field(max_length=1_000)]


class RememberCalls(Asked):
    """`arguments`: globs by the names of arguments that a call must match to be covered."""

    arguments: dict[str, Glob] = Field(max_length=20)


class DecideByLink(Asked):
    """What a signed link decides: the call as it was shown, or none."""

    approved: Annotated[bool, Field(strict=True)]
    reason: str | None = Field(default=None, max_length=1_000)


class DecideCall(DecideByLink):
    """What a person says to a call. `arguments_hash`, as the request showed it, binds the decision to that request;
    `arguments` are made the call's; `remember` is for later calls of this tool in the run too."""

    arguments: JsonObject | None = None
    arguments_hash: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    remember: Annotated[bool, Field(strict=True)] | RememberCalls = False

    def decision(self) -> Decision:
        return Decision(
            approved=self.approved,
            reason=self.reason,
            arguments=self.arguments,
            remember=self.remember is not False,
            pattern=self.remember.arguments if isinstance(self.remember, RememberCalls) else None,
        )


class ChangeApprovalMode(Asked):
    """PUT /v1/runs/{run_id}/approval-mode; for the next call."""

    mode: ApprovalMode
