"""Function tools: what a definition becomes, what is refused, and how a call is checked and answered."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from edge_agent.core.errors import ConfigError, InvalidArguments, ToolError
from edge_agent.core.tooling import Tool, ToolContext, ToolFile, ToolOutput
from edge_agent.tool import FunctionTool, tool

CONTEXT = ToolContext(run_id="r1", call_id="abc123def", step=1, idempotency_key="k1", secrets={"KEY": "s3cret"})


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    zip: int | None = None


class Forecast(BaseModel):
    degrees: float
    unit: Unit = Unit.CELSIUS


@tool
async def forecast(place: Place, days: int = 1, unit: Literal["c", "f"] = "c") -> Forecast:
    """Look up the weather forecast.

    Uses the national service.

    Args:
        place: Where, with the city's name
            in English.
        days (int): How many days ahead.

    Returns:
        Degrees of the day.
    """
    return Forecast(degrees=days * 10.0)


async def ran(called: Tool, **arguments: Any) -> ToolOutput:
    return await called.run(arguments, CONTEXT)


# -- what a definition becomes
def test_name_description_and_parameters_come_from_the_function_and_its_docstring() -> None:
    assert forecast.spec.name == "forecast"
    described = "Look up the weather forecast.\n\nUses the national service.\n\nReturns:\n    Degrees of the day."
    assert forecast.spec.description == described
    properties = forecast.spec.parameters["properties"]
    assert properties["place"]["description"] == "Where, with the city's name in English."
    assert properties["days"] == {"default": 1, "description": "How many days ahead.", "type": "integer"}
    assert properties["unit"]["enum"] == ["c", "f"]
    assert forecast.spec.parameters["required"] == ["place"]
    assert forecast.spec.parameters["additionalProperties"] is False


def test_a_schema_holds_no_titles_but_keeps_a_field_that_is_named_title() -> None:
    class Book(BaseModel):
        title: str

    @tool
    async def add(book: Book, title: str = "none") -> str:
        return title

    assert add.spec.parameters["properties"]["title"] == {"default": "none", "type": "string"}
    assert add.spec.parameters["$defs"]["Book"]["properties"] == {"title": {"type": "string"}}
    assert '"title":"' not in json.dumps(add.spec.parameters, separators=(",", ":"))


def test_a_tool_without_parameters_still_has_properties() -> None:
    @tool
    async def now() -> str:
        return "noon"

    assert now.spec.parameters == {"additionalProperties": False, "properties": {}, "type": "object"}
    assert now.spec.description == ""


def test_options_are_taken_over_and_either_promise_makes_a_call_safe_to_repeat() -> None:
    @tool(name="put", description="Puts.", timeout=5, idempotent=True, on_unknown="ask")
    def put_it(value: int) -> None: ...

    assert (put_it.spec.name, put_it.spec.description, put_it.timeout) == ("put", "Puts.", 5)
    assert (put_it.read_only, put_it.safe_to_repeat, put_it.on_unknown, put_it.server) == (False, True, "ask", None)
    assert tool(read_only=True)(lambda_free).safe_to_repeat
    assert not tool(lambda_free).safe_to_repeat
    assert tool(lambda_free).on_unknown == "report"
    assert tool(lambda_free).timeout == 30


def lambda_free(value: int) -> int:
    return value


def test_parameters_may_have_names_a_pydantic_model_could_not_have() -> None:
    @tool
    async def odd(schema: str, copy: int, _under: int, model_config: int, field_0: int) -> list[Any]:
        return [schema, copy, _under, model_config, field_0]

    arguments = {"schema": "a", "copy": 1, "_under": 2, "model_config": 3, "field_0": 4}
    assert asyncio.run(odd.run(arguments, CONTEXT)).text == '["a",1,2,3,4]'
    assert list(odd.spec.parameters["properties"]) == list(arguments)


def test_a_description_in_the_annotation_wins_over_the_docstring() -> None:
    @tool
    async def find(query: Annotated[str, Field(description="from the type", max_length=3)]) -> str:
        """Find.

        Args:
            query: from the docstring
        """
        return query

    assert find.spec.parameters["properties"]["query"]["description"] == "from the type"
    with pytest.raises(InvalidArguments, match="at most 3 characters"):
        find.check({"query": "long"})


def test_a_default_that_json_cannot_say_is_left_out_of_the_schema_and_still_applies() -> None:
    marker = object()

    @tool
    async def keep(value: Annotated[Any, Field()] = marker) -> bool:
        return value is marker

    assert "default" not in keep.spec.parameters["properties"]["value"]
    assert asyncio.run(ran(keep)).text == "true"


def test_the_decorated_function_can_still_be_called_in_its_own_test() -> None:
    assert tool(lambda_free)(3) == 3


# -- what is refused at import
def annotated(annotation: Any) -> Any:
    def function(value: int) -> str:
        return "x"

    function.__annotations__["value"] = annotation
    return function


def no_annotation(query: str) -> str:
    return "x"


del no_annotation.__annotations__["query"]


def any_number(*values: int) -> str:
    return "x"


def any_names(**values: int) -> str:
    return "x"


def positional(value: int, /) -> str:
    return "x"


def late_context(value: int, context: ToolContext) -> str:
    return "x"


def field_default(value: int = Field(3, ge=1)) -> str:
    return "x"


def find_tools(query: str) -> str:
    return "x"


def transfer_to_sales(query: str) -> str:
    return "x"


async def yields(value: int) -> Any:
    yield value


class Service:
    def look(self, value: int) -> str:
        return "x"


@pytest.mark.parametrize(
    "function, said",
    [
        (no_annotation, "`query` has no annotation"),
        (any_number, "`values` takes any number of arguments"),
        (any_names, "`values` takes any names"),
        (positional, "`value` is positional-only"),
        (late_context, "`context` is the ToolContext, which must come first"),
        (field_default, "`value` has a Field as its default"),
        (annotated("Missing"), "annotations cannot be read"),
        (annotated(asyncio.Event), "type cannot be checked"),
        (annotated(Callable[[], int]), "type cannot be described to a model"),
        (find_tools, "belongs to a built-in tool"),
        (transfer_to_sales, "belong to handoffs"),
        (yields, "cannot yield"),
        (Service.look, "a method cannot be a tool"),
        (lambda: 1, "does not fit"),
    ],
)
def test_a_definition_that_cannot_work_fails_at_import_and_shows_one_that_does(function: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tool(function)
    assert said in str(refused.value)
    assert refused.value.setting.startswith("@tool")
    assert "Example: " in str(refused.value)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"name": "two words"}, "does not fit"),
        ({"name": "9lives"}, "does not fit"),
        ({"name": "x" * 65}, "does not fit"),
        ({"timeout": 0}, "timeout must be seconds above 0"),
        ({"timeout": float("nan")}, "timeout must be seconds above 0"),
        ({"on_unknown": "panic"}, "on_unknown must be one of report, ask, retry, fail"),
    ],
)
def test_an_option_that_cannot_work_fails_at_import(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        tool(**options)(lambda_free)


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
