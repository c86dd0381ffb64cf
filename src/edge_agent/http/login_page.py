"""The pages of a login to an MCP server: before it, after it, and when it did not work."""

import html
from http import HTTPStatus

from starlette.responses import HTMLResponse

from edge_agent.core.errors import Refusal
from edge_agent.http.mcp_links import ConnectionId
from edge_agent.http.pages import html_page

_ANYWHERE = "'self' https: http:"  # the form leads on to the authorization server


def before(whose: ConnectionId) -> HTMLResponse:
    server, user = html.escape(whose.server), html.escape(whose.user)
    body = (
        f"<p>Runs of <strong>{user}</strong> will use the tools of <strong>{server}</strong> as whoever signs in now, "
        "until that login ends. Sign in only if you expect this.</p>"
        f"<form method=post><p><button>Sign in to {server}</button></p></form>"
    )
    page = html_page(f"Sign in to {server}", body, HTTPStatus.OK, forms_to=_ANYWHERE)
    page.headers["referrer-policy"] = "same-origin"  # without any, the form would be sent from the origin `null`
    return page


def after(whose: ConnectionId) -> HTMLResponse:
    body = "<p role=status>Whatever waited for it goes on by itself. You can close this page.</p>"
    return html_page(f"Signed in to {html.escape(whose.server)}", body, HTTPStatus.OK)


def refused(no: Refusal) -> HTMLResponse:
    body = f"<p role=alert>{html.escape(no.message)}</p>"
    return html_page("You are not signed in", body, HTTPStatus(no.status))
