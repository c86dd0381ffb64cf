"""How a run is followed over plain HTTP: its events as a stream or as lines, its log, its files."""

import re
from collections.abc import Mapping, Sequence

from workers import Response

from edge_agent.cloudflare.event_stream import EventStream
from edge_agent.cloudflare.live_run import LiveRun
from edge_agent.core.errors import Refusal
from edge_agent.core.hub import Item
from edge_agent.core.ports import Record
from edge_agent.http.problems import answer_for
from edge_agent.wire import export

# An open response would keep the object from hibernating: a client comes back with its cursor.
RETRY_WHEN_WAITING = "retry: 15000\n\n"
_LINES = {"content-type": "application/x-ndjson; charset=utf-8", "cache-control": "no-store"}
_SSE = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}


def follow(live: LiveRun, what: str, query: Mapping[str, str], last_event_id: str | None) -> Response:
    """GET /v1/runs/{id}/{what}. Raises Refusal."""
    if what == "log":
        return Response(_log(live), headers=_LINES)
    if what.startswith("files/"):
        return _file(live, what.removeprefix("files/"))
    after = cursor(live, query.get("after") or last_event_id)
    if query.get("wait") == "false":
        return Response(_so_far(live, after), headers=_LINES)
    return _events(live, after)


def cursor(live: LiveRun, text: str | None) -> int:
    """The seq of the last event a client has. Raises Refusal 422 and 416."""
    if not text:
        return 0
    if not re.fullmatch(r"\d{1,15}", text):
        raise Refusal(422, "bad_cursor", "The cursor is the seq of the last event you have: a whole number.")
    last = len(live.journal.records)
    if int(text) > last:
        message = f"The cursor {text} is ahead of the log, which ends at {last}. Start again from 0."
        raise Refusal(416, "cursor_ahead", message, last=last)
    return int(text)


def missed(live: LiveRun, after: int) -> list[Item]:
    return [record for record in live.journal.in_order() if record.seq > after]


def refused(no: Refusal) -> Response:
    answer = answer_for(no)
    return Response(answer.body, status=answer.status, headers=answer.headers)


def _so_far(live: LiveRun, after: int) -> str:
    return "".join(f"{line}\n" for line in live.framer.json(missed(live, after)))


def _events(live: LiveRun, after: int) -> Response:
    """Until the run ends, waits for someone, or the client goes."""

    def tell(items: Sequence[Item]) -> None:
        stream.write(live.framer.sse(items))
        waits = bool(items) and isinstance(items[-1], Record) and items[-1].type == "run.waiting"
        if waits and not live.journal.ended:
            stream.write(RETRY_WHEN_WAITING)
        if waits or live.journal.ended:
            stream.end()

    stream = EventStream(lambda: leave())  # noqa: PLW0108 - it is made two lines below
    leave = live.hub.join(live.journal, after, tell)
    if not live.journal.ended and live.waits:
        stream.write(RETRY_WHEN_WAITING)
        stream.end()
    return Response(stream.body, headers=_SSE)


def _log(live: LiveRun) -> str:
    return "".join(f"{line}\n" for line in export.lines(live.run_id, live.journal.in_order(), live.log.files()))


def _file(live: LiveRun, name: str) -> Response:
    file = live.log.file(name)
    if file is None:
        raise Refusal(404, "unknown_file", "This run has no such file. Its tool.result events name those it has.")
    headers = {
        "content-type": file.media_type,
        # What a tool brought is never shown as a page of this origin. Names of files need no quoting.
        "content-disposition": f'attachment; filename="{name}"',
        "x-content-type-options": "nosniff",
    }
    return Response(file.content, headers=headers)
