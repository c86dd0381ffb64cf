"""What the next model call may cost: reserved before it is made, so that no cap is ever crossed."""

from dataclasses import dataclass

from edge_agent.core import keys
from edge_agent.core.canonical import canonical
from edge_agent.core.limits import BudgetKind, Limits, crossed
from edge_agent.core.messages import AssistantMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.tokens import estimate
from edge_agent.core.usage import Amount

LEAST_OUTPUT = 64  # tokens; a call that could say less is not worth making


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """What a call sets aside: `cap` is the output cap it is sent with."""

    amount: Amount
    cap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    kind: BudgetKind
    used: float
    cap: float


def estimated_input(request: ModelRequest) -> int:
    """Tokens of everything the request sends."""
    texts = [
        request.system,
        *(canonical(message) for message in request.messages),
        *(canonical(tool) for tool in request.tools),
    ]
    return sum(estimate(text) for text in texts)


def estimated_output(message: AssistantMessage, thought: str = "") -> int:
    return (
        estimate(message.text)
        + estimate(thought)
        + sum(estimate(call.name + canonical(call.arguments)) for call in message.calls)
    )


def prompt_hash(request: ModelRequest) -> str:
    return keys.digest(request.system, request.messages, request.tools, request.tool_choice, request.output_schema)


def round_cap(limits: Limits, window: int) -> int:
    """The output cap of one round: the caller's own, else a sixteenth of the window."""
    return limits.max_output_tokens_per_call or _share(window, 16, 2_048, 32_000)


def final_cap(limits: Limits, window: int) -> int:
    return min(limits.max_output_tokens_per_call or 16_000, _share(window, 32, 1_024, 16_000))


def kept_for_the_end(limits: Limits, window: int, input_tokens: int) -> Amount:
    """What stays reserved for the final answer: its input, and an eighth of the tightest output cap, so that a small
    budget still has room for rounds."""
    caps = (limits.max_output_tokens, limits.max_reasoning_tokens, limits.max_total_tokens)
    most = min((cap // 8 for cap in caps if cap is not None), default=LEAST_OUTPUT)
    output = max(LEAST_OUTPUT, min(final_cap(limits, window), most))
    return Amount(input=input_tokens, output=output, reasoning=output if limits.max_reasoning_tokens else 0)


def _share(window: int, part: int, least: int, most: int) -> int:
    return min(max(window // part, least), most, window // 2)


def reserve(limits: Limits, spent: Amount, input_tokens: int, cap: int, kept: Amount) -> Reserve | Overrun:
    """The reserve of a call that sends `input_tokens`, with `kept` left for the final answer; the cap shrinks to what
    is left.

    An Overrun when the call does not fit."""
    held = spent + kept
    room = [
        (limits.max_output_tokens, held.output),
        (limits.max_reasoning_tokens, held.reasoning),
        (limits.max_total_tokens, held.total + input_tokens),
    ]
    cap = min([cap, *(most - used for most, used in room if most is not None)])
    needed = max(cap, LEAST_OUTPUT)
    amount = Amount(input=input_tokens, output=needed, reasoning=needed if limits.max_reasoning_tokens else 0)
    if over := crossed(limits, held + amount):
        kind, _, most = over
        return Overrun(kind=kind, used=_used(spent, kind), cap=most)
    return Reserve(amount=amount, cap=needed)


def _used(spent: Amount, kind: BudgetKind) -> float:
    return {"input": spent.input, "output": spent.output, "reasoning": spent.reasoning}.get(kind, spent.total)
