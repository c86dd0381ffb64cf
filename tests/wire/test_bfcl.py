"""Function definitions of the Berkeley Function-Calling Leaderboard, on their way into the requests of every wire.

They come in as the tools of an MCP server do: names with dots and types that are not JSON Schema are mended there."""

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from jsonschema import Draft202012Validator

from edge_agent.core.messages import ToolSpec, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.models.adapter import Adapter, Call
from edge_agent.models.anthropic import Anthropic
from edge_agent.models.endpoint import PROFILES, Endpoint
from edge_agent.models.google import Google
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.workers_ai import WorkersAI
from edge_agent.tools.json_schema import SchemaCheck, parameters
from edge_agent.tools.mcp_names import mounted
from edge_agent.tools.mending import mended
from tests.conftest import Figure
from tests.wire import anthropic_rules, google_rules, openai_rules

FIXTURES = Path(os.environ.get("EDGE_AGENT_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures")) / "bfcl"
FILES = ("simple_python", "parallel_multiple")
NAME = re.compile("[a-zA-Z0-9_-]{1,64}")
DEFINITIONS, CALLS = 920, 1007
# Accepted answers that contradict the schema of their own question. The schemas are not loosened for them.
CONTRADICTIONS = {
    "simple_python_149": "each company's name is given as a list of its own",
    "simple_python_307": "the venue, a text, may be true",
    "simple_python_358": "a diet is abbreviated or in lower case, and is none of the listed values",
    "parallel_multiple_21": "the data, lists, are given as the text of an expression",
    "parallel_multiple_94": "words are sorted where integers are asked for",
    "parallel_multiple_143": "two properties of the flute are hyphenated, the listed values are not",
    "parallel_multiple_173": "the time frame is none of the listed values",
    "parallel_multiple_194": "the unit ft is none of the listed values",
}
# Accepted answers that name a parameter the definition does not have.
UNKNOWN_PARAMETERS = {"parallel_multiple_12": "permeability", "parallel_multiple_26": "type"}


class Definition(NamedTuple):
    question: str
    original: str
    spec: ToolSpec


class Accepted(NamedTuple):
    question: str
    function: str
    arguments: dict[str, list[Any]]  # what is accepted for each; "" for leaving it out


def rows(name: str) -> list[dict[str, Any]]:
    path = FIXTURES / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"the recorded data is not there: {path} (set EDGE_AGENT_FIXTURES)")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@cache
def definitions() -> list[Definition]:
    return [definition for name in FILES for row in rows(name) for definition in _of_question(row)]


def _of_question(row: dict[str, Any]) -> Iterator[Definition]:
    names = mounted("bfcl", [function["name"] for function in row["function"]])
    for function in row["function"]:
        told = parameters(mended(function["parameters"]))
        spec = ToolSpec(name=names[function["name"]], description=function["description"], parameters=told)
        yield Definition(row["id"], function["name"], spec)


@cache
def accepted() -> list[Accepted]:
    return [
        Accepted(row["id"], function, arguments)
        for name in FILES
        for row in rows(f"{name}.answers")
        for call in row["ground_truth"]
        for function, arguments in call.items()
    ]


def unwrapped(value: Any) -> Any:
    """An object in an answer has a list of accepted values for each of its keys; the first is taken."""
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {
            key: unwrapped(inner[0] if isinstance(inner, list) and inner else inner) for key, inner in fields.items()
        }
    return [unwrapped(inner) for inner in cast(list[Any], value)] if isinstance(value, list) else value


def alternatives(answer: Accepted, required: list[str]) -> Iterator[dict[str, Any]]:
    """The call with the first accepted value of every argument, then with each other accepted value of each."""
    given = {name: values for name, values in answer.arguments.items() if name in required or values[0] != ""}
    usual = {name: unwrapped(next(value for value in values if value != "")) for name, values in given.items()}
    yield usual
    for name, values in answer.arguments.items():
        yield from ({**usual, name: unwrapped(value)} for value in values if value != "")


