"""How an agent's models are asked, apart from the words: how much they think, what may be cached, what their own wires
take besides."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from edge_agent.core.events import Stage
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Effort, ModelRequest, PromptCache, Thinking

Wish = bool | Thinking
StageName = Literal["planner", "executor", "replanner", "synthesizer"]
STAGES: Mapping[Stage, StageName] = {
    "plan": "planner", "round": "executor", "replan": "replanner", "final": "synthesizer", "compact": "synthesizer",
}  # fmt: skip
LEAST_BUDGET = 128  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """key: what begins alike has in common; None: each run has its own. ttl: how long what was read is kept; None: the
    provider's own time. prefix: whose keys these are."""

    ttl: Literal["5m", "1h"] | None = None
    key: str | None = None
    prefix: str = "edge-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompting:
    """thinking: of every stage, None: as the provider likes. stage_thinking: by stage, also a false one wins.
    include_thoughts: whether thoughts are streamed. caching None: off. options: fields of the provider's own wire, by
    the name of a model or a stage (whose fields win)."""

    thinking: Wish | None = None
    stage_thinking: Mapping[str, Wish] = field(default_factory=dict[str, Wish])
    include_thoughts: bool = True
    caching: Caching | None = Caching()
    options: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])

    def of(self, request: ModelRequest, *, stage: Stage, model: str, run_id: str) -> ModelRequest:
        """The request as this stage asks it of that model (`provider/model`)."""
        cache = self.caching
        options = {**self.options.get(model, {}), **self.options.get(STAGES[stage], {})}
        return replace(
            request,
            thinking=resolve_thinking(stage, self.thinking, self.stage_thinking),
            include_thoughts=self.include_thoughts,
            cache=cache and PromptCache(key=f"{cache.prefix}-{cache.key or run_id}", ttl=cache.ttl),
            options=options or None,
        )


def resolve_thinking(stage: Stage, general: Wish | None, by_stage: Mapping[str, Wish]) -> Thinking | None:
    """What to ask a model for in a stage; None: nothing is asked for, so that its provider decides.

    A stage's own entry wins, also a false one. Without one, plans and verdicts are made without thinking: they are JSON
    of a given form. A summary is never thought about."""
    if stage == "compact":
        return "none"
    own = by_stage.get(STAGES[stage])
    if own is not None:
        return _level(own)
    if general is None:
        return None
    return "none" if stage in ("plan", "replan") else _level(general)


def thinking_fault(wish: object) -> str | None:
    """What is wrong with a wish, in words."""
    if isinstance(wish, bool) or wish in get_args(Effort):
        return None
    if isinstance(wish, int):
        return None if wish >= LEAST_BUDGET else f"{wish} is too small a budget: {LEAST_BUDGET} tokens or more"
    return f"{wish!r} is neither true, false, a number of tokens nor one of {', '.join(get_args(Effort))}"


def _level(wish: Wish) -> Thinking:
    if isinstance(wish, bool):
        return "medium" if wish else "none"
    return wish
