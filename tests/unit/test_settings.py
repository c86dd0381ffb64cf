"""The variables of a deployment: what they may be, what is said of one that is wrong, and what never shows."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.errors import ConfigError
from edge_agent.core.price import Price
from edge_agent.wire.access_settings import NamedToken
from edge_agent.wire.settings import Settings

KEY = base64.b64encode(bytes(range(32))).decode()


def settings(**env: str) -> Settings:
    return Settings.from_env({f"EDGE_AGENT_{name}": value for name, value in env.items()})


def fault_of(read: str, **env: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        getattr(settings(**env), read)
    return caught.value


def test_an_empty_environment_has_defaults_and_no_faults() -> None:
    empty = Settings.from_env({"PATH": "/bin", "EDGE_AGENT_TOKEN": "  "})
    assert empty.tokens == ()
    assert (empty.models, empty.base_url, empty.api_key, empty.secret_key) == ((), None, None, None)
    assert (empty.providers, empty.mcp_servers, empty.limits, empty.secrets) == ({}, {}, {}, {})
    assert (empty.tools_allow, empty.tools_deny, empty.cors) == ((), (), ())
    assert (empty.model_timeout, empty.stall_timeout, empty.max_retries) == (None, 60, 2)
    assert (empty.max_body, empty.name, empty.log_level, empty.mode) == (1_048_576, "edge-agent", "info", None)
    assert empty.faults() == ()
    assert empty.declared_secrets() == ()


def test_a_lone_token_is_the_default_caller() -> None:
    assert settings(TOKEN="s3cret-token").tokens == (NamedToken("default", "s3cret-token"),)


def test_several_tokens_have_names() -> None:
    assert settings(TOKEN="alice:one-token, ci:two-token=").tokens == (("alice", "one-token"), ("ci", "two-token="))


@pytest.mark.parametrize(
    "text",
    [
        "tok1,tok2",
        "alice:tok1,tok2",
        ",",
        "a:tok1,a:tok2",
        "alice:tok1 x",
        "al ice:tok1",
        ":tok1",
        "alice:",
        "a:b:tok1",
        "ü",
    ],
)
def test_a_malformed_token_list_is_a_fault_that_shows_no_token_and_lets_nobody_in(text: str) -> None:
    error = fault_of("tokens", TOKEN=text)
    assert error.setting == "EDGE_AGENT_TOKEN"
    assert error.example.startswith("EDGE_AGENT_TOKEN=alice:")
    assert "tok1" not in error.fault
    assert "tok2" not in error.fault


def test_models_are_named_in_order() -> None:
    read = settings(MODEL="openai/gpt-x, @cf/meta/llama", TOOLS_ALLOW="docs__*, calculator,")
    assert read.models == ("openai/gpt-x", "@cf/meta/llama")
    assert read.tools_allow == ("docs__*", "calculator")


def test_a_model_without_its_provider_is_a_fault() -> None:
    assert "provider/model" in fault_of("models", MODEL="gpt-x").fault


def test_an_openai_compatible_model_needs_a_base_url() -> None:
    error = fault_of("models", MODEL="openai-compatible/x")
    assert error.setting == "EDGE_AGENT_BASE_URL"
    assert settings(MODEL="openai-compatible/x", BASE_URL="http://127.0.0.1:1/v1/").base_url == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    "url", ["ftp://host/v1", "host/v1", "https://user:pass@host/v1", "https://", "https://host/#x", "http://[::1"]
)
def test_a_base_url_is_plain_http_or_https(url: str) -> None:
    error = fault_of("base_url", BASE_URL=url)
    assert "pass" not in error.fault.replace("password", "")


def test_providers_have_the_shape_of_the_documentation() -> None:
    text = """{"mine": {"base_url": "https://x.example/v1", "key": "MINE_KEY",
               "adapter": "openai_chat",
               "profile": "vllm",
               "tool_mode": "json", "headers": {"X-Team": "research-team"}, "options": {"top_k": 3}}}"""
    read = Settings.from_env({"EDGE_AGENT_PROVIDERS": text, "MINE_KEY": "mine-key-value"})
    mine = read.providers["mine"]
    assert (mine.base_url, mine.key, mine.profile, mine.tool_mode) == (
        "https://x.example/v1",
        "MINE_KEY",
        "vllm",
        "json",
    )
    assert mine.options == {"top_k": 3}
    assert read.secrets == {"MINE_KEY": "mine-key-value"}
    assert set(read.declared_secrets()) == {"mine-key-value", "research-team"}


@pytest.mark.parametrize(
    "text,said",
    [
        ("{", "JSON"),
        ("[]", "object"),
        ('{"Mine": {"base_url": "https://x/v1"}}', "Mine"),
        ('{"mine": {}}', "mine.base_url"),
        ('{"mine": {"base_url": "https://x/v1", "api_key": "sk-live-value"}}', "mine.api_key"),
        ('{"mine": {"base_url": "https://x/v1", "key": "NOT_SET"}}', "NOT_SET"),
        ('{"mine": {"base_url": "https://x/v1", "headers": {"a b": "c"}}}', "headers"),
    ],
)
def test_a_fault_in_providers_names_the_place_and_shows_no_value(text: str, said: str) -> None:
    error = fault_of("providers", PROVIDERS=text)
    assert said in error.fault
    assert "sk-live-value" not in str(error)


def test_mcp_servers_have_the_shape_of_the_documentation() -> None:
    text = """{"docs": {"url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer mcp-token-value"},
               "timeout": 10, "connect_timeout": 5, "allow": ["read_*"], "deny": ["read_secret"], "type": "http"}}"""
    read = settings(MCP_SERVERS=text)
    docs = read.mcp_servers["docs"]
    assert (docs.url, docs.timeout, docs.connect_timeout) == ("https://docs.example/mcp", 10, 5)
    assert (docs.allow, docs.deny) == (("read_*",), ("read_secret",))
    assert read.declared_secrets() == ("Bearer mcp-token-value", "mcp-token-value")


@pytest.mark.parametrize(
    "entry,said",
    [
        ('{"command": "npx", "args": ["server"]}', "stdio"),
        ('{"type": "stdio"}', "a Worker cannot start programs"),
        ('{"type": "sse", "url": "https://x/sse"}', "legacy HTTP+SSE"),
        ('{"transport": "carrier-pigeon", "url": "https://x"}', "unknown type"),
        ('{"url": "https://x", "auth": "basic"}', "auth"),
        ('{"url": "file:///etc/passwd"}', "http or https"),
        ('{"url": "https://x", "timeout": 0}', "timeout"),
        ('{"url": "https://x", "headers": {"X": "a\\nb"}}', "headers"),
        ('"https://x"', "docs"),
    ],
)
def test_an_mcp_server_that_cannot_be_reached_from_here_is_refused_with_the_reason(entry: str, said: str) -> None:
    error = fault_of("mcp_servers", MCP_SERVERS=f'{{"docs": {entry}}}')
    assert said in error.fault
    assert "docs" in error.fault


@pytest.mark.parametrize("name", ["a__b", "_a", "a_", "", "a b", "a" * 33])
def test_an_mcp_server_has_a_name_that_can_stand_before_two_underscores(name: str) -> None:
    fault_of("mcp_servers", MCP_SERVERS=f'{{"{name}": {{"url": "https://x"}}}}')


def test_limits_may_raise_lower_or_lift_a_cap() -> None:
    read = settings(LIMITS='{"max_steps": 40, "max_seconds": 2.5, "max_cost_usd": 0.5, "max_tool_calls": null}')
    assert read.limits == {"max_steps": 40, "max_seconds": 2.5, "max_cost_usd": 0.5, "max_tool_calls": None}


def test_prices_are_dollars_per_million_and_the_window_counts_tokens() -> None:
    read = settings(PRICES='{"a/b": {"input": 0.5, "cached": 0, "output": 2}}', CONTEXT_WINDOW="8192")
    assert read.prices == {"a/b": Price(input=0.5, cached=0.0, output=2.0)}
    assert read.context_window == 8_192
    assert (settings().prices, settings().context_window) == ({}, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"max_steps": 0}', '{"max_steps": -1}', '{"max_steps": 2.5}', '{"max_steps": true}', '{"max_steps": "40"}',
        '{"max_seconds": "1"}', '{"max_stepz": 4}', '{"max_stepz": null}', "40", "{max_steps: 4}",
        '{"max_seconds": NaN}',
    ],
)  # fmt: skip
def test_a_limit_is_a_known_positive_number(text: str) -> None:
    assert fault_of("limits", LIMITS=text).setting == "EDGE_AGENT_LIMITS"


@pytest.mark.parametrize(
    "read,variable,text",
    [
        ("model_timeout", "MODEL_TIMEOUT", "-1"),
        ("stall_timeout", "STALL_TIMEOUT", "1m"),
        ("max_retries", "MAX_RETRIES", "11"),
        ("max_retries", "MAX_RETRIES", "two"),
        ("max_body", "MAX_BODY", "1"),
        ("max_body", "MAX_BODY", "99999999999"),
        ("name", "NAME", "with space"),
        ("name", "NAME", "x\r\nEvil: 1"),
        ("log_level", "LOG_LEVEL", "loud"),
        ("mode", "MODE", "dreamy"),
        ("prices", "PRICES", '{"a/b": {"input": 1}}'),
        ("prices", "PRICES", '{"a/b": {"input": -1, "output": 2}}'),
        ("prices", "PRICES", '{"a/b": {"input": 1, "output": 2, "cashed": 1}}'),
        ("context_window", "CONTEXT_WINDOW", "512"),
        ("context_window", "CONTEXT_WINDOW", "8k"),
        ("api_key", "API_KEY", "key with space"),
        ("secret_key", "SECRET", "not base64!"),
        ("secret_key", "SECRET", "c2hvcnQ="),
        ("cors", "CORS", "*"),
        ("cors", "CORS", "https://a.example/"),
        ("cors", "CORS", "null"),
        ("cors", "CORS", "https://a.example,b.example"),
    ],
)
def test_a_wrong_value_is_a_fault_naming_the_variable_with_an_example(read: str, variable: str, text: str) -> None:
    error = fault_of(read, **{variable: text})
    assert error.setting == f"EDGE_AGENT_{variable}"
    assert error.example.startswith(f"EDGE_AGENT_{variable}=")
    assert [str(fault) for fault in settings(**{variable: text}).faults()] == [str(error)]


def test_zero_seconds_is_no_limit() -> None:
    read = settings(MODEL_TIMEOUT="0", STALL_TIMEOUT="0.0", MAX_RETRIES="0")
    assert (read.model_timeout, read.stall_timeout, read.max_retries) == (None, None, 0)
    assert settings(MODEL_TIMEOUT="120", STALL_TIMEOUT="2.5").stall_timeout == 2.5


@pytest.mark.parametrize("text", [KEY, KEY.rstrip("="), base64.urlsafe_b64encode(b"\xff" * 32).decode()])
def test_a_secret_is_base64_of_32_bytes_or_more(text: str) -> None:
    key = settings(SECRET=text).secret_key
    assert key is not None
    assert len(key) == 32


def test_origins_are_kept_in_lower_case() -> None:
    assert settings(CORS="https://App.example, http://[::1]:80").cors == ("https://app.example", "http://[::1]:80")


def test_a_misspelt_variable_is_a_fault_with_the_nearest_one_as_example() -> None:
    (error,) = settings(MODEL_TIMOUT="5").faults()
    assert error.setting == "EDGE_AGENT_MODEL_TIMOUT"
    assert error.example.startswith("EDGE_AGENT_MODEL_TIMEOUT=")


def test_a_fault_stands_in_the_way_of_nothing_else() -> None:
    read = settings(LIMITS="{", MODEL="a/b", TOKEN="token-of-mine")
    assert read.models == ("a/b",)
    assert read.tokens
    assert [fault.setting for fault in read.faults()] == ["EDGE_AGENT_LIMITS"]


def test_secrets_are_keys_by_their_usual_names() -> None:
    env = {"OPENAI_API_KEY": "sk-openai", "GITHUB_TOKEN": "gh-token", "HOME": "/root", "EDGE_AGENT_TOKEN": "x"}
    assert Settings.from_env(env).secrets == {"OPENAI_API_KEY": "sk-openai", "GITHUB_TOKEN": "gh-token"}


SECRETS: dict[str, Any] = {
    "EDGE_AGENT_TOKEN": "alice:alice-token,bob:alice-token-longer",
    "EDGE_AGENT_API_KEY": "api-key-value",
    "EDGE_AGENT_SECRET": KEY,
    "OPENAI_API_KEY": "openai-key-value",
    "SHORT_API_KEY": "short",
    "EDGE_AGENT_MCP_SERVERS": '{"d": {"url": "https://x", "headers": {"X-K": "mcp-key-value", "Accept": "text/html"}}}',
}


def test_every_secret_of_eight_characters_or_more_is_declared_longest_first() -> None:
    declared = Settings.from_env(SECRETS).declared_secrets()
    assert list(declared) == sorted(declared, key=len, reverse=True)
    assert {"alice-token", "alice-token-longer", "api-key-value", KEY, "openai-key-value", "mcp-key-value"} <= set(
        declared
    )
    assert "short" not in declared
    assert "text/html" not in declared


def test_masking_leaves_no_rest_of_a_longer_secret() -> None:
    assert Settings.from_env(SECRETS).mask("Bearer alice-token-longer!") == "Bearer [secret]!"


def test_a_broken_token_list_is_still_masked() -> None:
    assert settings(TOKEN="first-token,second-token").mask("first-token second-token") == "[secret] [secret]"


def test_no_repr_shows_a_secret() -> None:
    read = Settings.from_env(SECRETS)
    shown = f"{read!r} {read.tokens!r} {read.mcp_servers!r} {read.faults()!r}"
    assert "EDGE_AGENT_TOKEN" in shown
    assert not [secret for secret in read.declared_secrets() if secret in shown]


NAMES = ["TOKEN", "MODEL", "BASE_URL", "PROVIDERS", "MCP_SERVERS", "LIMITS", "SECRET", "CORS", "NAME", "MAX_BODY", "X"]


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=60), max_size=6))
def test_whatever_the_variables_hold_reading_them_ends_in_values_or_faults(env: dict[str, str]) -> None:
    read = settings(**env)
    for fault in read.faults():
        assert fault.setting.startswith("EDGE_AGENT_")
    read.declared_secrets()
    repr(read)
