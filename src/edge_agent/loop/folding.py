"""Fitting a prompt into the context window: what is folded, decided at a boundary, and the summary that stands for it.

A summary is a model call like any other: on record before and after, paid for, asked for once. Where it fails, what
was to be summed up is dropped, and a marker says so.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from edge_agent.core import keys
from edge_agent.core.errors import Drift
from edge_agent.core.events import Boundary, ContextCompacted, Folding, Part
from edge_agent.core.journal import Draft
from edge_agent.core.tokens import estimate
from edge_agent.core.usage import Amount
from edge_agent.loop import budget, prompts
from edge_agent.loop.ask import Question, Stopped, ask
from edge_agent.loop.parts import Foldable, Older
from edge_agent.loop.summary import summary_request
from edge_agent.loop.talk import Talk
from edge_agent.loop.tries import ModelGaveUp
from edge_agent.loop.walk import Walk

LEAST_GAIN = 0.1  # of the room: a summary that frees less is not worth its price
WORTH_CLEARING = 0.5  # of what the rounds may take: clearing less changes the prompt, and its cache, again and again
HARDER = 0.5  # of what was too long: what is aimed at after an overflow
SHORTENED = (4_000, 1_000, 250)  # characters of each result then, as far as needed
_ENTRIES: dict[Part, str] = {"history": "earlier turns", "trace": "earlier steps", "rounds": "earlier rounds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the request of a model call is made of.

    key: of the call. parts: those that can be folded, in the order in which they are. kept: what stays reserved for the
    final answer meanwhile. talk: its rounds, if it has some. changed: called when a part was folded.
    """

    key: str
    parts: Sequence[Foldable]
    kept: Callable[[], Amount]
    talk: Talk | None = None
    changed: Callable[[], Any] = lambda: None

    def part(self, name: Part) -> Foldable:
        return next(part for part in self.parts if part.name == name)


# -- verdicts, for the record of a boundary
def stale_results(walk: Walk, talk: Talk) -> tuple[str, ...]:
    """Keys of the calls whose results are cleared from here on."""
    how = walk.created.compaction
    most = how.clear_tool_results_after * walk.ports.context_window
    if not how.auto or not most or walk.estimates.messages(talk.said) <= most:
        return ()
    stale = talk.stale(how.keep_tool_results)
    worth = sum(estimate(result.text) for result in stale.values()) >= WORTH_CLEARING * most
    return tuple(stale) if worth else ()


def told_cleared(walk: Walk, key: str, boundary: Boundary, tokens: int, *, before: Talk, after: Talk) -> list[Draft]:
    """For readers: to the loop the boundary says it. `tokens`: of the request as it is with `after`."""
    if not boundary.cleared:
        return []
    saved = walk.estimates.messages(before.said) - walk.estimates.messages(after.said)
    told = ContextCompacted(
        scope="tool-results", before_tokens=tokens + saved, after_tokens=tokens, replaces=boundary.cleared
    )
    return [Draft(key=f"{key}/cleared", event=told, by="note")]


def to_fold(walk: Walk, parts: Sequence[Foldable], tokens: int, cap: int) -> Folding | None:
    """What has to be folded so that a request of so many tokens, and an answer of at most `cap`, find room."""
    how, window = walk.created.compaction, walk.ports.context_window
    room, names, left = how.room(window, cap), list[Part](), tokens
    if not how.auto:
        return None
    for part in parts:
        if left <= room:
            break
        gain = _gain(walk, part.older(_keep(walk, part.name, harder=False)))
        if gain >= LEAST_GAIN * room:
            names.append(part.name)
            left -= gain
    return Folding(parts=tuple(names), tokens=tokens, window=window) if names else None


def _gain(walk: Walk, older: Older | None) -> int:
    return 0 if older is None else older.tokens - _summary_cap(walk)


def _summary_cap(walk: Walk) -> int:
    return budget.summary_cap(walk.created.compaction, walk.created.limits, walk.ports.context_window)


def _keep(walk: Walk, part: Part, *, harder: bool) -> int:
    """Entries that stay. After an overflow none, but for the last round, whose results nobody has seen yet."""
    how = walk.created.compaction
    return 0 if harder else how.keep_recent_turns if part == "history" else how.keep_recent_steps


