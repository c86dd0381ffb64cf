"""What the families of Claude models take, as data. A model that differs gets a row here, not a branch elsewhere.

Sources, read 2026-11-30: platform.claude.com/docs (models overview, "what's new" and migration guides of each model,
thinking, effort, structured outputs, preserved thinking), anthropic-sdk-python (types, error texts) and what its users
report. A name that is not listed is taken for a newer Claude, or for another server that speaks this wire.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

ALL_EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How models of one generation are asked.

    adaptive, budget: the forms of thinking they take; neither: they do not think. thinks_unasked: without a word about
        it. off: the type that switches thinking off (between_tools: only before the answer); None: it cannot be.
    efforts: what output_config.effort takes; empty: it is refused.
    forced_tools: whether a tool can be demanded (tool_choice any or tool).
    json_schema: whether output_config.format is taken.
    interleaved: thinking between calls has to be asked for, by a beta header; adaptive thinking does it unasked.
    bound: a thought is refused where anything before it has changed, unless it is asked to be left out then.
    max_output: tokens; None: not known.
    """

    adaptive: bool = False
    budget: bool = False
    thinks_unasked: bool = False
    off: Literal["disabled", "between_tools"] | None = "disabled"
    efforts: tuple[str, ...] = ()
    forced_tools: bool = True
    json_schema: bool = True
    interleaved: bool = False
    bound: bool = False
    max_output: int | None = 128_000

    @property
    def thinks(self) -> bool:
        return self.adaptive or self.budget


_ADAPTIVE = Family(adaptive=True, efforts=ALL_EFFORTS)
_ALWAYS = replace(_ADAPTIVE, thinks_unasked=True, off=None, forced_tools=False)
_4_6 = Family(adaptive=True, budget=True, efforts=("low", "medium", "high", "max"))
_4_5 = Family(budget=True, interleaved=True, max_output=64_000)
_4 = replace(_4_5, json_schema=False)
_3 = Family(json_schema=False, max_output=4_096)
_FAMILIES: Mapping[str, Family] = {
    "fable-5-1": replace(_ALWAYS, bound=True),
    "mythos-5-1": _ALWAYS,
    "fable-5": _ALWAYS,
    "mythos-5": _ALWAYS,
    "mythos-preview": _ALWAYS,
    "opus-5-5": replace(_ALWAYS, bound=True),
    "sonnet-5-5": replace(_ALWAYS, off="between_tools", bound=True),
    "haiku-5-5": replace(_ADAPTIVE, thinks_unasked=True, bound=True),
    "opus-5": replace(_ADAPTIVE, thinks_unasked=True),
    "sonnet-5": _ADAPTIVE,
    "opus-4-8": _ADAPTIVE,
    "opus-4-7": _ADAPTIVE,
    "opus-4-6": _4_6,
    "sonnet-4-6": _4_6,
    "opus-4-5": _4_5,
    "sonnet-4-5": _4_5,
    "haiku-4-5": _4_5,
    "opus-4-1": replace(_4_5, max_output=32_000),
    "opus-4": replace(_4, max_output=32_000),
    "sonnet-4": _4,
    "3-7": replace(_4, interleaved=False),
    "3-5": replace(_3, max_output=8_192),
    "3": _3,
}
_NEWER = replace(_ALWAYS, max_output=None)
_OTHER = Family(budget=True, json_schema=False, max_output=None)
_NAME = re.compile(r"claude-((?:[a-z]+-)?\d{1,2}(?:-\d{1,2})?(?!\d)|mythos-preview)")


def family_of(model: str) -> Family:
    """By the name, whoever serves the model: claude-sonnet-4-5-20250929, anthropic/claude-sonnet-4.5,
    us.anthropic.claude-sonnet-4-5-20250929-v1:0, claude-sonnet-4-5@20250929."""
    plain = re.sub("[.@_]", "-", model.lower())
    found = _NAME.search(plain)
    if found:
        return _FAMILIES.get(found[1].removesuffix("-0"), _NEWER)
    return _NEWER if "claude" in plain else _OTHER
