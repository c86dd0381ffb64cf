"""The page behind a link: what is asked, in full, and two buttons. It has no script, and shows nothing but text."""

import html
import json
from datetime import UTC, datetime
from http import HTTPStatus

from starlette.responses import HTMLResponse

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.http.pages import html_page

_SAID = {
    "approved": "This call was approved.",
    "denied": "This call was denied.",
    "expired": "Nobody decided in time, so the call was not made.",
    "withdrawn": "This is not asked any more.",
}


def page(run_id: str, asked: JsonObject) -> HTMLResponse:
    """The request as it stands; a form while it is open."""
    status = str(asked["status"])
    text = html.escape
    where = f"{asked['name']}{' of ' + asked['server'] if asked.get('server') else ''}"
    parts = [f"<h2>{text(where)}</h2>", f"<pre tabindex=0>{text(json.dumps(asked['arguments'], indent=2))}</pre>"]
    if asked.get("cause"):
        parts.append("<p class=bad>This call was begun before, and nobody knows whether it happened.</p>")
    if status != "pending":
        parts.append(f"<p role=status><strong>{_SAID[status]}</strong></p>")
        return html_page("A decision", "\n".join(parts), HTTPStatus.OK)
    kind = "only reads" if asked["read_only"] else "may change something"
    parts.append(f"<p>It {kind}. Asked by the run {text(run_id)}{_until(asked.get('expires_at'))}.</p>")
    parts.append(
        "<form method=post>"
        "<label for=reason>Reason (the agent reads it)</label><input id=reason name=reason maxlength=1000>"
        "<p><button name=approved value=true>Approve</button> "
        "<button name=approved value=false>Deny</button></p></form>"
    )
    return html_page("May this call be made?", "\n".join(parts), HTTPStatus.OK)


def refused(no: Refusal) -> HTMLResponse:
    return html_page("This cannot be decided", f"<p role=alert>{html.escape(no.message)}</p>", HTTPStatus(no.status))


def _until(expires_at: int | None) -> str:
    if expires_at is None:
        return ""
    return f", until {datetime.fromtimestamp(expires_at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
