"""What every body a client sends has in common."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


Text = Annotated[str, AfterValidator(_not_blank), Field(json_schema_extra={"minLength": 1})]


class Asked(BaseModel):
    """A body a client sends: unknown fields are refused, so that a misspelt one is not lost without a word."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
