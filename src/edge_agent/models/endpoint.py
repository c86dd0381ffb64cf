"""Where a model is reached and how it deviates, as data: a server that differs gets a row here, not a branch
elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from edge_agent.core.messages import JsonObject

ToolMode = Literal["native", "json"]
Route = Literal["https", "binding", "gateway"]
MIN_SECRET = 8  # characters; a shorter header value would blot out ordinary words


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a family of models wants to be talked to.

    tool_mode: json for models without dependable tool calls of their own (openai_chat/json_tools.py).
    force_text_after_tool: the round after a tool round gets no tools; for models that would call tools for ever.
    auto_requires_tool: where tools are offered, one must be called. A 0.5B model that may choose between a tool and an
        answer makes numbers up; with force_text_after_tool it can still not loop. The price: it calls a tool for a
        greeting as well.
    takes_required: whether the server accepts tool_choice "required" (Moonshot refuses it); without it the model is
        asked as by "auto".
    max_tokens_field: the output cap's name; OpenAI's reasoning models refuse max_tokens.
    include_usage: whether to ask for usage in a stream (stream_options).
    structured_output: json_schema where the server takes response_format; prompt: the schema is told in words.
    strict: whether schemas may be sent as ones the model is held to (OpenAI's strict mode).
    thinking: which rows of openai_chat/thinking.py say how its models are told to think; None: nothing is known.
    cache_key: whether prompt_cache_key is taken.
    replayed: fields of an answer's message that its provider wants back (DeepSeek: reasoning_content within a turn).
    in_tags: how the names of models begin whose reasoning goes back within <think> tags before their text instead.
    options: fields of the request's body, under those of the endpoint.
    context_window: tokens; None: that of the table in prices.py, else 128 000.
    """

    tool_mode: ToolMode = "native"
    force_text_after_tool: bool = False
    auto_requires_tool: bool = False
    takes_required: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    include_usage: bool = True
    structured_output: Literal["json_schema", "prompt"] = "json_schema"
    strict: bool = False
    thinking: str | None = None
    cache_key: bool = False
    replayed: tuple[str, ...] = ("reasoning_details",)
    in_tags: tuple[str, ...] = ()
    options: JsonObject = field(default_factory=dict[str, object])
    context_window: int | None = None


PROFILES: Mapping[str, Profile] = {
    "default": Profile(),
    "openai": Profile(max_tokens_field="max_completion_tokens", strict=True, thinking="openai", cache_key=True),
    "xai": Profile(thinking="xai"),
    "deepseek": Profile(replayed=("reasoning_content",), thinking="switch"),
    "groq": Profile(max_tokens_field="max_completion_tokens", thinking="groq"),
    "mistral": Profile(include_usage=False),  # told unasked
    "openrouter": Profile(thinking="openrouter"),
    "vercel": Profile(thinking="openrouter"),
    "gemini": Profile(thinking="gemini"),
    "vllm": Profile(thinking="template"),
    "llama-server": Profile(thinking="template", replayed=("reasoning_content",)),
    "ollama": Profile(thinking="efforts"),
    "fireworks": Profile(thinking="efforts", replayed=("reasoning_content",)),
    "zai": Profile(thinking="zai", replayed=("reasoning_content",)),
    "cerebras": Profile(max_tokens_field="max_completion_tokens", thinking="groq", in_tags=("zai-glm",)),
    "moonshot": Profile(
        takes_required=False, thinking="switch", replayed=("reasoning_content",), cache_key=True
    ),
    # Measured with Qwen2.5-Coder-0.5B in llama.cpp: native tool calls 0 of 3, JSON tool mode 10 of 10; it stops only
    # when it is made to.
    "small": Profile(
        tool_mode="json", force_text_after_tool=True, auto_requires_tool=True, options={"temperature": 0}
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One provider's address. `key` goes out in `key_header` to this base URL and nowhere else.

    adapter: the wire it speaks. route: over HTTPS, or by the AI binding of the Worker or that of its gateway, which
        `gateway` names; base_url then is what the request would go to.
    headers: sent with every request; they win over ours. metadata_header: where a gateway takes the request's metadata;
        None: it is not sent. user_agent: how we are named. options: fields of the request's body, over the profile's.
    """

    provider: str
    base_url: str
    adapter: str = "openai_chat"
    route: Route = "https"
    gateway: str | None = None
    key: str | None = field(default=None, repr=False)
    key_header: str = "authorization"
    metadata_header: str | None = None
    user_agent: str = "edge-agent"
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    profile: Profile = PROFILES["default"]
    options: JsonObject = field(default_factory=dict[str, object])

    @property
    def credentials(self) -> dict[str, str]:
        """The header that holds the key; none where there is no key."""
        if not self.key:
            return {}
        return {self.key_header: f"Bearer {self.key}" if self.key_header == "authorization" else self.key}

    @property
    def host(self) -> str:
        """Host and port, for messages; never the user, the path or the query, which may hold credentials."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    def url(self, path: str) -> str:
        """The base URL with `path` behind its own path; the queries of both are kept (Azure's api-version)."""
        parts = urlsplit(self.base_url)
        path, _, query = path.partition("?")
        own = parts.path.rstrip("/")
        whole = own if own.endswith(path) else own + path
        return parts._replace(path=whole, query="&".join(filter(None, (parts.query, query))), fragment="").geturl()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not stand in any message: the key and the values of headers."""
        values = (self.key, *self.headers.values(), *(value.rpartition(" ")[2] for value in self.headers.values()))
        return tuple(sorted({value for value in values if value and len(value) >= MIN_SECRET}, key=len, reverse=True))
