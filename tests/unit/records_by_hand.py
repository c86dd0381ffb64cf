"""Records of a run that were not lived but written down, and ports to walk them with, for tests."""

from edge_agent.core import keys
from edge_agent.core.events import (
    ModelAnswered,
    ModelRequested,
    RecordedEvent,
    RunCreated,
    ToolCalled,
    ToolResult,
)
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage, ToolCall
from edge_agent.core.ports import Record
from edge_agent.core.usage import Amount, Usage
from edge_agent.loop.walk import Ports
from edge_agent.testing.virtual_time import BEGIN
from tests.faults.memory_world import World
from tests.faults.test_memory_kills import SCENARIOS


def made(seq: int, key: str, event: RecordedEvent, *, by_loop: bool = False) -> Record:
    by, money = "loop" if by_loop else "note", {key: Amount()} if event.type == "model.requested" else {}
    return Record(seq=seq, key=key, batch=seq, life=0, by=by, at=BEGIN, agent="a", event=event, money=money)


def new_run() -> RunCreated:
    return RunCreated(
        version=keys.VERSION, input="do it", agent_name="a", models=("m1",), limits=Limits(max_steps=None)
    )


def requested(hash_: str) -> ModelRequested:
    return ModelRequested(stage="round", model="m", provider="p", attempt=0, prompt_hash=hash_, estimated_input=1)


def answered(message: AssistantMessage) -> ModelAnswered:
    return ModelAnswered(
        stage="round", message=message, finish_reason="tool-calls", usage=Usage(), estimated=False, latency_ms=1
    )


def begun(call: ToolCall) -> ToolCalled:
    return ToolCalled(
        call_id=call.id,
        name=call.name,
        arguments=call.arguments,
        idempotency_key=call.id,
        read_only=True,
        safe_to_repeat=True,
        on_unknown="report",
        step=1,
        round=1,
    )


def result(call: ToolCall, output: str) -> ToolResult:
    return ToolResult(
        call_id=call.id, name=call.name, ok=True, output=output, model_chars=9, duration_ms=1, step=1, round=1
    )


def lived_ports() -> Ports:
    """What a world works with, after it has done so."""
    world = World(SCENARIOS[2]).lived()
    return world.ports(world.object.instance)
