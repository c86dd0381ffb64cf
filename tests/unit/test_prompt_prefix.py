"""What a provider's cache can hold: each request of a run begins with the one before it, on every wire.

The runs are real, the answers scripted; what the loop asked is then put into each adapter's own words."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import pytest

from edge_agent import Limits, tool
from edge_agent.core.events import Mode
from edge_agent.core.messages import AssistantMessage, JsonObject
from edge_agent.core.model import ModelRequest
from edge_agent.core.prompting import Prompting
from edge_agent.models.adapter import Adapter
from edge_agent.models.anthropic import Anthropic
from edge_agent.models.endpoint import PROFILES, Endpoint
from edge_agent.models.google import Google
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.models.workers_ai import WorkersAI
from tests.conftest import Figure
from tests.unit.loop_kit import Setting, live

ROUNDS = 10
LEAST = 0.97
SAID = "I look."


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """thought: what an answer of this wire leaves to be sent back. parts: a body in the order in which it is read."""

    adapter: Adapter
    model: str
    thought: JsonObject
    parts: Callable[[JsonObject], list[Any]]
    profile: str = "default"


THINKING = {"type": "thinking", "thinking": "hm " * 20, "signature": "c2ln"}
WIRES = {
    "openai_chat": Wire(
        adapter=OpenAIChat(),
        model="deepseek-chat",
        thought={"message": {"reasoning_content": "hm " * 20}},
        parts=lambda body: [body["messages"][0], *body.get("tools", []), *body["messages"][1:]],
        profile="deepseek",
    ),
    "anthropic": Wire(
        adapter=Anthropic(),
        model="claude-opus-5",
        thought={"blocks": [THINKING, {"text": len(SAID)}, {"call": 0}, {"call": 1}]},
        parts=lambda body: [*body["system"], *body.get("tools", []), *body["messages"]],
    ),
    "google": Wire(
        adapter=Google(),
        model="gemini-3-flash-preview",
        thought={"parts": [{"text": len(SAID)}, {"call": True, "thoughtSignature": "c2ln"}, {"call": True}]},
        parts=lambda body: [body["systemInstruction"], *body.get("tools", []), *body["contents"]],
    ),
    "workers_ai": Wire(
        adapter=WorkersAI(),
        model="@cf/zai-org/glm-4.7-flash",
        thought={"message": {"reasoning_content": "hm " * 20}},
        parts=lambda body: [body["messages"][0], *body.get("tools", []), *body["messages"][1:]],
    ),
}


@tool(read_only=True)
async def read(page: int, note: str | None = None) -> str:
    """Read a page."""
    return f"page {page}: " + "nets, ropes and a barge; " * 12


def stage_of(request: ModelRequest) -> str:
    """The stage, and the step within it: a step is a conversation of its own."""
    stage = (request.metadata or {}).get("stage", "round")
    step = next(
        (line for message in request.messages for line in message.text.splitlines() if "# Your step" in line), ""
    )
    return f"{stage} {step}".strip()


def says(wire: Wire, rounds: int) -> Callable[[ModelRequest], Answer]:
    """So many rounds of two calls at once; in each of the two steps of a plan."""

    def answer(request: ModelRequest) -> Answer:
        if stage_of(request) == "plan":
            names = ("look", "compare")
            steps = [{"id": one, "description": one, "expected_outcome": ""} for one in names]
            return Answer(text=json.dumps({"thought": "Look.", "steps": steps}))
        turn = sum(isinstance(message, AssistantMessage) for message in request.messages)
        if turn >= rounds or not request.tools:
            return Answer(text="That is all.")
        calls = tuple(("read", {"page": 2 * turn + number}) for number in range(2))
        return Answer(text=SAID, calls=calls, opaque=(wire.thought,))

    return answer


def rendered(wire: Wire, request: ModelRequest) -> str:
    endpoint = Endpoint(provider="test", base_url="https://models.example.com", profile=PROFILES[wire.profile])
    body = wire.adapter.call(request, endpoint, wire.model).body
    return "".join(canonical(without_marks(part)) for part in wire.parts(body))


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast(JsonObject, value)
        return {name: without_marks(one) for name, one in fields.items() if name != "cache_control"}
    return [without_marks(one) for one in cast(list[Any], value)] if isinstance(value, list) else value


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def shares(told: list[str]) -> Iterator[float]:
    """How much of each request is the beginning of the next."""
    for before, now in pairwise(told):
        common = next((at for at, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), len(before))
        yield common / len(before)


@pytest.mark.parametrize("mode", ["direct", "planned"])
@pytest.mark.parametrize("name", WIRES)
def test_a_request_begins_with_the_one_before_it_of_its_stage(name: str, mode: Mode, figure: Figure) -> None:
    wire = WIRES[name]
    answer = says(wire, ROUNDS if mode == "direct" else ROUNDS // 2)
    model = ScriptedModel(answers=[answer] * (ROUNDS + 5), name=wire.model, provider="test")
    limits = Limits(max_steps=ROUNDS + 5)
    live(Setting(model=model, tools=[read], mode=mode, limits=limits, prompting=Prompting(thinking="medium")))
    stages: dict[str, list[str]] = {}
    for request in model.requests:
        stages.setdefault(stage_of(request), []).append(rendered(wire, request))
    rounds = [told for stage, told in stages.items() if stage.startswith("round")]
    assert sum(len(told) - 1 for told in rounds) == ROUNDS
    assert all("c2ln" in told[-1] or "hm hm" in told[-1] for told in rounds), "thoughts go back"
    least = min(share for told in stages.values() for share in shares(told))
    figure(f"{name}, {mode}: at least {least:.2%} of a request is the beginning of the next of its stage")
    assert least >= LEAST
