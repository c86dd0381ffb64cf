"""What a request to a scripted model is, and which answer it gets, whichever wire it came on.

That depends on the request alone, so that a killed and resumed run finds the same model again:
the scenario is the model's name, or else the last word of that form in the newest user message that has one; the turn
is the number of assistant messages. Scenarios:

    text, text-N              a streamed text (of N tokens, or its output cap)
    slow-text-N               the same, a token each 50 ms
    rounds-N, rounds-N-M      N rounds of one tool call each, while tools are offered, then a text of M tokens (200)
    calls-N                   one round of N tool calls, then a text
    refuse                    a refusal                              length        a text cut by the token limit
    hang                      headers, then silence                  silent        not even headers
    html                      an HTML page                           json          a JSON document in place of a stream
    cut                       half a text, then the connection closes
    late-cut, late-hang       a whole text, then the connection breaks off or stays open, without [DONE]
    error-in-stream           half a text, then an error object      overflow      400, the context window is exceeded
    429-retry-after-N         429 with Retry-After: N the first time, then a text
    status-N, status-N-times-M  HTTP N, always or the first M times, then a text

A script is JSON {"scenario": [answer, …]}: the answer of turn n is the n-th (the last one again after that), each
{"text", "reasoning", "calls": [{"name", "arguments"}], "finish"}, or {"status"} for a refusal. A scenario may be a list
of cases instead, {"when": [texts of the request], "answers": [answer, …]}: the first that fits.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Script = Mapping[str, list[Json]]
_SCENARIO = re.compile(
    r"rounds-\d+(?:-\d+)?|calls-\d+|count-\d+|slow-text(?:-\d+)?|text(?:-\d+)?|429-retry-after-\d+"
    r"|status-\d+(?:-times-\d+)?|error-in-stream|overflow|refuse|length|silent|late-hang|late-cut|hang|html|json|cut"
)
WORDS = ("The", " answer", " is", " here", ",", " word", " by", " word", ".")


@dataclass(slots=True)
class Seen:
    """A request to the model. `closed_early`: the client closed the connection before the answer's end."""

    scenario: str
    model: str
    turn: int
    messages: int
    tools: tuple[str, ...]
    body: Json = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    status: int = 200
    chunks: int = 0
    done: bool = False
    closed_early: bool = False


def scenario_of(model: str, texts: list[str], script: Script) -> str:
    """`texts`: what users said, in order."""
    if model in script or _SCENARIO.fullmatch(model):
        return model
    for text in reversed(texts):
        words = [word.strip(".,:;!?\"'") for word in text.split()]
        if found := [word for word in words if word in script or _SCENARIO.fullmatch(word)]:
            return found[-1]
    return "text"


def scripted_answer(seen: Seen, script: Script) -> Json:
    """The script's, of this turn; empty where the scenario is in none."""
    if seen.scenario not in script:
        return {}
    answers = _case(seen, script[seen.scenario])
    return answers[min(seen.turn, len(answers) - 1)]


def _case(seen: Seen, script: list[Json]) -> list[Json]:
    """The answers of a scenario; where it has cases, those of the first whose text stands in the request."""
    text = json.dumps(seen.body, ensure_ascii=False)
    cases = [case for case in script if "when" in case]
    return next((case["answers"] for case in cases if all(part in text for part in case["when"])), script)


def words(length: int) -> list[str]:
    """Each of them is a token."""
    return [WORDS[number % len(WORDS)] for number in range(length)]


def pieces(text: str) -> list[str]:
    """The words of a text, each with the space behind it."""
    return re.findall(r"\S+\s*|\s+", text)
