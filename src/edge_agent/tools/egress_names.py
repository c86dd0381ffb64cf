"""The addresses of a name, over DNS in HTTPS (JSON form): what a Worker, which has no resolver of its own, can ask.

Source of the form: developers.cloudflare.com/1.1.1.1/encryption/dns-over-https/make-api-requests/dns-json (`Status` 0
is success, `type` 1 is A, 28 is AAAA, 5 is CNAME; the resolver follows aliases and answers with the whole chain).
"""

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from edge_agent.core.errors import EgressRefused
from edge_agent.tools.egress_addresses import Address

Ask = Callable[[str], Awaitable[bytes | None]]  # a URL; the body of an answer with status 200, None for any other
_ADDRESS, _ADDRESS_V6, _ALIAS = 1, 28, 5


@dataclass(frozen=True, slots=True)
class Resolved:
    """Every address of a name, and the names it leads to on the way."""

    addresses: tuple[Address, ...]
    aliases: tuple[str, ...]


async def resolved(host: str, resolver: str, ask: Ask) -> Resolved:
    """Raises EgressRefused where the resolver does not give a whole answer to both questions, or knows no address."""
    answers = await asyncio.gather(*(ask(f"{resolver}?name={host}&type={kind}") for kind in ("A", "AAAA")))
    try:
        found = [record for answer in answers for record in _records(answer)]
        addresses = tuple(_address(data) for kind, data in found if kind in (_ADDRESS, _ADDRESS_V6))
    except ValueError as error:
        raise EgressRefused(f"the addresses of {host} could not be found out: {error}") from None
    if not addresses:
        raise EgressRefused(f"{host} has no address")
    aliases = (data.lower().removesuffix(".") for kind, data in found if kind == _ALIAS)
    return Resolved(addresses, tuple(dict.fromkeys(aliases)))


def _records(answer: bytes | None) -> list[tuple[int, str]]:
    """(type, data) of each record of an answer. Raises ValueError for what is no whole answer."""
    if answer is None:
        raise ValueError("the resolver did not answer")
    try:
        told = cast("dict[str, Any]", json.loads(answer))
        status, truncated, records = told["Status"], told.get("TC", False), told.get("Answer", [])
        found = [(int(record["type"]), str(record["data"])) for record in records]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("the resolver's answer is no DNS in JSON") from None
    if status != 0:
        raise ValueError("there is no such name" if status == 3 else f"the resolver says {status}")  # noqa: PLR2004
    if truncated:
        raise ValueError("the resolver's answer is cut short")
    return found


def _address(data: str) -> Address:
    try:
        return ipaddress.ip_address(data)
    except ValueError:
        raise ValueError("the resolver's answer holds an address that is none") from None
