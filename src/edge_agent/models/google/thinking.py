"""How Gemini's families of models think, as data, and what a request asks of them.

Facts: the API's documentation of thinking and of thought signatures, and python-genai's ThinkingConfig. A budget and a
level must never go out together."""

import re
from dataclasses import dataclass

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Effort, ModelRequest, Thinking
from edge_agent.models.effort import TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """budget: the least and the most tokens of a thinkingBudget; levels: what a thinkingLevel may be, lowest first.
    Neither: it does not think.

    thinks_unasked: without a word about it; where it does not, thoughts must not be asked for alone. can_stop: whether
        a budget of 0 switches thinking off. signed: a model's turn whose first function call has no thought signature
        is refused. schema_with_tools: whether an output schema may stand beside tools.
    """

    budget: tuple[int, int] | None = None
    levels: tuple[Effort, ...] = ()
    thinks_unasked: bool = True
    can_stop: bool = False
    signed: bool = False
    schema_with_tools: bool = False


def _since_3(*levels: Effort) -> Family:
    return Family(levels=levels, signed=True, schema_with_tools=True)


# The first that fits the beginning of the model's name. What is not known is taken for a new one.
_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"gemini-1|gemini-2\.0|gemini-2\.5-.*(image|tts)|gemma", Family()),
    (r"gemini-2\.5-pro", Family(budget=(128, 32_768))),
    (r"gemini-2\.5-flash-lite", Family(budget=(512, 24_576), thinks_unasked=False, can_stop=True)),
    (r"gemini-2\.5", Family(budget=(1, 24_576), can_stop=True)),
    (r"gemini-3-pro", _since_3("low", "high")),
    (r"gemini-.*pro", _since_3("low", "medium", "high")),
    (r"", _since_3("minimal", "low", "medium", "high")),
)


def family_of(model: str) -> Family:
    return next(family for pattern, family in _FAMILIES if re.match(pattern, model))


def thinking_config(request: ModelRequest, model: str) -> tuple[JsonObject, tuple[str, ...]]:
    """The thinkingConfig, empty for none, and what could not be asked for as it was meant."""
    family, wanted = family_of(model), request.thinking
    shown: JsonObject = {"includeThoughts": True} if request.include_thoughts else {}
    if not family.budget and not family.levels:
        meant = wanted in (None, "none", 0)
        return {}, () if meant else (f"{model} does not think; thinking={wanted} was left out.",)
    if wanted is None:
        return shown if family.thinks_unasked else {}, ()
    tokens = TOKENS[wanted] if isinstance(wanted, str) else wanted
    if tokens == 0 and family.can_stop:
        return {"thinkingBudget": 0}, ()
    if family.budget:
        budget = _budget(tokens, family.budget, request.max_output_tokens)
        meant = budget == tokens or (isinstance(wanted, str) and wanted != "none")
        return {"thinkingBudget": budget, **shown}, _told(model, wanted, f"a budget of {budget} tokens", meant=meant)
    level = next((one for one in family.levels if TOKENS[one] >= tokens), family.levels[-1])
    return {"thinkingLevel": level.upper(), **shown}, _told(model, wanted, f"level {level}", meant=level == wanted)


def _budget(tokens: int, bounds: tuple[int, int], max_output: int | None) -> int:
    """Thoughts count as output: a quarter of that stays for the answer."""
    least, most = bounds
    room = most if max_output is None else max_output * 3 // 4
    return max(least, min(tokens, room, most))


def _told(model: str, wanted: Thinking, given: str, *, meant: bool) -> tuple[str, ...]:
    return () if meant else (f"{model} cannot think with thinking={wanted}; {given} was asked for instead.",)
