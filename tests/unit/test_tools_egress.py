"""Which addresses and URLs a request may go to: one table, and the rules around it."""

import ipaddress
from typing import Any

import pytest

from edge_agent.core.egress import Egress
from edge_agent.core.errors import ConfigError, EgressRefused
from edge_agent.tools.egress_addresses import fault_of
from edge_agent.tools.egress_names import resolved
from edge_agent.tools.egress_rules import destination, judge_addresses, judge_request, known_addresses, shown
from edge_agent.wire.settings import Settings
from tests.conftest import Figure

OPEN = Egress(protocols=("https", "http"), ports=(80, 443))
PRIVATE = Egress(protocols=("https", "http"), ports=(80, 443), allow_private_network=True)

# (as an address, judged alone, and where private networks are allowed)
ADDRESSES: list[tuple[str, bool, bool]] = [
    ("93.184.216.34", True, True),
    ("1.1.1.1", True, True),
    ("8.8.8.8", True, True),
    ("172.15.255.255", True, True),
    ("172.32.0.0", True, True),
    ("100.63.255.255", True, True),
    ("100.128.0.0", True, True),
    ("169.253.255.255", True, True),
    ("223.255.255.255", True, True),
    ("198.17.255.255", True, True),
    ("2606:4700:4700::1111", True, True),
    ("2a00:1450:4001:81b::200e", True, True),
    ("127.0.0.1", False, True),
    ("127.255.255.254", False, True),
    ("::1", False, True),
    ("10.0.0.0", False, True),
    ("10.255.255.255", False, True),
    ("172.16.0.1", False, True),
    ("172.31.255.255", False, True),
    ("192.168.0.1", False, True),
    ("100.64.0.1", False, True),
    ("100.127.255.255", False, True),
    ("fc00::1", False, True),
    ("fdff:ffff::1", False, True),
    ("0.0.0.0", False, False),
    ("0.1.2.3", False, False),
    ("::", False, False),
    ("169.254.0.1", False, False),
    ("169.254.169.254", False, False),
    ("169.254.170.2", False, False),
    ("168.63.129.16", False, False),
    ("100.100.100.200", False, False),
    ("192.0.0.192", False, False),
    ("fd00:ec2::254", False, False),
    ("fd20:ce::254", False, False),
    ("fe80::1", False, False),
    ("fe9f::1", False, False),
    ("febf:ffff::1", False, False),
    ("fec0::1", False, False),
    ("224.0.0.1", False, False),
    ("239.255.255.255", False, False),
    ("ff02::1", False, False),
    ("240.0.0.1", False, False),
    ("255.255.255.255", False, False),
    ("192.0.0.8", False, False),
    ("192.88.99.1", False, False),
    ("192.0.2.1", False, False),
    ("198.51.100.7", False, False),
    ("203.0.113.9", False, False),
    ("2001:db8::1", False, False),
    ("3fff::1", False, False),
    ("198.18.0.1", False, False),
    ("198.19.255.255", False, False),
    ("2001:2::1", False, False),
    ("100::1", False, False),
    ("2001::1", False, False),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False, False),
    ("2001:10::1", False, False),
    ("::ffff:127.0.0.1", False, False),
    ("::ffff:93.184.216.34", False, False),
    ("::ffff:0:127.0.0.1", False, False),
    ("::127.0.0.1", False, False),
    ("::5db8:d822", False, False),
    ("64:ff9b::127.0.0.1", False, False),
    ("64:ff9b:1::a00:1", False, False),
    ("2002:7f00:1::", False, False),
    ("2002:a9fe:a9fe::1", False, False),
    ("4000::1", False, False),
    ("5f00::1", False, False),
]