# -- the schemas that go out
def _asked(adapter: Adapter, spec: ToolSpec, model: str, profile: str = "default", **at: Any) -> Call:
    request = ModelRequest(system="", messages=(UserMessage(text="hi"),), tools=(spec,))
    endpoint = Endpoint(provider="test", base_url="https://models.example.com", profile=PROFILES[profile], **at)
    return adapter.call(request, endpoint, model)


def openai_chat(spec: ToolSpec) -> tuple[str, dict[str, Any]]:
    body = _asked(OpenAIChat(), spec, "gpt-5-mini", "openai").body
    openai_rules.check(body, "openai")
    told = body["tools"][0]["function"]
    return told["name"], told["parameters"]


def google(spec: ToolSpec) -> tuple[str, dict[str, Any]]:
    body = _asked(Google(), spec, "gemini-3-pro").body
    google_rules.check("gemini-3-pro", body)
    told = body["tools"][0]["functionDeclarations"][0]
    return told["name"], told["parametersJsonSchema"]


def anthropic(spec: ToolSpec) -> tuple[str, dict[str, Any]]:
    made = _asked(Anthropic(), spec, "claude-sonnet-5", key="a-key", key_header="x-api-key")
    assert not anthropic_rules.faults(made.body, made.headers)
    told = made.body["tools"][0]
    return told["name"], told["input_schema"]


def workers_ai(spec: ToolSpec) -> tuple[str, dict[str, Any]]:
    told = _asked(WorkersAI(), spec, "@cf/meta/llama-3.3-70b-instruct-fp8-fast").body["tools"][0]["function"]
    return told["name"], told["parameters"]


TOLD: dict[str, Callable[[ToolSpec], tuple[str, dict[str, Any]]]] = {
    "openai_chat": openai_chat,
    "anthropic": anthropic,
    "google": google,
    "workers_ai": workers_ai,
}


@pytest.mark.parametrize("adapter", TOLD)
def test_every_definition_becomes_a_valid_tool(adapter: str, figure: Figure) -> None:
    valid = 0
    for definition in definitions():
        name, schema = TOLD[adapter](definition.spec)
        assert NAME.fullmatch(name), definition
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object", definition
        assert set(schema["properties"]) == set(definition.spec.parameters["properties"]), definition
        if adapter == "workers_ai":
            assert all({"type", "description"} <= told.keys() for told in schema["properties"].values()), definition
        valid += 1
    figure(f"definitions of the leaderboard as tools of {adapter}: {valid}/{len(definitions())}")
    assert valid == DEFINITIONS


@pytest.mark.parametrize("adapter", [*TOLD, "the check before a call"])
def test_accepted_answers_fit_their_schemas_but_for_those_that_contradict_them(adapter: str, figure: Figure) -> None:
    schemas = {(one.question, one.original): one.spec for one in definitions()}
    failed: set[str] = set()
    for answer in accepted():
        spec = schemas[answer.question, answer.function]
        check = SchemaCheck(TOLD[adapter](spec)[1] if adapter in TOLD else spec.parameters)
        known = spec.parameters["properties"].keys()
        for arguments in alternatives(answer, spec.parameters.get("required", [])):
            assert arguments.keys() - known <= {UNKNOWN_PARAMETERS.get(answer.question)}
            if check.faults({name: value for name, value in arguments.items() if name in known}):
                failed.add(answer.question)
    whole = sum(answer.question not in failed for answer in accepted())
    figure(f"accepted calls that fit, {adapter}: {whole}/{len(accepted())}, all but those of {sorted(failed)}")
    assert failed == CONTRADICTIONS.keys()
    assert len(accepted()) == CALLS


def test_a_name_with_a_dot_is_given_to_no_model(figure: Figure) -> None:
    names = [definition.spec.name for definition in definitions()]
    dotted = sum("." in definition.original for definition in definitions())
    figure(f"names with dots made safe: {dotted}/{len(names)}")
    assert dotted > 0
    assert not any("." in name for name in names)
