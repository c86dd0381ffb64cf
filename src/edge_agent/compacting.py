"""A history folded on request, outside of any run: what older turns say becomes one turn."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from edge_agent.agent import Agent
from edge_agent.core.compaction import Compaction
from edge_agent.core.errors import ModelError, Refusal
from edge_agent.core.history import Compacted, compact_history
from edge_agent.core.limits import Limits
from edge_agent.core.messages import Turn
from edge_agent.core.model import Finished, Model, ModelEvent, TextDelta
from edge_agent.loop.budget import summary_cap
from edge_agent.loop.estimates import Estimates
from edge_agent.loop.parts import Past
from edge_agent.loop.summary import summary_request
from edge_agent.model_choice import ModelChoice
from edge_agent.models.prices import window_of
from edge_agent.wire.settings import Settings


@dataclass(frozen=True, slots=True)
class Writers:
    """The models that sum up, asked in this order until one answers, each once. `window`: of the smallest, in tokens.
    `clean`: takes out what may not be said."""

    models: Sequence[Model]
    window: int
    clean: Callable[[str], str]


def writers_for(agent: Agent, choice: ModelChoice, settings: Settings) -> Writers:
    """Raises ConfigError where a model cannot be had."""
    names, model = choice.of_summaries(agent), choice.model_by(agent)
    return Writers([model(name) for name in names], window_of(names, settings), settings.mask)


def compaction_of(agent: Agent, settings: Settings) -> Compaction:
    """That of the code, with what the variables lay over it. Raises ConfigError."""
    return replace(agent.compaction, **settings.compaction)


async def compact(history: Sequence[Turn], writers: Writers, how: Compaction, *, force: bool) -> Compacted:
    """All but the newest turns as one summary, where the history would take more than its share of the window, or by
    force.

    Raises Refusal 503 where no model writes one: nothing is left out of which there is no summary."""
    past, cap = Past(tuple(history)), summary_cap(how, Limits(), writers.window)
    tokens, older = Estimates().messages(past.messages), past.older(how.keep_recent_turns)
    if older is None or not (force or tokens > how.room(writers.window, cap)):
        return Compacted(history=past.turns, before_tokens=tokens, after_tokens=tokens)
    request = replace(summary_request("", older, writers.window), max_output_tokens=cap)
    try:
        summary = writers.clean(await _first_answer([model.stream(request) for model in writers.models]))
    except ModelError as error:
        raise Refusal(503, "no_summary", f"No summary was written, so nothing was changed: {error}") from error
    folded = compact_history(history, summary, keep_recent_turns=how.keep_recent_turns)
    after = Estimates().messages(Past(folded).messages)
    return Compacted(history=folded, summary=summary, before_tokens=tokens, after_tokens=after, compacted=True)


async def _first_answer(streams: Sequence[AsyncGenerator[ModelEvent]]) -> str:
    failure = ModelError("bad-answer", "no model wrote a summary", retryable=True)
    for stream in streams:
        try:
            if text := (await _text(stream)).strip():
                return text
        except ModelError as error:
            failure = error
    raise failure


async def _text(stream: AsyncGenerator[ModelEvent]) -> str:
    """Raises ModelError, also for an answer that broke off."""
    said: list[str] = []
    whole = False
    async with aclosing(stream):
        async for event in stream:
            if isinstance(event, TextDelta):
                said.append(event.text)
            whole = whole or isinstance(event, Finished)
    if not whole:
        raise ModelError("truncated", "the answer broke off before its end", retryable=True)
    return "".join(said)
