"""Who may call: host names, origins, bearer tokens and run tokens, case by case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.errors import Refusal
from edge_agent.http.auth import Ask, Caller, Door, admit, is_loopback, is_same_origin
from edge_agent.http.routing import StreamRoute, nearby, opened_by_run_token, stream_route
from edge_agent.http.run_tokens import (
    LIFETIME,
    chosen_protocol,
    derived_key,
    hkdf,
    offered_token,
    opened_run,
    run_token,
)
from edge_agent.wire.access_settings import NamedToken
from edge_agent.wire.settings import Settings

KEY = b"k" * 32
NOW = 1_000_000_000
LOCAL = "localhost:8787"
TOKENS = (NamedToken("alice", "alice-token"), NamedToken("ci", "ci-token"))


def door(*tokens: NamedToken, origins: tuple[str, ...] = ()) -> Door:
    async def key() -> bytes:
        return KEY

    return Door(tokens=tokens, origins=origins, key=key)


def ask(host: str = LOCAL, *, run_id: str | None = None, **headers: str) -> Ask:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Ask.of("http", {"host": host, **named}, run_id)


async def refused(door: Door, ask: Ask, now: int = NOW) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        await admit(door, ask, now)
    return caught.value.status, caught.value.code


# -- without a token
@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8787",
        "LOCALHOST:8787",
        "127.0.0.1",
        "127.0.0.1:80",
        "[::1]",
        "[::1]:8787",
        " localhost ",
    ],
)
async def test_this_machine_by_its_plain_names_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    assert await admit(door(), ask(host), NOW) == Caller(name="local")


@pytest.mark.parametrize(
    "host",
    [
        "", "localhost.evil.com", "evil.localhost", "localhost.", "127.0.0.1.nip.io", "127.0.0.1.nip.io:8787", "127.1",
        "127.0.0.2", "0.0.0.0", "2130706433", "0x7f000001", "[::]", "[::1", "::1", "[::1]evil", "[::ffff:127.0.0.1]",
        "localhost:8787:80", "localhost:port", "localhost:123456", "user@localhost", "localhost/evil.com", "localhost#",
        "localhost, evil.com", "evil.com, localhost", "localhost evil.com", "192.168.0.1", "agent.example.com",
        "\u217cocalhost",
    ],
)  # fmt: skip
async def test_any_other_host_name_is_told_how_to_set_a_token(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(Refusal) as caught:
        await admit(door(), ask(host), NOW)
    assert (caught.value.status, caught.value.code) == (401, "token_required")
    assert "EDGE_AGENT_TOKEN" in caught.value.message


@pytest.mark.parametrize(
    "origin,host",
    [
        ("http://localhost:8787", "localhost:8787"),
        ("HTTP://LOCALHOST:8787", "localhost:8787"),
        ("http://localhost", "localhost:80"),
        ("http://localhost:80", "localhost"),
        ("http://127.0.0.1:8787", "127.0.0.1:8787"),
        ("http://[::1]:8787", "[::1]:8787"),
    ],
)
async def test_a_page_of_the_same_origin_may_call(origin: str, host: str) -> None:
    assert await admit(door(), ask(host, origin=origin), NOW) == Caller(name="local")


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://evil.com", "http://localhost", "http://localhost:8788", "https://localhost:8787",
        "http://127.0.0.1:8787", "http://[::1]:8787", "http://localhost:8787.evil.com", "http://evil.com/localhost:8787",
        "http://localhost:8787@evil.com", "http://evil.com#localhost:8787", "http://localhost:8787/", "file://localhost:8787",
        "localhost:8787", "http://localhost:8787, http://evil.com", "http://localhost:8787 ",
    ],
)  # fmt: skip
async def test_a_page_of_another_origin_may_not(origin: str) -> None:
    assert await refused(door(), ask(LOCAL, origin=origin)) == (403, "wrong_origin")


async def test_a_page_of_an_origin_that_is_named_may_call() -> None:
    named = door(origins=("https://app.example",))
    assert (await admit(named, ask(origin="https://App.example"), NOW)).name == "local"
    assert await refused(named, ask("agent.example", origin="https://app.example")) == (401, "token_required")


@given(st.text(max_size=40), st.text(max_size=40))
def test_only_one_host_and_port_is_the_same_origin(name: str, host: str) -> None:
    if is_same_origin(f"http://{name}", "http", host):
        assert name.lower().removesuffix(":80") == host.strip().lower().removesuffix(":80")


# -- bearer tokens
@pytest.mark.parametrize("shown", ["Bearer ci-token", "bearer ci-token", "BEARER  ci-token "])
@pytest.mark.parametrize("host", [LOCAL, "agent.example"])
async def test_a_token_names_its_caller_wherever_it_is_shown(host: str, shown: str) -> None:
    assert await admit(door(*TOKENS), ask(host, authorization=shown, origin="https://x.example"), NOW) == Caller(
        name="ci"
    )


@pytest.mark.parametrize(
    "shown",
    ["Bearer wrong", "Bearer", "Bearer ", "", "ci-token", "Basic ci-token", "Bearer ci-toke", "Bearer ci-tokenx"],
)
async def test_a_wrong_token_opens_nothing_not_even_here(shown: str) -> None:
    assert await refused(door(*TOKENS), ask(authorization=shown)) == (401, "wrong_token")
    assert await refused(door(), ask(authorization=shown)) == (401, "wrong_token")


async def test_where_tokens_are_set_this_machine_needs_one_too() -> None:
    assert await refused(door(*TOKENS), ask()) == (401, "token_required")


# -- run tokens
async def test_a_run_token_opens_its_own_run_from_anywhere() -> None:
    shown = f"Bearer {run_token(KEY, 'r1', NOW)}"
    caller = await admit(door(*TOKENS), ask("agent.example", run_id="r1", authorization=shown), NOW)
    assert caller == Caller(name="run r1", run_id="r1")


async def test_a_run_token_opens_no_other_run_and_starts_none() -> None:
    shown = f"Bearer {run_token(KEY, 'r1', NOW)}"
    assert await refused(door(*TOKENS), ask(run_id="r2", authorization=shown)) == (403, "token_scope")
    assert await refused(door(*TOKENS), ask(run_id=None, authorization=shown)) == (403, "token_scope")


async def test_a_run_token_ends() -> None:
    asked = ask(run_id="r1", authorization=f"Bearer {run_token(KEY, 'r1', NOW)}")
    assert (await admit(door(), asked, NOW + LIFETIME * 1000 - 1000)).run_id == "r1"
    assert await refused(door(), asked, NOW + LIFETIME * 1000) == (401, "token_expired")


async def test_a_websocket_shows_its_run_token_as_a_subprotocol() -> None:
    token = run_token(KEY, "r1", NOW)
    asked = ask("agent.example", run_id="r1", sec_websocket_protocol=f"edge-agent.v1, token.{token}")
    assert (await admit(door(*TOKENS), asked, NOW)).run_id == "r1"
    assert chosen_protocol(asked.protocols) == "edge-agent.v1"


async def test_an_api_token_is_never_taken_from_a_subprotocol() -> None:
    asked = ask(run_id="r1", sec_websocket_protocol="edge-agent.v1, token.alice-token")
    assert await refused(door(*TOKENS), asked) == (401, "wrong_token")


@pytest.mark.parametrize("protocols", [None, "", "token.er1.a.1.b", "chat, token.er1.a.1.b", "edge-agent.v1"])
def test_only_our_protocol_carries_a_token(protocols: str | None) -> None:
    assert offered_token(protocols) is None


@pytest.mark.parametrize("protocols", [None, "", "token.x", "edge-agent.v2, token.x"])
def test_a_foreign_protocol_is_not_echoed(protocols: str | None) -> None:
    assert chosen_protocol(protocols) is None


@pytest.mark.parametrize(
    "changed",
    [
        "er1.r2.{expires}.{mac}",
        "er1.r1.9999999999.{mac}",
        "er1.r1.{expires}.x{mac}",
        "er1.r1.{expires}.",
        "er1...",
        "er1.r1.never.{mac}",
        "er1.r1.\u0663.{mac}",
        "er1.\u00fc.1.\u00fc",
    ],
)
def test_a_changed_run_token_is_forged(changed: str) -> None:
    _, _, expires, mac = run_token(KEY, "r1", NOW).split(".")
    with pytest.raises(Refusal) as caught:
        opened_run(KEY, changed.format(expires=expires, mac=mac), NOW)
    assert (caught.value.status, caught.value.code) == (401, "wrong_token")


def test_a_run_token_of_another_key_is_forged() -> None:
    with pytest.raises(Refusal):
        opened_run(b"x" * 32, run_token(KEY, "r1", NOW), NOW)


def test_the_key_comes_from_the_secret_else_from_the_tokens_else_from_the_caller() -> None:
    secret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    by_secret = derived_key(Settings.from_env({"EDGE_AGENT_SECRET": secret, "EDGE_AGENT_TOKEN": "t"}))
    by_token = derived_key(Settings.from_env({"EDGE_AGENT_TOKEN": "a:one,b:two"}))
    assert by_secret == hkdf(bytes(32), b"edge-agent run tokens v1")
    assert by_token == derived_key(Settings.from_env({"EDGE_AGENT_TOKEN": "b:two,a:one"}))
    assert by_token != by_secret
    assert derived_key(Settings.from_env({})) is None


def test_hkdf_is_that_of_rfc_5869() -> None:
    assert hkdf(b"\x0b" * 22, b"").hex() == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"


# -- paths
@pytest.mark.parametrize(
    "path,route",
    [
        ("/v1/runs/r1/events", StreamRoute(run_id="r1", kind="events")),
        ("/v1/runs/r1/ws", StreamRoute(run_id="r1", kind="ws")),
        ("/v1/runs/r1/log", StreamRoute(run_id="r1", kind="log")),
        ("/v1/runs/r1/files/a%20b.png", StreamRoute(run_id="r1", kind="files", name="a b.png")),
    ],
)
def test_streams_go_to_the_object_of_the_run(path: str, route: StreamRoute) -> None:
    assert stream_route("GET", path) == route
    assert stream_route("POST", path) is None
    assert opened_by_run_token("GET", path) == "r1"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs/r1", "/v1/runs/r1/", "/v1/runs//events", "/v1/runs/a b/events", "/v1/runs/r1/events/",
        "/v1/runs/r1/cancel", "/v1/runs/r%31/events", "/v1/runs/r1/files/", "/v1/runs/r1/files/a/b",
        f"/v1/runs/{'a' * 169}/events", "/v1/runs/r1/ws\n",
    ],
)  # fmt: skip
def test_no_object_is_asked_for_anything_else(path: str) -> None:
    assert stream_route("GET", path) is None


@pytest.mark.parametrize(
    "method,path,opened",
    [
        ("GET", "/v1/runs/r1", "r1"),
        ("POST", "/v1/runs/r1/cancel", "r1"),
        ("POST", "/v1/runs/r1/answers/q1", "r1"),
        ("POST", "/v1/runs/r1/subagents/88l7qct9y/cancel", "r1"),
        ("POST", "/v1/runs/r1/subagents/88l7qct9y", None),
        ("POST", "/v1/runs/r1/resume", None),
        ("POST", "/v1/runs/r1", None),
        ("GET", "/v1/runs/r1/cancel", None),
        ("POST", "/v1/runs", None),
        ("GET", "/v1/agents", None),
        ("PUT", "/v1/skills/r1", None),
    ],
)
def test_a_run_token_follows_answers_and_cancels_its_run_and_no_more(
    method: str, path: str, opened: str | None
) -> None:
    assert opened_by_run_token(method, path) == opened


def test_a_wrong_path_is_answered_with_those_near_it() -> None:
    assert nearby("/v1/run", ["/v1/runs", "/v1/agents", "/healthz"])[0] == "/v1/runs"
    assert nearby("/favicon.ico", ["/v1/runs"]) == []
