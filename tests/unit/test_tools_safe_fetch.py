"""safe_fetch over real sockets, with names that lead to this machine and a certificate made for the test."""

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from edge_agent import Agent
from edge_agent.core.egress import Egress, Fetched, Requested
from edge_agent.core.errors import EgressRefused, OutcomeUnknown, ToolError
from edge_agent.core.events import EgressRequest, ToolResult
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.tools.safe_fetch import safe_fetch
from tests.servers.web_server import WebServer, web_server

ZONE: dict[str, dict[str, Any]] = {
    "one.example.com": {"A": ["127.0.0.1"]},
    "two.example.com": {"CNAME": ["one.example.com."], "A": ["127.0.0.1"]},
    "far.example.com": {"A": ["127.0.0.1", "169.254.169.254"]},
}


class HereAsNamed(httpx2.AsyncBaseTransport):
    """Connects to this machine for every name, as a resolver that knows the zone would."""

    def __init__(self, trust: ssl.SSLContext) -> None:
        self._inner = httpx2.AsyncHTTPTransport(verify=trust)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        name = request.url.host
        request.extensions["sni_hostname"] = name
        request.url = request.url.copy_with(host="127.0.0.1")
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(frozen=True, slots=True)
class Desk:
    """A server by http and one by https, and what was told of requests."""

    plain: WebServer
    secure: WebServer
    transport: Callable[[], httpx2.AsyncBaseTransport]
    egress: Egress
    told: list[Requested] = field(default_factory=list[Requested])

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.plain.port}{path}"

    def secure_at(self, path: str, host: str = "one.example.com") -> str:
        return f"https://{host}:{self.secure.port}{path}"

    async def fetch(self, url: str, egress: Egress | None = None, **more: Any) -> Fetched:
        return await safe_fetch(url, egress or self.egress, self.transport, tell=self.told.append, **more)


def certificate(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """(for a server of *.example.com, for a client that trusts it)"""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("*.example.com")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "certificate.pem"
    file.write_bytes(pem + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=pem.decode())


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    tls, trust = certificate(tmp_path)
    async with web_server(zone=ZONE) as plain, web_server(ssl=tls) as secure:
        egress = Egress(
            protocols=("https", "http"),
            ports=(plain.port, secure.port),
            methods=("GET", "HEAD", "POST", "PUT"),
            allow_private_network=True,
            max_bytes=1_000_000,
            timeout=10,
            resolver=f"{plain.origin}/dns-query",
        )
        yield Desk(plain, secure, lambda: HereAsNamed(trust), egress)


# -- names
async def test_a_name_is_looked_up_judged_and_then_reached_by_its_name(desk: Desk) -> None:
    answer = await desk.fetch(desk.at("/echo?a=1", "two.example.com"), client_name="me")
    assert answer.url == desk.at("/echo", "two.example.com")
    assert f'"host": "two.example.com:{desk.plain.port}"' in answer.text
    assert '"user-agent": "me"' in answer.text
    looked_up = [one["path"] for one in desk.plain.log if one["path"].startswith("/dns-query")]
    assert sorted(looked_up) == [f"/dns-query?name=two.example.com&type={kind}" for kind in ("A", "AAAA")]
    assert desk.told == [Requested(method="GET", url=answer.url, allowed=True, status=200)]


async def test_one_bad_address_of_a_name_is_enough(desk: Desk) -> None:
    with pytest.raises(EgressRefused, match=r"far.example.com is at 169\.254\.169\.254, a link-local address"):
        await desk.fetch(desk.at("/text", "far.example.com"))
    assert desk.plain.asked == []
    assert [one.allowed for one in desk.told] == [False]


async def test_a_resolver_that_is_not_there_refuses_every_name(desk: Desk) -> None:
    for resolver in ("http://127.0.0.1:1/dns-query", f"{desk.plain.origin}/status/500", f"{desk.plain.origin}/text"):
        with pytest.raises(EgressRefused, match="could not be found out"):
            await desk.fetch(desk.at("/text", "one.example.com"), replace(desk.egress, resolver=resolver))


# -- redirects
async def test_https_is_spoken_and_its_redirects_to_https_are_followed(desk: Desk) -> None:
    answer = await desk.fetch(desk.secure_at(f"/to/302?{desk.secure_at('/text', 'two.example.com')}"))
    assert (answer.status, answer.text) == (200, "plain text")
    assert answer.url == desk.secure_at("/text", "two.example.com")


async def test_a_certificate_for_another_name_is_no_answer(desk: Desk) -> None:
    with pytest.raises(ToolError, match="did not answer"):
        await desk.fetch(desk.secure_at("/text", "localhost"))


async def test_a_redirect_from_https_to_http_is_refused_also_where_http_is_allowed(desk: Desk) -> None:
    with pytest.raises(EgressRefused, match="redirects from https to http"):
        await desk.fetch(desk.secure_at(f"/to/301?{desk.at('/text', 'one.example.com')}"))
    assert [(one.url, one.allowed) for one in desk.told] == [
        (desk.secure_at("/to/301"), True),
        (desk.at("/text", "one.example.com"), False),
    ]
    assert desk.plain.asked == []


async def test_a_redirect_from_http_to_https_is_followed(desk: Desk) -> None:
    assert (await desk.fetch(desk.at(f"/to/308?{desk.secure_at('/text')}"))).text == "plain text"


@pytest.mark.parametrize(
    "status, method, then",
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (307, "PUT", "PUT"),
        (308, "POST", "POST"),
    ],
)
async def test_methods_change_at_redirects_as_in_browsers(desk: Desk, status: int, method: str, then: str) -> None:
    content = b"" if method == "HEAD" else b"body"
    await desk.fetch(desk.at(f"/to/{status}?/text"), method=method, content=content, headers={"content-type": "x/y"})
    last = desk.plain.log[-1]
    assert (last["method"], last["path"]) == (then, "/text")
    assert last["body"] == (content.decode() if then == method else "")
    assert ("content-type" in last["headers"]) is (then == method)


