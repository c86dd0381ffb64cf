"""A log and a library of skills in memory, by the very code that keeps the durable ones."""

from edge_agent.core.ports import Clock
from edge_agent.core.skill_library import SkillLibrary
from edge_agent.storage.skills import library_over
from edge_agent.storage.sql import in_memory
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import codec


def in_memory_log() -> SqlLog:
    """Empty, and gone with the last reference to it. Give it to a second journal to see what a restart would see."""
    return SqlLog(in_memory(), codec)


def memory_library(clock: Clock) -> SkillLibrary:
    """Empty, for a Deployment, or for the `skills` of an AgentSpec."""
    return library_over(in_memory(), clock)
