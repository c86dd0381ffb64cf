"""Where the subagents of a test lie, and the family that most of them live through."""

from dataclasses import replace

import pytest

from edge_agent.subagent import Isolation
from tests.faults.families import ISOLATIONS, THREE
from tests.faults.family_world import Family


@pytest.fixture(params=ISOLATIONS)
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return request.param


@pytest.fixture
def three(isolation: Isolation) -> Family:
    return replace(THREE, isolation=isolation)
