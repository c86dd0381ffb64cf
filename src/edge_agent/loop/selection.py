"""Which tools a round offers, and what a planner is told of them. Judged at a boundary, by what is on record then."""

from collections.abc import Mapping, Sequence
from typing import cast

from edge_agent.core.answers import ENDED, said
from edge_agent.core.events import Boundary, ToolResult, ToolsChanged, ToolsDiscovered
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.journal import Draft
from edge_agent.core.media_types import is_text
from edge_agent.core.messages import ToolSpec
from edge_agent.core.tooling import ALWAYS_RUN, BUILT_IN, FIND_TOOLS, READ_RESULT
from edge_agent.loop import prompts
from edge_agent.loop.outcomes import seen_of
from edge_agent.loop.walk import Walk

SEARCH_ABOVE = 40  # tools; `auto` shows all of so many
RECENT = 16  # tools that were found by a search stay offered


def for_plans(tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Those a plan can name: not the ones that only serve others."""
    return tuple(tool for tool in tools if tool.name not in ALWAYS_RUN)


def searches(agent: AgentSpec, tools: Sequence[ToolSpec]) -> bool:
    """Whether models look for tools, because they are not shown all of them."""
    return agent.selection == "search" or (agent.selection == "auto" and len(for_plans(tools)) > SEARCH_ABOVE)


def catalogue(agent: AgentSpec, tools: Sequence[ToolSpec]) -> str:
    """What a planner knows of the tools."""
    listed = prompts.catalogue_by_server if searches(agent, tools) else prompts.catalogue
    return listed(for_plans(tools))


def at_first(agent: AgentSpec, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """What the first round of a direct run offers."""
    if searches(agent, tools):
        return tuple(tool for tool in tools if _stands(agent, tool.name) and tool.name != READ_RESULT)
    return tuple(tool for tool in tools if tool.name not in (READ_RESULT, FIND_TOOLS))


def selected(walk: Walk, suggested: Sequence[str] | None, *, cleared: bool) -> tuple[ToolSpec, ...]:
    """What the round offers: first what always stands, then what the step suggests, then what was found, the newest
    last, so that a find leaves the beginning of the prompt as it was.

    suggested: by the plan; None where no plan has chosen. cleared: this boundary clears results."""
    tools = {tool.name: tool for tool in walk.tools.offered()}
    if not (cleared or _something_to_read(walk)):
        tools.pop(READ_RESULT, None)
    searching = searches(walk.agent, [*tools.values()])
    if not searching:
        tools.pop(FIND_TOOLS, None)
    if not searching and (walk.agent.selection != "plan-narrowed" or suggested is None):
        return tuple(tools.values())
    standing = [name for name in tools if _stands(walk.agent, name)]
    chosen = [*standing, *(suggested or ()), *(_recent(walk, tools) if searching else ())]
    return tuple(tools[name] for name in dict.fromkeys(chosen) if name in tools)


def _stands(agent: AgentSpec, name: str) -> bool:
    """Built-in tools, and the ways to other agents."""
    return name in BUILT_IN or name in agent.handoffs or name in agent.subagents


def _recent(walk: Walk, tools: Mapping[str, ToolSpec]) -> list[str]:
    """Found by searches of this run, the best of the last one last; of what is there now."""
    found: dict[str, None] = {}
    for record in walk.journal.types.get("tools.discovered", ()):
        for name in reversed(cast(ToolsDiscovered, record.event).names):
            found.pop(name, None)
            found[name] = None
    return [name for name in found if name in tools][-RECENT:]


def _something_to_read(walk: Walk) -> bool:
    """Whether a model was not shown all of a result, or a text has come as a file. Once so, for good."""
    records = (walk.journal.types.get(kind, ()) for kind in ("boundary", "tool.result", "subagent.completed"))
    return any(_left_out(walk, record.event) for found in records for record in found)


def _left_out(walk: Walk, event: object) -> bool:
    if isinstance(event, Boundary):
        return bool(event.cleared)
    cut = isinstance(event, ENDED) and 0 < seen_of(walk, event.name) < len(said(event))
    return cut or (isinstance(event, ToolResult) and any(is_text(file.media_type) for file in event.files))


def changed_lists(walk: Walk, key: str) -> list[Draft]:
    """What is new in the lists of servers since they were last taken in, for readers. Of a server without any tools
    nothing is said: it could not be reached, or it is another agent's."""
    known: dict[str, dict[str, None]] = {}
    for record in walk.journal.types.get("tools.changed", ()):
        event = cast(ToolsChanged, record.event)
        names = known.setdefault(event.server, {})
        names.update(dict.fromkeys(event.added))
        for name in event.removed:
            names.pop(name, None)
    changes = [_change(server, known.get(server, {}), names) for server, names in _lists(walk).items()]
    fresh = [change for change in changes if change.added or change.removed]
    return [Draft(key=f"{key}/tools/{index}", event=change, by="note") for index, change in enumerate(fresh)]


def _lists(walk: Walk) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for spec in walk.tools.offered():
        tool = walk.tools.find(spec.name)
        if tool is not None and tool.server is not None:
            lists.setdefault(tool.server, []).append(spec.name)
    return lists


def _change(server: str, before: Mapping[str, None], now: Sequence[str]) -> ToolsChanged:
    added, there = tuple(name for name in now if name not in before), set(now)
    return ToolsChanged(server=server, added=added, removed=tuple(name for name in before if name not in there))
