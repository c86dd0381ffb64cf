"""What a round costs: a run of ours beside the same rounds with nothing around them, interleaved, in real workerd.

    make bench

Both are followed by one WebSocket. The model answers at once, from this machine. Times are the objects' own: from the
beginning of a round to that of the next one, and of the last answer, a text of 200 tokens. Figures are medians and
belong to this machine and this minute; their ratio is what says something.
"""

import argparse
import json
import statistics
import tempfile
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
from websockets.sync.client import connect

from scripts.serve import serve
from tests.servers.running import running
from tests.workerd.client import events_of

HERE = Path(__file__).parent
ROUNDS, TOKENS = 20, 200
PATIENCE = 120.0  # seconds
WARM_UP = 2  # runs of each before any is counted


@dataclass(slots=True)
class Measured:
    """Milliseconds a round, and of the last answer: one each a run."""

    name: str
    run: Callable[[], list[int]]
    rounds: list[float] = field(default_factory=list[float])
    texts: list[float] = field(default_factory=list[float])

    @property
    def round(self) -> float:
        return statistics.median(self.rounds)

    @property
    def text(self) -> float:
        return statistics.median(self.texts)

    def once(self, *, counts: bool) -> None:
        *began, last, ended = self.run()
        if counts:
            self.rounds.append((last - began[0]) / len(began))
            self.texts.append(ended - last)


def read(url: str) -> None:
    """What a client is told over a WebSocket, until the server closes."""
    with connect(url.replace("http", "ws", 1), compression=None, max_size=None, close_timeout=0.2) as socket:
        for _ in events_of(socket):
            pass


def floor(url: str, model: str) -> list[int]:
    """When each round began, the last answer too, and when it had ended (ms since the epoch)."""
    at = f"{url}/runs/{uuid.uuid4().hex}"
    Thread(target=read, args=(f"{at}/ws",), daemon=True).start()
    return httpx2.post(at, json={"url": model, "model": f"rounds-{ROUNDS}-{TOKENS}"}, timeout=PATIENCE).json()


def edge(url: str) -> list[int]:
    body = {"input": f"rounds-{ROUNDS}-{TOKENS}", "run_id": uuid.uuid4().hex}
    at = f"{url}/v1/runs/{body['run_id']}"
    httpx2.post(f"{url}/v1/runs", json=body, timeout=PATIENCE).raise_for_status()
    read(f"{at}/ws")
    events: list[Any] = [json.loads(line) for line in httpx2.get(f"{at}/events?wait=false").text.splitlines()]
    times = [event["at"] for event in events if event["type"] in ("model.requested", "run.completed")]
    return [int(datetime.fromisoformat(time).timestamp() * 1_000) for time in times]


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, help="of each (15)")
    runs = parser.parse_args().runs
    with ExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = f"{stack.enter_context(running('model_server.py')).url}/v1"
        variables = {"EDGE_AGENT_MODEL": "openai-compatible/scripted", "EDGE_AGENT_BASE_URL": model}
        ours = stack.enter_context(serve(state=state / "edge", overlay=HERE / "edge_worker", variables=variables))
        bare = stack.enter_context(serve(state=state / "floor", overlay=HERE / "floor_worker"))
        print(f"{ROUNDS} rounds and a text of {TOKENS} tokens, {runs} runs of each, one after the other", flush=True)
        of_floor = Measured("nothing around it", lambda: floor(bare.url, model))
        of_edge = Measured("Edge Agent", lambda: edge(ours.url))
        for number in range(runs + WARM_UP):
            for measured in (of_floor, of_edge):
                measured.once(counts=number >= WARM_UP)
    for measured in (of_floor, of_edge):
        print(f"{measured.name:20} {measured.round:5.1f} ms a round, {measured.text:5.0f} ms for the text")
    rounds, text = of_edge.round / of_floor.round, of_edge.text / of_floor.text
    print(f"{'':20} {rounds:5.2f} times a round, {text:5.2f} times the text")


if __name__ == "__main__":
    main()
