"""What goes out to Gemini: path, headers and body; every body is checked by the rules of its API."""

import json
from itertools import pairwise
from typing import Any

import pytest

from edge_agent.core.canonical import canonical
from edge_agent.core.messages import AssistantMessage, Message, OpaquePart, ToolCall, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import ModelRequest, Thinking
from edge_agent.models.adapter import Call
from edge_agent.models.endpoint import Endpoint, Profile
from edge_agent.models.google import Google
from tests.conftest import Figure
from tests.wire.google_rules import UNSIGNED, Refused, check

Json = dict[str, Any]
BASE = "https://generativelanguage.googleapis.com/v1beta"
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
NOW = ToolSpec(name="now", description="The time.", parameters={"type": "object", "properties": {}})
USER = UserMessage(text="hi")
SCHEMA: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
NEW, PRO, OLD = "gemini-3-flash-preview", "gemini-3-pro-preview", "gemini-2.5-flash"


def call(request: ModelRequest, model: str = NEW, **endpoint: Any) -> Call:
    fields: Json = {"provider": "google", "base_url": BASE, "key": "a-google-key", **endpoint}
    fields |= {"key_header": "x-goog-api-key", "metadata_header": "cf-aig-metadata"}
    at = Endpoint(**fields)
    made = Google().call(request, at, model)
    check(model, made.body)
    return made


def request(**more: Any) -> ModelRequest:
    fields: Json = {"system": "Be brief.", "messages": (USER,), "include_thoughts": False, **more}
    return ModelRequest(**fields)


def body(asked: ModelRequest, model: str = NEW, **endpoint: Any) -> Json:
    return call(asked, model, **endpoint).body


def contents(*messages: Message, model: str = NEW, **more: Any) -> list[Json]:
    return body(request(messages=messages, tools=(ADD, NOW), **more), model)["contents"]


def add(number: int, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"call0000{number}", name="add", arguments=arguments)


def result(of: ToolCall, text: str = "2", *, ok: bool = True) -> ToolMessage:
    return ToolMessage(call_id=of.id, name=of.name, text=text, ok=ok)


def signed(*parts: Json, model: str | None = NEW, provider: str = "google") -> tuple[OpaquePart, ...]:
    return (OpaquePart(provider=provider, model=model, data={"parts": list(parts)}),)


# -- the whole of it
def test_the_plain_request_has_no_field_it_does_not_need() -> None:
    assert body(request()) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }
    assert body(request(system="")).keys() == {"contents"}


def test_the_model_stands_in_the_path_and_the_stream_is_asked_for_in_the_query() -> None:
    made = call(request())
    endpoint = Endpoint(provider="google", base_url=f"{BASE}?project=x#there")
    assert made.path == f"/models/{NEW}:streamGenerateContent?alt=sse"
    assert endpoint.url(made.path) == f"{BASE}/models/{NEW}:streamGenerateContent?project=x&alt=sse"
    assert (
        Endpoint(provider="google", base_url=BASE).url(made.path)
        == f"{BASE}/models/{NEW}:streamGenerateContent?alt=sse"
    )
    assert call(request(), "a/b?c").path == "/models/a%2Fb%3Fc:streamGenerateContent?alt=sse"


def test_the_key_goes_into_google_s_own_header() -> None:
    made = call(request(), headers={"X-Team": "a"})
    assert made.headers == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "edge-agent",
        "x-goog-api-key": "a-google-key",
        "x-team": "a",
    }
    assert "x-goog-api-key" not in call(request(), key=None).headers


def test_a_gateway_is_told_about_the_run() -> None:
    assert call(request(metadata={"run": "r1"})).headers["cf-aig-metadata"] == '{"run": "r1"}'


def test_options_win_field_by_field_in_generation_config_and_whole_elsewhere() -> None:
    asked = request(
        max_output_tokens=100,
        thinking="low",
        options={"generationConfig": {"temperature": 0, "thinkingConfig": {"thinkingLevel": "HIGH"}}},
    )
    made = body(asked, options={"safetySettings": [], "generationConfig": {"temperature": 1, "seed": 7}})
    thinking = {"thinkingLevel": "HIGH"}
    assert made["generationConfig"] == {"maxOutputTokens": 100, "thinkingConfig": thinking, "temperature": 0, "seed": 7}
    assert made["safetySettings"] == []
    assert body(request(options={"generationConfig": {"topK": 1}}))["generationConfig"] == {"topK": 1}


