"""The person in front of a run in this process: a function that is shown each request and gives the decision."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import cast

from edge_agent.core.approval import Decision
from edge_agent.core.errors import Refusal
from edge_agent.core.events import ApprovalRequested
from edge_agent.core.hub import Hub, Item
from edge_agent.core.ports import Record
from edge_agent.loop.inbox import Inbox

Said = bool | Decision
OnApproval = Callable[[ApprovalRequested], Awaitable[Said] | Said]


class Asker:
    """Asks `on_approval` about each request of a run, several at once where there are several. What raises, or gives
    something else than a decision, denies."""

    def __init__(self, hub: Hub, inbox: Inbox, on_approval: OnApproval) -> None:
        self._inbox, self._on_approval = inbox, on_approval
        self._asking: set[asyncio.Task[None]] = set()
        hub.follow(self._tell)

    def stop(self) -> None:
        """Nobody needs to answer any more."""
        for task in self._asking:
            task.cancel()

    def _tell(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Record) and isinstance(item.event, ApprovalRequested):
                task = asyncio.ensure_future(self._ask(item.event))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)

    async def _ask(self, asked: ApprovalRequested) -> None:
        try:
            said = self._on_approval(asked)
            said = cast(object, await said if inspect.isawaitable(said) else said)
            decision = Decision(approved=said) if isinstance(said, bool) else said
            if not isinstance(decision, Decision):
                decision = _failed(f"gave back a {type(said).__name__}, neither a bool nor a Decision")
        except Exception as error:  # noqa: BLE001 - whatever happened, nobody has allowed the call
            decision = _failed(f"raised {type(error).__name__}: {error}")
        try:
            self._decide(asked, decision)
        except Refusal as no:
            with suppress(Refusal):
                self._decide(asked, _failed(f"made a decision that is no good: {no.message}"))

    def _decide(self, asked: ApprovalRequested, decision: Decision) -> None:
        """A request that is over takes no decision any more, and needs none."""
        self._inbox.decide(asked.call_id, decision, arguments_hash=asked.arguments_hash)


def _failed(how: str) -> Decision:
    return Decision(approved=False, reason=f"on_approval {how}")