# (as a URL, what a request goes to; None: refused before anything is looked up)
SPELLINGS: list[tuple[str, str | None]] = [
    ("https://example.com", "https://example.com/"),
    ("https://EXAMPLE.com:443/a/../b?x=1#top", "https://example.com/a/../b?x=1"),
    ("https://example.com.", "https://example.com/"),
    ("http://example.com:80/", "http://example.com/"),
    ("  https://example.com/  ", "https://example.com/"),
    ("https://_dmarc.example.com/", "https://_dmarc.example.com/"),
    ("https://bücher.example/ä", "https://xn--bcher-kva.example/ä"),
    ("https://faß.example/", "https://xn--fa-hia.example/"),
    ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
    ("https://1.1.1.1/", "https://1.1.1.1/"),
    ("https://1.1.1.1./", "https://1.1.1.1/"),
    ("https://[2606:4700:4700:0:0:0:0:1111]/", "https://[2606:4700:4700::1111]/"),
    ("https://[2606:4700:4700::1111]:443/x", "https://[2606:4700:4700::1111]/x"),
    ("https://7.example.com/", "https://7.example.com/"),
    ("https://0xabc.example.com/", "https://0xabc.example.com/"),
    ("https://2130706433/", None),
    ("https://0x7f000001/", None),
    ("https://0x7F.0.0.1/", None),
    ("https://017700000001/", None),
    ("https://0177.0.0.1/", None),
    ("https://127.1/", None),
    ("https://127.0.1/", None),
    ("https://127.0.0.01/", None),
    ("https://127.0.0.0x1/", None),
    ("https://127.0.0.1.0/", None),
    ("https://256.1.1.1/", None),
    ("https://1.1.1.1.1/", None),
    ("https://example.0x/", None),
    ("https://%31%32%37.0.0.1/", None),
    ("https://127%2e0%2e0%2e1/", None),
    ("https://127。0。0。1/", None),
    ("https://１２７.0.0.1/", None),  # noqa: RUF001 - wide digits
    ("https://ⓔⓧample.com/", None),
    ("https://loc\u200balhost/", None),
    ("https://user@example.com/", None),
    ("https://user:password@example.com/", None),
    ("https://@example.com/", None),
    ("https://example.com\\@127.0.0.1/", None),
    ("https://example.com#@127.0.0.1/", "https://example.com/"),
    ("https:\\\\example.com/", None),
    ("https://exam\tple.com/", None),
    ("https://example.com/a b", None),
    ("https://example.com/\r\nHost: x", None),
    ("https://example.com:0/", None),
    ("https://example.com:99999/", None),
    ("https://example.com:4 43/", None),
    ("https://example.com:８０/", None),  # noqa: RUF001 - wide digits
    ("https://example.com:22/", None),
    ("https:///example.com", None),
    ("https:example.com", None),
    ("//example.com/", None),
    ("example.com", None),
    ("https://", None),
    ("https://.example.com/", None),
    ("https://example..com/", None),
    ("https://-.example.com/", None),
    ("https://[::1", None),
    ("https://[fe80::1%25eth0]/", None),
    ("https://[v1.x]/", None),
    ("https://[::1].example.com/", None),
    ("https://metadata/", None),
    ("ftp://example.com/", None),
    ("file:///etc/passwd", None),
    ("data:text/plain,x", None),
    ("gopher://example.com/", None),
    ("javascript:alert(1)", None),
    ("https://" + "a" * 64 + ".example/", None),
    ("https://" + "a." * 130 + "example/", None),
    ("https://example.com/" + "a" * 9_000, None),
]


def passes(url: str, egress: Egress, *addresses: str, aliases: tuple[str, ...] = (), method: str = "GET") -> str | None:
    """What a request would be sent to. `addresses`: what the resolver says of a name."""
    try:
        to = destination(url)
        judge_request(to, method, egress)
        known = known_addresses(to) or tuple(ipaddress.ip_address(address) for address in addresses)
        judge_addresses(to, known, aliases, egress)
    except EgressRefused:
        return None
    return to.url


@pytest.mark.parametrize("address, alone, private", ADDRESSES)
def test_an_address_is_judged_as_it_is_and_as_a_host_and_behind_a_name(
    address: str, alone: bool, private: bool
) -> None:
    one = ipaddress.ip_address(address)
    assert (fault_of(one) is None) is alone
    assert (fault_of(one, allow_private=True) is None) is private
    host = f"[{address}]" if ":" in address else address
    for egress, good in ((OPEN, alone), (PRIVATE, private)):
        assert (passes(f"https://{host}/", egress) is not None) is good
        assert (passes("https://name.example.com/", egress, address) is not None) is good
        assert (passes("https://name.example.com/", egress, "1.1.1.1", address) is not None) is good


@pytest.mark.parametrize("url, sent", SPELLINGS)
def test_a_url_is_taken_apart_and_only_what_reads_in_one_way_is_sent(url: str, sent: str | None) -> None:
    for egress in (OPEN, PRIVATE):
        assert passes(url, egress, "93.184.216.34") == sent


def test_the_table_is_long_enough(figure: Figure) -> None:
    rows = len(ADDRESSES) + len(SPELLINGS)
    allowed = sum(alone for _, alone, _ in ADDRESSES) + sum(sent is not None for _, sent in SPELLINGS)
    figure(f"{rows} addresses and spellings: {allowed} allowed, {rows - allowed} refused")
    assert rows >= 60
    assert len(set(ADDRESSES)) + len(set(SPELLINGS)) == rows


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "deep.localhost"])
def test_localhost_is_loopback_whatever_a_resolver_says(host: str) -> None:
    assert passes(f"https://{host}/", OPEN, "93.184.216.34") is None
    assert passes(f"https://{host}/", PRIVATE, "93.184.216.34") is not None