# -- turns
def test_calls_and_results_carry_our_ids_and_stand_in_turns_of_their_own() -> None:
    calls = (add(1, a=1, b="ü"), ToolCall(id="call00002", name="now", arguments={}, malformed="{"))
    told = contents(
        USER,
        AssistantMessage(text="Let me see.", calls=calls),
        result(calls[0]),
        result(calls[1], "no clock", ok=False),
        UserMessage(text="hurry"),
        model=OLD,
    )
    assert told[1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "Let me see."},
                {"functionCall": {"id": "call00001", "name": "add", "args": {"a": 1, "b": "ü"}}},
                {"functionCall": {"id": "call00002", "name": "now", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call00001", "name": "add", "response": {"output": "2"}}},
                {"functionResponse": {"id": "call00002", "name": "now", "response": {"error": "no clock"}}},
                {"text": "hurry"},
            ],
        },
    ]


def test_turns_alternate_whatever_the_history() -> None:
    empty, said = AssistantMessage(), AssistantMessage(text="a")
    told = contents(said, said, USER, empty, USER, AssistantMessage(opaque=signed({"text": 0})), USER)
    assert [content["role"] for content in told] == ["user", "model", "user"]
    assert [len(content["parts"]) for content in told] == [1, 2, 3]


def test_a_signature_goes_back_in_the_very_part_it_came_in() -> None:
    one, two = add(1, a=1), add(2, a=2)
    kept = signed(
        {"part": {"text": "I thought.", "thought": True, "thoughtSignature": "c2ln"}},
        {"text": 3, "thoughtSignature": "YWJj"},
        {"text": 2},
        {"call": True, "thoughtSignature": "ZGVm"},
        {"call": True},
        {"text": 0, "thoughtSignature": "Z2hp"},
    )
    told = contents(USER, AssistantMessage(text="Okay.", calls=(one, two), opaque=kept), result(one), result(two))
    assert told[1]["parts"] == [
        {"text": "I thought.", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "Oka", "thoughtSignature": "YWJj"},
        {"text": "y."},
        {"functionCall": {"id": one.id, "name": "add", "args": {"a": 1}}, "thoughtSignature": "ZGVm"},
        {"functionCall": {"id": two.id, "name": "add", "args": {"a": 2}}},
        {"text": "", "thoughtSignature": "Z2hp"},
    ]


@pytest.mark.parametrize("text", ["[secret] it is", ""])
def test_a_text_that_was_changed_since_stays_whole_and_so_do_the_calls(text: str) -> None:
    kept = signed({"text": 3}, {"call": True, "thoughtSignature": "YWJj"}, {"text": 2})
    one, two = add(1), add(2)
    told = contents(USER, AssistantMessage(text=text, calls=(one, two), opaque=kept), result(one), result(two))
    parts = told[1]["parts"]
    assert [part["text"] for part in parts if "text" in part] == [text] * bool(text)
    assert [part.get("thoughtSignature") for part in parts if "functionCall" in part] == ["YWJj", None]


def test_a_text_without_a_place_of_its_own_comes_first_and_a_call_that_is_gone_is_no_part() -> None:
    kept = signed({"call": True, "thoughtSignature": "YWJj"}, {"call": True})
    one = add(1)
    parts = contents(USER, AssistantMessage(text="Hm.", calls=(one,), opaque=kept), result(one))[1]["parts"]
    assert parts[0] == {"text": "Hm."}
    assert [part.get("thoughtSignature") for part in parts] == [None, "YWJj"]


@pytest.mark.parametrize(
    "opaque",
    [
        (),
        signed({"call": True, "thoughtSignature": "YWJj"}, {"call": True}, model=PRO),
        signed({"call": True, "thoughtSignature": "YWJj"}, {"call": True}, provider="vertex"),
        (OpaquePart(provider="anthropic", data={"blocks": [{"type": "thinking", "signature": "x"}, {"call": 0}]}),),
        (OpaquePart(provider="openrouter", data={"message": {"reasoning_details": [{"type": "x"}]}}),),
    ],
)
def test_a_history_that_began_elsewhere_carries_the_documented_placeholder(opaque: tuple[OpaquePart, ...]) -> None:
    one, two = add(1), add(2)
    answer = AssistantMessage(calls=(one, two), opaque=opaque)
    told = contents(USER, answer, result(one), result(two), USER, AssistantMessage(text="Done."), USER)
    assert [part.get("thoughtSignature") for part in told[1]["parts"]] == [UNSIGNED, None]
    assert "thoughtSignature" not in told[3]["parts"][0]
    older = contents(USER, answer, result(one), result(two), model=OLD)
    assert "thoughtSignature" not in older[1]["parts"][0]


