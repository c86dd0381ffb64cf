"""What is done with a log costs as much as the log is long, and not the square of it."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from edge_agent import tool
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.journal import Journal
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.ports import Record
from edge_agent.core.signals import Yield
from edge_agent.core.state import fold
from edge_agent.loop import prompts
from edge_agent.loop.conversation import conversation
from edge_agent.loop.fork import up_to
from edge_agent.loop.planned import whole
from edge_agent.loop.recorded import NoClock, NothingIsWritten, RecordedLog, Unheard
from edge_agent.loop.walk import Ports, Slice, Walk
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.tools.toolbox import Toolbox
from tests.conftest import Figure
from tests.unit.loop_kit import Setting, live

SIZES = (100, 1_000, 5_000)
TRIES = 3
MOST = 6.0  # times as much for five times the records
RUN = "run-1"


@tool(read_only=True)
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: " + "nets and ropes. " * 20


def _says(request: ModelRequest) -> Answer:
    if request.system == prompts.SUMMARISER:
        return Answer(text="nets and ropes so far")
    calls = [call for m in request.messages if isinstance(m, AssistantMessage) for call in m.calls]
    return Answer(calls=(("read", {"page": calls[-1].arguments["page"] + 1 if calls else 1}),))


def _records() -> list[Record]:
    rounds = SIZES[-1] // 5
    model = ScriptedModel(answers=[_says] * (2 * rounds))
    return live(
        Setting(model=model, tools=[read], window=24_000, limits=Limits(max_steps=rounds, max_tool_calls=None))
    ).records


def _resumed(records: Sequence[Record]) -> None:
    """From the log to the first thing that is not on record, as after a restart."""
    journal = Journal(RecordedLog(records), NoClock(), Unheard())
    ports = Ports(
        clock=NoClock(),
        sink=Unheard(),
        agent=AgentSpec(name="a"),
        model=lambda name: ScriptedModel(answers=[]),
        tools=Toolbox([read]),
        context_window=24_000,
    )
    walk = Walk(RUN, journal, ports, Slice(until=0, most=0, effects=1))
    try:
        asyncio.run(whole(walk))
    except (NothingIsWritten, Yield):
        return
    raise AssertionError("the log ended in the middle, and the walk did not")


def _shown(records: Sequence[Record]) -> None:
    asyncio.run(conversation(RUN, records))


def _state_at(records: Sequence[Record]) -> None:
    fold(RUN, up_to(records, len(records) - 1))


WORK: dict[str, Callable[[Sequence[Record]], object]] = {
    "fold": lambda records: fold(RUN, records),
    "state at a record": _state_at,
    "resume": _resumed,
    "conversation at a record": _shown,
}


def _milliseconds(work: Callable[[Sequence[Record]], object], records: Sequence[Record]) -> float:
    """Of the processor, the best of several tries. For people: it also says how much of the log its caches hold."""
    best = float("inf")
    for _ in range(TRIES):
        began = time.process_time()
        work(records)
        best = min(best, time.process_time() - began)
    return best * 1_000


def _calls(work: Callable[[Sequence[Record]], object], records: Sequence[Record]) -> int:
    """How many functions are called, which is the same each time."""
    made = 0

    def count(_frame: FrameType, event: str, _what: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work(records)
    finally:
        sys.setprofile(None)
    return made


def test_fold_resume_and_state_at_a_record_cost_as_much_as_the_log_is_long(figure: Figure) -> None:
    records = _records()
    assert len(records) >= SIZES[-1]
    for name, work in WORK.items():
        logs = [up_to(records, size) for size in SIZES]
        calls = [_calls(work, log) for log in logs]
        growth = calls[2] / calls[1]
        took = [_milliseconds(work, log) for log in logs]
        told = [f"{size}: {n} calls, {ms:.1f} ms" for size, n, ms in zip(SIZES, calls, took, strict=True)]
        figure(f"{name}: {'; '.join(told)}; {growth:.1f} times the calls from {SIZES[1]} to {SIZES[2]} records")
        assert growth <= MOST, name
