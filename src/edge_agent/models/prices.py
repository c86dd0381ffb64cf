"""What models cost and how much fits into their window: what is configured, else what is listed (price_table.py).

A price that has changed since, or a model that is missing: EDGE_AGENT_PRICES. What is not known is not guessed.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from ipaddress import ip_address

from edge_agent.core.errors import ConfigError
from edge_agent.core.price import FREE, Price
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.naming import resolve
from edge_agent.models.price_table import TABLE, Listed
from edge_agent.wire.settings import Settings

DEFAULT_WINDOW = 128_000  # tokens
_DATE = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)$")


def price_of(name: str, settings: Settings, *, for_an_hour: bool = False) -> Price | None:
    """Of a model by its whole name: configured, free because it runs on this machine, or listed; None: nobody knows.

    for_an_hour: what is written to its cache is to be kept that long, which costs more."""
    configured = settings.prices
    own = configured.get(name) or configured.get(name.partition("/")[2])
    if own is not None:
        return own
    endpoint = _endpoint(name, settings)
    if endpoint is not None and _is_loopback(endpoint.host):
        return FREE
    listed = _listed(name)
    if listed is None:
        return None
    hourly = for_an_hour and listed.hour_write is not None
    return replace(listed.price, cache_write=listed.hour_write) if hourly else listed.price


def window_of(names: Iterable[str], settings: Settings) -> int:
    """The smallest context window of these models, in tokens."""
    return settings.context_window or min((_window(name, settings) for name in names), default=DEFAULT_WINDOW)


def _window(name: str, settings: Settings) -> int:
    endpoint = _endpoint(name, settings)
    own = endpoint.profile.context_window if endpoint is not None else None
    listed = _listed(name)
    return own or (DEFAULT_WINDOW if listed is None else listed.window)


def _listed(name: str) -> Listed | None:
    """A model of a certain date (claude-haiku-4-5-20251001) is listed without it."""
    return TABLE.get(name) or TABLE.get(_DATE.sub("", name))


def _endpoint(name: str, settings: Settings) -> Endpoint | None:
    """None for a model that was passed in as an object, or whose provider is not configured (any more)."""
    try:
        return resolve(name, settings)[0]
    except ConfigError:
        return None


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name == "localhost":
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
