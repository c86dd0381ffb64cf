"""Who is talked about in a message of a model's failure, and what is never told in one."""

from dataclasses import dataclass

from edge_agent.core.errors import ModelError, ModelErrorKind
from edge_agent.models.endpoint import Endpoint

MAX_TOLD = 500  # characters of a provider's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`secrets` never stand in a message."""

    model: str
    host: str
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, endpoint: Endpoint, model: str) -> "Source":
        return cls(model=f"{endpoint.provider}/{model}", host=endpoint.host, secrets=endpoint.secrets)

    def error(
        self, kind: ModelErrorKind, what: str, remedy: str, *, retryable: bool, retry_after: float | None = None
    ) -> ModelError:
        """`what` goes on after the model's name, `remedy` is a sentence."""
        text = self.hidden(f"The model {self.model} at {self.host} {what}. {remedy}")
        return ModelError(kind, text, retryable=retryable, retry_after=retry_after)

    def quoted(self, words: str) -> str:
        """`: "the provider's own words"`, without secrets and clipped; empty for none."""
        words = self.hidden(" ".join(words.split()))
        clipped = words[:MAX_TOLD] + ("…" if len(words) > MAX_TOLD else "")
        return f': "{clipped}"' if words else ""

    def hidden(self, text: str) -> str:
        """The text with each secret replaced; before anything is clipped, or half a key would be left."""
        for secret in self.secrets:
            text = text.replace(secret, "[secret]")
        return text
