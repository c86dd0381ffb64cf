"""The way in: every request passes here before anything is asked of a run, whichever way it goes on from here."""

import traceback
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

from edge_agent.core.errors import ConfigError
from edge_agent.http.auth import Ask, Caller, Door, admit
from edge_agent.http.cors import cors_headers
from edge_agent.http.ports import Deps
from edge_agent.http.problems import Answer, answer_for
from edge_agent.http.routing import is_link, opened_by_run_token
from edge_agent.wire.console import Console


async def let_in(deps: Deps, scheme: str, method: str, path: str, headers: Mapping[str, str]) -> Caller:
    """Who calls; `path` as it stands in the URL, `headers` by lower-case names.

    Raises Refusal 401 and 403, and ConfigError where the settings that decide it are wrong."""
    door = Door(tokens=deps.settings.tokens, origins=deps.settings.cors, key=deps.run_token_key)
    return await admit(door, Ask.of(scheme, headers, opened_by_run_token(method, path)), deps.clock.now())


def problem_of(error: Exception, console: Console, now: int) -> Answer:
    """The problem for an error. The console is told what is ours. `now`: ms since the epoch."""
    answer = answer_for(error)
    if answer.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        console.say("error", "unexpected", now, trace="".join(traceback.format_exception(error)))
    return answer


def told(deps: Deps, error: Exception, origin: str | None) -> Answer:
    """The problem for an error, readable for an allowed page, with every declared secret masked."""
    answer = problem_of(error, deps.console, deps.clock.now())
    body = deps.settings.mask(answer.body.decode()).encode()
    return replace(answer, body=body, headers={**answer.headers, **page_headers(deps, origin)})


def page_headers(deps: Deps, origin: str | None) -> dict[str, str]:
    """The CORS headers of any answer. A fault in EDGE_AGENT_CORS opens nothing."""
    try:
        return cors_headers(deps.settings.cors, origin)
    except ConfigError:
        return {}


def answered(deps: Deps, method: str, path: str, status: int, began: int) -> None:
    """For the console, without the query. A link is its own permission, so its last part is not told. `began`: ms since
    the epoch."""
    shown, now = f"{path.rpartition('/')[0]}/…" if is_link(path) else path, deps.clock.now()
    deps.console.say("debug", "request", now, method=method, path=shown, status=status, ms=now - began)
