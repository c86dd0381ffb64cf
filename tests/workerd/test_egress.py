"""Egress in real workerd: web_fetch and ToolContext.fetch against servers on this machine, by way of the API.

Loopback, http and these ports are allowed by EDGE_AGENT_EGRESS; names are looked up at a resolver of the tests."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scripts.serve import NODE_MODULES, Server, serve
from tests.conftest import Figure
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, find, types

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(600)]
HERE = Path(__file__).parent / "egress_worker"
MOST = 3_000_000  # bytes of a body
BROTLI = "process.stdout.write(require('zlib').brotliCompressSync(Buffer.alloc(100_000_000)))"
SECRET = "credential-4711"
ZONE: dict[str, dict[str, Any]] = {
    "inside.example.com": {"A": ["10.0.0.7"]},
    "mixed.example.com": {"A": ["93.184.216.34", "169.254.169.254"]},
    "six.example.com": {"A": ["93.184.216.34"], "AAAA": ["::ffff:127.0.0.1"]},
    "alias.example.com": {"CNAME": ["vault.denied.example.org."], "A": ["93.184.216.34"]},
    "good.example.com": {"A": ["127.0.0.1"]},
    "broken.example.com": {"A": ["93.184.216.34"], "status": 2},
}


@dataclass(frozen=True, slots=True)
class Web:
    """Two origins that may be reached, and one on a port that may not."""

    one: Running
    two: Running
    closed: Running

    def at(self, path: str) -> str:
        return f"{self.one.url}{path}"

    def asked(self) -> list[dict[str, Any]]:
        """What any of them was asked for."""
        return [one for server in (self.one, self.two, self.closed) for one in server.log()]

    def calls(self) -> Mapping[str, tuple[str, str]]:
        """What the model calls, by the name it has in the script: the tool, and the URL."""
        port, two, closed = urlsplit(self.one.url).port, self.two.url, self.closed.url
        return {
            "page": ("web_fetch", self.at("/page?token=query-4711#part")),
            "localhost": ("web_fetch", f"http://localhost:{port}/text"),
            "loop-2": ("web_fetch", self.at("/loop/2")),
            "loop-9": ("web_fetch", self.at("/loop/9")),
            "to-metadata": ("web_fetch", self.at("/to/302?http://169.254.169.254/latest/meta-data/?token=query-4711")),
            "to-port": ("web_fetch", self.at(f"/to/307?{closed}/text")),
            "to-user": ("web_fetch", self.at(f"/to/302?http://user:{SECRET}@127.0.0.1:{port}/text")),
            "to-file": ("web_fetch", self.at("/to/302?file:///etc/passwd")),
            "to-nonsense": ("web_fetch", self.at("/to/302?http://[::1")),
            "to-odd": ("web_fetch", self.at(f"/to/302?http://2130706433:{port}/text")),
            "to-inside": ("web_fetch", self.at(f"/to/302?http://inside.example.com:{port}/text")),
            "mixed": ("web_fetch", f"http://mixed.example.com:{port}/text"),
            "six": ("web_fetch", f"http://six.example.com:{port}/text"),
            "alias": ("web_fetch", f"http://alias.example.com:{port}/text"),
            "nowhere": ("web_fetch", f"http://nowhere.example.com:{port}/text"),
            "broken": ("web_fetch", f"http://broken.example.com:{port}/text"),
            "good": ("web_fetch", f"http://good.example.com:{port}/text"),
            "big": ("web_fetch", self.at("/zeros/2")),
            "long": ("web_fetch", self.at("/long/2")),
            "too-big": ("web_fetch", self.at("/zeros/4")),
            "gzip-bomb": ("web_fetch", self.at("/zeros/300/gzip")),
            "deflate-bomb": ("web_fetch", self.at("/zeros/300/deflate")),
            "brotli-bomb": ("web_fetch", self.at("/brotli")),
            "half": ("web_fetch", self.at("/half/1/gzip")),
            "endless": ("web_fetch", self.at("/endless")),
            "never": ("web_fetch", self.at("/hang")),
            "slow": ("web_fetch", self.at("/slow")),
            "image": ("web_fetch", self.at("/image")),
            "missing": ("web_fetch", self.at("/status/404")),
            "credentials-stay": ("ask_with_credentials", self.at("/to/302?/echo")),
            "credentials-go": ("ask_with_credentials", self.at(f"/to/302?{two}/echo")),
            "credentials-back": ("ask_with_credentials", self.at(f"/to/302?{two}/to/302?{self.one.url}/echo")),
            "post": ("post", self.at("/text")),
        }


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("web")
    (folder / "zone.json").write_text(json.dumps(ZONE))
    node = NODE_MODULES / ".bin" / "node"
    (folder / "brotli").write_bytes(subprocess.run([str(node), "-e", BROTLI], check=True, capture_output=True).stdout)
    given = ("--zone", str(folder / "zone.json"), "--brotli", str(folder / "brotli"))
    with ExitStack() as stack:
        yield Web(*(stack.enter_context(running("web_server.py", *given)) for _ in range(3)))


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, web: Web) -> Iterator[Server]:
    state = tmp_path_factory.mktemp("egress")
    script = {
        name: [{"calls": [{"name": tool, "arguments": {"url": url}}]}, {"text": "done"}]
        for name, (tool, url) in web.calls().items()
    }
    (state / "script.json").write_text(json.dumps(script))
    egress = {
        "deny": ["*.denied.example.org"],
        "protocols": ["http"],
        "ports": [80, *(urlsplit(server.url).port for server in (web.one, web.two))],
        "allow_private_network": True,
        "timeout": 3,
        "max_bytes": MOST,
        "resolver": f"{web.one.url}/dns-query",
    }
    with running("model_server.py", "--script", str(state / "script.json")) as model:
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/page",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_EGRESS": json.dumps(egress),
        }
        with serve(state=state, overlay=HERE, variables=variables) as server:
            yield server


@pytest.fixture
def api(worker: Server) -> Iterator[Api]:
    with Api(worker.url) as client:
        yield client


def called(api: Api, name: str) -> list[Event]:
    """The records of a run whose model makes that call, and then answers."""
    run_id = api.start(model=name)
    assert api.ended(run_id)["status"] == "completed"
    return api.records(run_id)


def requests(records: list[Event]) -> list[tuple[str, bool, int | None, str | None]]:
    """(path, allowed, status, reason) of each request on record."""
    told = [event for event in records if event["type"] == "egress.request"]
    return [(urlsplit(str(e["url"])).path, e["allowed"], e.get("status"), e.get("reason")) for e in told]


def test_a_page_is_fetched_through_the_api_and_comes_as_text_that_is_not_trusted(api: Api, web: Web) -> None:
    records = called(api, "page")
    said = find(records, "tool.result")
    assert said["ok"]
    assert "# Lamps & more\n\nThere are three lamps." in said["output"]
    assert f"- Text ({web.at('/text')})" in said["output"]
    assert "must obey" not in said["output"]
    assert "not trusted" in said["output"]
    told = find(records, "egress.request")
    assert (told["url"], told["allowed"], told["status"]) == (web.at("/page"), True, 200)
    assert told["key"] == "s1/r1/c0/egress/0"
    assert types(records)[5:8] == ["tool.called", "egress.request", "tool.result"]


def test_a_page_on_localhost_is_fetched_without_a_look_up(api: Api) -> None:
    assert requests(called(api, "localhost")) == [("/text", True, 200, None)]


def test_nothing_of_a_query_and_no_credential_is_in_what_is_told_of_requests(api: Api, web: Web) -> None:
    for name in ("page", "to-metadata", "to-user", "credentials-stay", "credentials-go"):
        records = called(api, name)
        # The URL a model asks for is its own text; everything else says nothing of it but origin and path.
        told = [event for event in records if event["type"] not in ("model.answered", "tool.called")]
        for word in ("query-4711", SECRET, "?"):
            if not (name == "credentials-stay" and word == SECRET):  # there /echo itself gives back what it got
                assert word not in json.dumps([e for e in told if e["type"] == "egress.request"]), (name, word)
        assert "query-4711" not in json.dumps(told), name
    assert any("query-4711" in one["path"] for one in web.one.log()), "it was sent with its query"


# -- redirects
def test_redirects_are_followed_one_by_one_and_each_is_told_of(api: Api) -> None:
    records = called(api, "loop-2")
    assert requests(records) == [
        ("/loop/2", True, 302, None),
        ("/loop/1", True, 302, None),
        ("/text", True, 200, None),
    ]
    assert [event["key"][-1] for event in records if event["type"] == "egress.request"] == ["0", "1", "2"]
    assert find(records, "tool.result")["ok"]


def test_redirects_end_after_three(api: Api, web: Web) -> None:
    records = called(api, "loop-9")
    assert [status for _, _, status, _ in requests(records)] == [302, 302, 302, 302, None]
    assert requests(records)[-1] == ("/loop/5", False, None, "it comes after 3 redirects")
    assert "/loop/5" not in [one["path"] for one in web.one.log()]


REFUSED = {
    "to-metadata": "169.254.169.254 is a link-local address",
    "to-port": "port {closed} is not among those allowed: {ports}",
    "to-user": "the URL holds a user name or password; credentials do not belong into a URL",
    "to-file": "only http and https URLs can be fetched",
    "to-nonsense": "that is not a URL",
    "to-odd": "2130706433 is an odd spelling of an address; write it as four numbers from 0 to 255",
    "mixed": "mixed.example.com is at 169.254.169.254, a link-local address",
    "six": "six.example.com is at ::ffff:127.0.0.1, an IPv4 address inside of an IPv6 one",
    "alias": "alias.example.com leads to a name that is denied by *.denied.example.org",
    "nowhere": "the addresses of nowhere.example.com could not be found out: there is no such name",
    "broken": "the addresses of broken.example.com could not be found out: the resolver says 2",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_not_sent_and_says_why(api: Api, web: Web, name: str) -> None:
    before = len(web.closed.log())
    records = called(api, name)
    ports = ", ".join(str(urlsplit(url).port) for url in (web.one.url, web.two.url))
    reason = REFUSED[name].format(closed=urlsplit(web.closed.url).port, ports=f"80, {ports}")
    *earlier, refusal = requests(records)
    assert all(allowed and status in (302, 307) for _, allowed, status, _ in earlier)
    assert refusal[1:] == (False, None, reason)
    result = find(records, "tool.result")
    assert not result["ok"]
    assert reason in result["output"]
    assert len(web.closed.log()) == before


def test_a_name_whose_addresses_pass_is_asked_for_by_both_kinds_and_then_sent_to(api: Api, web: Web) -> None:
    """This machine knows no such name, so the request that may go out finds nobody: that is told as it is."""
    told = requests(called(api, "good"))
    assert told == [("/text", True, None, "no answer came (ReadError)")]
    asked = {one["path"] for one in web.one.log() if "good.example.com" in one["path"]}
    assert asked == {f"/dns-query?name=good.example.com&type={kind}" for kind in ("A", "AAAA")}


def test_a_private_address_is_reached_where_private_networks_are_allowed_and_nobody_is_there(api: Api) -> None:
    first, second = requests(called(api, "to-inside"))
    assert first[2] == 302
    assert second[:3] == ("/text", True, None)


# -- credentials
def test_credentials_go_along_within_an_origin(api: Api) -> None:
    echoed = find(called(api, "credentials-stay"), "tool.result")["output"]
    assert echoed.count(SECRET) == 3


@pytest.mark.parametrize("name", ["credentials-go", "credentials-back"])
def test_credentials_are_dropped_for_another_origin_and_do_not_come_back(api: Api, web: Web, name: str) -> None:
    echoed = find(called(api, name), "tool.result")["output"]
    assert echoed.startswith("200 ")
    assert SECRET not in echoed
    received = [one["headers"] for one in web.two.log()]
    assert received
    assert SECRET not in json.dumps(received)


def test_a_method_that_is_not_allowed_is_not_sent(api: Api, web: Web) -> None:
    assert requests(called(api, "post")) == [("/text", False, None, "POST is not among the methods allowed: GET, HEAD")]
    assert not [one for one in web.asked() if one["method"] == "POST"]


# -- bodies
def test_a_body_within_the_cap_is_taken_whole(api: Api) -> None:
    result = find(called(api, "big"), "tool.result")
    assert result["ok"]
    assert "there are more" in result["output"]


def test_a_page_of_two_megabytes_is_reduced_to_its_text(api: Api, figure: Figure) -> None:
    result = find(called(api, "long"), "tool.result")
    assert result["ok"]
    assert "There are three lamps." in result["output"]
    figure(f"2 MB of HTML: {result['duration_ms']} ms")


@pytest.mark.parametrize("name", ["too-big", "gzip-bomb", "deflate-bomb", "brotli-bomb", "endless"])
def test_a_body_over_the_cap_is_left_however_small_it_is_packed(api: Api, web: Web, name: str, figure: Figure) -> None:
    records = called(api, name)
    result = find(records, "tool.result")
    assert not result["ok"]
    assert f"has more than the {MOST} bytes that are allowed" in result["output"]
    assert [status for _, _, status, _ in requests(records)] == [200]
    figure(f"{name}: refused after {result['duration_ms']} ms")


def test_a_packed_body_that_breaks_off_is_not_taken_for_a_whole_one(api: Api) -> None:
    result = find(called(api, "half"), "tool.result")
    assert not result["ok"]
    assert "broke off" in result["output"]


@pytest.mark.parametrize("name, told", [("never", (True, None)), ("slow", (True, 200))])
def test_a_server_that_does_not_answer_in_time_is_given_up(api: Api, name: str, told: tuple[bool, int | None]) -> None:
    records = called(api, name)
    assert [(allowed, status) for _, allowed, status, _ in requests(records)] == [told]
    assert "no whole answer came within 3 s" in find(records, "tool.result")["output"]


def test_what_is_no_text_and_what_is_not_found_are_said_to_be_so(api: Api) -> None:
    assert "is no text but image/png." in find(called(api, "image"), "tool.result")["output"]
    missing = find(called(api, "missing"), "tool.result")
    assert not missing["ok"]
    assert "answered with status 404" in missing["output"]


# -- what is offered
def test_web_fetch_is_listed_and_counts_as_a_write_without_an_allow_list(api: Api) -> None:
    tools = {tool["name"]: tool for tool in api.http.get("/v1/tools").json()["tools"]}
    assert tools["web_fetch"]["read_only"] is False
    assert tools["web_fetch"]["safe_to_repeat"] is True
    assert "web_fetch" in api.http.get("/v1/agents").json()["agents"][0]["tools"]
    run_id = api.start(model="page", approval="read-only")
    api.ended(run_id)
    assert "egress.request" not in types(api.records(run_id))
