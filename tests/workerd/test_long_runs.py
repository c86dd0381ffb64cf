"""A run of 300 rounds in a window that holds a tenth of them: every request fits, and the object does not grow."""

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scripts.serve import Server, serve
from tests.conftest import Figure
from tests.servers.model_server import ModelServer, newest_number
from tests.servers.scenarios import Seen
from tests.tokenizer import count
from tests.workerd.client import TERMINAL, Api, Event

pytestmark = pytest.mark.workerd
HERE = Path(__file__).parent
ROUNDS, WINDOW = 300, 32_000
MOST_GROWTH = 1.3  # of the memory from round 100 to round 300
AROUND_IT = 25  # rounds
AROUND = 4  # tokens that a provider writes around a message or a call


class Watch:
    """What the model sees of each request: its tokens by a real tokenizer, and how large the runtime is then."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.summaries = 0
        self.resident: dict[int, int] = {}
        self.server: Server | None = None

    def met(self, seen: Seen) -> None:
        self.tokens.append(tokens_of(seen.body))
        self.summaries += not seen.tools
        number = newest_number(seen.body) if seen.tools else 0
        if self.server is not None and number:
            self.resident[number] = resident(self.server.runtime_pid())

    def held(self, number: int) -> int:
        """Kilobytes in that round: the least of the rounds just before it, since what nobody holds any more stays there
        until it is collected."""
        return min(self.resident[each] for each in range(number - AROUND_IT, number + 1) if each in self.resident)


def tokens_of(body: dict[str, Any]) -> int:
    texts = [message.get("content") or "" for message in body["messages"]]
    calls = [call["function"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    texts += [part for call in calls for part in (call["name"], call["arguments"])]
    texts += [json.dumps(tool) for tool in body.get("tools", ())]
    return sum(count(text) + AROUND for text in texts)


def resident(pid: int) -> int:
    """Kilobytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))


@contextmanager
def served(watch: Watch) -> Generator[ModelServer]:
    """The model server in a thread of this process, so that it can be watched."""
    model, loop, ready = ModelServer(met=watch.met), asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()

    async def work() -> None:
        listening = await model.serve()
        ready.set()
        await stop.wait()
        await model.close(listening)

    thread = threading.Thread(target=loop.run_until_complete, args=(work(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield model
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.mark.timeout(900)
def test_a_run_of_300_rounds_fits_its_window_and_the_object_does_not_grow(tmp_path: Path, figure: Figure) -> None:
    watch = Watch()
    with served(watch) as model:
        variables = {
            "EDGE_AGENT_MODEL": f"openai-compatible/count-{ROUNDS}",
            "EDGE_AGENT_BASE_URL": model.url,
            "EDGE_AGENT_CONTEXT_WINDOW": str(WINDOW),
            "EDGE_AGENT_LIMITS": json.dumps({"max_steps": None}),
            "EDGE_AGENT_PRICES": json.dumps({f"openai-compatible/count-{ROUNDS}": {"input": 1.0, "output": 4.0}}),
        }
        with serve(state=tmp_path, overlay=HERE / "long_worker", variables=variables) as server:
            watch.server = server
            with Api(server.url) as api:
                run_id = api.start("What is in the ledger?")
                records = followed(api, run_id)
                state = api.state(run_id)
    assert records[-1]["type"] == "run.completed", records[-1]
    assert state["stop_reason"] == "stop"
    assert sum(record["type"] == "tool.result" for record in records) == ROUNDS
    assert max(watch.tokens) <= WINDOW
    written = [r for r in records if r["type"] == "model.answered" and r["stage"] == "compact"]
    folded = [r for r in records if r["type"] == "context.compacted"]
    assert watch.summaries == len(written) >= 1
    assert all(record["after_tokens"] < record["before_tokens"] for record in folded)
    growth = watch.held(ROUNDS) / watch.held(100)
    cost = sum(record["cost_usd"] for record in written)
    figure(
        f"{ROUNDS} rounds, {len(records)} records, window {WINDOW}: the longest request has {max(watch.tokens)} "
        f"tokens; {len(written)} summaries for ${cost:.4f} of ${state['cost_usd']:.4f}, results cleared "
        f"{sum(r['scope'] == 'tool-results' for r in folded)} times; resident "
        f"{watch.held(100) // 1024} MB at round 100, {watch.held(ROUNDS) // 1024} MB at {ROUNDS}: {growth:.2f}"
    )
    assert growth <= MOST_GROWTH


def followed(api: Api, run_id: str) -> list[Event]:
    """The records, by the event stream, with the cursor after each end of a connection."""
    records: list[Event] = []
    while not records or records[-1]["type"] not in TERMINAL:
        after = records[-1]["seq"] if records else 0
        records += [event for event in api.stream(run_id, after=after) if "seq" in event]
    return records
