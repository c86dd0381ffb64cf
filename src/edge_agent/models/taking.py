"""Which models take images and PDF files, as data by their names. A model that is not listed is sent none.

After the providers' documentation: platform.claude.com (vision, PDF support), ai.google.dev (image and document
understanding), platform.openai.com (images and vision, file inputs), and workerd's types for Workers AI. The rows of
xAI, Groq, Mistral, OpenRouter and Vercel were not looked up there. gpt-4o-mini is left out: it counts an image as up to
48 000 tokens.
"""

import re
from collections.abc import Mapping, Sequence

from edge_agent.core.attachments import PDF
from edge_agent.core.errors import ConfigError
from edge_agent.models.naming import resolve
from edge_agent.wire.settings import Settings

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_ALL = (*_IMAGES, PDF)
_GEMINI = ("image/png", "image/jpeg", "image/webp", PDF)
_Rows = Sequence[tuple[str, Sequence[str]]]  # pattern of the model's name, media types; the first that fits counts
_GPT_NAMES = (
    r"(gpt-4o(?!-(mini|audio|realtime|search|transcribe))|gpt-4\.1|gpt-5|o1(?!-(mini|preview))|o3(?!-mini)|o4-mini)"
)
_ANY: _Rows = (
    (r"anthropic/claude", _IMAGES),
    (r"google/gemini", ("image/png", "image/jpeg", "image/webp")),
    (rf"openai/{_GPT_NAMES}", _IMAGES),
)
_BY_PROVIDER: Mapping[str, _Rows] = {
    "openai": ((_GPT_NAMES, _ALL),),
    "xai": ((r"grok-4", ("image/png", "image/jpeg")),),
    "groq": ((r"meta-llama/llama-4-(scout|maverick)", ("image/png", "image/jpeg")),),
    "mistral": ((r"pixtral-", _IMAGES),),
    "openrouter": _ANY,
    "vercel": _ANY,
}
_BY_ADAPTER: Mapping[str, _Rows] = {
    "anthropic": ((r".*claude-3-(opus|sonnet|haiku)", _IMAGES), (r".*claude", _ALL)),
    "google": ((r"gemini", _GEMINI),),
    "workers_ai": ((r"(@cf/)?meta/llama-4-scout", ("image/png", "image/jpeg")),),
}


def takes_of(name: str, settings: Settings) -> Sequence[str]:
    """Media types. What an entry of EDGE_AGENT_PROVIDERS says of its models counts first; JSON tool mode tells text
    only."""
    try:
        endpoint, model = resolve(name, settings)
    except ConfigError:  # a model that was passed in as an object
        return ()
    if endpoint.profile.tool_mode == "json":
        return ()
    own = settings.providers.get(endpoint.provider)
    if own is not None and own.takes is not None:
        return own.takes
    rows = _BY_ADAPTER.get(endpoint.adapter) or _BY_PROVIDER.get(endpoint.provider, ())
    return next((types for pattern, types in rows if re.match(pattern, model)), ())
