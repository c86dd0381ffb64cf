"""What a log costs that is folded, walked, replayed."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from edge_agent.core import keys
from edge_agent.core.events import (
    Boundary,
    RecordedEvent,
)
from edge_agent.core.journal import Journal
from edge_agent.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.ports import Record
from edge_agent.core.state import fold
from edge_agent.loop import prompts
from edge_agent.loop.conversation import conversation
from edge_agent.loop.offer import offer
from edge_agent.loop.planned import whole
from edge_agent.loop.prompt_hash import PromptHashes
from edge_agent.loop.recorded import RecordedLog, Unheard
from edge_agent.loop.replay import replay
from edge_agent.loop.walk import Ports, Slice, Walk
from edge_agent.testing import in_virtual_time
from tests.conftest import Figure
from tests.faults.memory_world import RUN, World
from tests.faults.test_memory_kills import RICH
from tests.unit.records_by_hand import answered, begun, lived_ports, made, new_run, requested, result


def test_the_cost_of_fold_walk_and_replay_is_told(figure: Figure) -> None:
    for rounds in (20, 200, 1_000):
        records = long_log(rounds)
        ports = lived_ports()
        began = time.perf_counter()
        fold(RUN, records)
        folded = time.perf_counter()
        in_virtual_time(walked(records, ports))
        past = time.perf_counter()
        assert in_virtual_time(replay(RUN, records, ports)) is None
        compared = time.perf_counter()
        in_virtual_time(conversation(RUN, records))
        recalled = time.perf_counter()
        spent = (folded - began, past - folded, compared - past, recalled - compared)
        each = ", ".join(f"{1e6 * seconds / len(records):.1f}" for seconds in spent)
        figure(f"{len(records)} records: µs a record for fold, walk, replay, conversation: {each}")


async def walked(records: Sequence[Record], ports: Ports) -> None:
    """As a slice begins: the records are indexed and walked up to where something would be done."""

    class Frontier(Exception):
        """Here a model would be asked."""

    def no_model(name: str) -> Model:
        raise Frontier

    journal = Journal(RecordedLog(records), ports.clock, Unheard())
    with pytest.raises(Frontier):
        await whole(Walk(RUN, journal, replace(ports, model=no_model), Slice(until=0, most=1)))


def long_log(rounds: int) -> list[Record]:
    """As many rounds of one call each, 2 KB a result, their prompts hashed as they would be."""
    tools = World(RICH).tools().offered()
    hashes, messages = PromptHashes(), list[Message]([UserMessage(text="do it")])
    records = [made(1, "run", new_run())]

    def add(key: str, event: RecordedEvent) -> None:
        records.append(made(len(records) + 1, key, event, by_loop=True))

    for number in range(1, rounds + 1):
        key = keys.round_("s1", number)
        call = ToolCall(id=f"c{number}", name="read", arguments={"q": str(number)})
        said = AssistantMessage(text="x" * 300, calls=(call,))
        request = ModelRequest(system=prompts.system(""), messages=tuple(messages), tools=tools)
        add(key, Boundary(tools=offer(tools)))
        add(f"{key}/a0", requested(hashes.of(request)))
        add(f"{key}/a0/end", answered(said))
        add(f"{key}/c0/call", begun(call))
        add(f"{key}/c0/result", result(call, "y" * 2_000))
        messages += [said, ToolMessage(call_id=call.id, name="read", text="y" * 2_000, ok=True)]
    return records
