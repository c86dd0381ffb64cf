"""Calling the author's hooks: plain or async, each an effect that a cancel ends, and what happens when one raises."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from edge_agent.core.errors import EdgeAgentError
from edge_agent.core.events import Fault
from edge_agent.core.hooks import ErrorKind
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.signals import Cancelled
from edge_agent.loop.walk import Cut, Effects, Walk

T = TypeVar("T")
HOOK_SECONDS = 60.0  # a hook that takes longer counts as one that raised: no hook may hold a run for ever


class HookFailed(EdgeAgentError):
    """A before_model or after_model hook raised: the run fails."""


class Aborted(EdgeAgentError):
    """An on_error hook asked for the end of the run."""


async def must(walk: Walk, key: str, name: str, expected: type[T], call: Callable[[], object]) -> T | None:
    """A hook whose failure fails the run. Returns what it gave where that is of the expected type, or nothing."""
    try:
        given: object = await walk.effect(key, _bounded(call))
    except Cut:
        raise Cancelled from None
    except Exception as error:
        raise HookFailed(f"the hook {name} {said(error)}") from error
    if given is not None and not isinstance(given, expected):
        raise HookFailed(f"the hook {name} returned a {type(given).__name__}, not a {expected.__name__} or None")
    return given


async def may(walk: Walk, key: str, name: str, call: Callable[[], Awaitable[T] | T]) -> T | None:
    """A hook whose failure is a fault event, and the run goes on unless on_error decides otherwise."""
    try:
        return await walk.effect(key, _bounded(call))
    except Cut:
        return None  # the next look at the log sees the cancel
    except Exception as error:
        message = f"the hook {name} {said(error)}"
        note(walk.journal, f"{key}/fault/{name}", message)
        if name != "on_error" and await wants_abort(walk, key, "hook", None, error):
            raise Aborted(message) from error
        return None


async def at_the_end(journal: Journal, effects: Effects, key: str, call: Callable[[], Awaitable[T] | T]) -> None:
    """on_run_end: whatever it does, the life ends."""
    try:
        await effects.run(key, _bounded(call))
    except Cut:
        return
    except Exception as error:  # noqa: BLE001 - the record of it is all that can come of it
        note(journal, f"fault/on_run_end/{journal.life}", f"the hook on_run_end {said(error)}")


async def wants_abort(walk: Walk, key: str, kind: ErrorKind, tool: str | None, error: Exception) -> bool:
    """Whether the on_error hook says that this error ends the run."""
    hook = walk.agent.hooks.on_error
    return hook is not None and await may(walk, key, "on_error", lambda: hook(kind, tool, error)) is False


async def _bounded(call: Callable[[], Awaitable[T] | T]) -> T:
    async with asyncio.timeout(HOOK_SECONDS):
        result = call()
        return await cast(Awaitable[T], result) if inspect.isawaitable(result) else cast(T, result)


def said(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return f"did not return within {HOOK_SECONDS:g} s"
    return f"raised {type(error).__name__}: {error}"


def note(journal: Journal, key: str, message: str) -> None:
    """A fault for readers; a second one under the same key (after a restart) says nothing new."""
    if key not in journal.records and not journal.ended:
        fault = Fault(kind="hook", message=message, action="continued")
        journal.append("note", Draft(key=key, event=fault))
