"""No run and its subagents together spend more than its cap, whatever their model does and whatever dies."""

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from edge_agent import Agent, Limits, cpython, subagent
from edge_agent.core.errors import Refusal
from edge_agent.core.events import RunCreated
from edge_agent.core.state import RunState, fold
from edge_agent.cpython import source
from edge_agent.deployment import Deployment
from edge_agent.testing import Faults, Kill, SimulatedRuns, in_virtual_time
from edge_agent.wire.http import StartRun
from edge_agent.wire.settings import Settings
from tests.conftest import Figure
from tests.faults.spending import CAPPED, PRICE, CountingModel, largest_share
from tests.faults.test_overspend import AGENT, REPORTS, TOOLS, WINDOW, WORDS

RUNS = 60
SETTINGS = Settings.from_env(
    {
        "EDGE_AGENT_PRICES": json.dumps({"test/counting": dataclasses.asdict(PRICE)}),
        "EDGE_AGENT_CONTEXT_WINDOW": str(WINDOW),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """share: see largest_share, over the run and all of its children."""

    limits: Limits
    model: CountingModel
    state: RunState
    share: float


def test_a_run_and_its_subagents_spend_no_more_than_its_cap(draw: random.Random, figure: Figure) -> None:
    spent = [_one(random.Random(draw.randrange(10**9))) for _ in range(RUNS)]
    crossed = [(one.share, one.limits, one.model.reports, one.model.honours) for one in spent if one.share > 1]
    assert not crossed, crossed
    children = Counter(child.status for one in spent for child in one.state.subagents)
    figure(
        f"{RUNS} runs, {sum(one.model.calls for one in spent)} model calls, children {dict(children)}; "
        f"the largest share of a cap used is {max(one.share for one in spent):.3f}"
    )
    assert children.total() > RUNS // 2
    assert any(one.state.stop_reason == "budget" for one in spent), "the caps were not near"


def _one(chance: random.Random) -> Spent:
    model = CountingModel(
        chance=chance,
        words=WORDS,
        honours=chance.random() < 0.8,
        reports=chance.choice(REPORTS),
        faulty=chance.choice([0.0, 0.1]),
        talkative=200,
        at_once=3,
        busy=0.97,
    )
    deployment, created = _capped(model, chance)
    state = in_virtual_time(_lived(deployment, created, chance.randrange(10**9)))
    return Spent(limits=created.limits, model=model, state=state, share=largest_share(created.limits, model))


def _capped(model: CountingModel, chance: random.Random) -> tuple[Deployment, RunCreated]:
    """With one or two caps, from six times the smallest that works, so that several children fit, up to forty times."""
    names = chance.choice([*([name] for name in CAPPED), ["max_cost_usd"], ["max_total_tokens", "max_cost_usd"]])
    timeout = chance.choice([None, None, None, 3.0])
    wanted = {name: _smallest(model, name) * chance.choice([6, 15, 40]) for name in names}
    return _boss(model, _limits(wanted), timeout)


def _smallest(model: CountingModel, name: str) -> float:
    with pytest.raises(Refusal) as refused:
        _boss(model, _limits({name: 1e-6 if name == "max_cost_usd" else 1}), None)
    return float(refused.value.more["smallest"])


def _limits(wanted: Mapping[str, float]) -> Limits:
    whole: dict[str, Any] = {name: cap if name == "max_cost_usd" else int(cap) for name, cap in wanted.items()}
    return Limits(max_steps=6, **whole)


def _boss(model: CountingModel, limits: Limits, timeout: float | None) -> tuple[Deployment, RunCreated]:
    child = Agent(
        name="searcher", instructions=AGENT.instructions, model=model, tools=TOOLS, limits=Limits(max_steps=20)
    )
    tool = subagent(child, timeout=timeout, max_concurrent=2)
    boss = Agent(name="boss", instructions=AGENT.instructions, model=model, tools=[tool], limits=limits)
    deployment = Deployment([boss], SETTINGS, cpython.model, source, cpython.fetcher)
    return deployment, deployment.configure(StartRun(input="What is in the archive?"))


async def _lived(deployment: Deployment, created: RunCreated, seed: int) -> RunState:
    """Until all of them have ended; now and then one of them is killed on its way."""

    def faults(run_id: str) -> Faults:
        chance = random.Random(f"{seed}:{run_id}")
        deaths = [
            Kill(chance.randrange(3, 30), chance.choice(["before", "after"])) for _ in range(chance.choice([0, 1, 3]))
        ]
        return Faults(frozenset(deaths))

    runs = SimulatedRuns(deployment, faults=faults)
    await runs.start("boss-1", created)
    await runs.at_rest()
    return fold("boss-1", runs.of("boss-1").log.load())
