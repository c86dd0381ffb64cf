"""Options of the whole suite."""

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long-draw", action="store_true", help="at least 100 kills in tests/faults instead of a few")
    parser.addoption("--kills", type=int, default=None, help="exactly so many kills in workerd")
    parser.addoption("--seed", type=int, default=None, help="the seed of the draw of kills; printed by each run")


@pytest.fixture(scope="session")
def draw(request: pytest.FixtureRequest) -> random.Random:
    """The random draw of a run of the suite, to be repeated with --seed."""
    seed = request.config.getoption("--seed") or random.SystemRandom().randrange(1_000_000)
    print(f"\nseed of the draw: {seed} (repeat with --seed={seed})")
    return random.Random(seed)
