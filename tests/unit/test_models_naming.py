import json
from typing import Any

import httpx2
import pytest

from edge_agent.core.errors import ConfigError
from edge_agent.models.endpoint import PROFILES, Endpoint
from edge_agent.models.httpx_transport import HttpxTransport
from edge_agent.models.naming import model_for, resolve, split_models
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.provider_model import ProviderModel
from edge_agent.models.providers import PROVIDERS
from edge_agent.wire.settings import Settings

ACCOUNT = "0123456789abcdef0123456789abcdef"
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
     ("@cf/meta/llama", "EDGE_AGENT_GATEWAY"), ("gpt", "EDGE_AGENT_MODEL"), ("openai/", "EDGE_AGENT_MODEL"),
     ("", "EDGE_AGENT_MODEL")],
)  # fmt: skip
def test_what_is_missing_is_named_with_an_example(name: str, variable: str) -> None:
    error = fault(name, settings())
    assert error.setting == variable
    assert variable in error.example or error.example.startswith("EDGE_AGENT_PROVIDERS=")


def test_an_unknown_provider_says_which_are_known() -> None:
    assert (
        "vercel, openai-compatible, @cf, mine"
        in fault("other/m", settings({"mine": {"base_url": "http://a.example"}})).fault
    )


def test_a_missing_secret_and_an_unknown_profile_are_faults() -> None:
    assert "MINE_API_KEY, which is not set" in fault("mine/m", settings({"mine": OWN})).fault
    strange = fault("mine/m", settings({"mine": {"base_url": "https://a.example", "profile": "huge"}}))
    assert strange.setting == "EDGE_AGENT_PROVIDERS"
    assert "none of default, openai, xai" in strange.fault


@pytest.mark.parametrize("entry", [{"tool_mode": "json"}, {"profile": "small"}])
@pytest.mark.parametrize("adapter", ["anthropic", "google"])
def test_tools_in_json_are_refused_where_the_wire_knows_none(adapter: str, entry: dict[str, str]) -> None:
    given = settings({"mine": {"base_url": "https://a.example", "adapter": adapter, **entry}})
    refused = fault("mine/m", given)
    assert refused.setting == "EDGE_AGENT_PROVIDERS"
    assert adapter in refused.fault
    assert '"tool_mode": "native"' in refused.example


def test_fallbacks_are_separated_by_commas() -> None:
    assert split_models(" a/b, c/d ,,a/b,") == ("a/b", "c/d")
    assert split_models("") == ()


def test_a_model_takes_its_times_from_the_settings_and_its_transport_by_its_endpoint() -> None:
    given = settings(OPENAI_API_KEY="sk-1", EDGE_AGENT_MODEL_TIMEOUT="9", EDGE_AGENT_STALL_TIMEOUT="0")
    transport, asked = HttpxTransport(httpx2.AsyncClient), list[Endpoint]()

    def transport_for(endpoint: Endpoint) -> HttpxTransport:
        asked.append(endpoint)
        return transport

    assert model_for("openai/gpt", given, transport_for=transport_for) == ProviderModel(
        adapter=OpenAIChat(), name="gpt", endpoint=asked[0], transport=transport, stall_timeout=None, timeout=9.0
    )


def test_a_key_stands_in_no_repr_of_a_model() -> None:
    given = settings(
        OPENAI_API_KEY="sk-very-secret", EDGE_AGENT_GATEWAY=f"{ACCOUNT}/mine", CF_AIG_TOKEN="aig-very-secret"
    )
    for name in ("openai/gpt", "@cf/meta/llama"):
        told = repr(resolve(name, given)) + repr(given.gateway)
        assert "very-secret" not in told


# -- who is known
@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_a_known_provider_is_reached_with_its_key_and_refused_without_it_by_the_variables_name(provider: str) -> None:
    known = PROVIDERS[provider]
    options = dict.fromkeys(known.options, "some-value")
    endpoint, model = resolve(f"{provider}/a/model", settings(None, **options, **{known.key: "a-key"}))
    assert (endpoint.provider, endpoint.route, model) == (provider, "https", "a/model")
    assert endpoint.host
    assert "{" not in endpoint.base_url
    assert "a-key" in endpoint.credentials[known.key_header]
    assert fault(f"{provider}/a/model", settings(None, **options)).setting == known.key
    for missing in known.options:
        left = {name: value for name, value in options.items() if name != missing}
        assert fault(f"{provider}/m", settings(None, **left, **{known.key: "a-key"})).setting == missing
        assert fault(f"{provider}/m", settings(None, **options | {missing: "evil.example/x"})).setting == missing


