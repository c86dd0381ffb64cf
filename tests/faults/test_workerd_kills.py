"""kill -9 at random moments, in real workerd: every run ends whole, and nothing that is not to be repeated is repeated.

Half of the kills hit the runtime of the Worker alone (wrangler starts another), half everything at once (it is served
again on the same state). In half of the runs nobody asks the object anything until the run has ended.
"""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Figure
from tests.faults.kills import Kill, how_many, intents_of
from tests.faults.stand import Stand
from tests.servers.running import Running, running
from tests.workerd.client import TERMINAL, Api, Event, every, text_of, types, until, whole

pytestmark = pytest.mark.workerd
WORKER = Path(__file__).parent.parent / "workerd" / "worker"
SCRIPT = Path(__file__).parent / "model_script.json"
KILLS, LONG_DRAW = 8, 100
EFFECTS = {False: 40, True: 12}  # tool calls of a run undisturbed, by whether it is planned


@pytest.fixture(scope="module")
def model_server() -> Iterator[Running]:
    with running("model_server.py", "--script", str(SCRIPT)) as server:
        yield server


@pytest.fixture(scope="module")
def tool_server() -> Iterator[Running]:
    with running("tool_server.py", "--delay", "0.06") as server:
        yield server


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running) -> Iterator[Stand]:
    variables = {
        "EDGE_AGENT_MODEL": "openai-compatible/kills",
        "EDGE_AGENT_BASE_URL": f"{model_server.url}/v1",
        "EDGE_AGENT_LIMITS": '{"max_steps": 40}',
        "TOOL_SERVER_URL": tool_server.url,
    }
    stand = Stand(tmp_path_factory.mktemp("kills"), WORKER, variables)
    yield stand
    stand.close()


@pytest.mark.timeout(3_000)
def test_kills_at_random_moments_lose_nothing_and_repeat_nothing(
    stand: Stand,
    *,
    tool_server: Running,
    model_server: Running,
    draw: random.Random,
    figure: Figure,
    request: pytest.FixtureRequest,
) -> None:
    kills = how_many(request.config, few=KILLS, long_draw=LONG_DRAW)
    landed: Counter[str] = Counter()
    for number in range(kills):
        everything, quiet, planned = number % 2 == 1, number % 4 >= 2, number % 8 >= 4
        effects = draw.randrange(EFFECTS[planned] + 1)
        kill = Kill(everything=everything, quiet=quiet, effects=effects, later=draw.uniform(0.0, 0.15))
        landed[_one_kill(stand, tool_server, model_server, kill, planned=planned)] += 1
    figure(f"{kills} kills: {dict(landed)}; no side effect twice, no record lost")
    assert landed["a run that had ended"] <= kills // 2, "most kills came too late to show anything"


def _one_kill(stand: Stand, tools: Running, model: Running, kill: Kill, *, planned: bool) -> str:
    with Api(stand.server.url) as api:
        fields = {"model": "kills-planned", "mode": "planned"} if planned else {"model": "kills"}
        run_id = api.start(agent="counter", **fields)

    def effects() -> list[dict[str, Any]]:
        return [seen for seen in tools.log() if seen.get("run") == run_id]

    until(effects, lambda seen: len(seen) >= kill.effects)
    killed = kill.deal(stand)
    if kill.quiet:  # watched from the other side, so that no request wakes the object
        until(lambda: model.log()[-1], _is_the_final_answer)
    else:
        stand.server.wait_until_ready()
    with Api(stand.server.url) as api:
        records = _followed(api, run_id)
        _check(records, api.log(run_id), effects())
    return _where(records, killed)


def _is_the_final_answer(seen: dict[str, Any]) -> bool:
    return seen["done"] and (seen["turn"] == LAST_TURN or "Now answer the request" in str(seen["body"]))


LAST_TURN = 20


def _followed(api: Api, run_id: str) -> list[Event]:
    """By the event stream, with the cursor after each end of a connection."""
    events: list[Event] = []
    while not events or events[-1]["type"] not in TERMINAL:
        cursor = max((event["seq"] for event in events if "seq" in event), default=0)
        events += api.stream(run_id, after=cursor)
    texts = text_of(events)
    for answer in every(events, "model.answered"):
        part = answer["key"].removesuffix("/end")
        assert texts.get(part, answer["message"]["text"]) == answer["message"]["text"]
    return [event for event in events if "seq" in event]


def _check(records: list[Event], log: list[dict[str, Any]], effects: list[dict[str, Any]]) -> None:
    whole(records)
    assert [line["seq"] for line in log if "seq" in line] == [record["seq"] for record in records]
    assert records[-1]["type"] == "run.completed", records[-1]
    assert types(records).count("run.completed") == 1
    assert len({record["key"] for record in records}) == len(records)
    _check_effects(records, effects)
    _check_answers(records)


def _check_effects(records: list[Event], effects: list[dict[str, Any]]) -> None:
    """As ever; and none after its result."""
    begun = intents_of(records, effects)
    intents = every(records, "tool.called")
    results = {record["key"].removesuffix("/result"): record["seq"] for record in records if record["type"] in ENDS}
    assert all(intent["seq"] < results[intent["key"].partition("/call")[0]] for intent in intents)
    calls = {intent["key"].partition("/call")[0] for intent in intents}
    assert len(begun) == len(calls), "two calls with one idempotency key, or a repeat with another"


ENDS = {"tool.result", "tool.unknown"}


def _check_answers(records: list[Event]) -> None:
    """Every call of every answer has its one result."""
    by_key = {record["key"]: record for record in records}
    for record in records:
        if record["type"] == "model.answered":
            round_key = record["key"].rsplit("/", 2)[0]
            for index, _ in enumerate(record["message"].get("calls", [])):
                assert f"{round_key}/c{index}/result" in by_key, record["key"]


def _where(records: list[Event], killed: datetime) -> str:
    """What the kill hit, by what the log says of it."""
    if datetime.fromisoformat(records[-1]["at"]) < killed:
        return "a run that had ended"
    if any(record["type"] == "model.failed" and record["error"] == "lost" for record in records):
        return "a model call"
    if any(record["type"] == "tool.unknown" for record in records):
        return "an unsafe tool call"
    if any("/call/" in record["key"] for record in records):
        return "a safe tool call"
    return "between two effects"
