"""kill -9 at random moments of a run with eight subagents, four at a time, in real workerd, each in its own object or
all in one.

Each child runs once and its result arrives once, whatever died: the parent's object, a child's, all of them at once.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from edge_agent.core import keys
from tests.conftest import Figure
from tests.faults.kills import Kill, how_many, intents_of
from tests.faults.stand import Stand
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, every, types, until, whole

pytestmark = pytest.mark.workerd
WORKER = Path(__file__).parent.parent / "workerd" / "subagents_worker"
KILLS, LONG_DRAW = 2, 30  # two: of the runtime alone, and of everything while nobody asks
CHILDREN = 8
EFFECTS = 5  # tool calls of a child, undisturbed
LAST_TURN = 1  # of the boss
PATIENCE = 90.0  # seconds, for all of them


@pytest.fixture(scope="module")
def model_server() -> Iterator[Running]:
    with running("model_server.py", "--script", str(WORKER / "model_script.json")) as server:
        yield server


@pytest.fixture(scope="module")
def tool_server() -> Iterator[Running]:
    with running("tool_server.py", "--delay", "0.06") as server:
        yield server


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running) -> Iterator[Stand]:
    variables = {"EDGE_AGENT_BASE_URL": f"{model_server.url}/v1", "TOOL_SERVER_URL": tool_server.url}
    stand = Stand(tmp_path_factory.mktemp("subagents"), WORKER, variables)
    yield stand
    stand.close()


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("isolation", ["object", "inline"])
def test_kills_at_random_moments_cost_no_child_and_no_result(
    isolation: str,
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
    lost = 0
    for number in range(kills):
        effects = draw.randrange(CHILDREN * EFFECTS + 1)
        later = draw.uniform(0.0, 0.3)
        kill = Kill(everything=number % 2 == 1, quiet=number % 4 in (1, 2), effects=effects, later=later)
        family = _one_kill(stand, tool_server, model_server, kill, inline=isolation == "inline")
        family.check(tool_server.log())
        landed[family.where] += 1
        lost += family.lost
    figure(
        f"{kills} kills of a run with {CHILDREN} subagents ({isolation}): {dict(landed)}; {lost} attempts and calls "
        "were lost; every child ran once, every result arrived once, the shared use is the sum, no seq is missing"
    )
    assert landed["a run that had ended"] <= kills // 2, "most kills came too late to show anything"


def _one_kill(stand: Stand, tools: Running, model: Running, kill: Kill, *, inline: bool) -> "Family":
    """`effects` of the kill are those of the children."""
    asked = len(model.log())
    with Api(stand.server.url) as api:
        run_id = api.start(agent="boss-inline" if inline else "boss-object")
    children = [keys.child(run_id, f"s1/r1/c{number}", inline=inline) for number in range(CHILDREN)]
    until(lambda: sum(seen.get("run") in children for seen in tools.log()) >= kill.effects, seconds=PATIENCE)
    killed = kill.deal(stand)
    if kill.quiet:  # nobody asks the objects: what goes on goes on by itself
        until(lambda: any(map(_is_the_last, model.log()[asked:])), seconds=PATIENCE)
    else:
        stand.server.wait_until_ready()
    with Api(stand.server.url) as api:
        api.ended(run_id)
        logs = {one: api.records(one) for one in (run_id, *children)}
        states = {one: api.ended(one) for one in (run_id, *children)}
        exported = [line["seq"] for line in api.log(run_id) if "seq" in line]
    return Family(run_id, children, logs, states, exported, killed, model.log()[asked:])


def _is_the_last(seen: dict[str, Any]) -> bool:
    return seen["scenario"] == "boss" and seen["turn"] == LAST_TURN and seen["done"]


@dataclass(frozen=True, slots=True)
class Family:
    """What is on record of a run and its children, and what the model server has seen meanwhile."""

    run_id: str
    children: list[str]
    logs: dict[str, list[Event]]
    states: dict[str, Event]
    exported: list[int]
    killed: datetime
    asked: list[dict[str, Any]]

    @property
    def records(self) -> list[Event]:
        return self.logs[self.run_id]

    def check(self, effects: list[dict[str, Any]]) -> None:
        for records in self.logs.values():
            whole(records)
            assert len({record["key"] for record in records}) == len(records)
            assert records[-1]["type"] == "run.completed", records[-1]
            assert types(records).count("run.completed") == types(records).count("run.created") == 1
        assert self.exported == [record["seq"] for record in self.records]
        self._check_results()
        self._check_effects(effects)
        self._check_models()
        self._check_money()

    def _check_results(self) -> None:
        started = every(self.records, "subagent.started")
        results = [record for record in self.records if record["key"].endswith("/result")]
        assert [record["child_run_id"] for record in started] == self.children, "in the order of the calls, each once"
        assert types(results) == ["subagent.completed"] * CHILDREN
        for result in results:
            assert result["text"] == self.logs[result["child_run_id"]][-1]["text"]
        assert sorted(result["child_run_id"] for result in results) == sorted(self.children)

    def _check_effects(self, effects: list[dict[str, Any]]) -> None:
        """Nothing that is not to be repeated happened twice, and nothing happened that is not on record."""
        for child in self.children:
            of_child = [effect for effect in effects if effect.get("run") == child]
            assert len(intents_of(self.logs[child], of_child)) == EFFECTS

    def _check_models(self) -> None:
        """Exactly one real call for each attempt, but for those that were lost before they left."""
        for scenario, runs in (("boss", [self.run_id]), ("researcher", self.children)):
            made = sum(seen["scenario"] == scenario for seen in self.asked)
            requested = [r for run in runs for r in self.logs[run] if r["type"] == "model.requested"]
            lost = [r for run in runs for r in self.logs[run] if r["type"] == "model.failed" and r["error"] == "lost"]
            assert len(requested) - len(lost) <= made <= len(requested), (scenario, made, len(requested), len(lost))

    def _check_money(self) -> None:
        """What the parent has spent is what its own attempts have, and what its children say that they have."""
        money = {key: amount for record in self.records for key, amount in record.get("money", {}).items()}
        for kind in ("input", "output", "tool_calls"):
            own = sum(amount.get(kind, 0) for key, amount in money.items() if "/a" in key)
            shared = sum(self.states[child]["spent"][kind] for child in self.children)
            calls = CHILDREN if kind == "tool_calls" else 0
            assert self.states[self.run_id]["spent"][kind] == own + shared + calls, kind

    @property
    def where(self) -> str:
        """What the kill hit, by how far the children were."""
        before = [record for record in self.records if datetime.fromisoformat(record["at"]) < self.killed]
        ended, started = types(before).count("subagent.completed"), types(before).count("subagent.started")
        if self.records[-1] in before:
            return "a run that had ended"
        if ended == CHILDREN:
            return "the answer at the end"
        if started == 0:
            return "before the first child"
        return f"{started - ended} at work" if started - ended else "between children"

    @property
    def lost(self) -> int:
        gone = ("model.failed", "tool.unknown")
        events = [record for records in self.logs.values() for record in records]
        return sum(record["type"] in gone or "/call/" in record["key"] for record in events)