# -- tools
def test_tools_are_declared_in_their_order_by_json_schema_and_no_tools_means_no_field() -> None:
    made = body(request(tools=(NOW, ADD)))
    assert made["tools"] == [
        {
            "functionDeclarations": [
                {"name": "now", "description": "The time.", "parametersJsonSchema": NOW.parameters},
                {"name": "add", "description": "Adds.", "parametersJsonSchema": ADD.parameters},
            ]
        }
    ]
    assert not {"tools", "toolConfig"} & body(request(tool_choice="required")).keys()


@pytest.mark.parametrize("choice, mode", [("auto", None), ("none", "NONE"), ("required", "ANY")])
def test_the_tool_choice_is_a_mode(choice: str, mode: str | None) -> None:
    made = body(request(tools=(ADD,), tool_choice=choice))
    assert made.get("toolConfig") == (mode and {"functionCallingConfig": {"mode": mode}})


def test_schemas_are_told_in_google_s_words_and_what_cannot_be_said_is_a_warning() -> None:
    loose: Json = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/place"}, "kind": {"const": "a"}, "x": {"$ref": "https://e.example/x"}},
        "$defs": {"place": {"type": "string"}},
    }
    spec = ToolSpec(name="find", description="Finds.", parameters=loose)
    made = call(request(tools=(spec,), output_schema=loose))
    told = made.body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
    assert told["properties"]["at"] == {"type": "string"}
    assert told["properties"]["kind"]["enum"] == ["a"]
    assert "$ref" not in json.dumps(made.body)
    assert [warning.partition(":")[0] for warning in made.warnings] == ["The form of the answer", "The tool find"]