# -- allow and deny
def test_an_allow_list_is_exclusive() -> None:
    egress = Egress(allow=("docs.example.com", "*.example.org", "93.184.216.0/24", "2606:4700::/32"))
    assert passes("https://docs.example.com/", egress, "1.1.1.1")
    assert passes("https://a.b.example.org/", egress, "1.1.1.1")
    assert not passes("https://example.org/", egress, "1.1.1.1"), "*. is every name below, not the name"
    assert not passes("https://badexample.org/", egress, "1.1.1.1")
    assert not passes("https://docs.example.com.evil.example/", egress, "1.1.1.1")
    assert passes("https://93.184.216.34/", egress)
    assert passes("https://[2606:4700::1]/", egress)
    assert passes("https://other.example.net/", egress, "93.184.216.34")
    assert not passes("https://other.example.net/", egress, "93.184.216.34", "1.1.1.1"), "every address has to pass"
    assert not passes("https://1.1.1.1/", egress)


def test_a_host_that_is_not_allowed_is_not_even_looked_up() -> None:
    with pytest.raises(EgressRefused, match="not among the hosts allowed"):
        judge_request(destination("https://secret.evil.example/"), "GET", Egress(allow=("docs.example.com",)))


def test_an_allow_list_opens_no_address_that_is_closed() -> None:
    assert not passes("https://inside.example.com/", Egress(allow=("inside.example.com",)), "10.0.0.7")
    assert not passes("https://10.0.0.7/", Egress(allow=("10.0.0.0/8",)))
    assert passes("https://10.0.0.7/", Egress(allow=("10.0.0.0/8",), allow_private_network=True))
    assert not passes("https://169.254.169.254/", Egress(allow=("169.254.169.254",), allow_private_network=True))


def test_deny_wins() -> None:
    egress = Egress(
        allow=("*.example.com", "93.184.0.0/16"), deny=("vault.example.com", "*.denied.example", "93.184.216.34")
    )
    assert passes("https://docs.example.com/", egress, "1.1.1.1")
    assert not passes("https://VAULT.example.com./", egress, "1.1.1.1")
    assert not passes("https://docs.example.com/", egress, "1.1.1.1", "93.184.216.34")
    assert not passes("https://93.184.216.34/", egress)
    assert not passes("https://docs.example.com/", egress, "1.1.1.1", aliases=("cdn.example", "a.denied.example"))


def test_protocols_ports_and_methods_are_those_named() -> None:
    assert not passes("http://example.com/", Egress(), "1.1.1.1")
    assert not passes("https://example.com:8443/", Egress(), "1.1.1.1")
    assert passes("https://example.com:8443/", Egress(ports=(8443,)), "1.1.1.1") == "https://example.com:8443/"
    assert not passes("https://example.com/", Egress(ports=(8443,)), "1.1.1.1")
    assert not passes("https://example.com/", Egress(), "1.1.1.1", method="POST")
    assert passes("https://example.com/", Egress(methods=("POST",)), "1.1.1.1", method="POST")


def test_what_is_told_of_a_url_is_its_origin_and_path() -> None:
    assert shown("https://example.com:8443/a/b?token=x#y") == "https://example.com:8443/a/b"
    assert shown("https://user:word@example.com/a?b") == "https://example.com/a"
    assert shown("https://user:wo/rd@example.com/a?b") == "https://example.com/a"
    assert shown("ftp://u:p@example.com/a?b#c") == "ftp://example.com/a"
    assert shown("what is that?") == "(no URL)"
    assert len(shown("https://example.com/" + "a" * 5_000)) < 600


# -- names
async def answered(a: bytes | None, aaaa: bytes | None) -> Any:
    async def ask(url: str) -> bytes | None:
        return aaaa if url.endswith("&type=AAAA") else a

    return await resolved("name.example.com", "https://dns.example/dns-query", ask)


NOTHING = b'{"Status": 0}'


async def test_both_kinds_of_addresses_and_the_aliases_are_taken_from_a_resolvers_answers() -> None:
    a = b'{"Status": 0, "TC": false, "Answer": [{"type": 5, "data": "CDN.example."}, {"type": 1, "data": "1.2.3.4"}]}'
    aaaa = b'{"Status": 0, "Answer": [{"type": 46, "data": "a signature"}, {"type": 28, "data": "2606:4700::1"}]}'
    found = await answered(a, aaaa)
    assert [str(address) for address in found.addresses] == ["1.2.3.4", "2606:4700::1"]
    assert found.aliases == ("cdn.example",)
    assert (await answered(a, NOTHING)).addresses == found.addresses[:1]


