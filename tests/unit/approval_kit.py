"""A run that asks a person before it pays, for tests: its tools, and a person who decides."""

import asyncio
from collections.abc import Sequence
from typing import Any

from edge_agent import ToolContext, tool
from edge_agent.core import keys
from edge_agent.core.approval import Decision
from edge_agent.core.errors import Refusal
from edge_agent.core.events import (
    ApprovalMode,
)
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Tool
from edge_agent.loop.inbox import Inbox
from tests.unit.loop_kit import Act, Lived, Setting, asks, live

MODES: tuple[ApprovalMode, ...] = ("autopilot", "ask-writes", "ask-all", "read-only")
Made = list[tuple[str, JsonObject]]
Refused = list[tuple[int, str]]  # status and code of what was refused to a person
Calls = Sequence[tuple[str, JsonObject]]


def paying(made: Made, *, name: str = "pay", **more: Any) -> Tool:
    @tool(name=name, **more)
    async def pay(context: ToolContext, amount: int, to: str = "eve") -> str:
        """Pay."""
        made.append((context.idempotency_key, {"amount": amount, "to": to}))
        return f"paid {amount}"

    return pay


@tool(read_only=True)
async def look(q: str = "") -> str:
    """Look."""
    await asyncio.sleep(2)
    return f"seen {q}"


def decides(
    call: str, *, approved: bool, after: float = 1.0, again: bool = False, refused: Refused | None = None, **more: Any
) -> Act:
    """A person who decides about a call some time after being asked, where it is open."""

    def act(inbox: Inbox) -> None:
        def now() -> None:
            for _ in range(1 + again):
                try:
                    inbox.decide(keys.call_id("run-1", call), Decision(approved=approved, **more))
                except Refusal as no:
                    if refused is not None:
                        refused.append((no.status, no.code))

        asyncio.get_running_loop().call_later(after, now)

    return act


def lived(made: Made, *acts: tuple[str, Act], calls: Sequence[tuple[str, JsonObject]] = (), **more: Any) -> Lived:
    model = more.pop("model", None) or asks(*(calls or (("pay", {"amount": 5}),)))
    more.setdefault("approval", "ask-writes")
    tools = more.pop("tools", None) or [paying(made), look]
    return live(Setting(model=model, tools=tools, acts=dict(acts), **more))


C0, C1 = "s1/r1/c0", "s1/r1/c1"
