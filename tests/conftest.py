"""Options of the whole suite, its draw, and the figures its tests tell."""

import random
from collections.abc import Callable

import pytest

FIGURES = pytest.StashKey[list[str]]()
SEED = pytest.StashKey[int]()
Figure = Callable[[str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long-draw", action="store_true", help="at least 100 kills in tests/faults instead of a few")
    parser.addoption("--kills", type=int, default=None, help="exactly so many kills in workerd")
    parser.addoption("--seed", type=int, default=None, help="the seed of every draw; printed by each run")


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--seed")
    config.stash[SEED] = random.SystemRandom().randrange(1_000_000) if given is None else given
    config.stash[FIGURES] = []


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed of the draws: {config.stash[SEED]} (repeat with --seed={config.stash[SEED]})"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if figures := config.stash[FIGURES]:
        terminalreporter.section("figures")
        terminalreporter.write_line("\n".join(figures))


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> random.Random:
    """The random draw of a test: of its name and the seed alone, whatever else runs."""
    return random.Random(f"{request.config.stash[SEED]}:{request.node.nodeid}")


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """Tells a number in the summary of the run, for readers."""
    return lambda text: request.config.stash[FIGURES].append(f"{request.node.name}: {text}")
