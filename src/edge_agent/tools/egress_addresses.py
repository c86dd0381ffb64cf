"""Which addresses a request may go to. Pure: an address in, what is wrong with it out.

Sources: the IANA registries of special-purpose addresses for IPv4 and IPv6 (RFC 6890 and its updates), and what the
clouds write of their metadata services.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

Address = IPv4Address | IPv6Address
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


def _networks(*ranges: str) -> Networks:
    return tuple(ipaddress.ip_network(one) for one in ranges)


# AWS, Azure, GCP, Oracle, Tencent: within 169.254.0.0/16, which is refused whole. These are the others.
_METADATA = _networks(
    "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"
)  # fmt: skip
_NEVER: Mapping[str, Networks] = {
    "the metadata service of a cloud": _METADATA,
    "the address of no host": _networks("0.0.0.0/8", "::/128"),
    "a link-local address": _networks("169.254.0.0/16", "fe80::/10", "fec0::/10"),
    "a multicast address": _networks("224.0.0.0/4", "ff00::/8"),
    "an address for documentation": _networks(
        "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"
    ),
    "an address for measurements": _networks("198.18.0.0/15", "2001:2::/48"),
}
_PRIVATE: Mapping[str, Networks] = {
    "a loopback address": _networks("127.0.0.0/8", "::1/128"),
    "a private address": _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
    "a carrier's shared address": _networks("100.64.0.0/10"),
}
# Looked at after the above, as some of them lie within.
_HIDING = _networks(
    "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16"
)
_RESERVED = _networks("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4", "2001::/23")
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")


def fault_of(address: Address, *, allow_private: bool = False) -> str | None:
    """What this address is that no request may go to, as in `a private address`; None where one may."""
    kind = _kind(address, _NEVER) or _kind(address, _PRIVATE)
    if kind in _PRIVATE:
        return None if allow_private else kind
    if kind is None and _within(address, _HIDING):
        kind = "an IPv4 address inside of an IPv6 one"
    if kind is None and (_within(address, _RESERVED) or not _is_global(address)):
        kind = "a reserved address"
    return kind


def _kind(address: Address, kinds: Mapping[str, Networks]) -> str | None:
    return next((kind for kind, networks in kinds.items() if _within(address, networks)), None)


def _within(address: Address, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _is_global(address: Address) -> bool:
    """By the library's own tables too, of whichever version; of IPv6 only the one block that is handed out."""
    return address.is_global and (address.version == 4 or address in _GLOBAL_V6)  # noqa: PLR2004
