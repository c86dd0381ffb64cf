"""The names people build on: what is there, and that each says what it is."""

import inspect

import edge_agent
from edge_agent import testing


def test_the_public_names_are_these() -> None:
    assert set(edge_agent.__all__) >= {
        "Agent",
        "ConfigError",
        "Hooks",
        "Limits",
        "McpServer",
        "Reject",
        "ToolContext",
        "ToolError",
        "ToolFile",
        "ToolOutput",
        "Turn",
        "tool",
    }


def test_every_public_name_exists_and_says_what_it_is() -> None:
    for module in (edge_agent, testing):
        assert inspect.getdoc(module)
        for name in module.__all__:
            assert inspect.getdoc(getattr(module, name)), f"{module.__name__}.{name} has no docstring"


def test_what_is_public_is_listed_in_order() -> None:
    for module in (edge_agent, testing):
        assert list(module.__all__) == sorted(module.__all__, key=lambda name: (name.islower(), name))
