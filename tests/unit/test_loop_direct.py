"""The direct loop: model and tools take turns until the model answers, or a cap says that it must."""

import asyncio

import pytest

from edge_agent import Hooks, Limits, Turn, tool
from edge_agent.core.errors import ConfigError, ModelError
from edge_agent.core.events import (
    Boundary,
    BudgetExceeded,
    Fault,
    ModelAnswered,
    ModelRefused,
    ModelRequested,
    RunCancelled,
    RunCompleted,
    StepReasoningDelta,
    StepTextDelta,
    ToolRejected,
    ToolResult,
    UsageSoFar,
)
from edge_agent.core.messages import AssistantMessage, OpaquePart, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.tooling import Tool
from edge_agent.core.usage import Usage
from edge_agent.loop import prompts
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.tools.toolbox import Toolbox
from tests.unit.loop_kit import Lived, Setting, cancels, live


@tool(read_only=True)
async def look(q: str = "") -> str:
    """Look something up."""
    await asyncio.sleep(0.1)
    return f"found {q}"


def looks(*queries: str) -> Answer:
    return Answer(calls=tuple(("look", {"q": query}) for query in queries))


def completed(lived: Lived) -> RunCompleted:
    assert isinstance(lived.end, RunCompleted), lived.end
    return lived.end


def test_an_answer_its_provider_paused_is_shown_to_it_again_and_goes_on() -> None:
    paused = Answer(text="Searching.", opaque=({"ran": "there"},), finish="paused")
    model = ScriptedModel(answers=[paused, "Found."])
    assert completed(live(Setting(model=model))).text == "Found."
    shown = model.requests[1].messages[-1]
    assert isinstance(shown, AssistantMessage)
    assert (shown.text, [part.data for part in shown.opaque]) == ("Searching.", [{"ran": "there"}])


def test_an_answer_without_calls_ends_the_run() -> None:
    model = ScriptedModel(answers=[Answer(text="Hello there", reasoning="Let me think")])
    lived = live(Setting(model=model, instructions="Be kind.", history=(Turn(role="assistant", text="Hi"),)))
    assert completed(lived) == RunCompleted(stop_reason="stop", text="Hello there", usage=Usage(input=10, output=5))
    assert lived.all_keys() == ["run", "life/0", "s1/r1", "s1/r1/a0", "s1/r1/a0/end", "end/0"]
    request = model.requests[0]
    assert request.system.startswith("Be kind.\n\n")
    assert request.messages == (AssistantMessage(text="Hi"), UserMessage(text="do it"))
    assert request.tool_choice == "none"
    assert request.metadata == {"run": "run-1", "agent": "a", "stage": "round", "step": "1"}
    assert "".join(d.delta for d in lived.passing(StepTextDelta)) == "Hello there"
    assert "".join(d.delta for d in lived.passing(StepReasoningDelta)) == "Let me think"
    assert lived.passing(UsageSoFar)[-1].usage.output == 5


def test_tools_answer_in_the_order_of_the_calls_and_the_model_goes_on() -> None:
    model = ScriptedModel(answers=[looks("a", "b"), "done"])
    lived = live(Setting(model=model, tools=[look]))
    assert completed(lived).text == "done"
    *_, said, first, second = model.requests[1].messages
    assert isinstance(said, AssistantMessage)
    calls = [call.id for call in said.calls]
    assert [first, second] == [
        ToolMessage(call_id=calls[0], name="look", text="found a", ok=True),
        ToolMessage(call_id=calls[1], name="look", text="found b", ok=True),
    ]
    assert lived.of(Boundary)[0].tools.names == ("look",)


def test_no_usage_by_the_provider_is_estimated_and_said_so() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[Answer(text="twelve chars", usage=None)])))
    answered = lived.of(ModelAnswered)[0]
    assert answered.estimated
    assert answered.usage.input == lived.of(ModelRequested)[0].estimated_input
    assert answered.usage.output > 0


def test_an_answer_cut_by_its_output_cap_says_so_and_its_calls_never_run() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[Answer(text="half", finish="length")])))
    assert completed(lived).stop_reason == "max_tokens"
    cut = Answer(calls=(("look", {"q": "a"}),), finish="length")
    lived = live(Setting(model=ScriptedModel(answers=[cut, "done"]), tools=[look]))
    assert [r.reason for r in lived.of(ToolRejected)] == ["cut-off"]
    assert completed(lived).stop_reason == "stop"


def test_a_stream_far_beyond_its_cap_is_stopped() -> None:
    model = ScriptedModel(answers=[Answer(text="word " * 2_000)], piece=50)
    lived = live(Setting(model=model, limits=Limits(max_output_tokens_per_call=100)))
    assert completed(lived).stop_reason == "max_tokens"
    assert len(completed(lived).text) < 1_500
    assert model.closed == 1


