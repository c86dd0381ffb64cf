"""JSON Schemas as each provider takes them: of tools' parameters and of structured output.

All pure: the input is never changed, the order of words and properties is kept, converting twice changes nothing more,
and no reference leaves the schema. plain.py makes one plain form of what a schema means, dialect.py says that in the
words of a provider. What a provider cannot be told makes its schema looser and is told as a warning: arguments and
output are checked against the real schema anyway. A schema that comes again is not converted again (remembered.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from edge_agent.core.messages import JsonObject
from edge_agent.models.schemas.dialect import Dialect, Narrowing
from edge_agent.models.schemas.keywords import KNOWN, types_of
from edge_agent.models.schemas.plain import Plain
from edge_agent.models.schemas.remembered import remembered
from edge_agent.models.schemas.root import rooted


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """strict: whether the provider can be told to hold the model to this schema. Where it cannot, `schema` is the one
    to be sent without strictness. widened: whether the schema asks for null where the original has a property that may
    be missing and takes no null. warnings: sentences without their end, for whoever follows the run."""

    schema: JsonObject
    warnings: tuple[str, ...] = ()
    strict: bool = False
    widened: bool = False


_WORDS = frozenset({"type", "title", "description", "enum", "properties", "required", "items", "anyOf"})
_ANY = Dialect(keeps=KNOWN)
_OPENAI_STRICT = Dialect(
    keeps=_WORDS
    | {"additionalProperties", "pattern", "format", "multipleOf", "minItems", "maxItems"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    closed=True,
    optional="nullable",
)
_ANTHROPIC_STRICT = Dialect(
    keeps=_WORDS | {"additionalProperties", "format", "minItems", "default"},
    formats=frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}),
    closed=True,
    values=(str, int, float, bool, type(None)),
    most_min_items=1,
)
_GOOGLE = Dialect(
    keeps=_WORDS | {"additionalProperties", "prefixItems", "format", "minItems", "maxItems", "minimum", "maximum"},
    values=(str, int, float),
)


@remembered
def for_openai(schema: JsonObject) -> Converted:
    """Chat completions without strictness: any words, an object at the root, no reference."""
    return _converted(schema, _ANY)


@remembered
def for_openai_strict(schema: JsonObject) -> Converted:
    """OpenAI's strict mode: every object closed, every property required, null for one that may be missing. The schema
    of `for_openai` where that cannot say it (an object of any names)."""
    return _strict(schema, _OPENAI_STRICT)


@remembered
def for_anthropic(schema: JsonObject) -> Converted:
    """An ordinary tool's input_schema: any words, an object at the root."""
    return _converted(schema, _ANY)


@remembered
def for_anthropic_strict(schema: JsonObject) -> Converted:
    """Structured output and strict tools: closed objects, no limits but a `minItems` of 0 or 1, a few formats. The
    schema of `for_anthropic` where that cannot say it: then a forced tool is asked for it."""
    return _strict(schema, _ANTHROPIC_STRICT)


@remembered
def for_google(schema: JsonObject) -> Converted:
    """The fields parametersJsonSchema and responseJsonSchema: most words."""
    return _converted(schema, _GOOGLE)


@remembered
def for_workers_ai(schema: JsonObject) -> Converted:
    """The legacy forms: each property of the root has one type and a description, or the request is refused. Of several
    types the first is named and the others told, which is narrower than the schema."""
    converted = _converted(schema, _ANY)
    properties = cast(Mapping[str, JsonObject], converted.schema.get("properties", {}))
    told = {name: _with_one_type(name, of) for name, of in properties.items()}
    schema = {**converted.schema, "properties": told} if told else converted.schema
    return Converted(schema=schema, warnings=converted.warnings)


def _converted(schema: JsonObject, dialect: Dialect) -> Converted:
    plain, warnings = _plain(schema)
    narrowing = Narrowing(dialect)
    narrowed = narrowing.of(plain)
    return Converted(schema=narrowed, warnings=(*warnings, *narrowing.warnings))


def _strict(schema: JsonObject, dialect: Dialect) -> Converted:
    plain, warnings = _plain(schema)
    narrowing = Narrowing(dialect)
    narrowed = narrowing.of(plain)
    if narrowing.misfits or plain.get("type") != "object":
        return Converted(schema=plain, warnings=warnings)
    every = (*warnings, *narrowing.warnings)
    return Converted(schema=narrowed, warnings=every, strict=True, widened=narrowing.widened)


def _plain(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    making = Plain(schema)
    plain, warnings = rooted(making.schema())
    return plain, (*making.warnings, *warnings)


def _with_one_type(name: str, schema: JsonObject) -> JsonObject:
    forms = [form for form in cast(list[JsonObject], schema.get("anyOf", [])) if form.get("type") != "null"]
    every = types_of(schema) or [kind for form in schema.get("anyOf", []) for kind in types_of(form)]
    if len(forms) == 1:
        schema = {**forms[0], **{word: value for word, value in schema.items() if word != "anyOf"}}
    first = next((kind for kind in every if kind != "null"), "string")
    others = list(dict.fromkeys(kind for kind in every if kind != first))
    said = schema.get("description") or name
    return {**schema, "type": first, "description": f"{said} (or {', '.join(others)})" if others else said}
