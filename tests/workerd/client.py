"""A client of the API as a user would write it: requests, the event stream, the socket."""

import json
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any, Self, TypeVar

import httpx2
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from edge_agent.wire.sse import Decoder

Event = dict[str, Any]
T = TypeVar("T")
TERMINAL = {"run.completed", "run.failed", "run.cancelled"}
PATIENCE = 60.0  # seconds; a condition that has not come by then is a fault


class Api:
    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    # -- requests
    def post(self, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (
            self.http.post(path, json=body, headers=named) if body is not None else self.http.post(path, headers=named)
        )

    def start(self, task: str = "go", **fields: Any) -> str:
        """Starts a run and returns its id. `model`: the scenario of the scripted model server, or a provider's."""
        if "/" not in fields.get("model", "/"):
            fields["model"] = f"openai-compatible/{fields['model']}"
        body = {"input": task, "run_id": f"t-{uuid.uuid4().hex[:12]}", **fields}
        answer = self.post("/v1/runs", body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    def state(self, run_id: str) -> Event:
        answer = self.http.get(f"/v1/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def records(self, run_id: str, after: int = 0) -> list[Event]:
        """What is on record now."""
        answer = self.http.get(f"/v1/runs/{run_id}/events", params={"after": after, "wait": "false"})
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def log(self, run_id: str) -> list[Event]:
        answer = self.http.get(f"/v1/runs/{run_id}/log")
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    # -- following
    def stream(self, run_id: str, after: int = 0) -> Generator[Event]:
        """The events of one SSE connection, until the server ends it or it is closed here."""
        with self.http.stream("GET", f"/v1/runs/{run_id}/events", params={"after": after}) as answer:
            assert answer.status_code == 200, answer.read()
            decoder = Decoder()
            for chunk in answer.iter_bytes():
                for frame in decoder.feed(chunk):
                    yield json.loads(frame.data)

    def socket(self, run_id: str, after: int = 0) -> ClientConnection:
        address = f"{self.url.replace('http', 'ws', 1)}/v1/runs/{run_id}/ws?after={after}"
        # workerd keeps the TCP connection of a hibernatable socket open after the close handshake that it began itself.
        return connect(address, compression=None, max_size=None, open_timeout=PATIENCE, close_timeout=0.2)

    def until(self, run_id: str, good: Callable[[Event], bool]) -> Event:
        """The state, as soon as it is good. Asks again and again, which wakes an object that sleeps."""
        return until(lambda: self.state(run_id), good)

    def ended(self, run_id: str) -> Event:
        return self.until(run_id, lambda state: f"run.{state['status']}" in TERMINAL)


def until(look: Callable[[], T], good: Callable[[T], object] = bool, *, seconds: float = PATIENCE) -> T:
    """What is seen, as soon as it is good."""
    deadline = time.monotonic() + seconds
    while not good(seen := look()):
        assert time.monotonic() < deadline, f"still not: {seen}"
        time.sleep(0.05)
    return seen


def events_of(socket: ClientConnection) -> Iterator[Event]:
    """One frame is one event or an array of them; until the server closes."""
    for message in _messages(socket):
        parsed = json.loads(message)
        yield from parsed if isinstance(parsed, list) else [parsed]


def _messages(socket: ClientConnection) -> Iterator[str | bytes]:
    """Until the server has said that it closes. The end of the TCP connection, which `recv` waits for, comes some ten
    seconds later in workerd."""
    while True:
        try:
            yield socket.recv(timeout=0.05)
        except TimeoutError:
            if socket.protocol.close_rcvd is not None:
                socket.close()
                return
        except ConnectionClosed:
            return


def types(events: list[Event]) -> list[str]:
    return [event["type"] for event in events]


def find(events: list[Event], kind: str) -> Event:
    return next(event for event in events if event["type"] == kind)


def every(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


def whole(events: list[Event]) -> None:
    """Every record once, in order, without a gap."""
    numbers = [event["seq"] for event in events if "seq" in event]
    assert numbers == list(range(numbers[0] if numbers else 1, (numbers[0] if numbers else 1) + len(numbers)))


def text_of(events: list[Event], kind: str = "step.text-delta") -> dict[str, str]:
    """The text of each part by its deltas; a delta from offset 0 begins again, another one must fit."""
    parts: dict[str, str] = {}
    for event in every(events, kind):
        said = parts.get(event["part"], "") if event["offset"] else ""
        assert event["offset"] == len(said), f"a gap in {event['part']}: {event['offset']} after {len(said)}"
        parts[event["part"]] = said + event["delta"]
    return parts


def thoughts_of(events: list[Event]) -> dict[str, str]:
    return text_of(events, "step.reasoning-delta")
