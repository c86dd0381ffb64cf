"""Agents with skills: of the code, stored ones, and one that learns."""

from pathlib import Path

from edge_agent import Agent, Limits, Skill, tool


@tool(read_only=True)
async def measure(n: int) -> str:
    """Measure something."""
    return f"{n} cm"


@tool(read_only=True)
async def weigh(n: int) -> str:
    """Weigh something."""
    return f"{n} kg"


tidy = Skill.from_dir(Path(__file__).parent / "skills" / "tidy-desk")
agents = [
    Agent(name="skilled", skills=[tidy], stored_skills=True, tools=[measure, weigh]),
    Agent(name="learner", learning=True, approval="ask-writes", tools=[measure], limits=Limits(max_tool_calls=3)),
    Agent(name="free", learning=True, tools=[measure]),
    Agent(name="plain", tools=[measure, weigh]),
]
