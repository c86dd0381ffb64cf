import json
from typing import Any

import httpx2
import pytest

from edge_agent.core.errors import ConfigError
from edge_agent.models.endpoint import PROFILES
from edge_agent.models.httpx_transport import HttpxTransport
from edge_agent.models.naming import model_for, resolve, split_models
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.provider_model import ProviderModel
from edge_agent.wire.settings import Settings

OWN = {
    "base_url": "https://mine.example/v1", "key": "MINE_API_KEY", "profile": "small", "tool_mode": "native",
    "headers": {"x-team": "blue"}, "options": {"seed": 1},
}  # fmt: skip


def settings(providers: dict[str, Any] | None = None, **env: str) -> Settings:
    return Settings.from_env({**env, **({"EDGE_AGENT_PROVIDERS": json.dumps(providers)} if providers else {})})


def fault(name: str, given: Settings) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        resolve(name, given)
    return caught.value


def test_openai_is_known_by_name() -> None:
    endpoint, model = resolve("openai/gpt-5-mini", settings(OPENAI_API_KEY="sk-1"))
    assert (endpoint.base_url, endpoint.key, model) == ("https://api.openai.com/v1", "sk-1", "gpt-5-mini")
    assert endpoint.profile.max_tokens_field == "max_completion_tokens"


def test_an_openai_compatible_endpoint_is_named_by_variables_and_needs_no_key() -> None:
    given = settings(EDGE_AGENT_BASE_URL="http://127.0.0.1:8080/v1")
    endpoint, model = resolve("openai-compatible/some/model", given)
    assert (endpoint.provider, endpoint.base_url, endpoint.key) == (
        "openai-compatible",
        "http://127.0.0.1:8080/v1",
        None,
    )
    assert model == "some/model"
    keyed = settings(EDGE_AGENT_BASE_URL="http://127.0.0.1:8080/v1", EDGE_AGENT_API_KEY="k")
    assert resolve("openai-compatible/m", keyed)[0].key == "k"


def test_a_provider_of_one_s_own_brings_everything() -> None:
    endpoint, _ = resolve("mine/m", settings({"mine": OWN}, MINE_API_KEY="secret"))
    assert (endpoint.provider, endpoint.base_url, endpoint.key) == ("mine", "https://mine.example/v1", "secret")
    assert (endpoint.headers, endpoint.options) == ({"x-team": "blue"}, {"seed": 1})
    assert endpoint.profile.tool_mode == "native"
    assert endpoint.profile.force_text_after_tool


def test_a_provider_of_one_s_own_needs_no_key_and_wins_over_a_known_one() -> None:
    endpoint, _ = resolve(
        "openai/m", settings({"openai": {"base_url": "http://127.0.0.1:1/v1"}}, OPENAI_API_KEY="sk-1")
    )
    assert (endpoint.base_url, endpoint.key, endpoint.profile) == ("http://127.0.0.1:1/v1", None, PROFILES["default"])


@pytest.mark.parametrize(
    "name, variable",
    [("openai/gpt", "OPENAI_API_KEY"), ("openai-compatible/m", "EDGE_AGENT_BASE_URL"), ("other/m", "EDGE_AGENT_MODEL"),
     ("@cf/meta/llama", "EDGE_AGENT_MODEL"), ("gpt", "EDGE_AGENT_MODEL"), ("openai/", "EDGE_AGENT_MODEL"),
     ("", "EDGE_AGENT_MODEL")],
)  # fmt: skip
def test_what_is_missing_is_named_with_an_example(name: str, variable: str) -> None:
    error = fault(name, settings())
    assert error.setting == variable
    assert variable in error.example or error.example.startswith("EDGE_AGENT_PROVIDERS=")


def test_an_unknown_provider_says_which_are_known() -> None:
    assert (
        "openai, openai-compatible, mine"
        in fault("other/m", settings({"mine": {"base_url": "http://a.example"}})).fault
    )


def test_a_missing_secret_and_an_unknown_profile_are_faults() -> None:
    assert "MINE_API_KEY, which is not set" in fault("mine/m", settings({"mine": OWN})).fault
    strange = fault("mine/m", settings({"mine": {"base_url": "https://a.example", "profile": "huge"}}))
    assert strange.setting == "EDGE_AGENT_PROVIDERS"
    assert "default, openai, deepseek, moonshot, small" in strange.fault


def test_fallbacks_are_separated_by_commas() -> None:
    assert split_models(" a/b, c/d ,,a/b,") == ("a/b", "c/d")
    assert split_models("") == ()


def test_a_model_takes_its_times_from_the_settings_and_its_clients_from_the_factory() -> None:
    given = settings(OPENAI_API_KEY="sk-1", EDGE_AGENT_MODEL_TIMEOUT="9", EDGE_AGENT_STALL_TIMEOUT="0")
    model = model_for("openai/gpt", given, client_factory=httpx2.AsyncClient)
    assert isinstance(model, ProviderModel)
    assert (model.name, model.provider, model.timeout, model.stall_timeout) == ("gpt", "openai", 9.0, None)
    transport = HttpxTransport(httpx2.AsyncClient)
    assert model_for("openai/gpt", given, transport=transport) == ProviderModel(
        adapter=OpenAIChat(), name="gpt", endpoint=model.endpoint, transport=transport, stall_timeout=None, timeout=9.0
    )
    with pytest.raises(TypeError, match="client_factory or a transport"):
        model_for("openai/gpt", given)


def test_a_key_stands_in_no_repr_of_a_model() -> None:
    given = settings(OPENAI_API_KEY="sk-very-secret")
    assert "sk-very-secret" not in repr(model_for("openai/gpt", given, client_factory=httpx2.AsyncClient))
