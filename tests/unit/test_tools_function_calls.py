"""A call of a function tool: how its arguments are checked, how it runs, and what becomes of what it returns."""

import asyncio
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, Field

from edge_agent.core.errors import InvalidArguments, ToolError
from edge_agent.core.tooling import Tool, ToolContext, ToolFile, ToolOutput
from edge_agent.tool import FunctionTool, tool
from tests.unit.forecast_tool import CONTEXT, Forecast, Place, Unit, forecast, ran


# -- arguments
@pytest.mark.parametrize(
    "arguments, said",
    [
        ({}, "`place` is required"),
        ({"place": {}}, "`place.city` is required"),
        ({"place": {"city": "Oslo"}, "days": "many"}, "`days`: expected a valid integer"),
        ({"place": {"city": "Oslo"}, "unit": "k"}, "`unit`: expected 'c' or 'f', got 'k'"),
        ({"place": {"city": 5}}, "`place.city`: expected a valid string, got 5"),
        ({"place": "Oslo"}, "`place`: "),
        ({"place": {"city": "Oslo"}, "day": 1}, "`day` is not a known field; known are place, days, unit"),
        ({"place": {"city": "Oslo", "zip": "x"}}, "`place.zip`: expected a valid integer"),
        ({"place": {"city": "Oslo"}, "days": float("nan")}, "`days`: nan is not a JSON number"),
        ({"place": {"city": "\ud800"}}, "`place.city`: the text holds half of a surrogate pair"),
        ({"place": {"city": "Oslo"}, "days": 10**400}, "`days`: the number is too large"),
        ({"place": {"city": b"x"}}, "`place.city`: a bytes is not JSON"),
    ],
)
def test_invalid_arguments_are_told_by_field(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        forecast.check(arguments)
    assert said in str(refused.value)


def test_numbers_written_as_text_are_taken_as_meant() -> None:
    forecast.check({"place": {"city": "Oslo"}, "days": "3"})


def test_the_alternatives_of_a_union_are_told_as_one_field() -> None:
    @tool
    async def either(value: int | list[int]) -> str:
        return "x"

    with pytest.raises(InvalidArguments) as refused:
        either.check({"value": "x"})
    assert str(refused.value).count("`value`") == 1
    assert " or " in str(refused.value)


def test_a_validator_of_the_authors_own_may_raise_anything() -> None:
    def explode(value: str) -> str:
        raise KeyError(value)

    @tool
    async def odd(value: Annotated[str, AfterValidator(explode)]) -> str:
        return value

    with pytest.raises(InvalidArguments, match="could not be checked: KeyError"):
        odd.check({"value": "x"})


def test_what_a_function_gets_is_typed() -> None:
    @tool
    async def typed(day: date, unit: Unit, place: Place, tags: set[str], pair: tuple[int, int] = (1, 2)) -> str:
        assert isinstance(tags, set)
        return f"{day.year} {unit.name} {place.city} {pair}"

    given = {"day": "2026-11-30", "unit": "f", "place": {"city": "Rome"}, "tags": ["a"]}
    assert asyncio.run(typed.run(given, CONTEXT)).text == "2026 FAHRENHEIT Rome (1, 2)"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
NAMED = st.fixed_dictionaries({}, optional={"place": JSON, "days": JSON, "unit": JSON, "anything": JSON})


@tool
async def everything(
    *,
    a: int | str = 1,
    b: dict[str, list[float]] | None = None,
    c: Annotated[str, Field(pattern="^a+$")] = "a",
    d: Any = None,
    e: date | Unit | bytes | None = None,
    f: tuple[int, ...] = (),
) -> str:
    return "x"


@settings(max_examples=300, deadline=None)
@given(NAMED | st.dictionaries(st.sampled_from("abcdefg") | st.text(), JSON))
def test_no_argument_object_lets_another_exception_out_of_check(arguments: dict[str, Any]) -> None:
    for checked in (forecast, everything):
        try:
            checked.check(arguments)
        except InvalidArguments as error:
            refused = error
        else:
            continue
        assert str(refused).encode()


def test_bottomless_arguments_are_refused() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InvalidArguments, match="nested deeper than 100 levels"):
        everything.check({"d": deep})


