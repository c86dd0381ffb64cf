"""The providers known by name, as data: which wire they speak, where they are, whose key is which secret.

Addresses and header names are those of the providers' own documentation, as of 2026-11. `{NAME}` in an address is a
variable of the deployment, `{model}` the model's name there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter

MODEL_PLACE = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One provider.

    adapter: the wire (adapter.py). direct: its base URL. key: the variable that holds its key, sent as
    `key_header`.
    profile: how its models deviate (endpoint.py). gateway: provider and path of AI Gateway, None where that has no way
    to it.
    """

    adapter: str = "openai_chat"
    direct: str
    key: str
    key_header: str = "authorization"
    profile: str = "default"
    gateway: str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The variables its addresses need."""
        places = [place for _, place, _, _ in Formatter().parse(self.direct) if place and place != MODEL_PLACE]
        return tuple(dict.fromkeys(places))


PROVIDERS: Mapping[str, Known] = {
    "openai": Known(
        direct="https://api.openai.com/v1", key="OPENAI_API_KEY", profile="openai", gateway="openai"
    ),
    "anthropic": Known(
        adapter="anthropic",
        direct="https://api.anthropic.com/v1",
        key="ANTHROPIC_API_KEY",
        key_header="x-api-key",
        gateway="anthropic/v1",
    ),
    "google": Known(
        adapter="google",
        direct="https://generativelanguage.googleapis.com/v1beta",
        key="GOOGLE_API_KEY",
        key_header="x-goog-api-key",
        gateway="google-ai-studio/v1beta",
    ),
    "vertex": Known(
        adapter="google",
        direct="https://{GOOGLE_VERTEX_LOCATION}-aiplatform.googleapis.com/v1/projects/{GOOGLE_VERTEX_PROJECT}"
        "/locations/{GOOGLE_VERTEX_LOCATION}/publishers/google",
        key="GOOGLE_VERTEX_API_KEY",
        key_header="x-goog-api-key",
        gateway="google-vertex-ai/v1/projects/{GOOGLE_VERTEX_PROJECT}/locations/{GOOGLE_VERTEX_LOCATION}"
        "/publishers/google",
    ),
    "xai": Known(direct="https://api.x.ai/v1", key="XAI_API_KEY", profile="xai", gateway="grok/v1"),
    "azure": Known(
        direct="https://{AZURE_RESOURCE_NAME}.openai.azure.com/openai/deployments/{model}"
        "?api-version={AZURE_API_VERSION}",
        key="AZURE_API_KEY",
        key_header="api-key",
        profile="openai",
        gateway="azure-openai/{AZURE_RESOURCE_NAME}/{model}?api-version={AZURE_API_VERSION}",
    ),
    "bedrock": Known(
        adapter="anthropic",
        direct="https://bedrock-mantle.{AWS_REGION}.api.aws/anthropic/v1",
        key="AWS_BEARER_TOKEN_BEDROCK",
        gateway="aws-bedrock/bedrock-mantle/{AWS_REGION}/anthropic/v1",
    ),
    "deepseek": Known(
        direct="https://api.deepseek.com", key="DEEPSEEK_API_KEY", profile="deepseek", gateway="deepseek"
    ),
    "groq": Known(
        direct="https://api.groq.com/openai/v1", key="GROQ_API_KEY", profile="groq", gateway="groq"
    ),
    "mistral": Known(
        direct="https://api.mistral.ai/v1", key="MISTRAL_API_KEY", profile="mistral", gateway="mistral/v1"
    ),
    "openrouter": Known(
        direct="https://openrouter.ai/api/v1", key="OPENROUTER_API_KEY", profile="openrouter", gateway="openrouter/v1"
    ),
    "vercel": Known(direct="https://ai-gateway.vercel.sh/v1", key="AI_GATEWAY_API_KEY", profile="vercel"),
}  # fmt: skip
# An option becomes part of a host or a path: nothing that could lead elsewhere may stand in it.
OPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
KEY_HEADERS: Mapping[str, str] = {"anthropic": "x-api-key", "google": "x-goog-api-key"}  # of adapters; else a bearer