# -- structured output
def test_a_schema_is_asked_for_by_google_s_own_means() -> None:
    made = body(request(output_schema=SCHEMA))
    assert made["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
    assert body(request(output_schema=SCHEMA, tools=(ADD,)))["generationConfig"] == made["generationConfig"]


@pytest.mark.parametrize("profile, tools", [(Profile(), (ADD,)), (Profile(structured_output="prompt"), ())])
def test_a_schema_is_told_in_words_where_the_field_would_be_refused(profile: Profile, tools: Any) -> None:
    made = body(request(output_schema=SCHEMA, tools=tools), OLD, profile=profile)
    assert "generationConfig" not in made
    assert json.dumps(SCHEMA) in made["systemInstruction"]["parts"][0]["text"]


# -- thinking
@pytest.mark.parametrize(
    "model, wanted, config, warns",
    [
        (NEW, None, {"includeThoughts": True}, False),
        (NEW, "none", {"thinkingLevel": "MINIMAL", "includeThoughts": True}, True),
        (NEW, "minimal", {"thinkingLevel": "MINIMAL", "includeThoughts": True}, False),
        (NEW, "medium", {"thinkingLevel": "MEDIUM", "includeThoughts": True}, False),
        (NEW, "xhigh", {"thinkingLevel": "HIGH", "includeThoughts": True}, True),
        (NEW, 2_000, {"thinkingLevel": "MEDIUM", "includeThoughts": True}, True),
        (PRO, "low", {"thinkingLevel": "LOW", "includeThoughts": True}, False),
        (PRO, "medium", {"thinkingLevel": "HIGH", "includeThoughts": True}, True),
        (PRO, "none", {"thinkingLevel": "LOW", "includeThoughts": True}, True),
        ("gemini-3.1-pro-preview", "medium", {"thinkingLevel": "MEDIUM", "includeThoughts": True}, False),
        ("gemini-flash-latest", "high", {"thinkingLevel": "HIGH", "includeThoughts": True}, False),
        (OLD, None, {"includeThoughts": True}, False),
        (OLD, "none", {"thinkingBudget": 0}, False),
        (OLD, 0, {"thinkingBudget": 0}, False),
        (OLD, "medium", {"thinkingBudget": 8_192, "includeThoughts": True}, False),
        (OLD, 100, {"thinkingBudget": 100, "includeThoughts": True}, False),
        (OLD, 100_000, {"thinkingBudget": 24_576, "includeThoughts": True}, True),
        ("gemini-2.5-flash-lite", None, None, False),
        ("gemini-2.5-flash-lite", 100, {"thinkingBudget": 512, "includeThoughts": True}, True),
        ("gemini-2.5-pro", "none", {"thinkingBudget": 128, "includeThoughts": True}, True),
        ("gemini-2.5-pro", "xhigh", {"thinkingBudget": 32_768, "includeThoughts": True}, False),
        ("gemini-2.0-flash", None, None, False),
        ("gemini-2.0-flash", "none", None, False),
        ("gemini-2.0-flash", "high", None, True),
    ],
)
def test_thinking_is_asked_for_as_the_family_takes_it(
    model: str, wanted: Thinking | None, config: Json | None, warns: bool
) -> None:
    made = call(request(thinking=wanted, include_thoughts=True), model)
    assert made.body.get("generationConfig", {}).get("thinkingConfig") == config
    assert bool(made.warnings) == warns
    assert all(model in warning and str(wanted) in warning for warning in made.warnings)


@pytest.mark.parametrize("wanted, warns", [("medium", False), (8_192, True)])
def test_a_budget_leaves_room_for_the_answer(wanted: Thinking, warns: bool) -> None:
    made = call(request(thinking=wanted, max_output_tokens=2_000), OLD)
    assert made.body["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 1_500}
    assert bool(made.warnings) == warns


def test_thoughts_that_nobody_wants_are_not_asked_for() -> None:
    assert body(request(thinking="low"))["generationConfig"] == {"thinkingConfig": {"thinkingLevel": "LOW"}}
    assert "generationConfig" not in body(request(thinking=None))


# -- a long conversation
def common(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


@pytest.mark.parametrize("origin", ["google", "elsewhere"])
def test_each_request_begins_as_the_one_before_so_that_caches_hold_it(origin: str, figure: Figure) -> None:
    messages: list[Message] = [UserMessage(text="Add up the numbers from one to ten, please.")]
    told: list[str] = []
    for number in range(10):
        made = body(request(messages=tuple(messages), tools=(ADD, NOW), thinking="low"))
        told.append("".join(canonical(made[name]) for name in ("systemInstruction", "tools", "contents")))
        one, two = add(number, a=number), ToolCall(id=f"call1000{number}", name="now", arguments={})
        kept = signed({"text": 5}, {"call": True, "thoughtSignature": f"c2ln{number:04}"}, {"call": True})
        messages.append(AssistantMessage(text="Next.", calls=(one, two), opaque=kept if origin == "google" else ()))
        messages += [result(one), result(two, f"{number} o'clock")]
        if number % 3 == 2:
            messages.append(UserMessage(text=f"Do not forget number {number}."))
    shares = [common(before, after) / len(before) for before, after in pairwise(told)]
    figure(f"{origin}: at least {min(shares):.1%} of each request is the beginning of the next one")
    assert min(shares) >= 0.97


# -- the rules themselves
WRONG: list[tuple[str, Json]] = [
    (NEW, {"contents": []}),
    (NEW, {"contents": [{"role": "model", "parts": [{"text": "a"}]}]}),
    (NEW, {"contents": [{"role": "user", "parts": [{"text": ""}]}]}),
    (NEW, {"contents": [{"role": "user", "parts": []}]}),
    (NEW, {"contents": [{"role": "user", "parts": [{"text": "a"}]}], "tools": []}),
    (NEW, {"contents": [{"role": "user", "parts": [{"text": "a"}]}], "model": "m"}),
    (NEW, {"contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}]}),
    (NEW, {"contents": [{"role": "user", "parts": [{"text": "a", "thoughtSignature": "YWJj"}]}]}),
    (NEW, {"contents": [{"role": "user", "parts": [{"text": "a"}]}],
           "generationConfig": {"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}}}),
    (OLD, {"contents": [{"role": "user", "parts": [{"text": "a"}]}],
           "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}),
    (NEW, {"contents": [{"role": "user", "parts": [{"text": "a"}]}], "generationConfig": {"responseJsonSchema": {}}}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_the_rules_refuse_what_breaks_them(number: int) -> None:
    with pytest.raises(Refused):
        check(*WRONG[number])


def test_the_rules_refuse_an_unanswered_call_and_one_without_its_signature() -> None:
    one = add(1)
    told = body(request(messages=(USER, AssistantMessage(calls=(one,)), result(one)), tools=(ADD,)))
    unsigned = json.loads(json.dumps(told))
    del unsigned["contents"][1]["parts"][0]["thoughtSignature"]
    check(OLD, unsigned)
    with pytest.raises(Refused, match="thought_signature"):
        check(NEW, unsigned)
    told["contents"][2]["parts"] = [{"text": "hi"}]
    with pytest.raises(Refused, match="function response parts"):
        check(NEW, told)