# -- output
async def test_text_stays_verbatim_and_everything_else_becomes_json() -> None:
    @tool
    async def quote() -> str:
        return 'say "hi"\n'

    assert await ran(quote) == ToolOutput(text='say "hi"\n')
    output = await ran(forecast, place={"city": "Oslo"}, days=2)
    assert output == ToolOutput(text='{"degrees":20.0,"unit":"c"}', structured={"degrees": 20.0, "unit": "c"})


async def test_the_validated_value_is_what_the_model_sees() -> None:
    @tool
    async def lax() -> Forecast:
        return cast("Any", {"degrees": "3", "noise": 1})

    assert (await ran(lax)).structured == {"degrees": 3.0, "unit": "c"}


async def test_a_value_of_another_type_than_declared_is_a_failed_result_saying_what_was_expected() -> None:
    @tool
    async def wrong() -> int:
        return cast("Any", "many")

    output = await ran(wrong)
    assert not output.ok
    assert "does not fit its declared type: expected a valid integer" in output.text


async def test_nothing_is_done_and_an_undeclared_return_is_taken_as_it_comes() -> None:
    @tool
    def nothing() -> None: ...

    def undeclared() -> Any:
        return {"a": [1, date(2026, 1, 2)]}

    del undeclared.__annotations__["return"]
    assert (await ran(nothing)).text == "done"
    assert (await ran(tool(undeclared))).text == '{"a":[1,"2026-01-02"]}'


async def test_a_value_without_a_json_form_is_a_failed_result() -> None:
    @tool
    def opaque() -> Any:
        return object()

    output = await ran(opaque)
    assert not output.ok
    assert "has no JSON form" in output.text


async def test_a_tool_output_goes_on_as_it_is() -> None:
    made = ToolOutput(text="failed", ok=False, files=(ToolFile(name="a.png", media_type="image/png", content=b"x"),))

    @tool
    async def whole() -> ToolOutput:
        return made

    assert await ran(whole) is made


async def test_dataclasses_and_lists_of_models_are_dumped() -> None:
    @dataclass
    class Row:
        name: str
        tags: list[str] = field(default_factory=list[str])

    @tool
    async def rows() -> list[Row]:
        return [Row("a"), Row("b", ["x"])]

    output = await ran(rows)
    assert output.text == '[{"name":"a","tags":[]},{"name":"b","tags":["x"]}]'
    assert output.structured is None


# -- running
async def test_the_context_comes_first_and_is_no_parameter_of_the_model() -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    def report(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    context = ToolContext(run_id="r", call_id="c", step=2, idempotency_key="key", report=report)

    @tool
    async def pay(context: ToolContext, amount: int) -> str:
        context.progress(1, 2, "half")
        return f"{context.idempotency_key} {amount}"

    assert list(pay.spec.parameters["properties"]) == ["amount"]
    assert (await pay.run({"amount": 5}, context)).text == "key 5"
    assert heard == [(1, 2, "half")]
    assert CONTEXT.secret("KEY") == "s3cret"
    assert "s3cret" not in repr(CONTEXT)


async def test_invalid_arguments_never_reach_the_function() -> None:
    with pytest.raises(InvalidArguments):
        await forecast.run({}, CONTEXT)


async def test_what_a_function_raises_goes_on_and_an_exit_is_a_tools_failure() -> None:
    @tool
    def fails() -> str:
        raise ToolError("no such city")

    @tool
    def leaves() -> str:
        raise SystemExit(3)

    with pytest.raises(ToolError, match="no such city"):
        await ran(fails)
    with pytest.raises(ToolError, match="tried to end the process with exit code 3"):
        await ran(leaves)


async def test_a_cancel_of_the_call_is_a_cancel_and_one_that_came_from_within_is_a_failure() -> None:
    entered = asyncio.Event()

    @tool
    async def waits() -> str:
        entered.set()
        await asyncio.Event().wait()
        return "x"

    @tool
    async def meets_a_cancelled_future() -> str:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        future.cancel()
        return await future

    call = asyncio.ensure_future(ran(waits))
    await entered.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    with pytest.raises(ToolError, match="waited for something that was cancelled"):
        await ran(meets_a_cancelled_future)


def test_a_function_tool_is_a_tool() -> None:
    as_tool: Tool = forecast
    assert isinstance(as_tool, FunctionTool)
