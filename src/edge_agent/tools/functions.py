"""A typed Python function as a tool: name, description, schema and checks all come from its definition."""

import asyncio
import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from edge_agent.core.errors import ConfigError, InvalidArguments, ToolError
from edge_agent.core.events import OnUnknown
from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.tooling import ToolContext, ToolOutput
from edge_agent.tools.arguments import clipped, faults_of, require_json
from edge_agent.tools.docstrings import parsed
from edge_agent.tools.names import fault_of

P = ParamSpec("P")
R = TypeVar("R")

LEAST_OUTPUT = 500  # characters; less than that is a marker and nothing else
EXAMPLE = 'async def search(query: str, limit: int = 5) -> list[str]: """Search the docs."""'


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool(Generic[P, R]):
    """A function of the agent's author as a `Tool`. Calling it calls the function, unchecked, as in its own unit test.

    arguments: a model with one field per parameter, named in `parameters` in the same order.
    output: checks and dumps what the function returns; None for text and ToolOutput, which go on as they are.
    """

    function: Callable[P, R]
    spec: ToolSpec
    arguments: type[BaseModel]
    parameters: tuple[str, ...]
    takes_context: bool
    output: TypeAdapter[Any]
    timeout: float
    read_only: bool
    idempotent: bool
    on_unknown: OnUnknown
    requires_approval: bool = False
    max_output: int | None = None
    server: None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def safe_to_repeat(self) -> bool:
        return self.read_only or self.idempotent

    def check(self, arguments: JsonObject) -> None:
        self._values(arguments)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """Raises InvalidArguments, and what the function raises. A plain function runs inline: there are no threads."""
        values = self._values(arguments)
        call = cast("Callable[..., Any]", self.function)
        try:
            returned = call(context, **values) if self.takes_context else call(**values)
            if inspect.isawaitable(returned):
                returned = await returned
        except SystemExit as error:
            raise ToolError(f"{self.spec.name} tried to end the process with exit code {error.code}") from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this call: something it waited for was cancelled, a failure like any other.
            raise ToolError(f"{self.spec.name} waited for something that was cancelled") from error
        return self._output(returned)

    def _values(self, arguments: JsonObject) -> dict[str, Any]:
        require_json(arguments)
        try:
            checked = self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise InvalidArguments(faults_of(error, arguments, self.parameters)) from error
        except Exception as error:  # a validator of the author's own may raise anything
            raise InvalidArguments(f"the arguments could not be checked: {type(error).__name__}: {error}") from error
        return {name: getattr(checked, _field(at)) for at, name in enumerate(self.parameters)}

    def _output(self, returned: Any) -> ToolOutput:
        try:
            value = self.output.validate_python(returned)
        except ValidationError as error:
            return self._misfit(faults_of(error, returned, ()))
        if isinstance(value, ToolOutput):
            return value
        if value is None:
            return ToolOutput(text="done")
        if isinstance(value, str):
            return ToolOutput(text=value)
        try:
            text = self.output.dump_json(value, by_alias=True, warnings=False).decode()
            plain = self.output.dump_python(value, mode="json", by_alias=True, warnings=False)
        except Exception as error:  # noqa: BLE001 - a serializer of the author's own may raise anything
            return self._misfit(f"{clipped(value)} has no JSON form ({error})")
        return ToolOutput(text=text, structured=cast("JsonObject", plain) if isinstance(plain, dict) else None)

    def _misfit(self, fault: str) -> ToolOutput:
        said = f"{self.spec.name} ran to its end, but what it returned does not fit its declared type: {fault}"
        return ToolOutput(text=said, ok=False)


def function_tool(
    function: Callable[P, R],
    *,
    name: str | None,
    description: str | None,
    timeout: float,
    read_only: bool,
    idempotent: bool,
    on_unknown: OnUnknown,
    requires_approval: bool = False,
    max_output: int | None = None,
    built_in: bool = False,
) -> FunctionTool[P, R]:
    """Raises ConfigError, at import, for a definition that could not work; the message shows one that does.

    built_in: one of ours, which may have a name that is reserved."""
    called = name or getattr(function, "__name__", type(function).__name__)
    setting = f"@tool {called}"
    if (fault := fault_of(called)) and not built_in:
        raise ConfigError(setting, fault, '@tool(name="search_docs")')
    if not (math.isfinite(timeout) and timeout > 0):
        raise ConfigError(setting, f"timeout must be seconds above 0, got {timeout!r}", "@tool(timeout=60)")
    if on_unknown not in get_args(OnUnknown):
        fault = f"on_unknown must be one of {', '.join(get_args(OnUnknown))}, got {on_unknown!r}"
        raise ConfigError(setting, fault, '@tool(on_unknown="ask")')
    if max_output is not None and (type(max_output) is not int or max_output < LEAST_OUTPUT):
        fault = f"max_output must be a whole number of characters from {LEAST_OUTPUT}, got {max_output!r}"
        raise ConfigError(setting, fault, "@tool(max_output=4_000)")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        fault = "a tool returns its result once, it cannot yield; report what happens meanwhile by context.progress()"
        raise ConfigError(setting, fault, EXAMPLE)
    text, described = parsed(getattr(function, "__doc__", None))
    hints, parameters = _signature(function, setting)
    takes_context = bool(parameters) and hints.get(parameters[0].name) is ToolContext
    rest = parameters[takes_context:]
    arguments = _arguments_model(rest, hints, described, setting)
    return FunctionTool(
        function=function,
        spec=ToolSpec(name=called, description=description or text, parameters=_schema(arguments, setting)),
        arguments=arguments,
        parameters=tuple(parameter.name for parameter in rest),
        takes_context=takes_context,
        output=_output_adapter(hints.get("return", Any), setting),
        timeout=timeout,
        read_only=read_only,
        idempotent=idempotent,
        on_unknown=on_unknown,
        requires_approval=requires_approval,
        max_output=max_output,
    )