@pytest.mark.parametrize(
    "a",
    [
        None,
        b"",
        b"<html>",
        b"[]",
        b'{"Answer": []}',
        b'{"Status": 3}',
        b'{"Status": 2, "Answer": [{"type": 1, "data": "1.2.3.4"}]}',
        b'{"Status": 0, "TC": true, "Answer": [{"type": 1, "data": "1.2.3.4"}]}',
        b'{"Status": 0, "Answer": [{"type": 1, "data": "0x7f.1"}]}',
        b'{"Status": 0, "Answer": [{"type": "one", "data": "1.2.3.4"}]}',
        b'{"Status": 0, "Answer": [{"type": 1}]}',
        b'{"Status": 0, "Answer": {"type": 1}}',
        b"[" * 100_000,
    ],
)
async def test_an_answer_that_is_not_whole_and_right_refuses_the_name(a: bytes | None) -> None:
    good = b'{"Status": 0, "Answer": [{"type": 28, "data": "2606:4700::1"}]}'
    assert (await answered(NOTHING, good)).addresses
    with pytest.raises(EgressRefused, match=r"name\.example\.com"):
        await answered(a, good)


async def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(EgressRefused, match="has no address"):
        await answered(NOTHING, NOTHING)


# -- the definition
@pytest.mark.parametrize(
    "given, said",
    [
        ({"allow": "example.com"}, "Egress.allow: is a list"),
        ({"allow": ["example.com", "https://example.com"]}, "Egress.allow: its entry 2 is no host"),
        ({"allow": ["Example.com"]}, "Egress.allow"),
        ({"allow": ["exa*mple.com"]}, "Egress.allow"),
        ({"allow": ["example.com:443"]}, "Egress.allow"),
        ({"allow": [""]}, "Egress.allow"),
        ({"allow": [7]}, "Egress.allow"),
        ({"deny": ["256.0.0.1"]}, "Egress.deny"),
        ({"deny": ["10.0.0.0/33"]}, "Egress.deny"),
        ({"protocols": ["ftp"]}, "Egress.protocols: is made of https and http"),
        ({"protocols": []}, "Egress.protocols"),
        ({"methods": ["get"]}, "Egress.methods: is made of GET"),
        ({"ports": [0]}, "Egress.ports"),
        ({"ports": ["443"]}, "Egress.ports"),
        ({"ports": [True]}, "Egress.ports"),
        ({"allow_private_network": 1}, "Egress.allow_private_network"),
        ({"max_redirects": -1}, "Egress.max_redirects"),
        ({"max_bytes": 0}, "Egress.max_bytes"),
        ({"timeout": 0}, "Egress.timeout"),
        ({"timeout": float("nan")}, "Egress.timeout"),
        ({"resolver": "http://dns.example/dns-query"}, "Egress.resolver"),
        ({"resolver": "https://user@dns.example/"}, "Egress.resolver"),
        ({"resolver": None}, "Egress.resolver"),
        ({"alow": []}, "Egress.alow: is unknown; known are allow, deny"),
    ],
)
def test_a_wrong_egress_says_what_is_wrong_and_shows_a_right_one(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        Egress.of(given)
    assert str(error.value).startswith(said)
    assert "Example: Egress(" in str(error.value)


def test_the_examples_of_an_egress_are_right() -> None:
    assert Egress.of({"allow": ["*.example.org", "10.0.0.1/8", "2606:4700::/32", "xn--bcher-kva.example"]})
    assert Egress(resolver="http://127.0.0.1:8053/dns-query")


def test_the_variable_wins_over_the_code() -> None:
    own = Egress(allow=("example.com",))
    for text, egress in (
        ("", own),
        ("on", Egress()),
        ("off", None),
        ('{"allow": ["a.example"], "ports": [8443]}', Egress(allow=("a.example",), ports=(8443,))),
    ):
        settings = Settings.from_env({"EDGE_AGENT_EGRESS": text})
        assert settings.egress_over(own) == egress
        assert settings.faults() == ()
    assert Settings.from_env({}).egress_over(None) is None, "off by default"


@pytest.mark.parametrize(
    "text", ["yes", "[1]", "{", '{"alow": []}', '{"ports": 443}', '{"resolver": "http://s3cret/"}']
)
def test_a_wrong_variable_is_a_fault_that_shows_no_value(text: str) -> None:
    fault = str(Settings.from_env({"EDGE_AGENT_EGRESS": text}).faults()[0])
    assert fault.startswith("EDGE_AGENT_EGRESS: ")
    assert "s3cret" not in fault
