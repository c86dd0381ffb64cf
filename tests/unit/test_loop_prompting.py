"""What of an agent's prompting reaches its model, and what comes of a model that refuses to think."""

from collections.abc import AsyncGenerator

from edge_agent import tool
from edge_agent.core.errors import ModelError
from edge_agent.core.events import Log, ModelAnswered, ModelFailed, RunCompleted
from edge_agent.core.model import ModelEvent, ModelRequest, PromptCache, Warned
from edge_agent.core.prompting import Prompting
from edge_agent.models.scripted import Answer, ScriptedModel
from tests.unit.loop_kit import Setting, live

REFUSED = ModelError("thinking-refused", "400: thinking may not be enabled here", retryable=True)


def test_a_request_carries_the_thinking_of_its_stage_the_runs_cache_and_the_options_of_its_model() -> None:
    model = ScriptedModel(answers=["done"])
    lived = live(Setting(model=model, prompting=Prompting(thinking="high", options={"scripted/scripted": {"seed": 7}})))
    asked = model.requests[0]
    assert (asked.thinking, asked.include_thoughts, asked.options) == ("high", True, {"seed": 7})
    assert asked.cache == PromptCache(key=f"edge-agent-{lived.object.run_id}")


def test_a_model_that_refuses_to_think_is_asked_again_without_it_and_that_is_told() -> None:
    model = ScriptedModel(answers=[Answer(error=REFUSED, usage=None), "done"])
    lived = live(Setting(model=model, prompting=Prompting(thinking="high")))
    assert isinstance(lived.end, RunCompleted)
    assert [request.thinking for request in model.requests] == ["high", "none"]
    assert [failed.error for failed in lived.of(ModelFailed)] == ["thinking-refused"]
    assert lived.of(ModelFailed)[0].usage.input == 0, "it was refused before it was read"
    assert len(lived.of(ModelAnswered)) == 1
    warnings = [item for item in lived.items if isinstance(item, Log)]
    assert [warning.level for warning in warnings] == ["warning"]
    assert "without thinking" in warnings[0].message


class Loosening(ScriptedModel):
    """Says with each call what of it could not be told."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield Warned(message="The schema of look was loosened.")
        async for event in super().stream(request):
            yield event


@tool(read_only=True)
async def look() -> str:
    """Look something up."""
    return "found"


def test_what_is_true_of_every_round_is_told_once() -> None:
    model = Loosening(answers=[Answer(calls=(("look", {}),)), Answer(calls=(("look", {}),)), "done"])
    lived = live(Setting(model=model, tools=[look]))
    assert len(model.requests) == 3
    assert lived.passing(Log) == [Log(level="warning", message="The schema of look was loosened.")]
