"""The final answer as JSON of the form the run asked for: as the model wrote it, or after it was asked to mend it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from edge_agent.core.errors import EdgeAgentError
from edge_agent.core.messages import AssistantMessage, JsonObject, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Amount
from edge_agent.loop import budget, prompts
from edge_agent.loop.ask import Question, Stopped, ask
from edge_agent.loop.fences import unfenced
from edge_agent.loop.tries import Shorter
from edge_agent.loop.walk import Walk

TRIES = 2  # of mending it


class NoOutput(EdgeAgentError):
    """The answer does not have the form that was asked for, also after it was mended."""


@dataclass(frozen=True, slots=True)
class Output:
    """`text`: what the model wrote last. `value`: the same as JSON; None where the caps left no room to mend it."""

    text: str
    value: Any


@dataclass(frozen=True, slots=True)
class Asked:
    """What was answered, and by which models. shorter: of the call under that key, see Tries."""

    request: Callable[[], ModelRequest]
    models: tuple[str, ...]
    shorter: Callable[[str], Shorter | None]


async def in_form(walk: Walk, key: str, text: str, asked: Asked) -> Output:
    """The answer `text` in the form of the run's output schema; mended under `key` where it is not.

    Raises NoOutput, and what `ask` raises but Stopped."""
    schema = walk.created.output_schema
    if schema is None:
        return Output(text, None)
    for number in range(TRIES + 1):
        value, fault = _read(walk, schema, text)
        if fault is None:
            return Output(text, value)
        if number == TRIES:
            raise NoOutput(f"the answer is not of the form asked for: {fault}")
        question = _mending(walk, f"{key}/mend{number}", asked, text, fault)
        try:
            text = (await ask(walk, question)).answered.message.text
        except Stopped:
            return Output(text, None)
    raise AssertionError("unreachable")


def _read(walk: Walk, schema: JsonObject, text: str) -> tuple[Any, str | None]:
    """(the value, None), or (None, what is wrong with it)."""
    try:
        value = json.loads(unfenced(text), parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        return None, f"it is not JSON: {error}"
    faults = walk.ports.faults(schema, value)
    return (None, "; ".join(faults)) if faults else (value, None)


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _mending(walk: Walk, key: str, asked: Asked, text: str, fault: str) -> Question:
    def build() -> ModelRequest:
        base = asked.request()
        more = (AssistantMessage(text=text), UserMessage(text=prompts.mend_output(fault)))
        return replace(
            base,
            messages=(*base.messages, *more),
            tools=(),
            tool_choice="none",
            output_schema=walk.created.output_schema,
        )

    return Question(
        key=key,
        stage="final",
        build=build,
        cap=budget.final_cap(walk.created.limits, walk.ports.context_window),
        kept=Amount,
        models=asked.models,
        shorter=asked.shorter(key),
    )
