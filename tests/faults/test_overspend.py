"""No run spends more than its cap, whatever its model does: random runs, measured by what the model itself counted."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from edge_agent import tool
from edge_agent.core import keys
from edge_agent.core.errors import Refusal
from edge_agent.core.events import Mode, RunCreated
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.limits import Limits
from edge_agent.core.state import RunState, fold
from edge_agent.loop.admission import require_room
from edge_agent.loop.walk import Ports
from edge_agent.testing import Faults, Kill, SimulatedObject, in_virtual_time
from edge_agent.testing.simulated import Instance
from edge_agent.tools.toolbox import Toolbox
from tests.conftest import Figure
from tests.faults.spending import CAPPED, PRICE, CountingModel, Reports, largest_share
from tests.unit.test_core_tokens import CALIBRATION

RUNS = 200
WINDOW = 16_000
AGENT = AgentSpec(name="a", instructions="You answer questions about the archive of a small town.")
REPORTS: tuple[Reports, ...] = ("all", "nothing", "too little", "at first")
WORDS = [word for text in CALIBRATION.values() for word in text.split()]


@tool
def search(query: str) -> str:
    """Search the notes.

    query: what to look for."""
    chance = random.Random(query)
    return " ".join(chance.choices(WORDS, k=chance.choice([3, 50, 900])))


TOOLS = (search,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """`share`: see largest_share."""

    limits: Limits
    model: CountingModel
    state: RunState
    share: float


@pytest.mark.parametrize("mode", ["direct", "planned"])
def test_no_run_spends_more_than_its_cap_the_answer_at_the_end_included(
    draw: random.Random, mode: Mode, figure: Figure
) -> None:
    spent = [_one(random.Random(draw.randrange(10**9)), mode) for _ in range(RUNS)]
    crossed = [(one.share, one.limits, one.model.reports, one.model.honours) for one in spent if one.share > 1]
    assert not crossed, crossed
    answered = sum(bool(one.state.text) for one in spent)
    stops = Counter(one.state.stop_reason for one in spent)
    figure(
        f"{RUNS} runs, {sum(one.model.calls for one in spent)} model calls, {answered} with an answer, "
        f"ends {dict(stops)}; the largest share of a cap used is {max(one.share for one in spent):.3f}"
    )
    assert stops["budget"] > RUNS // 10, "the caps were not near"
    assert sum(one.model.calls for one in spent) > RUNS


def _one(chance: random.Random, mode: Mode) -> Spent:
    model = CountingModel(
        chance=chance,
        words=WORDS,
        honours=chance.random() < 0.8,
        reports=chance.choice(REPORTS),
        faulty=chance.choice([0.0, 0.1, 0.3]),
        talkative=chance.choice([60, 400, 1_500]),
    )
    created = _created(chance, mode)
    state = fold("run-1", in_virtual_time(_lived(created, model, chance)).log.load())
    share = largest_share(created.limits, model)
    return Spent(limits=created.limits, model=model, state=state, share=share)


def _created(chance: random.Random, mode: Mode) -> RunCreated:
    """With one or two caps, from the smallest that works up to twelve times as much."""
    created = RunCreated(
        version=keys.VERSION,
        input=" ".join(chance.choices(WORDS, k=chance.choice([5, 60, 400]))),
        agent_name="a",
        models=("m",),
        mode=mode,
        limits=Limits(max_steps=chance.choice([3, 10, 20]), max_iterations=6),
    )
    names = chance.choice([*([name] for name in CAPPED), ["max_total_tokens", "max_cost_usd"]])
    wanted = {name: _smallest(created, name) * chance.choice([1.0, 1.1, 1.5, 3, 6, 12]) for name in names}
    own = {"max_output_tokens_per_call": chance.choice([None, None, 150, 800])}
    whole = {name: value if name == "max_cost_usd" else int(value) for name, value in wanted.items()}
    return _with(created, **whole, **own)


def _smallest(created: RunCreated, name: str) -> float:
    """What the refusal of a hopeless cap names as the smallest that works."""
    with pytest.raises(Refusal) as refused:
        _admit(_with(created, **{name: 1e-6 if name == "max_cost_usd" else 1}))
    assert refused.value.more["field"] == f"limits.{name}"
    smallest = float(refused.value.more["smallest"])
    _admit(_with(created, **{name: smallest}))
    return smallest


def _with(created: RunCreated, **limits: float | None) -> RunCreated:
    return replace(created, limits=replace(created.limits, **limits))


def _admit(created: RunCreated) -> None:
    require_room(created, AGENT, Toolbox(TOOLS).offered(), WINDOW, lambda _: PRICE)


async def _lived(created: RunCreated, model: CountingModel, chance: random.Random) -> SimulatedObject:
    """Until it has ended; now and then killed or cancelled on its way."""
    deaths = [
        Kill(chance.randrange(3, 40), chance.choice(["before", "after"])) for _ in range(chance.choice([0, 0, 1, 3]))
    ]

    def ports(instance: Instance) -> Ports:
        return Ports(
            clock=lived.clock,
            sink=instance.hub,
            agent=AGENT,
            model=lambda _: model,
            tools=Toolbox(TOOLS),
            context_window=WINDOW,
            price=lambda _: PRICE,
        )

    lived = SimulatedObject("run-1", ports, faults=Faults(frozenset(deaths)))
    await lived.call(lambda inbox: inbox.create(created, "print", idempotent=True))
    if chance.random() < 0.1:
        asyncio.get_running_loop().call_later(chance.uniform(0, 3), lived.instance.inbox.cancel)
    await lived.until_ended()
    return lived
