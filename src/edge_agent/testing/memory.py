"""A log in memory, by the very code that keeps the durable one."""

from edge_agent.storage.sql import in_memory
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import codec


def in_memory_log() -> SqlLog:
    """Empty, and gone with the last reference to it. Give it to a second journal to see what a restart would see."""
    return SqlLog(in_memory(), codec)