def test_azure_names_the_deployment_in_the_path_and_the_version_in_the_query() -> None:
    given = settings(AZURE_API_KEY="k", AZURE_RESOURCE_NAME="mine", AZURE_API_VERSION="2025-01-01")
    endpoint, _ = resolve("azure/gpt", given)
    assert endpoint.url("/chat/completions") == (
        "https://mine.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2025-01-01"
    )
    assert endpoint.credentials == {"api-key": "k"}


# -- through the gateway
def test_a_gateway_with_an_account_is_reached_over_https_and_retries_nothing_itself() -> None:
    given = settings(EDGE_AGENT_GATEWAY=f"{ACCOUNT}/mine", CF_AIG_TOKEN="aig", XAI_API_KEY="xk")
    endpoint, _ = resolve("xai/grok", given)
    assert endpoint.url("/chat/completions") == (
        f"https://gateway.ai.cloudflare.com/v1/{ACCOUNT}/mine/grok/v1/chat/completions"
    )
    assert endpoint.headers == {"cf-aig-max-attempts": "1", "cf-aig-authorization": "Bearer aig"}
    assert endpoint.credentials == {"authorization": "Bearer xk"}
    assert endpoint.metadata_header == "cf-aig-metadata"


def test_a_gateway_needs_no_key_of_the_provider_because_it_may_hold_one() -> None:
    endpoint, _ = resolve("anthropic/claude", settings(EDGE_AGENT_GATEWAY=f"{ACCOUNT}/mine", CF_AIG_TOKEN="aig"))
    assert (endpoint.credentials, endpoint.route) == ({}, "https")


def test_a_provider_that_the_gateway_does_not_know_is_called_directly() -> None:
    given = settings(EDGE_AGENT_GATEWAY=f"{ACCOUNT}/mine", CF_AIG_TOKEN="aig")
    assert fault("vercel/m", given).setting == "AI_GATEWAY_API_KEY"
    endpoint, _ = resolve(
        "openai-compatible/m",
        settings(EDGE_AGENT_GATEWAY=f"{ACCOUNT}/mine", CF_AIG_TOKEN="aig", EDGE_AGENT_BASE_URL="http://127.0.0.1/v1"),
    )
    assert endpoint.headers == {}, "no token of the gateway goes to another host"


def test_a_gateway_of_the_binding_is_named_alone() -> None:
    bound = Settings.from_env({"EDGE_AGENT_GATEWAY": "default"}, ai_binding=True)
    endpoint, _ = resolve("google/gemini", bound)
    assert (endpoint.route, endpoint.gateway) == ("gateway", "default")
    assert endpoint.base_url.endswith("/google-ai-studio/v1beta")
    assert fault("google/gemini", settings(EDGE_AGENT_GATEWAY="default")).setting == "EDGE_AGENT_GATEWAY"


def test_a_gateway_with_an_account_needs_its_token() -> None:
    assert fault("openai/m", settings(EDGE_AGENT_GATEWAY=f"{ACCOUNT}/mine")).setting == "CF_AIG_TOKEN"
    assert fault("openai/m", settings(EDGE_AGENT_GATEWAY="a b")).setting == "EDGE_AGENT_GATEWAY"


# -- Workers AI
def test_workers_ai_is_reached_by_the_binding_and_through_the_gateway_where_one_is_named() -> None:
    endpoint, model = resolve("@cf/meta/llama", Settings.from_env({}, ai_binding=True))
    assert (endpoint.provider, model, endpoint.route, endpoint.gateway) == ("@cf", "meta/llama", "binding", None)
    through, _ = resolve("@cf/meta/llama", Settings.from_env({"EDGE_AGENT_GATEWAY": "mine"}, ai_binding=True))
    assert (through.route, through.gateway) == ("binding", "mine")


def test_workers_ai_is_reached_over_https_where_there_is_no_binding() -> None:
    endpoint, _ = resolve("@cf/meta/llama", settings(EDGE_AGENT_GATEWAY=f"{ACCOUNT}/mine", CF_AIG_TOKEN="aig"))
    assert endpoint.base_url == f"https://api.cloudflare.com/client/v4/accounts/{ACCOUNT}/ai"
    assert endpoint.credentials == {"authorization": "Bearer aig"}
    assert endpoint.headers["cf-aig-gateway-id"] == "mine"
