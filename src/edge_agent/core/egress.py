"""Egress: which requests an agent may send to the outside, and what came of one."""

import ipaddress
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from edge_agent.core.errors import ConfigError, ToolError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
HOST = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
NUMBER = re.compile(r"\d+|0x[0-9a-f]*")  # a host whose last label is one is an IPv4 address to whoever sends a request
RESOLVER = "https://cloudflare-dns.com/dns-query"
_MOST_BYTES, _MOST_SECONDS = 50_000_000, 600
_PROTOCOLS = ("https", "http")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_ENTRY = "is no host in lower case (others as xn--…; *. before it for all names below it), address or CIDR range"
_RESOLVER_RULE = "is the https URL of a DNS-over-HTTPS service that answers in JSON, without credentials and query"
_EXAMPLES = {
    "allow": 'Egress(allow=("docs.example.com", "*.example.org", "93.184.216.0/24"))',
    "deny": 'Egress(deny=("*.internal.example.com",))',
    "protocols": 'Egress(protocols=("https",))',
    "ports": "Egress(ports=(443, 8443))",
    "methods": 'Egress(methods=("GET", "HEAD", "POST"))',
    "allow_private_network": "Egress(allow_private_network=True)",
    "max_redirects": "Egress(max_redirects=3)",
    "timeout": "Egress(timeout=15)",
    "max_bytes": "Egress(max_bytes=2_000_000)",
    "resolver": f'Egress(resolver="{RESOLVER}")',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress:
    """What may leave an agent: `web_fetch`, and `ToolContext.fetch` in its tools. Without one, nothing may.

    allow, deny: hosts (`docs.example.com`, or `*.example.com` for every name below it), addresses and CIDR ranges. Deny
    wins; with an `allow`, nothing else is reached, and web_fetch counts as a tool that only reads.
    allow_private_network: loopback, private and carrier-grade NAT addresses too. Metadata services of clouds,
    link-local addresses and those that are never routed stay out of reach.
    timeout: seconds for one fetch with its look-ups and redirects. max_bytes: of a body, after decompression.
    resolver: DNS over HTTPS in its JSON form; every address of a name is judged before a request is sent.
    Raises ConfigError for what cannot work.
    """

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    protocols: Sequence[str] = ("https",)
    ports: Sequence[int] = (443,)
    methods: Sequence[str] = ("GET", "HEAD")
    allow_private_network: bool = False
    max_redirects: int = 3
    timeout: float = 15
    max_bytes: int = 2_000_000
    resolver: str = RESOLVER

    def __post_init__(self) -> None:
        for name in ("allow", "deny", "protocols", "ports", "methods"):
            object.__setattr__(self, name, self._listed(name))
        for name, fault in self._faults():
            if fault:
                raise ConfigError(f"Egress.{name}", fault, _EXAMPLES[name])

    def _faults(self) -> Iterator[tuple[str, str | None]]:
        """None of them holds a value: a variable is shown to whoever asks for the health of a deployment."""
        for name in ("allow", "deny"):
            entries = getattr(self, name)
            yield (
                name,
                next((f"its entry {at} {_ENTRY}" for at, one in enumerate(entries, 1) if not _is_entry(one)), None),
            )
        yield "protocols", _unless(_chosen(self.protocols, _PROTOCOLS), f"is made of {' and '.join(_PROTOCOLS)}")
        yield "methods", _unless(_chosen(self.methods, _METHODS), f"is made of {', '.join(_METHODS)}")
        ports = bool(self.ports) and all(_whole(port, 1, 65_535) for port in self.ports)
        yield "ports", _unless(ports, "names ports, whole numbers from 1 to 65535")
        private = isinstance(cast(object, self.allow_private_network), bool)
        yield "allow_private_network", _unless(private, "is true or false")
        yield "max_redirects", _unless(_whole(self.max_redirects, 0, 20), "is a whole number from 0 to 20")
        yield "max_bytes", _unless(_whole(self.max_bytes, 1, _MOST_BYTES), f"is a whole number from 1 to {_MOST_BYTES}")
        patient = _number(self.timeout) and 0 < self.timeout <= _MOST_SECONDS
        yield "timeout", _unless(patient, f"is in seconds, above 0 and up to {_MOST_SECONDS}")
        yield "resolver", _unless(_is_resolver(self.resolver), _RESOLVER_RULE)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Egress":
        """From JSON. Raises ConfigError, also for a name there is not."""
        known = [one.name for one in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(
                    f"Egress.{name[:60]}", f"is unknown; known are {', '.join(known)}", _EXAMPLES["allow"]
                )
        return cls(**values)

    def _listed(self, name: str) -> tuple[Any, ...]:
        value: object = getattr(self, name)
        if not isinstance(value, list | tuple):
            raise ConfigError(f"Egress.{name}", "is a list", _EXAMPLES[name])
        return tuple(cast("list[Any]", value))


def _unless(good: bool, fault: str) -> str | None:  # noqa: FBT001 - a question and its answer
    return None if good else fault


def _chosen(given: Sequence[str], known: Sequence[str]) -> bool:
    return bool(given) and all(one in known for one in given)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, str):
        return False
    host = entry.removeprefix("*.")
    return bool(network_of(entry) or (HOST.fullmatch(host) and not NUMBER.fullmatch(host.rpartition(".")[2])))


def network_of(entry: str) -> Network | None:
    """An address or a CIDR range; None for a host. Raises nothing: `10.0.0.1/8` counts as its range."""
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return None


def _is_resolver(url: object) -> bool:
    """Plain http only on this machine: who can change an answer decides where requests go."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    except ValueError:
        return False
    return bool(parts.hostname) and (parts.scheme == "https" or local) and "@" not in parts.netloc and not parts.query


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """One request as it is told: `url` has the origin and path alone. `reason`: why it was refused, or not answered."""

    method: str
    url: str
    allowed: bool
    status: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer, its body whole. `url`: where it came from after redirects, without the query. Header names are in
    lower case."""

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes = b""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """By the charset its header names, else UTF-8; what does not fit is replaced."""
        named = re.search(r"charset\s*=\s*\"?([\w.:-]{1,40})", self.headers.get("content-type", ""), re.IGNORECASE)
        try:
            return self.content.decode(named[1] if named else "utf-8", "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")


class Fetch(Protocol):
    async def __call__(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, content: bytes = b""
    ) -> Fetched:
        """One request, by the rules of the agent's Egress; redirects are followed and judged one by one.

        Raises EgressRefused where a rule forbids it, ToolError where no whole answer came, and OutcomeUnknown where
        none came after a method that may have changed something. Whatever the status, an answer is returned."""
        ...


Fetcher = Callable[[Callable[[Requested], None]], Fetch]  # given who is told of each request


async def no_egress(
    url: str,  # noqa: ARG001 - nothing is asked for
    *,
    method: str = "GET",  # noqa: ARG001
    headers: Mapping[str, str] | None = None,  # noqa: ARG001
    content: bytes = b"",  # noqa: ARG001
) -> Fetched:
    """The `Fetch` of an agent without an Egress."""
    raise ToolError("This agent may not reach the outside: give it Agent(egress=Egress(…)) or set EDGE_AGENT_EGRESS.")
