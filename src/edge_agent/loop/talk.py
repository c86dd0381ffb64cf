"""The conversation of a run or of a step, round by round. Built from records alone."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edge_agent.core import keys
from edge_agent.core.canonical import canonical
from edge_agent.core.events import ContextCompacted, DeliveredMessage, Part
from edge_agent.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from edge_agent.core.tokens import estimate
from edge_agent.loop import prompts
from edge_agent.loop.parts import Older
from edge_agent.loop.turns import Turns

SMALL = 200  # characters; a result that is not longer is as good as the line that would stand for it


@dataclass(slots=True, kw_only=True)
class Talk:
    """`opening` comes first, then the summary of the rounds that were folded, the skills they loaded and what people
    said in them, then what each other round has added.

    head: the opening with the summary. skills: texts of the active ones, by the keys of the calls that loaded them;
    until its round is folded, such a text stands in the result of its call, which stays as it is. steered: what people
    said, by round; steered_before: in those that were folded. refused: a model call did not fit the caps any more.
    text_next: the model went round in circles, so the next round offers no tools."""

    opening: tuple[Message, ...]
    rounds: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])
    summary: str = ""
    head: tuple[Message, ...] = ()
    skills: Mapping[str, str] = field(default_factory=dict[str, str])
    steered: dict[str, tuple[DeliveredMessage, ...]] = field(default_factory=dict[str, tuple[DeliveredMessage, ...]])
    steered_before: tuple[DeliveredMessage, ...] = ()
    rejections: int = 0
    after_tools: bool = False
    refused: bool = False
    text_next: bool = False
    turns: Turns = field(default_factory=Turns)
    name: Part = "rounds"

    def __post_init__(self) -> None:
        self.head = self.head or self.opening

    def reopen(self, opening: tuple[Message, ...]) -> None:
        """The summary is part of the last message, so that turns go on taking turns. Skills and what people said stay
        word for word."""
        self.opening = self.head = opening
        if self.summary:
            loaded = [text for key, text in self.skills.items() if _round_of(key) not in self.rounds]
            said = [prompts.said_meanwhile(self.steered_before)] if self.steered_before else []
            text = "\n\n".join([opening[-1].text, prompts.rounds_so_far(self.summary), *loaded, *said])
            self.head = (*opening[:-1], replace(opening[-1], text=text))

    @property
    def said(self) -> list[Message]:
        """What the rounds have added."""
        return [message for said in self.rounds.values() for message in said]

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self.head, *self.said)

    @property
    def last_text(self) -> str:
        return next((m.text for m in reversed(self.said) if isinstance(m, AssistantMessage) and m.text), "")

    def say(self, key: str, *messages: Message) -> None:
        """In the round `key`."""
        if messages:
            self.rounds.setdefault(key, []).extend(messages)

    def hear(self, key: str, messages: tuple[DeliveredMessage, ...]) -> None:
        """What people have sent, in the round `key`."""
        if messages:
            self.steered[key] = messages
            self.say(key, *as_turns(messages))

    def reject(self, key: str, reminder: str | None) -> None:
        """The answer leaves the history; what the hook reminds of comes in its place."""
        self.rejections, self.after_tools = self.rejections + 1, False
        if reminder:
            self.say(key, UserMessage(text=reminder))

    def hold(self, skills: Mapping[str, str]) -> None:
        """These are active from here on."""
        if skills != self.skills:
            self.skills = skills
            self.reopen(self.opening)

    def copy(self) -> "Talk":
        return replace(self, rounds={name: [*said] for name, said in self.rounds.items()})

    def ahead(self, key: str, messages: Sequence[DeliveredMessage], cleared: Collection[str]) -> "Talk":
        """As it will be when these messages are heard and these results are cleared."""
        ahead = self.copy()
        ahead.clear(cleared)
        ahead.say(key, *as_turns(messages))
        return ahead

    # -- less of the results
    def shortened(self, most: int | None) -> "Talk":
        """With at most so many characters of each result of a tool; None: all of them."""
        shorter = self.copy()
        if most is not None:
            shorter.shorten(most)
        return shorter

    def shorten(self, most: int) -> None:
        whole = self._whole()
        self.rounds = {name: [_shortened(one, most, whole) for one in said] for name, said in self.rounds.items()}

    def _whole(self) -> frozenset[str]:
        """The ids of the calls whose results hold an active skill."""
        return frozenset(result.call_id for key, result in self._results() if key in self.skills)

    def stale(self, keep: int) -> dict[str, ToolMessage]:
        """The results that could be cleared, by the keys of their calls: not the newest `keep`, none that holds an
        active skill, and none of the last round: no model has seen them yet."""
        results, last = list(self._results()), next(reversed(self.rounds), "")
        older = results[: max(0, len(results) - keep)]
        stale = {key: one for key, one in older if len(one.text) > SMALL and _round_of(key) != last}
        return {key: one for key, one in stale.items() if key not in self.skills}

    def clear(self, cleared: Collection[str]) -> None:
        for key in cleared:
            name, _, index = key.rpartition("/c")
            said = self.rounds.get(name, [])
            results = [(place, one) for place, one in enumerate(said) if isinstance(one, ToolMessage)]
            if results:  # the round was not folded meanwhile
                place, result = results[int(index)]
                line = prompts.result_cleared(result.name, len(result.text), result.call_id)
                said[place] = replace(result, text=line)

    def _results(self) -> Iterator[tuple[str, ToolMessage]]:
        for name, said in self.rounds.items():
            results = (one for one in said if isinstance(one, ToolMessage))
            yield from ((keys.tool_call(name, index), one) for index, one in enumerate(results))

    # -- fewer rounds
    def older(self, keep: int) -> Older | None:
        """Never the last round: no model has seen its results yet."""
        names = list(self.rounds)
        names = names[: len(names) - len(self._newest(keep))]
        if not names:
            return None
        whole = self._whole()
        pieces = ["\n".join(_pieces(self.rounds[name], whole)) for name in names]
        return Older(pieces=pieces, earlier=self.summary, replaces=tuple(names))

    def _newest(self, keep: int) -> list[str]:
        """So many rounds with an answer, at least one, and what comes after them."""
        names = list(self.rounds)
        answered = [name for name in names if any(isinstance(one, AssistantMessage) for one in self.rounds[name])]
        kept = answered[-max(1, keep) :]
        return names[names.index(kept[0]) :] if kept else names

    def take(self, folded: ContextCompacted) -> None:
        for name in folded.replaces:
            self.rounds.pop(name, None)
            self.steered_before += self.steered.pop(name, ())
        self.summary = folded.summary or ""
        self.reopen(self.opening)

    def saved_by(self, most: int, keep: int) -> int:
        """Tokens that `shorten` would save in the newest rounds."""
        newest, whole = [one for name in self._newest(keep) for one in self.rounds[name]], self._whole()
        return sum(estimate(one.text) - estimate(_shortened(one, most, whole).text) for one in newest)


def as_turns(messages: Sequence[DeliveredMessage]) -> list[UserMessage]:
    return [UserMessage(text=message.text) for message in messages]


def _round_of(call: str) -> str:
    return call.rpartition("/")[0]


def _shortened(message: Message, most: int, whole: Collection[str]) -> Message:
    """`whole`: ids of the calls whose results stay as they are."""
    text = message.text
    if not isinstance(message, ToolMessage) or message.call_id in whole or len(text) <= most:
        return message
    return replace(message, text=text[:most] + prompts.clipped(len(text) - most))


def _pieces(said: Sequence[Message], whole: Collection[str]) -> Iterator[str]:
    for message in said:
        if isinstance(message, ToolMessage):
            text = prompts.STAYS if message.call_id in whole else message.text
            yield prompts.call_answered(message.name, text)
            continue
        if message.text:
            yield prompts.said_by(message.role, message.text)
        if isinstance(message, AssistantMessage):
            yield from (prompts.call_made(call.name, canonical(call.arguments)) for call in message.calls)
