"""kill -9 at random moments, in real workerd: every run ends whole, and nothing that is not to be repeated is repeated.

Half of the kills hit the runtime of the Worker alone (wrangler starts another), half everything at once (it is served
again on the same state). In half of the runs nobody asks the object anything until the run has ended.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Figure
from tests.faults.stand import Stand
from tests.servers.running import Running, running
from tests.workerd.client import TERMINAL, Api, Event, text_of, types, whole

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
    kills = request.config.getoption("--kills") or (LONG_DRAW if request.config.getoption("--long-draw") else KILLS)
    landed: Counter[str] = Counter()
    for number in range(kills):
        everything, quiet, planned = number % 2 == 1, number % 4 >= 2, number % 8 >= 4
        effects = draw.randrange(EFFECTS[planned] + 1)
        kill = Plan(everything=everything, quiet=quiet, planned=planned, effects=effects, later=draw.uniform(0.0, 0.15))
        landed[_one_kill(stand, tool_server, model_server, kill)] += 1
    figure(f"{kills} kills: {dict(landed)}; no side effect twice, no record lost")
    assert landed["a run that had ended"] <= kills // 2, "most kills came too late to show anything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One kill, `later` seconds after so many effects of the run."""

    everything: bool
    quiet: bool
    planned: bool
    effects: int
    later: float


def _one_kill(stand: Stand, tools: Running, model: Running, kill: Plan) -> str:
    with Api(stand.server.url) as api:
        fields = {"model": "kills-planned", "mode": "planned"} if kill.planned else {"model": "kills"}
        run_id = api.start(agent="counter", **fields)
    _until_it_had(tools, run_id, kill.effects)
    time.sleep(kill.later)  # the moment of the kill, not a wait for anything
    killed = datetime.now(UTC)
    stand.kill_everything() if kill.everything else stand.kill_runtime()
    if kill.quiet:
        _until_the_answer_is_given(model)
    else:
        stand.server.wait_until_ready()
    with Api(stand.server.url) as api:
        records = _followed(api, run_id)
        _check(records, api.log(run_id), [seen for seen in tools.log() if seen.get("run") == run_id])
    return _where(records, killed)


def _until_it_had(tools: Running, run_id: str, effects: int) -> None:
    deadline = time.monotonic() + 60
    while sum(seen.get("run") == run_id for seen in tools.log()) < effects:
        assert time.monotonic() < deadline, "the run does not go on"
        time.sleep(0.02)


def _until_the_answer_is_given(model: Running) -> None:
    """Watches from the other side, so that no request wakes the object: the final answer was asked for and given."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        last = model.log()[-1]
        if last["done"] and (last["turn"] == LAST_TURN or "Now answer the request" in str(last["body"])):
            return
        time.sleep(0.1)
    raise AssertionError("the run did not end by itself")


LAST_TURN = 20


def _followed(api: Api, run_id: str) -> list[Event]:
    """By the event stream, with the cursor after each end of a connection."""
    events: list[Event] = []
    while not events or events[-1]["type"] not in TERMINAL:
        cursor = max((event["seq"] for event in events if "seq" in event), default=0)
        events += api.stream(run_id, after=cursor)
    texts = text_of(events)
    answers = [e for e in events if e["type"] == "model.answered" and e["key"].removesuffix("/end") in texts]
    for answer in answers:
        assert texts[answer["key"].removesuffix("/end")] == answer["message"]["text"]
    return [event for event in events if "seq" in event]


def _check(records: list[Event], log: list[dict[str, Any]], effects: list[dict[str, Any]]) -> None:
    whole(records)
    assert [line["seq"] for line in log if "seq" in line] == [record["seq"] for record in records]
    assert records[-1]["type"] == "run.completed", records[-1]
    assert types(records).count("run.completed") == 1
    assert len({record["key"] for record in records}) == len(records)
    _check_effects(records, Counter(effect["key"] for effect in effects))
    _check_answers(records)


def _check_effects(records: list[Event], happened: Counter[str]) -> None:
    """Every effect has its intent on record; what is unsafe to repeat happened at most once; none after its result."""
    intents = [record for record in records if record["type"] == "tool.called"]
    begun = Counter(intent["idempotency_key"] for intent in intents)
    assert set(happened) <= set(begun), "an effect without a record"
    for intent in intents:
        key = intent["idempotency_key"]
        assert happened[key] <= (begun[key] if intent["safe_to_repeat"] else 1), intent["key"]
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
