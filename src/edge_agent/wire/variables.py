"""Reading the variables of a deployment: each by its form, with an error that names it, the fault and an example."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from edge_agent.core.errors import ConfigError

T = TypeVar("T")
EXAMPLES = {
    "EDGE_AGENT_TOKEN": "alice:s3cret-one,ci:s3cret-two",
    "EDGE_AGENT_NAME": "edge-agent",
    "EDGE_AGENT_MODEL": "openai-compatible/some-model",
    "EDGE_AGENT_PLANNER_MODEL": "openai/gpt-5",
    "EDGE_AGENT_SYNTHESIZER_MODEL": "openai/gpt-5",
    "EDGE_AGENT_BASE_URL": "https://models.example.com/v1",
    "EDGE_AGENT_API_KEY": "sk-…",
    "EDGE_AGENT_PROVIDERS": '{"mine": {"base_url": "https://example.com/v1", "key": "MINE_API_KEY"}}',
    "EDGE_AGENT_GATEWAY": "0123456789abcdef0123456789abcdef/default",
    "EDGE_AGENT_MCP_SERVERS": '{"docs": {"url": "https://docs.example.com/mcp"}}',
    "EDGE_AGENT_TOOLS_ALLOW": "docs__*,calculator",
    "EDGE_AGENT_TOOLS_DENY": "github__delete_*",
    "EDGE_AGENT_TOOL_SELECTION": "search",
    "EDGE_AGENT_EGRESS": '{"allow": ["docs.example.com", "*.example.org"]}',
    "EDGE_AGENT_LEARNING": '{"nudge": false}',
    "EDGE_AGENT_STORED_SKILLS": "on",
    "EDGE_AGENT_LIMITS": '{"max_steps": 20, "max_total_tokens": 200000}',
    "EDGE_AGENT_PRICES": '{"openai-compatible/some-model": {"input": 0.5, "cached": 0.05, "output": 2.0}}',
    "EDGE_AGENT_CONTEXT_WINDOW": "32768",
    "EDGE_AGENT_COMPACTION": '{"threshold_ratio": 0.7, "keep_recent_turns": 6}',
    "EDGE_AGENT_MODEL_TIMEOUT": "120",
    "EDGE_AGENT_STALL_TIMEOUT": "60",
    "EDGE_AGENT_MAX_RETRIES": "2",
    "EDGE_AGENT_THINKING": "medium",
    "EDGE_AGENT_STAGE_THINKING": '{"planner": "high", "executor": false}',
    "EDGE_AGENT_PROMPT_CACHING": '{"ttl": "1h"}',
    "EDGE_AGENT_MAX_BODY": "1048576",
    "EDGE_AGENT_MAX_RUNS": "100",
    "EDGE_AGENT_SECRET": "$(openssl rand -base64 32)",
    "EDGE_AGENT_CORS": "https://app.example.com,https://admin.example.com",
    "EDGE_AGENT_LOG_LEVEL": "info",
    "EDGE_AGENT_MODE": "direct",
    "EDGE_AGENT_APPROVAL": "ask-writes",
    "EDGE_AGENT_TOOL_RULES": '{"github__delete_*": "deny"}',
    "EDGE_AGENT_APPROVAL_TIMEOUT": "86400",
}


class Variables:
    """The variables, none of them checked before it is read. A blank value is as good as none."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = {name: value.strip() for name, value in env.items() if value.strip()}

    def read_json(self, variable: str, adapter: TypeAdapter[T], default: T) -> T:
        text = self.env.get(variable)
        if text is None:
            return default
        try:
            return adapter.validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part)[:60] for part in first["loc"])
            fault = first["msg"].removeprefix("Value error, ").removeprefix("Invalid JSON: ")
            raise wrong(variable, f"{place}: {fault}" if place else f"is not the right JSON: {fault}") from None

    def seconds(self, variable: str, default: float) -> float:
        text = self.env.get(variable)
        if text is None:
            return default
        if not re.fullmatch(r"\d{1,7}(\.\d{1,3})?", text):
            raise wrong(variable, "is a number of seconds, 0 for no limit")
        return float(text)

    def whole(self, variable: str, default: int, low: int, high: int) -> int:
        text = self.env.get(variable)
        if text is None:
            return default
        if not re.fullmatch(r"\d{1,10}", text) or not low <= int(text) <= high:
            raise wrong(variable, f"is a whole number from {low} to {high}")
        return int(text)


def wrong(variable: str, fault: str) -> ConfigError:
    return ConfigError(variable, fault, f"{variable}={EXAMPLES[variable]}")


def checked(variable: str, check: Any, value: Any) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise wrong(variable, str(error)) from None


def entries(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.strip() for entry in text.split(",") if entry.strip()))
