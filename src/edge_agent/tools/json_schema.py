"""Checks of values against the JSON Schemas of servers: helpful where cheap, never a danger.

A schema comes from a stranger. So no reference leaves the schema's own document, patterns are left to the server (a
regular expression can run for years), and a schema whose check could take too many steps on one value is not applied.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.tools.arguments import joined

MAX_SCHEMA_DEPTH = 100
MAX_SCHEMA_PARTS = 20_000
_MAX_STEPS = 10_000
_SHOWN = 8
_MAX_MESSAGE = 200
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("not", "if", "then", "else", "items", "additionalProperties", "contains", "propertyNames")
_BY_NAME = ("properties", "dependentSchemas")
_UNBOUNDED = ("patternProperties", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")


def schema_fault(schema: Any) -> str | None:
    """Why a schema is not taken at all: too deep or too large to be handed to a model."""
    waiting, parts = [(schema, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        parts += 1
        if depth > MAX_SCHEMA_DEPTH:
            return f"its schema is nested deeper than {MAX_SCHEMA_DEPTH} levels"
        if parts > MAX_SCHEMA_PARTS:
            return f"its schema has more than {MAX_SCHEMA_PARTS} parts"
        if isinstance(value, dict):
            waiting += [(inner, depth + 1) for inner in cast("JsonObject", value).values()]
        elif isinstance(value, list):
            waiting += [(inner, depth + 1) for inner in cast("list[Any]", value)]
    return None


def parameters(schema: JsonObject) -> JsonObject:
    """As a model is told it: an object that always has properties."""
    plain = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    properties = plain.get("properties")
    return {**plain, "type": "object", "properties": properties if isinstance(properties, dict) else {}}


class SchemaCheck:
    """Compiled at the first check: most tools of a large catalogue are never called."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._faults: Callable[[Any], list[str]] | None = None

    def faults(self, value: Any) -> list[str]:
        """A sentence for each fault, at most a few; empty when there is none or the schema cannot be applied."""
        if self._faults is None:
            self._faults = _compiled(self._schema)
        return self._faults(value)


def _compiled(schema: JsonObject) -> Callable[[Any], list[str]]:
    if _has_unbounded(schema) or not _affordable(schema):
        return _nothing
    # Here, because it takes a quarter of a second in a Worker that may never check anything.
    jsonschema: Any = import_module("jsonschema")
    referencing: Any = import_module("referencing")
    dialect = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        dialect.check_schema(schema)
    except (jsonschema.SchemaError, RecursionError):
        return _nothing
    lenient = jsonschema.validators.extend(dialect, {"pattern": None})
    validator = lenient(schema, registry=referencing.Registry())

    def faults(value: Any) -> list[str]:
        try:
            return [_said(error) for error in islice(validator.iter_errors(value), _SHOWN)]
        except (referencing.exceptions.Unresolvable, RecursionError):
            return []

    return faults


def _nothing(_value: Any) -> list[str]:
    return []


def _said(error: Any) -> str:
    path = ""
    for step in error.absolute_path:
        path = joined(path, step)
    said: str = error.message
    message = said if len(said) <= _MAX_MESSAGE else f"{said[: _MAX_MESSAGE - 1]}…"
    return f"`{path}`: {message}" if path else message


def _affordable(schema: JsonObject) -> bool:
    try:
        return _Cost(schema).steps(schema, frozenset()) <= _MAX_STEPS
    except RecursionError:
        return False


class _Cost:
    """How many schemas are applied to one value and all its members, at most: references followed, each part counted
    once per way to it. Beyond _MAX_STEPS for what refers to itself without going on to a member: that never ends."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._known: dict[int, int] = {}
        self._open: set[int] = set()

    def steps(self, part: Any, same_value: frozenset[int]) -> int:
        """`same_value`: the parts on the way here that are applied to the same value."""
        if not isinstance(part, dict):
            return 1
        this = id(cast("JsonObject", part))
        if this in same_value:
            return _MAX_STEPS + 1
        if this in self._open:
            return 1  # recursion over members ends where the value does
        if this not in self._known:
            self._open.add(this)
            here = same_value | {this}
            applied = _applied(cast("JsonObject", part), self._root)
            total = 1 + sum(self.steps(inner, here if in_place else frozenset()) for inner, in_place in applied)
            self._known[this] = min(total, _MAX_STEPS + 1)
            self._open.discard(this)
        return self._known[this]


def _applied(part: JsonObject, root: JsonObject) -> Iterator[tuple[Any, bool]]:
    """(schema, whether it is applied to the same value) for each schema that `part` applies."""
    if isinstance(reference := part.get("$ref"), str) and (target := _resolved(reference, root)) is not None:
        yield target, True
    for key in _LISTS:
        if isinstance(inner := part.get(key), list):
            yield from ((item, key != "prefixItems") for item in cast("list[Any]", inner))
    for key in _SINGLE:
        yield part.get(key), key in ("not", "if", "then", "else")
    for key in _BY_NAME:
        if isinstance(inner := part.get(key), dict):
            yield from ((item, key == "dependentSchemas") for item in cast("JsonObject", inner).values())


def _has_unbounded(schema: JsonObject) -> bool:
    waiting: list[Any] = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if any(key in value for key in _UNBOUNDED):
                return True
            waiting += cast("JsonObject", value).values()
        elif isinstance(value, list):
            waiting += cast("list[Any]", value)
    return False


def _resolved(reference: str, root: Any) -> Any:
    """The target of a local pointer; None for all others, which are not resolved by the check either."""
    here = root
    for step in reference.removeprefix("#").split("/")[1:] if reference.startswith("#") else ["?"]:
        name = step.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(here, dict) and name in here:
            here = cast("JsonObject", here)[name]
        elif isinstance(here, list) and name.isdigit() and int(name) < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[int(name)]
        else:
            return None
    return here
