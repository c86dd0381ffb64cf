"""Every string of an event, changed in one pass: secrets masked, half characters replaced."""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

T = TypeVar("T")
# Names and ids are ours: a run whose agent is called like somebody's token must still find it.
_NAMES = frozenset(
    {"agent_name", "call_id", "id", "idempotency_key", "keys", "model", "models", "name", "names", "prompt_hash"}
    | {"arguments_hash", "built_hash", "child_run_id", "key", "profile", "provider", "question_id", "run_id", "server"}
    | {"version"}
)


def well_formed(text: str) -> str:
    """Pairs of surrogates joined, halves replaced: what no UTF-8 can hold would break JSON, SQL and frames."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def in_event(event: T, change: Callable[[str], str]) -> T:
    """The event with `change` applied to its free text, and to the names of fields in JSON values.

    Names, ids and words of a fixed vocabulary stay. The very same object where nothing changed."""
    changed: dict[str, Any] = {}
    for name in _free(type(event)):
        value = getattr(event, name)
        if (new := in_value(value, change)) is not value:
            changed[name] = new
    return cast(T, dataclasses.replace(cast(Any, event), **changed)) if changed else event


def in_value(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        new = change(value)
        return value if new == value else new
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        made = {change(name): in_value(item, change) for name, item in items.items()}
        return items if all(made.get(name, made) is item for name, item in items.items()) else made
    if isinstance(value, list | tuple):
        old = cast("list[Any]", value)
        new = [in_value(item, change) for item in old]
        if all(mine is other for mine, other in zip(new, old, strict=True)):
            return old
        return tuple(new) if isinstance(value, tuple) else new
    return in_event(value, change) if dataclasses.is_dataclass(value) else value


@cache
def _free(kind: type) -> tuple[str, ...]:
    """The fields that may hold free text."""
    fields = dataclasses.fields(kind)
    return tuple(field.name for field in fields if field.name not in _NAMES and not _fixed(field.type))


def _fixed(hint: Any) -> bool:
    return get_origin(hint) is Literal or any(
        _fixed(part) for part in get_args(hint) if get_origin(hint) is not Literal
    )
