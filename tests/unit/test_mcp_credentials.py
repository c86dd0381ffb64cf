"""What a login rests in: sealed, bound to its server and its browser, good once; and the runs that wait for it."""

import pytest

from edge_agent.storage.mcp_connections import SqlConnection
from edge_agent.storage.sql import in_memory
from edge_agent.testing import OpenVault
from edge_agent.tools.mcp_auth_import import OAuthToken
from edge_agent.tools.mcp_credentials import LOGIN_SECONDS, Credentials, CredentialStore, Login, digest

URL = "https://docs.example/mcp"
NOW = 1_000_000.0


@pytest.fixture
def shelf() -> SqlConnection:
    return SqlConnection(in_memory())


def with_token(**more: float) -> Credentials:
    return Credentials.model_validate({"url": URL, "tokens": OAuthToken(access_token="t"), **more})


def login(browser: str = "mine") -> Login:
    return Login(verifier="v", redirect_uri="http://localhost/cb", browser=digest(browser), known=Credentials(url=URL))


async def test_credentials_are_those_of_one_url_and_one_key(shelf: SqlConnection) -> None:
    store = CredentialStore(shelf, OpenVault(), URL)
    assert (await store.held()).token is None
    await store.keep(with_token())
    assert (await store.held()).token == "t"
    assert (await CredentialStore(shelf, OpenVault(), f"{URL}/moved").held()).token is None
    assert (await CredentialStore(shelf, OpenVault(b"another"), URL).held()).token is None


async def test_a_login_is_spent_once_by_its_own_browser_and_in_time(shelf: SqlConnection) -> None:
    store = CredentialStore(shelf, OpenVault(), URL)
    await store.begin("state", login(), NOW)
    assert await store.spent("other state", "mine", NOW) is None
    assert await store.spent("state", "not mine", NOW) is None
    assert await store.spent("state", "mine", NOW + LOGIN_SECONDS) is None
    assert (await store.spent("state", "mine", NOW + LOGIN_SECONDS - 1)) == login()
    assert await store.spent("state", "mine", NOW) is None


async def test_two_logins_at_once_keep_their_own_verifiers(shelf: SqlConnection) -> None:
    store = CredentialStore(shelf, OpenVault(), URL)
    for number in ("one", "two"):
        await store.begin(number, login().model_copy(update={"verifier": number}), NOW)
    for number in ("two", "one"):
        found = await store.spent(number, "mine", NOW)
        assert found is not None
        assert found.verifier == number


@pytest.mark.parametrize(
    "issued, expires, now, stale",
    [
        (0, 3600, 3569, False),
        (0, 3600, 3570, True),
        (0, 5, 3.9, False),
        (0, 5, 4, True),
        (0, 5, 60, True),
    ],
)
def test_a_token_is_renewed_half_a_minute_ahead_or_after_four_fifths_of_a_short_life(
    issued: float, expires: float, now: float, *, stale: bool
) -> None:
    assert with_token(issued_at=issued, expires_at=expires).is_stale(now) is stale


def test_a_token_without_an_end_is_never_stale() -> None:
    assert not with_token().is_stale(NOW)


def test_a_connection_that_nobody_has_leaves_nothing_behind() -> None:
    sql = in_memory()
    shelf = SqlConnection(sql)
    shelf.put("credentials", None)
    assert (shelf.get("credentials"), shelf.login("s", 0), shelf.due(1), shelf.next_due()) == (None, None, [], None)
    shelf.release(1)
    assert sql.run("select count(*) from sqlite_master") == [(0,)]


def test_whoever_waits_is_told_when_released_and_again_until_it_has_heard(shelf: SqlConnection) -> None:
    for run in ("r1", "r1", "r2"):
        shelf.wait(run, "q", 100, 0)
    assert (shelf.due(10), shelf.next_due()) == ([], None)
    shelf.release(10)
    first, second = shelf.due(10)
    assert {first.run_id, second.run_id} == {"r1", "r2"}
    shelf.told(first)
    shelf.postpone(second, 20)
    assert (shelf.due(19), shelf.next_due()) == ([], 20)
    assert [(waiter.run_id, waiter.tries) for waiter in shelf.due(20)] == [(second.run_id, 1)]


def test_whoever_waited_in_vain_is_forgotten_with_the_time_it_had(shelf: SqlConnection) -> None:
    shelf.wait("early", "q", 10, 0)
    shelf.wait("late", "q", 20, 9)
    shelf.release(10)
    assert [waiter.run_id for waiter in shelf.due(10)] == ["late"]
    shelf.wait("later", "q", 40, 20)
    assert shelf.due(20) == []
