"""The conversation of a run as its model saw it, built by a walk over its records alone."""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from edge_agent.core import keys
from edge_agent.core.answers import ENDED
from edge_agent.core.errors import EdgeAgentError, Refusal
from edge_agent.core.events import (
    Handoff,
    ModelAnswered,
    ModelRefused,
    ModelRejected,
    ModelRequested,
    OfferedTools,
    RunCreated,
)
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.messages import Message, UserMessage, user_message
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.ports import Record
from edge_agent.core.signals import Cancelled, Suspend
from edge_agent.core.tooling import HANDOFF
from edge_agent.loop.calls import told
from edge_agent.loop.parts import Past
from edge_agent.loop.planned import whole
from edge_agent.loop.recorded import NoClock, RecordedTools, Unheard
from edge_agent.loop.replay import Differs, EndOfRecords, ReplayWalk
from edge_agent.loop.walk import Ports


async def conversation(run_id: str, records: Sequence[Record]) -> tuple[Message, ...]:
    """What the last model call of these records was shown or will be shown, and what has come since.

    In a planned run each stage has a conversation of its own; it is that of the last one. Raises Refusal 409 where the
    code of today cannot walk the log."""
    walk = _Recalling(run_id, records)
    try:
        await whole(walk)
    except (EndOfRecords, Suspend, Cancelled, EdgeAgentError):
        pass
    except Differs as found:
        message = f"The code of today walks this log otherwise, so what its model saw is not known: {found}."
        raise Refusal(409, "drift", message) from None
    return (*walk.shown, *_since(walk))


class _Recalling(ReplayWalk):
    """Remembers the last prompt that was built. The prompts themselves are compared with nothing."""

    def __init__(self, run_id: str, records: Sequence[Record]) -> None:
        created = cast(RunCreated, records[0].event)
        handed = {record.event.to for record in records if isinstance(record.event, Handoff)}
        self._handoffs = {f"{HANDOFF}{name}"[:64]: name for name in handed}
        agent = AgentSpec(name=created.agent_name, handoffs=self._handoffs)
        tools = RecordedTools((), ())
        super().__init__(
            run_id, records, Ports(clock=NoClock(), sink=Unheard(), agent=agent, model=_no_model, tools=tools)
        )
        self.attempt = ""
        self.shown: tuple[Message, ...] = (
            *Past(self.created.history).messages,
            user_message(self.created.input, self.created.attachments),
        )

    def hand_over(self, name: str | None) -> None:
        """To whomever the log says: whether the code still has that agent is no matter here."""
        own = self.ports.agent
        self.agent = own if name in (None, own.name) else AgentSpec(name=str(name), handoffs=self._handoffs)

    def met(
        self,
        key: str,
        asked: ModelRequested | ModelRefused | None,
        build: Callable[[], ModelRequest],
        tools: OfferedTools | None,
    ) -> None:
        if isinstance(asked, ModelRefused) or (asked and asked.stage == "compact"):
            return
        offered = (asked and asked.tools) or tools
        if offered is not None:
            self.recorded_tools.at(offered)
        self.attempt, self.shown = key, build().messages


def _no_model(name: str) -> Model:
    raise EndOfRecords(name)


def _since(walk: _Recalling) -> Iterator[Message]:
    """The answer to the last prompt, and those of its calls that are answered."""
    answered = walk.journal.event(f"{walk.attempt}/end", ModelAnswered)
    if answered is None:
        return
    if rejected := walk.journal.event(f"{walk.attempt}/rejected", ModelRejected):
        if rejected.reminder:
            yield UserMessage(text=rejected.reminder)
        return
    yield answered.message
    asked = walk.attempt.rpartition("/")[0]
    for index, call in enumerate(answered.message.calls):
        key = keys.tool_call(asked, index)
        if ended := walk.seen(f"{key}/result", *ENDED):
            yield told(walk, key, call, ended)
