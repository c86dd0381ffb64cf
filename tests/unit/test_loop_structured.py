"""A final answer in the form a run asks for."""

from dataclasses import replace

from edge_agent.core.events import ModelRequested, RunCompleted
from edge_agent.models.scripted import ScriptedModel
from edge_agent.tools.json_schema import SchemaCheck
from tests.unit.loop_kit import Setting, live

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def asking(*answers: str) -> Setting:
    model = ScriptedModel(answers=list(answers))
    return Setting(model=model, output_schema=SCHEMA, faults=lambda schema, value: SchemaCheck(schema).faults(value))


def test_an_answer_of_the_form_is_the_output() -> None:
    end = live(asking('{"n": 3}')).end
    assert isinstance(end, RunCompleted)
    assert (end.output, end.text) == ({"n": 3}, '{"n": 3}')


def test_an_answer_of_another_form_is_mended() -> None:
    setting = asking("three", '```json\n{"n": "three"}\n```', '{"n": 3}')
    lived = live(setting)
    assert isinstance(lived.end, RunCompleted)
    assert lived.end.output == {"n": 3}
    stages = [(asked.stage, asked.attempt) for asked in lived.of(ModelRequested)]
    assert stages == [("round", 0), ("final", 0), ("final", 0)]
    assert isinstance(setting.model, ScriptedModel)
    last = setting.model.requests[-1]
    assert (last.output_schema, last.tools, last.tool_choice) == (SCHEMA, (), "none")
    assert "is not of type" in last.messages[-1].text or "integer" in last.messages[-1].text


def test_an_answer_that_cannot_be_mended_fails_the_run_and_says_so() -> None:
    lived = live(asking("one", "two", "three"))
    assert (lived.error.kind, lived.error.code) == ("output", "output")
    assert "not JSON" in lived.error.message


def test_not_a_number_is_no_json() -> None:
    assert live(asking('{"n": NaN}', '{"n": 1}')).state.text == '{"n": 1}'


def test_without_a_schema_nothing_is_asked_again() -> None:
    lived = live(replace(asking("plain words"), output_schema=None))
    assert isinstance(lived.end, RunCompleted)
    assert (lived.end.text, lived.end.output) == ("plain words", None)
