"""Estimates of one request after another in a long walk: the same prompt is measured once, and kept once."""

import sys

from edge_agent.core.model import ModelRequest
from edge_agent.loop.estimates import Estimates


def test_a_system_prompt_that_is_put_together_anew_for_each_request_is_kept_once() -> None:
    estimates = Estimates()
    for number in range(20):
        system = "".join(["Do it well. "] * 1_000)
        held = sys.getrefcount(system)
        estimates.input(ModelRequest(system=system, messages=()))
        assert (sys.getrefcount(system) == held) is (number > 0)