def test_after_the_last_step_there_is_one_round_without_tools() -> None:
    model = ScriptedModel(answers=[looks("a"), looks("b"), "what I know"])
    lived = live(Setting(model=model, tools=[look], limits=Limits(max_steps=2)))
    assert completed(lived).stop_reason == "max_steps"
    assert completed(lived).text == "what I know"
    last = model.requests[-1]
    assert last.tools == ()
    assert last.messages[-1] == UserMessage(text=prompts.LAST_ROUND)
    assert [b.kind for b in lived.of(BudgetExceeded)] == ["steps"]


def test_calls_in_the_round_without_tools_are_answered_and_it_is_the_last_all_the_same() -> None:
    model = ScriptedModel(answers=[looks("a"), Answer(text="one more", calls=(("look", {}),))])
    lived = live(Setting(model=model, tools=[look], limits=Limits(max_steps=1)))
    assert completed(lived).text == "one more"
    assert lived.of(ToolRejected)[0].message == "There is no tool look. Tools: none in this round."


def test_tokens_are_kept_for_a_last_answer() -> None:
    def look_or_end(request: ModelRequest) -> Answer:
        if request.tools:
            return looks(f"more after {len(request.messages)}")
        return Answer(text="enough", usage=Usage(input=300, output=50))

    model = ScriptedModel(answers=[look_or_end] * 30)
    limits = Limits(max_steps=None, max_total_tokens=4_000, max_output_tokens_per_call=300, max_reasoning_tokens=2_000)
    lived = live(Setting(model=model, tools=[look], limits=limits))
    assert completed(lived).stop_reason == "budget"
    assert completed(lived).text == "enough"
    assert [b.kind for b in lived.of(BudgetExceeded)] == ["total"]
    assert lived.state.spent.total <= 4_000
    assert all(r.output_cap and r.output_cap <= 300 for r in lived.of(ModelRequested))


def test_where_not_even_the_last_answer_fits_the_last_text_stands() -> None:
    model = ScriptedModel(answers=[Answer(text="a first word", calls=(("look", {"q": "x" * 4_000}),))])
    lived = live(Setting(model=model, tools=[look], limits=Limits(max_total_tokens=900)))
    assert completed(lived).stop_reason == "budget"
    assert completed(lived).text == "a first word"
    assert len(model.requests) == 1


def test_a_retry_that_no_longer_fits_is_refused_and_the_last_answer_is_still_made() -> None:
    down = ModelError("unavailable", "down", retryable=True)
    lost = Answer(text="b " * 700, usage=Usage(input=300, output=1_500), error=down)
    model = ScriptedModel(answers=[lost, Answer(text="short", usage=Usage(input=100, output=5))])
    lived = live(Setting(model=model, tools=[look], limits=Limits(max_output_tokens=1_600)))
    assert len(lived.of(ModelRefused)) == 1
    assert completed(lived).stop_reason == "budget"
    assert completed(lived).text in ("short", "")


def test_active_seconds_are_counted_without_waiting() -> None:
    @tool(read_only=True)
    async def slow() -> str:
        """Take a while."""
        await asyncio.sleep(8)
        return "done"

    busy = ModelError("rate-limited", "busy", retryable=True, retry_after=600)
    model = ScriptedModel(answers=[busy, Answer(calls=(("slow", {}),)), Answer(calls=(("slow", {}),)), "the end"])
    lived = live(Setting(model=model, tools=[slow], limits=Limits(max_seconds=10)))
    assert completed(lived).stop_reason == "budget"
    exceeded = lived.of(BudgetExceeded)[0]
    assert exceeded.kind == "seconds"
    assert 16 <= exceeded.used < 20


def test_a_model_that_would_call_tools_for_ever_is_given_none_after_a_round_of_tools() -> None:
    model = ScriptedModel(answers=[looks("a"), "text"])
    lived = live(Setting(model=model, tools=[look], force_text=True))
    assert [b.tools.names for b in lived.of(Boundary)] == [("look",), ()]
    assert completed(lived).text == "text"
    own = ScriptedModel(answers=[looks("a"), "text"], force_text_after_tool=True)
    assert live(Setting(model=own, tools=[look])).of(Boundary)[1].tools.names == ()