def _signature(function: Callable[..., Any], setting: str) -> tuple[dict[str, Any], list[inspect.Parameter]]:
    try:
        defined = function if inspect.isroutine(function) else type(function).__call__
        hints = get_type_hints(defined, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
    except (NameError, TypeError, ValueError, AttributeError) as error:
        fault = f"its annotations cannot be read ({error}); the types must be known where the function is defined"
        raise ConfigError(setting, fault, EXAMPLE) from error
    for at, parameter in enumerate(parameters):
        if fault := _parameter_fault(parameter, hints, first=at == 0):
            raise ConfigError(setting, f"parameter `{parameter.name}` {fault}", EXAMPLE)
    return hints, parameters


_UNTELLABLE = {
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments, which a model cannot be told; take one list",
    inspect.Parameter.VAR_KEYWORD: "takes any names, which a model cannot be told; take one dict",
}


def _parameter_fault(parameter: inspect.Parameter, hints: dict[str, Any], *, first: bool) -> str | None:
    if parameter.kind in _UNTELLABLE:
        return _UNTELLABLE[parameter.kind]
    if parameter.name not in hints:
        method = first and parameter.name in ("self", "cls")
        also = "; a method cannot be a tool, wrap it in a function" if method else ""
        return f"has no annotation, and the model is told its type by it{also}"
    if hints[parameter.name] is ToolContext:
        return None if first else "is the ToolContext, which must come first"
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return "is positional-only, and a model gives arguments by name; leave out the /"
    if isinstance(parameter.default, FieldInfo):
        return "has a Field as its default; write Annotated[int, Field(ge=1)] = 5 instead"
    return None


def _field(at: int) -> str:
    """Not the parameter's own name, which a pydantic model may not be able to have (`_x`, `schema`, `copy`)."""
    return f"field_{at}"


def _arguments_model(
    parameters: list[inspect.Parameter], hints: dict[str, Any], described: dict[str, str], setting: str
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for at, parameter in enumerate(parameters):
        hint = hints[parameter.name]
        own = any(getattr(extra, "description", None) for extra in getattr(hint, "__metadata__", ()))
        options: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in described and not own:
            options["description"] = described[parameter.name]
        if parameter.default is not parameter.empty:
            options["default"] = parameter.default
        fields[_field(at)] = (hint, Field(**options))
    try:
        return create_model("Arguments", __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **fields)
    except (PydanticUserError, TypeError) as error:
        raise ConfigError(setting, f"a parameter's type cannot be checked: {_first_line(error)}", EXAMPLE) from error


@functools.cache
def _of_built_in() -> TypeAdapter[Any]:
    """The one adapter of many tools: those that are built in are made anew in each slice of a run."""
    return TypeAdapter(ToolOutput)


def _output_adapter(hint: Any, setting: str) -> TypeAdapter[Any]:
    if hint is ToolOutput:
        return _of_built_in()
    try:
        return TypeAdapter(hint)
    except (PydanticUserError, TypeError) as error:
        raise ConfigError(setting, f"the type it returns cannot be checked: {_first_line(error)}", EXAMPLE) from error


class _JsonSchema(GenerateJsonSchema):
    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Say nothing: a default that JSON cannot say is left out of the schema, and still applies."""


def _schema(arguments: type[BaseModel], setting: str) -> JsonObject:
    try:
        schema = arguments.model_json_schema(by_alias=True, schema_generator=_JsonSchema)
    except (PydanticUserError, TypeError) as error:
        fault = f"a parameter's type cannot be described to a model: {_first_line(error)}"
        raise ConfigError(setting, fault, EXAMPLE) from error
    plain = _untitled(schema)
    return {**plain, "type": "object", "properties": plain.get("properties", {})}


def _untitled(schema: Any) -> Any:
    """Without the titles pydantic makes of every name: each costs tokens and says nothing new."""
    if isinstance(schema, list):
        return [_untitled(inner) for inner in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in cast("JsonObject", schema).items() if key != "title"}
    for key, value in kept.items():
        if key in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
            kept[key] = {name: _untitled(inner) for name, inner in cast("JsonObject", value).items()}
        elif key not in ("default", "const", "enum", "examples"):
            kept[key] = _untitled(value)
    return kept


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
