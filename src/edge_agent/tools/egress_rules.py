"""Which URLs a request may go to. Pure: nothing is looked up and nothing is sent.

A URL is taken apart once and put together again from its parts, and only that is sent: what two parsers could read in
two ways (backslashes, control characters, odd spellings of numbers, percent signs in a host) is refused.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from edge_agent.core.egress import HOST, NUMBER, Egress, network_of
from edge_agent.core.errors import EgressRefused
from edge_agent.tools.egress_addresses import Address, fault_of

MOST_CHARACTERS = 8_000  # of a URL
_SHOWN = 500  # characters of a path
_DEFAULT_PORTS = {"http": 80, "https": 443}
_BRACKETED = re.compile(r"\[[^\]]*\](:\d*)?")
_LOOPBACK: tuple[Address, ...] = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where a request goes. `host` in lower case, a name in its ASCII form, an address in its usual spelling.
    `path`: never empty. `address`: of a host that is one. `url` is what is sent, `shown` what may be told of it."""

    scheme: str
    host: str
    port: int
    path: str
    query: str
    address: Address | None

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}")

    @property
    def url(self) -> str:
        return self.origin + self.path + (f"?{self.query}" if self.query else "")

    @property
    def shown(self) -> str:
        return self.origin + self.path[:_SHOWN]


def destination(url: str) -> Destination:
    """Raises EgressRefused for what is no plain http or https URL; the message has nothing of it but its host."""
    parts = _parts(url.strip(" "))
    if parts.scheme not in _DEFAULT_PORTS:
        raise EgressRefused("only http and https URLs can be fetched")
    if "@" in parts.netloc:
        raise EgressRefused("the URL holds a user name or password; credentials do not belong into a URL")
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise EgressRefused("the port of the URL is no port") from None
    if not host:
        raise EgressRefused("the URL names no host")
    name, address = _host(host, bracketed=bool(_BRACKETED.fullmatch(parts.netloc)))
    return Destination(
        scheme=parts.scheme,
        host=name,
        port=_DEFAULT_PORTS[parts.scheme] if port is None else port,
        path=parts.path or "/",
        query=parts.query,
        address=address,
    )


def shown(url: str) -> str:
    """The origin and path of any text that was given for a URL."""
    try:
        return destination(url).shown
    except EgressRefused:
        pass
    plain = re.match(r"\s*([A-Za-z][A-Za-z0-9+.-]{0,20}):/*(?:[^?#]*@)?([^/?#\\\[\]]*)([^?#\[\]]*)", url)
    return f"{plain[1]}://{plain[2]}{plain[3]}"[:_SHOWN] if plain else "(no URL)"


def _parts(url: str) -> SplitResult:
    if len(url) > MOST_CHARACTERS:
        raise EgressRefused(f"the URL has more than {MOST_CHARACTERS} characters")
    if "\\" in url or any(not char.isprintable() or char.isspace() for char in url):
        raise EgressRefused("the URL holds a space, a backslash or a control character; write it percent-encoded")
    try:
        return urlsplit(url)
    except ValueError:
        raise EgressRefused("that is not a URL") from None


def _host(host: str, *, bracketed: bool) -> tuple[str, Address | None]:
    if bracketed:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            address = None
        if address is None or address.scope_id is not None:
            raise EgressRefused(f"{host} is no IPv6 address that can be reached")
        return str(address), address
    name = (host if host.isascii() else _ascii(host)).lower().removesuffix(".")
    if not HOST.fullmatch(name):
        raise EgressRefused("the host of the URL is no host name")
    if not NUMBER.fullmatch(name.rpartition(".")[2]):
        return name, None
    try:
        return name, ipaddress.IPv4Address(name if host.isascii() else "")
    except ValueError:
        raise EgressRefused(
            f"{name} is an odd spelling of an address; write it as four numbers from 0 to 255"
        ) from None


def _ascii(host: str) -> str:
    import httpx2  # noqa: PLC0415  (a third of a second, for names in other scripts)

    try:
        return httpx2.URL(f"https://{host}/").raw_host.decode("ascii")
    except httpx2.InvalidURL:
        raise EgressRefused("the host of the URL is no international host name") from None


# -- before anything is looked up
def judge_request(to: Destination, method: str, egress: Egress) -> None:
    """What can be said without knowing the host's addresses. Raises EgressRefused."""
    if method not in egress.methods:
        raise EgressRefused(f"{method[:20]} is not among the methods allowed: {', '.join(egress.methods)}")
    if to.scheme not in egress.protocols:
        raise EgressRefused(f"{to.scheme} is not among the protocols allowed: {', '.join(egress.protocols)}")
    if to.port not in egress.ports:
        raise EgressRefused(f"port {to.port} is not among those allowed: {', '.join(map(str, egress.ports))}")
    if entry := _host_entry(to.host, egress.deny):
        raise EgressRefused(f"{to.host} is denied by {entry}")
    if egress.allow and not _host_entry(to.host, egress.allow) and not any(map(network_of, egress.allow)):
        raise EgressRefused(f"{to.host} is not among the hosts allowed")
    if to.address is None and not is_local(to.host) and "." not in to.host:
        raise EgressRefused(f"{to.host} is no full host name")


def known_addresses(to: Destination) -> tuple[Address, ...]:
    """Those that need no look-up. Empty for a name that does."""
    if to.address is not None:
        return (to.address,)
    return _LOOPBACK if is_local(to.host) else ()


def is_local(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


# -- when its addresses are known
def judge_addresses(to: Destination, addresses: Sequence[Address], aliases: Iterable[str], egress: Egress) -> None:
    """Every address has to pass, since any may be taken. `aliases`: names the host's own name leads to.

    Raises EgressRefused."""
    for alias in aliases:
        if entry := _host_entry(alias, egress.deny):
            raise EgressRefused(f"{to.host} leads to a name that is denied by {entry}")
    by_name = _host_entry(to.host, egress.allow)
    for address in addresses:
        if entry := _network_entry(address, egress.deny):
            raise EgressRefused(f"{_at(to, address)}, which is denied by {entry}")
        if fault := fault_of(address, allow_private=egress.allow_private_network):
            raise EgressRefused(f"{to.host} is {fault}" if to.address else f"{_at(to, address)}, {fault}")
        if egress.allow and not by_name and not _network_entry(address, egress.allow):
            raise EgressRefused(f"{_at(to, address)}, which is not among the addresses allowed")


def _at(to: Destination, address: Address) -> str:
    return f"{to.host} is at {address}"


def _host_entry(host: str, entries: Iterable[str]) -> str | None:
    """The entry that names this host, or all names below another one."""
    for entry in entries:
        if entry == host or (entry.startswith("*.") and host.endswith(entry[1:])):
            return entry
    return None


def _network_entry(address: Address, entries: Iterable[str]) -> str | None:
    for entry in entries:
        network = network_of(entry)
        if network is not None and network.version == address.version and address in network:
            return entry
    return None