async def test_a_body_is_not_sent_on_to_another_origin(desk: Desk) -> None:
    with pytest.raises(OutcomeUnknown, match="redirects what was sent to another origin"):
        await desk.fetch(desk.at(f"/to/307?{desk.secure_at('/text')}"), method="POST", content=b"body")
    assert desk.secure.log == []
    assert (
        await desk.fetch(desk.at(f"/to/303?{desk.secure_at('/text')}"), method="POST", content=b"body")
    ).status == 200
    assert desk.secure.log[0]["method"] == "GET"


async def test_another_port_is_another_origin_and_gets_no_credentials(desk: Desk) -> None:
    headers = {"Authorization": "Bearer x", "Cookie": "x", "X-Api-Key": "x", "Accept-Language": "de"}
    await desk.fetch(desk.at(f"/to/302?{desk.secure_at('/text')}"), headers=headers)
    first, second = desk.plain.log[0]["headers"], desk.secure.log[0]["headers"]
    assert {"authorization", "cookie", "x-api-key"} <= set(first)
    assert not {"authorization", "cookie", "x-api-key"} & set(second)
    assert second["accept-language"] == "de"


async def test_a_redirect_to_what_is_no_url_is_refused_and_told(desk: Desk) -> None:
    with pytest.raises(EgressRefused, match="that is not a URL"):
        await desk.fetch(desk.at("/to/302?http://[::1"))
    assert [one.allowed for one in desk.told] == [True, False]


# -- an agent in this process
async def test_an_agent_in_this_process_reads_a_page(desk: Desk) -> None:
    call = ("web_fetch", {"url": desk.at("/page?a=1")})
    agent = Agent(name="reader", model=ScriptedModel(answers=[Answer(calls=(call,)), "Three."]), egress=desk.egress)
    events = [event async for event in agent.stream("How many lamps?")]
    assert [(e.url, e.status) for e in events if isinstance(e, EgressRequest)] == [(desk.at("/page"), 200)]
    result = next(event for event in events if isinstance(event, ToolResult))
    assert "There are three lamps." in result.output


# -- methods and headers
async def test_what_fails_after_a_method_that_may_change_something_is_unknown(desk: Desk) -> None:
    for path in ("/zeros/2", "/half/1/gzip", f"/to/302?{desk.at('/loop/9')}"):
        with pytest.raises(OutcomeUnknown):
            await desk.fetch(desk.at(path), method="POST")
    with pytest.raises(ToolError) as error:
        await desk.fetch(desk.at("/text"), replace(desk.egress, methods=("GET",)), method="POST")
    assert not isinstance(error.value, OutcomeUnknown), "nothing was sent"


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Accept-Encoding"])
async def test_headers_that_frame_the_request_are_not_the_tools(desk: Desk, name: str) -> None:
    with pytest.raises(ToolError, match="is set by the runtime"):
        await desk.fetch(desk.at("/text"), headers={name: "x"})
    assert desk.plain.log == []


# -- bodies
@pytest.mark.parametrize("path", ["/zeros/2", "/zeros/50/gzip", "/zeros/50/deflate", "/endless"])
async def test_no_more_of_a_body_is_unpacked_than_the_cap(desk: Desk, path: str) -> None:
    with pytest.raises(ToolError, match="more than the 1000000 bytes"):
        await desk.fetch(desk.at(path))


@pytest.mark.parametrize("path", ["/zeros/1", "/zeros/1/gzip", "/zeros/1/deflate"])
async def test_a_body_of_just_the_cap_is_whole(desk: Desk, path: str) -> None:
    assert (await desk.fetch(desk.at(path))).content == bytes(1_000_000)


async def test_an_answer_to_head_has_no_body_whatever_it_says_of_its_packing(desk: Desk) -> None:
    answer = await desk.fetch(desk.at("/zeros/1/gzip"), method="HEAD")
    assert (answer.status, answer.headers["content-encoding"], answer.content) == (200, "gzip", b"")


async def test_what_comes_after_the_end_of_a_packed_body_is_not_lost_without_a_word(desk: Desk) -> None:
    with pytest.raises(ToolError, match="broke off"):
        await desk.fetch(desk.at("/twice"))


async def test_a_packing_nobody_asked_for_is_an_error(desk: Desk) -> None:
    with pytest.raises(ToolError, match="packed in a way that nobody asked for"):
        await desk.fetch(desk.at("/brotli"))


async def test_one_deadline_is_for_all_of_it_and_what_was_under_way_is_told(desk: Desk) -> None:
    for path, told in (("/hang", (None, "it was given up before an answer came")), ("/slow", (200, None))):
        with pytest.raises(ToolError, match=r"no whole answer came within 0\.2 s"):
            await desk.fetch(desk.at(path), replace(desk.egress, timeout=0.2))
        assert (desk.told[-1].status, desk.told[-1].reason) == told
    slow = replace(desk.egress, timeout=0.2, resolver=f"{desk.plain.origin}/hang")
    with pytest.raises(ToolError, match=r"no whole answer came within 0\.2 s"):
        await desk.fetch(desk.at("/text", "one.example.com"), slow)
    assert desk.told[-1].reason == "it was given up before its addresses were known"


async def test_a_cancel_is_told_and_is_no_error_of_the_fetch(desk: Desk) -> None:
    task = asyncio.ensure_future(desk.fetch(desk.at("/hang")))
    await asyncio.wait_for(desk.plain.came.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [one.reason for one in desk.told] == ["it was given up before an answer came"]