# -- folding
async def fold(walk: Walk, context: Context, folding: Folding | None, *, first: int = 0, harder: bool = False) -> None:
    """Raises what `ask` raises, but a failure or a lack of budget: these cost the summary alone. `first`: how many were
    folded before."""
    if folding is None:
        return
    tokens = folding.tokens
    for number, name in enumerate(folding.parts, start=first):
        part = context.part(name)
        folded = await _folded(walk, context, part, _Case(number, tokens, folding.window, harder))
        part.take(folded)
        context.changed()
        tokens = folded.after_tokens


@dataclass(frozen=True, slots=True)
class _Case:
    number: int
    tokens: int
    window: int
    harder: bool


async def _folded(walk: Walk, context: Context, part: Foldable, case: _Case) -> ContextCompacted:
    asked, key = keys.compaction(context.key, case.number)
    older = part.older(_keep(walk, part.name, harder=case.harder))
    if older is None:
        raise Drift(f"{key}: there is nothing that could be folded there")

    async def summed_up() -> str:
        return await _summary(walk, asked, context, older, case.window)

    if found := walk.seen(key, ContextCompacted):
        await walk.over(asked, summed_up)
        return found
    reason = None
    try:
        summary = await summed_up()
        if not summary:
            reason = "the model wrote nothing"
    except (ModelGaveUp, Stopped) as error:
        if isinstance(error, Stopped) and error.stop == "cancelled":
            raise  # the step is over, and nothing is left out for its sake
        summary, reason = "", str(error)
    standing = summary or prompts.without_summary(older.earlier, len(older.pieces), _ENTRIES[part.name])
    folded = ContextCompacted(
        scope=part.name,
        before_tokens=case.tokens,
        after_tokens=max(0, case.tokens - older.tokens + estimate(standing)),
        replaces=older.replaces,
        turns=older.turns,
        summary=standing,
        reason=reason,
    )
    walk.write(Draft(key=key, event=folded))
    return walk.kept(key, ContextCompacted)


async def _summary(walk: Walk, key: str, context: Context, older: Older, window: int) -> str:
    created = walk.created
    question = Question(
        key=key,
        stage="compact",
        build=lambda: summary_request(created.input, older, window),
        cap=_summary_cap(walk),
        kept=context.kept,
        models=created.synthesizer_models or created.models,
    )
    return (await ask(walk, question)).answered.message.text.strip()


# -- after an overflow
def harder(walk: Walk, context: Context, before: Folding | None) -> Callable[[int], Awaitable[bool]] | None:
    """What makes a request shorter that was too long. `before`: what was folded already."""
    first = len(before.parts) if before else 0
    return (lambda tokens: _fold_harder(walk, context, tokens, first)) if walk.created.compaction.auto else None


async def _fold_harder(walk: Walk, context: Context, tokens: int, first: int) -> bool:
    """Everything that can be folded is, and results are cut. What the window really holds may be less than was thought:
    half of what was too long is aimed at. False where nothing could be changed."""
    key = keys.overflow(context.key)
    found = walk.seen(key, Boundary)
    if found is None:
        walk.ready()
        boundary, left = _harder(walk, context, min(tokens, walk.ports.context_window), tokens)
        told = ContextCompacted(scope="overflow", before_tokens=tokens, after_tokens=left)
        walk.write(Draft(key=key, event=boundary), Draft(key=f"{key}/compacted", event=told, by="note"))
        found = walk.kept(key, Boundary)
    await fold(walk, context, found.compact, first=first, harder=True)
    if found.clipped and context.talk:
        context.talk.shorten(found.clipped)
    return found.compact is not None or found.clipped is not None


def _harder(walk: Walk, context: Context, window: int, tokens: int) -> tuple[Boundary, int]:
    """What is done, and the tokens that are left then."""
    olders = {part.name: part.older(_keep(walk, part.name, harder=True)) for part in context.parts}
    parts: tuple[Part, ...] = tuple(part.name for part in context.parts if olders[part.name])
    left = tokens - sum(max(0, _gain(walk, older)) for older in olders.values())
    folding = Folding(parts=parts, tokens=tokens, window=window) if parts else None
    if context.talk is None or left <= HARDER * window:
        return Boundary(compact=folding), left
    saved = {most: context.talk.saved_by(most, keep=1) for most in SHORTENED}
    enough = (most for most in SHORTENED if left - saved[most] <= HARDER * window)
    clipped = next(enough, SHORTENED[-1])
    return Boundary(compact=folding, clipped=clipped if saved[clipped] else None), left - saved[clipped]
