"""Agents with skills: of the code, stored ones, and one that learns."""

from pathlib import Path

from edge_agent import Agent, Compaction, Limits, Skill, tool


@tool(read_only=True)
async def measure(n: int) -> str:
    """Measure something."""
    return f"{n} cm"


@tool(read_only=True)
async def weigh(n: int) -> str:
    """Weigh something."""
    return f"{n} kg"


@tool(read_only=True)
async def survey(plot: int) -> str:
    """Survey a plot of land."""
    return f"Plot {plot}: {'grass, and a stone at each corner; ' * 60}"


tidy = Skill.from_dir(Path(__file__).parent / "skills" / "tidy-desk")
agents = [
    Agent(name="skilled", skills=[tidy], stored_skills=True, tools=[measure, weigh]),
    Agent(name="learner", learning=True, approval="ask-writes", tools=[measure], limits=Limits(max_tool_calls=3)),
    Agent(name="free", learning=True, tools=[measure]),
    Agent(
        name="folding",
        skills=[tidy],
        tools=[survey],
        compaction=Compaction(threshold_tokens=2_000, summary_max_tokens=64, keep_recent_steps=1),
    ),
    Agent(name="plain", tools=[measure, weigh]),
]
