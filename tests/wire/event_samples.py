"""One example of every event, as Python makes it. Its JSON is in golden/<type>.json and never changes."""

from edge_agent.core import events as e
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage, OpaquePart, ToolCall, Turn
from edge_agent.core.usage import Amount, Usage

USAGE = Usage(input=120, cached=100, cache_write=4, output=30, reasoning=10)
CALL = ToolCall(id="88l7qct9y", name="search", arguments={"q": "Rom", "limit": None, "deep": [{"é": 1.5}]})
OFFERED = e.OfferedTools(names=("search", "docs__read"), version="e8717ab35061cf5f")
PLAN = e.Plan(
    thought="First look, then write.",
    steps=(
        e.PlanStep(id="look", description="Look it up.", expected_outcome="A source", suggested_tools=("search",)),
        e.PlanStep(id="write", description="Write it down.", requires_tools=True),
    ),
)

RECORDED: tuple[e.RecordedEvent, ...] = (
    e.RunCreated(
        version=1,
        input="How is Rome?",
        agent_name="assistant",
        models=("openai-compatible/small", "openai-compatible/large"),
        limits=Limits(max_steps=4, max_total_tokens=9_000, max_seconds=60.5),
        history=(Turn(role="user", text="Hello"), Turn(role="assistant", text="Hi")),
        mode="planned",
        planner_models=("openai/big",),
        synthesizer_models=("openai/big",),
        approval="ask-writes",
        tool_rules={"bank__*": "ask"},
        output_schema={"type": "object"},
        forked_from=e.ForkedFrom(run_id="r0", at=12, inherited=11),
        metadata={"customer": "é-7", "nested": {"null": None}},
    ),
    e.RunStarted(reason="created"),
    e.RunResumed(reason="request"),
    e.CancelRequested(reason="no longer needed"),
    e.Timer(),
    e.RunWaiting(for_=("answer", "retry"), keys=("s1/r1/c0/ask/0/answer", "s1/r2/a0/due"), until=1_764_510_796_123),
    e.RunCompleted(stop_reason="stop", text="Sunny.", usage=USAGE),
    e.RunCancelled(usage=USAGE),
    e.RunFailed(
        error=e.ErrorInfo(kind="provider", code="unauthorized", message="The key is wrong.", remedy="Set the key."),
        usage=USAGE,
    ),
    e.Boundary(stop="budget", final=True, tools=OFFERED),
    e.ModelRequested(
        stage="round",
        model="small",
        provider="openai-compatible",
        attempt=1,
        prompt_hash="ab12",
        estimated_input=350,
        output_cap=2_048,
    ),
    e.ModelAnswered(
        stage="round",
        message=AssistantMessage(
            text="Let me look.",
            calls=(CALL, ToolCall(id="qv10vfzzm", name="search", arguments={}, malformed="{not json")),
            opaque=(OpaquePart(provider="anthropic", data={"signature": "c2ln"}),),
        ),
        finish_reason="tool-calls",
        usage=USAGE,
        estimated=False,
        latency_ms=1_250,
    ),
    e.ModelFailed(
        stage="round",
        attempt=0,
        error="rate-limited",
        message="too many requests",
        retryable=True,
        usage=Usage(),
        retry_at=1_764_510_826_123,
    ),
    e.ModelRefused(stop="budget"),
    e.ModelRejected(attempt=0, reason="too short", reminder="Say more."),
    e.ToolCalled(
        call_id="88l7qct9y",
        name="search",
        server="docs",
        arguments={"q": "Rom", "limit": None},
        idempotency_key="1604efd30456a63bc23e323e1a9dbb11",
        read_only=True,
        safe_to_repeat=True,
        on_unknown="report",
        step=1,
        round=2,
    ),
    e.ToolResult(
        call_id="88l7qct9y",
        name="search",
        ok=True,
        output="Rome: 21 °C",
        structured={"degrees": 21, "wind": None},
        model_chars=11,
        files=(e.FileRef(name="88l7qct9y-map.png", media_type="image/png", bytes=2_048),),
        duration_ms=420,
        step=1,
        round=2,
    ),
    e.ToolUnknown(
        call_id="88l7qct9y",
        name="search",
        cause="lost",
        policy="report",
        message="search: the outcome is unknown.",
        step=1,
        round=2,
    ),
    e.ToolRejected(
        call_id="88l7qct9y", name="serch", reason="unknown-tool", message="There is no tool serch.", step=1, round=2
    ),
    e.QuestionAsked(
        question_id="0v8o1bw4g",
        for_="unknown-outcome",
        cause="timed-out",
        question="May it be made again?",
        expires_at=1_764_597_196_123,
    ),
    e.QuestionAnswered(question_id="0v8o1bw4g", answer="retry", by="person"),
    e.ApprovalRequested(
        call_id="88l7qct9y",
        name="transfer",
        server="bank",
        arguments={"amount": 5},
        arguments_hash="9f2c",
        read_only=False,
        expires_at=1_764_597_196_123,
        step=1,
        round=2,
    ),
    e.ApprovalResolved(
        call_id="88l7qct9y",
        name="transfer",
        server="bank",
        approved=True,
        by="person",
        remember=True,
        reason="small enough",
        arguments={"amount": 4},
        arguments_hash="9f2c",
    ),
    e.ApprovalModeChanged(mode="ask-writes"),
    e.Handoff(from_="assistant", to="clerk", reason="a form"),
    e.PlanCreated(plan=PLAN, warnings=("2 steps were cut",)),
    e.PlanRevised(plan=PLAN, revision=1, reason="the first search failed"),
    e.StepStarted(step=2, index=1, id="look", description="Look it up."),
    e.StepCompleted(
        step=2,
        summary="Found nothing.",
        calls=(e.CallOutcome(call_id="88l7qct9y", name="search", ok=False),),
        blocked=True,
        stop="max_steps",
        duration_ms=1_200,
    ),
    e.ReplanDecision(mode="revise", reason="the search failed", cause="llm-decision", plan=PLAN),
    e.RevisionsExceeded(cap=2),
    e.MessageQueued(message_id="m1", text="Only the south."),
    e.MessageDelivered(message_id="m1", where="round", boundary="s1/r2"),
    e.MessageUndelivered(message_id="m2", text="Too late."),
    e.BudgetExceeded(kind="seconds", used=61.5, cap=60.5),
    e.Fault(kind="mcp", message="docs could not be reached.", action="continued"),
)

PASSING: tuple[e.PassingEvent, ...] = (
    e.StepTextDelta(part="s1/r2/a0", offset=12, delta="Sunny 👍", step=1),
    e.StepReasoningDelta(part="s1/r2/a0", offset=0, delta="Hm.", step=1),
    e.ToolProgress(call_id="88l7qct9y", progress=0.5, total=1.0, message="half", step=1, round=2),
    e.UsageSoFar(
        phase="execute", usage=Amount(input=120, output=30, reasoning=10, tool_calls=2, usd=0.25), cost_usd=0.25
    ),
    e.FinalTextDelta(part="final/a0", offset=3, delta="is sunny"),
    e.FinalReasoningDelta(part="final/a0", offset=0, delta="So far:"),
    e.PlanThoughtDelta(part="plan/a0", offset=0, delta="First"),
    e.PlanStepAdded(part="plan/a0", step="Look it up.", index=0),
    e.Retry(part="s1/r2/a0", error="unavailable"),
    e.Log(level="warning", message="The schema of search was loosened."),
)