class Shelf:
    """A source of tools whose server goes away."""

    name = "docs"

    def __init__(self, *lists: tuple[str, ...] | str) -> None:
        self.lists, self.found = list(lists), tuple[Tool, ...]()

    async def refresh(self) -> tuple[str, ...]:
        said = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        self.found = () if isinstance(said, str) else tuple(self._tool(f"docs__{name}") for name in said)
        return (said,) if isinstance(said, str) else ()

    def sign_in(self) -> None:
        return None

    def tools(self) -> tuple[Tool, ...]:
        return self.found

    async def close(self) -> None:
        pass

    def _tool(self, name: str) -> Tool:
        @tool(name=name, read_only=True)
        async def read() -> str:
            """Read."""
            return name

        return read


def test_a_server_that_stays_away_is_reported_once() -> None:
    box = Toolbox([look], [Shelf("docs is down")])
    lived = live(Setting(model=ScriptedModel(answers=[looks("a"), looks("b"), "done"]), toolbox=box))
    assert [f.message for f in lived.of(Fault)] == ["docs is down"]


def test_the_tools_of_a_round_are_those_of_its_boundary() -> None:
    box = Toolbox([], [Shelf(("one",), ("two",))])
    model = ScriptedModel(answers=[Answer(calls=(("docs__one", {}),)), Answer(calls=(("docs__one", {}),)), "done"])
    lived = live(Setting(model=model, toolbox=box))
    assert [b.tools.names for b in lived.of(Boundary)][:2] == [("docs__one",), ("docs__two",)]
    assert [r.output for r in lived.of(ToolResult)] == ["docs__one"]
    assert [r.reason for r in lived.of(ToolRejected)] == ["unknown-tool"]
    assert [[t.name for t in r.tools] for r in model.requests][:2] == [["docs__one"], ["docs__two"]]


def test_a_model_that_is_not_configured_fails_the_run_with_the_setting() -> None:
    class Missing(dict[str, Model]):
        def __missing__(self, name: str) -> Model:
            raise ConfigError("EDGE_AGENT_MODEL", f"knows no {name}", "x/y")

    lived = live(Setting(model=Missing(), names=("gone",)))
    assert lived.error.kind == "config"
    assert "EDGE_AGENT_MODEL" in lived.error.message


def test_a_configuration_that_broke_since_the_start_fails_the_run_at_once() -> None:
    def broken() -> None:
        raise ConfigError("agents", "the agent a is no longer in the code", 'Agent(name="a")')

    lived = live(Setting(model=ScriptedModel(answers=[]), ports=broken))
    assert lived.error.kind == "config"
    assert lived.object.rings == 1
    cancelled = live(Setting(model=ScriptedModel(answers=[]), ports=broken, acts={"life/0": cancels}))
    assert isinstance(cancelled.end, RunCancelled), "what a person wanted wins"


@pytest.mark.parametrize("names", [("look",), ("look", "docs__one")])
def test_the_version_of_the_offered_tools_changes_with_their_descriptions(names: tuple[str, ...]) -> None:
    def version(description: str) -> str:
        class Fixed(Toolbox):
            def offered(self) -> tuple[ToolSpec, ...]:
                return tuple(ToolSpec(name=n, description=description, parameters={}) for n in names)

        lived = live(Setting(model=ScriptedModel(answers=["done"]), toolbox=Fixed()))
        return lived.of(Boundary)[0].tools.version

    assert version("one") == version("one")
    assert version("one") != version("two")


def test_hooks_and_steps_are_as_many_as_rounds() -> None:
    seen: list[int] = []
    hooks = Hooks(before_model=lambda request: seen.append(len(request.messages)))
    live(Setting(model=ScriptedModel(answers=[looks("a"), looks("b"), "done"]), tools=[look], hooks=hooks))
    assert seen == [1, 3, 5]


def test_parts_only_a_provider_understands_are_kept_and_sent_back() -> None:
    signed = Answer(calls=(("look", {"q": "a"}),), opaque=({"signature": "c2ln"},))
    model = ScriptedModel(answers=[signed, "done"])
    lived = live(Setting(model=model, tools=[look]))
    part = OpaquePart(provider="scripted", data={"signature": "c2ln"})
    assert lived.of(ModelAnswered)[0].message.opaque == (part,)
    said = model.requests[1].messages[1]
    assert isinstance(said, AssistantMessage)
    assert said.opaque == (part,)


def test_a_cap_that_is_crossed_again_in_the_same_life_is_said_once() -> None:
    def look_for_ever(request: ModelRequest) -> Answer:
        return looks("more") if request.tools else Answer(text="", cut=True, usage=Usage(input=900, output=10))

    model = ScriptedModel(answers=[look_for_ever] * 30)
    lived = live(Setting(model=model, tools=[look], limits=Limits(max_steps=None, max_input_tokens=2_500)))
    assert [b.kind for b in lived.of(BudgetExceeded)] == ["input"]
    assert completed(lived).stop_reason == "budget"
    assert len(lived.of(ModelRefused)) == 1
