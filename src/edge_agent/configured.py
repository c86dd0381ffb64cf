"""What the variables of a deployment change of an agent: its mode and its limits."""

import dataclasses

from edge_agent.agent import Agent
from edge_agent.core.errors import Refusal
from edge_agent.core.events import Mode
from edge_agent.core.limits import Limits
from edge_agent.wire.http import WantedLimits
from edge_agent.wire.settings import Settings


def mode_of(agent: Agent, settings: Settings) -> Mode:
    return settings.mode or agent.mode


def limits_of(agent: Agent, settings: Settings) -> Limits:
    return dataclasses.replace(agent.limits, **settings.limits)


def asked_limits(agent: Agent, settings: Settings, wanted: WantedLimits | None) -> Limits:
    """Raises Refusal for one above the agent's."""
    limits = limits_of(agent, settings)
    if wanted is None:
        return limits
    try:
        return limits.lowered_by(wanted.wanted())
    except ValueError as error:
        field = str(error).split(" ", 1)[0]
        raise Refusal(422, "limit_too_high", str(error), field=field) from error
