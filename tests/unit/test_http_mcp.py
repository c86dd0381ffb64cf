"""Logins to MCP servers over HTTP: who may begin one, what comes back, and what is refused."""

import hashlib
import re

import pytest

from edge_agent.core.errors import Refusal
from edge_agent.http.mcp_links import ConnectionId, link_to, opened_link, opened_state, state_for
from tests.unit.http_fakes import KEY, TOKEN, Api, StoppedClock, problem

ALICE = {"authorization": f"Bearer {TOKEN}"}
NOW = StoppedClock().now()
NONCE = "n" * 43
OWN_PAGE = {"origin": "https://agent.example"}


def api() -> Api:
    return Api("https://agent.example", TOKEN=f"alice:{TOKEN}")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_a_caller_gets_a_link_of_its_own_and_a_server_without_a_login_is_refused() -> None:
    served = api()
    answer = (await served.post("/v1/mcp/docs/connect", **ALICE)).json()
    assert (answer["server"], answer["state"]) == ("docs", "sign-in")
    whose = opened_link(KEY, answer["link"].rpartition("/")[2], NOW)
    assert whose == ConnectionId(server="docs", user="alice")
    problem(await served.post("/v1/mcp/wiki/connect", **ALICE), 404, "unknown_server")
    problem(await served.post("/v1/mcp/docs/connect"), 401, "token_required")
    assert len(served.connections.asked) == 1


async def test_the_page_of_a_link_begins_nothing_and_its_button_sends_the_browser_on_with_a_cookie() -> None:
    served, link = api(), link_to(KEY, ConnectionId(server="docs", user="alice"), NOW)
    page = await served.get(link)
    assert (page.status_code, served.connections.asked) == (200, [])
    assert "<strong>alice</strong>" in page.text
    begun = await served.post(link, **OWN_PAGE)
    assert (begun.status_code, begun.headers["location"]) == (303, "https://auth.example/authorize?state=s")
    cookie = re.fullmatch(
        r"__Secure-edge-agent-login=([\w-]{43}); HttpOnly; Max-Age=900; Path=/v1/mcp; SameSite=lax; Secure",
        begun.headers["set-cookie"],
    )
    assert cookie
    asked = {"redirect_uri": "https://agent.example/v1/mcp/callback", "browser": digest(cookie[1])}
    assert served.connections.asked == [(ConnectionId(server="docs", user="alice"), "begin", asked)]


async def test_a_browser_that_begins_a_second_login_keeps_its_cookie() -> None:
    served, link = api(), link_to(KEY, ConnectionId(server="docs", user="alice"), NOW)
    begun = await served.post(link, cookie=f"__Secure-edge-agent-login={NONCE}", **OWN_PAGE)
    assert NONCE in begun.headers["set-cookie"]


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"origin": "null"},
        {"origin": "http://agent.example"},
        {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        {"origin": "https://evil.agent.example", "sec-fetch-site": "same-site"},
    ],
    ids=str,
)
async def test_the_page_of_another_site_cannot_begin_a_login_for_whoever_visits_it(sent: dict[str, str]) -> None:
    served, link = api(), link_to(KEY, ConnectionId(server="docs", user="alice"), NOW)
    refused = await served.post(link, **sent)
    assert (refused.status_code, "Open the link itself" in refused.text) == (403, True)
    assert (served.connections.asked, "set-cookie" in refused.headers) == ([], False)


async def test_a_browser_that_hides_its_origin_says_that_the_button_was_on_our_own_page() -> None:
    served, link = api(), link_to(KEY, ConnectionId(server="docs", user="alice"), NOW)
    page = await served.get(link)
    assert page.headers["referrer-policy"] == "same-origin"
    begun = await served.post(link, **{"origin": "null", "sec-fetch-site": "same-origin"})
    assert begun.status_code == 303


async def test_a_callback_goes_to_the_connection_its_state_names_and_a_forged_one_to_none() -> None:
    served, whose = api(), ConnectionId(server="docs", user="bob@example.com")
    state = state_for(KEY, whose, NONCE)
    done = await served.get(
        f"/v1/mcp/callback?state={state}&code=c&iss=https://a", cookie=f"__Secure-edge-agent-login={NONCE}"
    )
    assert done.status_code == 200
    came = {"state": state, "browser": digest(NONCE), "code": "c", "iss": "https://a"}
    assert served.connections.asked == [(whose, "finish", came)]
    for forged in (state[:-1] + "x", state.replace("docs", "wiki"), "", "s"):
        assert (await served.get(f"/v1/mcp/callback?state={forged}&code=c")).status_code == 403
    assert len(served.connections.asked) == 1


async def test_what_the_connection_refuses_is_a_page_without_markup_of_others() -> None:
    served = api()
    served.connections.refusal = Refusal(502, "login_failed", "The login failed: <script>.")
    page = await served.get(f"/v1/mcp/callback?state={state_for(KEY, ConnectionId(server='docs', user='a'), NONCE)}")
    assert (page.status_code, "&lt;script&gt;" in page.text, "<script>" in page.text) == (502, True, False)
    assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_the_client_document_names_itself_and_needs_no_token() -> None:
    document = (await api().get("/v1/mcp/client.json")).json()
    assert document["client_id"] == "https://agent.example/v1/mcp/client.json"
    assert document["redirect_uris"] == ["https://agent.example/v1/mcp/callback"]


async def test_reconnect_renews_every_login_of_the_caller_and_tells_of_each() -> None:
    served = api()
    (answer,) = (await served.post("/v1/mcp/reconnect", **ALICE)).json()
    assert (answer["server"], answer["state"]) == ("docs", "sign-in")
    assert [method for _, method, _ in served.connections.asked] == ["renew"]


def test_a_link_is_no_state_and_expires() -> None:
    whose = ConnectionId(server="docs", user="alice")
    link, state = link_to(KEY, whose, NOW).rpartition("/")[2], state_for(KEY, whose, NONCE)
    assert opened_state(KEY, state) == whose
    with pytest.raises(Refusal, match="no link of this server"):
        opened_state(KEY, link)
    with pytest.raises(Refusal, match="no link of this server"):
        opened_link(b"x" * 32, link, NOW)
    with pytest.raises(Refusal, match="has expired"):
        opened_link(KEY, link, NOW + 90_000_000)
