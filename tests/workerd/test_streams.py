"""Following a run: cursors, reconnects, late joiners."""

import json
import random

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from scripts.serve import Server
from tests.workerd.client import TERMINAL, Api, Event, events_of, text_of, types, whole

pytestmark = pytest.mark.workerd
DROPS = 50


def test_a_client_that_drops_fifty_times_sees_exactly_the_log(api: Api, draw: random.Random) -> None:
    run_id = api.start(model="rounds-20", agent="counter")
    seen: list[Event] = []
    drops = 0
    while not seen or seen[-1]["type"] not in TERMINAL:
        stop_after = draw.randrange(1, 5) if drops < DROPS else 10_000
        seen += _a_few(api, run_id, _cursor(seen), stop_after, by_socket=draw.random() < 0.5)
        drops += 1
    assert drops > DROPS / 2
    recorded = [event for event in seen if "seq" in event]
    whole(recorded)
    assert recorded == api.records(run_id)


def _cursor(seen: list[Event]) -> int:
    return max((event["seq"] for event in seen if "seq" in event), default=0)


def _a_few(api: Api, run_id: str, after: int, most: int, *, by_socket: bool) -> list[Event]:
    """Up to `most` records from there, then the connection is dropped without a word."""
    got: list[Event] = []
    if by_socket:
        with api.socket(run_id, after) as socket:
            for event in events_of(socket):
                got.append(event)
                if sum("seq" in e for e in got) >= most:
                    break
        return got
    stream = api.stream(run_id, after)
    for event in stream:
        got.append(event)
        if sum("seq" in e for e in got) >= most:
            break
    stream.close()
    return got


def test_a_client_that_joins_in_the_middle_of_a_text_gets_it_from_its_beginning(api: Api) -> None:
    run_id = api.start(model="slow-text-80", agent="counter")
    api.until(run_id, lambda state: state["seq"] >= 4)
    with api.socket(run_id) as first:
        for event in events_of(first):
            if event["type"] == "step.text-delta" and event["offset"] > 40:
                break
        late = list(api.stream(run_id))
    opening = next(event for event in late if event["type"] == "step.text-delta")
    assert opening["offset"] == 0
    assert len(opening["delta"]) > 40
    assert late[-1]["text"] == text_of(late)[opening["part"]]


