"""Calling the author's hooks: plain or async, and what happens when one raises."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from edge_agent.core.errors import EdgeAgentError
from edge_agent.core.events import Fault
from edge_agent.core.hooks import ErrorKind
from edge_agent.core.journal import Draft
from edge_agent.loop.walk import Walk

T = TypeVar("T")


class HookFailed(EdgeAgentError):
    """A before_model or after_model hook raised: the run fails."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"the hook {name} raised {type(error).__name__}: {error}")


class Aborted(EdgeAgentError):
    """An on_error hook asked for the end of the run."""


async def settled(result: Awaitable[T] | T) -> T:
    return await cast(Awaitable[T], result) if inspect.isawaitable(result) else cast(T, result)


async def must(name: str, call: Callable[[], Awaitable[T] | T]) -> T:
    """A hook whose failure fails the run."""
    try:
        return await settled(call())
    except Exception as error:
        raise HookFailed(name, error) from error


async def may(walk: Walk, key: str, name: str, call: Callable[[], Awaitable[T] | T]) -> T | None:
    """A hook whose failure is a fault event, and the run goes on unless on_error decides otherwise."""
    try:
        return await settled(call())
    except Exception as error:
        message = f"the hook {name} raised {type(error).__name__}: {error}"
        note(walk, f"{key}/fault/{name}", Fault(kind="hook", message=message, action="continued"))
        if name != "on_error" and await wants_abort(walk, key, "hook", None, error):
            raise Aborted(message) from error
        return None


async def wants_abort(walk: Walk, key: str, kind: ErrorKind, tool: str | None, error: Exception) -> bool:
    """Whether the on_error hook says that this error ends the run."""
    hook = walk.ports.agent.hooks.on_error
    return hook is not None and await may(walk, key, "on_error", lambda: hook(kind, tool, error)) is False


def note(walk: Walk, key: str, fault: Fault) -> None:
    """A fault for readers; a second one under the same key (after a restart) says nothing new."""
    if not walk.has(key) and not walk.journal.ended:
        walk.journal.append("note", Draft(key=key, event=fault))
