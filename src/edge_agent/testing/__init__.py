"""What tests of agents need: models that say what a script says, logs in memory, virtual time, kills, and followers.

Nothing here knows a test framework. Most tests need no more than a ScriptedModel:

    model = ScriptedModel(answers=[Answer(calls=(("forecast", {"city": "Rome"}),)), "Sunny."])
    state = await Agent(name="weather", model=model, tools=[forecast]).run("How is Rome?")
    assert state.text == "Sunny."
    model.assert_done()
"""

from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing.family import SimulatedRuns
from edge_agent.testing.faults import Faults, FaultyLog, Kill, Killed
from edge_agent.testing.follower import Follower
from edge_agent.testing.memory import in_memory_log, memory_library
from edge_agent.testing.post import MemoryDirectory, SimulatedPost
from edge_agent.testing.replay import record, replay
from edge_agent.testing.simulated import SimulatedObject
from edge_agent.testing.soundness import assert_sound
from edge_agent.testing.vault import OpenVault
from edge_agent.testing.virtual_time import VirtualClock, in_virtual_time

__all__ = [
    "Answer",
    "Faults",
    "FaultyLog",
    "Follower",
    "Kill",
    "Killed",
    "MemoryDirectory",
    "OpenVault",
    "ScriptedModel",
    "SimulatedObject",
    "SimulatedPost",
    "SimulatedRuns",
    "VirtualClock",
    "assert_sound",
    "in_memory_log",
    "in_virtual_time",
    "memory_library",
    "record",
    "replay",
]
