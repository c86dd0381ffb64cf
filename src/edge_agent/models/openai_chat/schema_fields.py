"""The fields of a request that hold schemas: tools, the choice among them, and the form of the answer."""

from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.model import ModelRequest
from edge_agent.models.endpoint import Profile
from edge_agent.models.schemas import Converted, for_openai, for_openai_strict


class SchemaFields:
    """Of one request. `warnings`: what could not be told of a schema."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.warnings: list[str] = []

    def tools(self, request: ModelRequest) -> JsonObject:
        """Nothing for no tools: an empty list is refused."""
        profile = self._profile
        if not request.tools or profile.tool_mode == "json":
            return {}
        choice = request.tool_choice
        if choice == "auto" and profile.auto_requires_tool:
            choice = "required"
        if choice == "required" and not profile.takes_required:
            choice = "auto"
        told: JsonObject = {"tools": [self._tool(spec) for spec in request.tools]}
        return told if choice == "auto" else told | {"tool_choice": choice}

    def structured(self, request: ModelRequest) -> JsonObject:
        if request.output_schema is None or self._profile.structured_output == "prompt":
            return {}
        told = self._schema_fields("schema", request.output_schema, "output_schema")
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", **told}}}

    def _tool(self, spec: ToolSpec) -> JsonObject:
        told = self._schema_fields("parameters", spec.parameters, f"the schema of the tool {spec.name}")
        return {"type": "function", "function": {"name": spec.name, "description": spec.description, **told}}

    def _schema_fields(self, field: str, schema: JsonObject, of: str) -> JsonObject:
        converted = self._converted(schema)
        self.warnings += [f"In {of}, {warning}." for warning in converted.warnings]
        return {field: converted.schema, **({"strict": True} if converted.strict else {})}

    def _converted(self, schema: JsonObject) -> Converted:
        """Strict where nothing is said differently: null for a property that may be missing would come back as a value
        that the schema does not take."""
        if self._profile.strict:
            strict = for_openai_strict(schema)
            if strict.strict and not strict.widened:
                return strict
        return for_openai(schema)
