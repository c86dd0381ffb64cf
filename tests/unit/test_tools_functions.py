"""Function tools: what a definition becomes, and what is refused."""

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from edge_agent.core.errors import ConfigError, InvalidArguments
from edge_agent.core.tooling import ToolContext
from edge_agent.tool import tool
from tests.unit.forecast_tool import CONTEXT, forecast, ran


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
