"""What pydantic finds wrong, in words for whoever has sent it."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from edge_agent.core.errors import Refusal

M = TypeVar("M", bound=BaseModel)


def checked(kind: type[M], fields: Mapping[str, Any]) -> M:
    """Raises Refusal like `refusal_of`."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise refusal_of(error) from None


def refusal_of(error: ValidationError) -> Refusal:
    """422 with the first field that is wrong, for what is checked outside of the framework."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(path_of(first["loc"]))
    subject = f"`{field}`" if field else "The request"
    return Refusal(422, "invalid_request", f"{subject} {sentence_of(first)}.", field=field)


def path_of(location: Sequence[object]) -> list[str]:
    """Without the tags of what may have one of several forms, which stand in brackets."""
    return [str(part) for part in location if not str(part).startswith("(")]


def sentence_of(found: Mapping[str, Any]) -> str:
    """Without its subject and its full stop."""
    message = str(found["msg"]).removeprefix("Value error, ")
    match found["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "is not a field of this request"
        case "value_error":
            return message[:300]
        case _:
            return (
                (message[:1].lower() + message[1:])
                .replace("input should", "should")
                .replace("string should", "should")[:300]
            )
