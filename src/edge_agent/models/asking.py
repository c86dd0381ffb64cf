"""What every wire asks alike: the headers around a body, and a schema in words where there is no field for it."""

import json

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import ModelRequest
from edge_agent.models.endpoint import Endpoint

MAX_METADATA = 5  # entries AI Gateway takes


def headers(request: ModelRequest, endpoint: Endpoint) -> dict[str, str]:
    """What goes out with the body. Compression is not asked for: it would hold a stream back."""
    told = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}
    told["user-agent"] = endpoint.user_agent
    told |= endpoint.credentials
    if endpoint.metadata_header and request.metadata:
        told[endpoint.metadata_header] = json.dumps(dict(list(request.metadata.items())[:MAX_METADATA]))
    return told | {name.lower(): value for name, value in endpoint.headers.items()}


def schema_in_words(schema: JsonObject) -> str:
    return f"Answer with one JSON object and nothing else. It must fit this JSON Schema: {json.dumps(schema)}"
