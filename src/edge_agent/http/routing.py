"""Paths: which go straight to a run's object, which a run token opens, and what stands near one that leads nowhere."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import unquote

from edge_agent.http.mcp_links import CALLBACK, DOCUMENT
from edge_agent.wire.run_ids import RUN_ID

StreamKind = Literal["events", "ws", "log", "files"]
OPEN_PATHS = frozenset({"/healthz", "/openapi.json", CALLBACK, DOCUMENT})
MOST_LOG = 33_554_432  # bytes of an exported log
_LINK = re.compile(r"/v1/(approvals|mcp/connect)/[^/]+")
_STREAM = re.compile(rf"/v1/runs/({RUN_ID})/(?:(events|ws|log)|(files)/([^/]{{1,600}}))")
_STOPS = "cancel|steps/current/cancel|subagents/[^/]+/cancel"
_OPENED = re.compile(rf"/v1/runs/({RUN_ID})(?:/({_STOPS}|messages|answers/.+))?")
_DECIDED = re.compile(rf"/v1/runs/({RUN_ID})/approvals/[^/]+")
_MODE = re.compile(rf"/v1/runs/({RUN_ID})/approval-mode")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRoute:
    """A request that the run's object answers itself. `name`: the file, decoded."""

    run_id: str
    kind: StreamKind
    name: str | None = None


def stream_route(method: str, path: str) -> StreamRoute | None:
    """Which object answers this path (as it stands in the URL); None where the API does."""
    found = _STREAM.fullmatch(path)
    if found is None or method != "GET":
        return None
    run_id, kind, files, name = found.groups()
    return StreamRoute(run_id=run_id, kind=cast(StreamKind, kind or files), name=unquote(name) if name else None)


def opened_by_run_token(method: str, path: str) -> str | None:
    """The run whose token opens this path: its state, streams and files, and to cancel, steer, answer or decide it."""
    if route := stream_route(method, path):
        return route.run_id
    if found := _DECIDED.fullmatch(path):
        return found[1] if method in ("GET", "POST") else None
    if found := _MODE.fullmatch(path):
        return found[1] if method == "PUT" else None
    found = _OPENED.fullmatch(path)
    if found is None or method != ("POST" if found[2] else "GET"):
        return None
    return found[1]


def is_link(path: str) -> bool:
    """Whether a path is a signed link, which is its own permission."""
    return _LINK.fullmatch(path) is not None


def takes_a_log(path: str) -> bool:
    """Whether the body is an exported log: larger than others, and JSON lines."""
    return path == "/v1/replay"


def most_body(path: str, most: int) -> int:
    """How many bytes a body may have, where `most` is the cap of the deployment."""
    return max(most, MOST_LOG) if takes_a_log(path) else most


def nearby(path: str, templates: Iterable[str]) -> list[str]:
    """Up to three paths of the API that look like the one asked for."""
    return difflib.get_close_matches(path[:200], sorted(set(templates)), n=3, cutoff=0.5)