def test_last_event_id_is_a_cursor(api: Api) -> None:
    run_id = api.start(model="text", agent="counter")
    api.ended(run_id)
    answer = api.http.get(f"/v1/runs/{run_id}/events", headers={"last-event-id": "3"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    first = answer.text.split("\n")[0]
    assert first == "id: 4"


def test_an_ended_run_is_told_whole_and_closed(api: Api) -> None:
    run_id = api.start(model="text", agent="counter")
    api.ended(run_id)
    with api.socket(run_id) as socket:
        assert list(events_of(socket)) == api.records(run_id)
        assert socket.close_code == 1000
    assert list(api.stream(run_id)) == api.records(run_id)
    assert list(api.stream(run_id, after=len(api.records(run_id)))) == []


def test_a_cursor_ahead_of_the_log_is_refused(api: Api) -> None:
    run_id = api.start(model="text", agent="counter")
    last = api.ended(run_id)["seq"]
    answer = api.http.get(f"/v1/runs/{run_id}/events", params={"after": last + 1})
    assert answer.status_code == 416
    problem = answer.json()
    assert (problem["code"], problem["last"]) == ("cursor_ahead", last)
    assert api.http.get(f"/v1/runs/{run_id}/events", params={"after": "x"}).json()["code"] == "bad_cursor"


def test_an_unknown_run_cannot_be_followed_and_leaves_nothing(api: Api) -> None:
    for path in ("events", "log", "files/x"):
        assert api.http.get(f"/v1/runs/nobody/{path}").json()["code"] == "unknown_run"
    with pytest.raises(InvalidStatus) as refused, api.socket("nobody"):
        pass
    assert refused.value.response.status_code == 404


def test_a_socket_takes_commands_and_acknowledges_each(api: Api) -> None:
    run_id = api.start(model="slow-text-400", agent="counter")
    with api.socket(run_id) as socket:
        socket.send("what?")
        socket.send(json.dumps({"id": 7, "type": "cancel", "reason": "enough"}))
        events = list(events_of(socket))
    acknowledged = [event for event in events if "ack" in event]
    assert acknowledged[0]["problem"]["code"] == "bad_command"
    assert {"ack": 7, "ok": True} in acknowledged
    recorded = [event for event in events if "seq" in event]
    assert types(recorded)[-1] == "run.cancelled"


BAD_FRAMES = (
    {"type": "message", "message_id": "m", "text": 5},
    {"type": "message", "message_id": "m", "text": None},
    {"type": "message", "message_id": "m", "text": " "},
    {"type": "message", "message_id": "m", "text": "x" * 100_001},
    {"type": "message", "message_id": "m", "text": "hi", "urgent": True},
    {"type": "message", "message_id": "a/end", "text": "hi"},
    {"type": "message", "message_id": 5, "text": "hi"},
    {"type": "message", "text": "hi"},
    {"type": "cancel", "reason": 5},
    {"type": "cancel_step", "reason": ["x"]},
    {"type": "cancel_subagent"},
    {"type": "cancel_subagent", "call_id": 5},
    {"type": "answer", "question_id": "q", "answer": {"yes": True}},
    {"type": "answer", "question_id": 5, "answer": "yes"},
    {"type": "decision", "call_id": "c", "approved": "yes"},
    {"type": "resume"},
    {"type": ["cancel"]},
    ["cancel"],
)


def test_a_frame_that_no_route_would_take_leaves_no_trace_in_the_run(api: Api) -> None:
    run_id = api.start(model="slow-text-40", agent="counter")
    with api.socket(run_id) as socket:
        for number, frame in enumerate(BAD_FRAMES):
            socket.send(json.dumps({**frame, "id": number} if isinstance(frame, dict) else frame))
        socket.send('{"id": NaN, "type": "message", "message_id": "m", "text": "hi"}')
        socket.send('{"id": 1, "type": "message", "message_id": "m", "text": "\\ud800"}')
        socket.send(b"cancel")
        events = list(events_of(socket))
    acknowledged = [event for event in events if "ack" in event]
    assert len(acknowledged) == len(BAD_FRAMES) + 3
    assert {event["problem"]["status"] for event in acknowledged} == {422}
    records = api.records(run_id)
    assert types(records)[-1] == "run.completed"
    assert not {"message.queued", "cancel.requested"} & set(types(records))


def test_a_run_token_opens_its_run_by_subprotocol_and_no_other(worker: Server, api: Api) -> None:
    answer = api.post("/v1/runs", {"input": "go", "model": "openai-compatible/text"}).json()
    address = f"{worker.url.replace('http', 'ws', 1)}{answer['links']['ws']}"
    protocols = [Subprotocol("edge-agent.v1"), Subprotocol(f"token.{answer['stream_token']}")]
    with connect(address, subprotocols=protocols, close_timeout=0.2) as socket:
        assert socket.subprotocol == "edge-agent.v1"
        assert list(events_of(socket))[-1]["type"] == "run.completed"
    other = api.start(model="text")
    headers = {"authorization": f"Bearer {answer['stream_token']}"}
    assert httpx2.get(f"{worker.url}/v1/runs/{other}", headers=headers).status_code == 403
    assert httpx2.get(f"{worker.url}/v1/runs/{answer['run_id']}", headers=headers).status_code == 200


def test_a_subprotocol_that_begins_like_ours_is_not_spoken(worker: Server, api: Api) -> None:
    """A client that is answered with one it did not name hangs up."""
    address = f"{worker.url.replace('http', 'ws', 1)}/v1/runs/{api.start(model='text')}/ws"
    with connect(address, subprotocols=[Subprotocol("edge-agent.v10")], close_timeout=0.2) as socket:
        assert socket.subprotocol is None
        assert list(events_of(socket))[-1]["type"] == "run.completed"
