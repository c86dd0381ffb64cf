"""Whatever a model writes as a call, the run goes on, the call has one answer, and the next request is well formed."""

import json
from typing import Annotated, Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from edge_agent import tool
from edge_agent.core.answers import ENDED
from edge_agent.core.canonical import canonical
from edge_agent.core.messages import AssistantMessage, ToolMessage
from edge_agent.models.scripted import Answer, ScriptedModel
from tests.conftest import Figure
from tests.unit.loop_kit import Setting, live


class Line(BaseModel):
    product: str
    count: Annotated[int, Field(ge=1)] = 1


@tool(read_only=True)
async def order(
    lines: list[Line],
    speed: Literal["slow", "fast"] = "slow",
    note: str | None = None,
    extra: dict[str, float] | None = None,
) -> str:
    """Order something."""
    return f"{len(lines)} lines, {speed}, {note!r}, {extra!r}"


TEXT = st.text(max_size=12)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, 2**63, -0.0])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
LINE: st.SearchStrategy[Any] = st.fixed_dictionaries({"product": TEXT}, optional={"count": JSON})
NEAR: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"lines": st.lists(LINE, max_size=2) | JSON},
    optional={"speed": st.sampled_from(["slow", "fast", "", 1]), "note": JSON, "extra": JSON, "unknown": JSON},
)
FITTING: st.SearchStrategy[Any] = st.fixed_dictionaries({"product": TEXT, "count": st.integers(1, 9)})
WRITTEN = NEAR.map(json.dumps) | JSON.map(json.dumps)
TWICE = WRITTEN.map(json.dumps)
CUT = st.tuples(WRITTEN, st.integers(0, 30)).map(lambda pair: pair[0][: -pair[1] or None])
SURROGATES = st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010), max_size=6)
NESTED = st.sampled_from(["[" * 5_000, '{"lines":' * 300 + "[]" + "}" * 300])
ARGUMENTS = WRITTEN | TWICE | CUT | TEXT | SURROGATES | NESTED
CALLS = st.lists(
    st.tuples(st.just("order") | st.sampled_from(["", "ordr", "find_tools"]) | TEXT, ARGUMENTS), min_size=1, max_size=3
)


@settings(max_examples=150, deadline=None)
@given(calls=CALLS)
def test_no_call_ends_a_run_and_every_one_has_its_answer(calls: list[tuple[str, str]]) -> None:
    model = ScriptedModel(answers=[Answer(calls=tuple(calls)), "done"])
    lived = live(Setting(model=model, tools=[order]))
    assert lived.state.text == "done", lived.end
    answers = [record.event for record in lived.records if isinstance(record.event, ENDED)]
    assert len(answers) == len(calls)
    asked, *told = model.requests[-1].messages[-1 - len(calls) :]
    assert isinstance(asked, AssistantMessage)
    assert [call.id for call in asked.calls] == [
        message.call_id for message in told if isinstance(message, ToolMessage)
    ]
    for call in asked.calls:
        assert isinstance(json.loads(canonical(call.arguments)), dict)
    for message in told:
        assert message.text
        message.text.encode()


def test_what_fits_the_schema_is_called_with_what_it_says(figure: Figure) -> None:
    called = 0

    @settings(max_examples=80, deadline=None)
    @given(lines=st.lists(FITTING))
    def one(lines: list[Any]) -> None:
        nonlocal called
        model = ScriptedModel(answers=[Answer(calls=(("order", json.dumps({"lines": lines})),)), "done"])
        live(Setting(model=model, tools=[order]))
        assert model.requests[-1].messages[-1].text == f"{len(lines)} lines, slow, None, None"
        called += 1

    one()
    figure(f"{called} calls that fit were made")
    assert called
