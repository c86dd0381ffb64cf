"""A function tool with all that a definition may have, for tests."""

from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel

from edge_agent.core.tooling import Tool, ToolContext, ToolOutput
from edge_agent.tool import tool

CONTEXT = ToolContext(run_id="r1", call_id="abc123def", step=1, idempotency_key="k1", secrets={"KEY": "s3cret"})


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    zip: int | None = None


class Forecast(BaseModel):
    degrees: float
    unit: Unit = Unit.CELSIUS


@tool
async def forecast(place: Place, days: int = 1, unit: Literal["c", "f"] = "c") -> Forecast:
    """Look up the weather forecast.

    Uses the national service.

    Args:
        place: Where, with the city's name
            in English.
        days (int): How many days ahead.

    Returns:
        Degrees of the day.
    """
    return Forecast(degrees=days * 10.0)


async def ran(called: Tool, **arguments: Any) -> ToolOutput:
    return await called.run(arguments, CONTEXT)
