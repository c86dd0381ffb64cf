"""A page of ours: no script, nothing from elsewhere, and nothing in it but text that was escaped."""

from http import HTTPStatus

from starlette.responses import HTMLResponse

_HEAD = (
    '<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">'
    "<meta name=color-scheme content='light dark'>"
)


def html_page(title: str, body: str, status: HTTPStatus, *, forms_to: str = "'self'") -> HTMLResponse:
    """`body` is HTML. forms_to: where a form of it may lead, redirects included."""
    headers = {
        "content-security-policy": f"default-src 'none'; style-src 'self'; form-action {forms_to}; base-uri 'none'; "
        "frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
    }
    head = f"{_HEAD}<title>{title}</title><link rel=stylesheet href=/app.css>"
    return HTMLResponse(f"{head}<main><h1>{title}</h1>\n{body}</main></html>", status, headers)
