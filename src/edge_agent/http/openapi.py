"""The description at /openapi.json: the routes FastAPI knows, and the schemas of what does not pass through it."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, get_args

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from edge_agent.core.events import PassingEvent, RecordedEvent
from edge_agent.core.messages import JsonObject
from edge_agent.http.problems import MEDIA_TYPE
from edge_agent.http.routing import OPEN_PATHS, is_link
from edge_agent.wire.http_answers import Problem

JSON_LINES = "application/x-ndjson"
_REFERENCE = "#/components/schemas/{model}"
_EVENT = {"$ref": _REFERENCE.format(model="Event")}
_DESCRIPTION = """Durable AI agents: a run is a log, and every stream of it can be joined again by the cursor.

Errors are problem details (RFC 9457) with a stable `code`."""
Responses = dict[int | str, dict[str, Any]]
HTML: Responses = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}


def problems(*statuses: int) -> Responses:
    """The problems an operation may answer with, for its route."""
    return {status: _problem_response(status) for status in statuses}


def event_stream() -> dict[str, Any]:
    content = {"text/event-stream": {"schema": {"type": "string"}}, JSON_LINES: {"schema": _EVENT}}
    return {"description": "The events of the run; each `data` is an Event.", "content": content}


def streamed(media_type: str, description: str) -> dict[str, Any]:
    schema = _EVENT if media_type == JSON_LINES else {"type": "string", "format": "binary"}
    return {"description": description, "content": {media_type: {"schema": schema}}}


def described(app: FastAPI) -> JsonObject:
    """Made once, when it is first asked for."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas.update(_own_schemas())
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}, {}]
        for path, item in document["paths"].items():
            for operation in item.values():
                _complete(path, operation)
        app.openapi_schema = document
    return app.openapi_schema


def _complete(path: str, operation: JsonObject) -> None:
    """What is the same everywhere: who may call, and the problem that is our own fault."""
    responses = operation["responses"]
    if path in OPEN_PATHS or is_link(path):
        operation["security"] = []
    else:
        for status in (401, 403):
            responses[str(status)] = _problem_response(status)
    if "101" in responses:
        del responses["200"]
    elif operation["operationId"].startswith(("follow_run", "export_log", "read_file")):
        responses["200"]["content"].pop("application/json", None)
    responses["500"] = _problem_response(500)
    if "{run_id}" in path and operation["operationId"] != "delete_run":
        responses["410"] = _problem_response(410)
    for parameter in operation.get("parameters", ()):
        _absent_is_not_null(parameter["schema"])


def _absent_is_not_null(schema: JsonObject) -> None:
    """An optional parameter is left out; its null in Python is no value it can have on the wire."""
    for kind in schema.pop("anyOf", ()):
        if kind != {"type": "null"}:
            schema.update(kind)


def _problem_response(status: int) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}}
    return {"description": HTTPStatus(status).phrase, "content": content}


@cache
def _own_schemas() -> Mapping[str, Any]:
    """Problem, and Event: what every event has, and the own fields of each type."""
    _, own = models_json_schema([(Problem, "serialization")], ref_template=_REFERENCE)
    kinds = [cls for union in (RecordedEvent, PassingEvent) for cls in get_args(union)]
    schemas: dict[str, Any] = dict(own["$defs"])
    mapping: dict[str, str] = {}
    for kind in kinds:
        schema = TypeAdapter(kind).json_schema(mode="serialization", ref_template=_REFERENCE)
        schemas.update(schema.pop("$defs", {}))
        schemas[kind.__name__] = schema
        schema["required"] = sorted({*schema.get("required", ()), "type"})
        mapping[kind.__dataclass_fields__["type"].default] = _REFERENCE.format(model=kind.__name__)
    one_of = [{"$ref": reference} for reference in mapping.values()]
    schemas["Event"] = {
        "description": "One event of a run. Recorded ones have seq, key, batch and life; passing ones have not.",
        "allOf": [
            {"$ref": _REFERENCE.format(model="EventEnvelope")},
            {"oneOf": one_of, "discriminator": {"propertyName": "type", "mapping": mapping}},
        ],
    }
    schemas["EventEnvelope"] = _ENVELOPE
    return schemas


_ENVELOPE = {
    "type": "object",
    "required": ["type", "run_id", "at", "agent"],
    "properties": {
        "type": {"type": "string"},
        "run_id": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "agent": {"type": "string"},
        "seq": {"type": "integer", "minimum": 1, "description": "Gap-free from 1: the cursor."},
        "key": {"type": "string"},
        "batch": {"type": "integer", "description": "The seq of the last record appended together with this one."},
        "life": {"type": "integer"},
        "money": {"type": "object", "additionalProperties": {"type": "object"}},
        "cut": {"description": "Which long strings were cut, and the file that holds each whole."},
    },
}
