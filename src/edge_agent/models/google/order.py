"""The order of an answer's parts and what is signed of them: kept so that the next request says them as they came,
without keeping text and arguments a second time.

Kept are, under "parts": {"text": its length}, {"call": true}, each perhaps with its "thoughtSignature", and as "part"
what is neither."""

from collections.abc import Iterator
from itertools import accumulate, pairwise

from edge_agent.core.messages import AssistantMessage, JsonObject

SIGNATURE = "thoughtSignature"


class Order:
    """What is signed is never joined with what stands beside it."""

    def __init__(self) -> None:
        self._parts: list[JsonObject] = []

    def text(self, text: str, signature: JsonObject) -> None:
        last = self._parts[-1] if self._parts else {}
        if not signature and last.keys() == {"text"}:
            last["text"] += len(text)
        elif text or signature:
            self._parts.append({"text": len(text), **signature})

    def call(self, signature: JsonObject) -> None:
        self._parts.append({"call": True, **signature})

    def other(self, part: JsonObject) -> None:
        self._parts.append({"part": part})

    def data(self) -> JsonObject:
        """What an opaque part keeps, and `parts` reads; empty where it is text and then calls, all unsigned."""
        texts, calls = {"text"}, {"call"}
        kinds = [part.keys() for part in self._parts]
        plain = all(kind in (texts, calls) for kind in kinds) and texts not in kinds[1:]
        return {} if plain else {"parts": self._parts}


def parts(message: AssistantMessage, data: JsonObject) -> Iterator[JsonObject]:
    """The parts of a model's turn, in the order kept in `data`; nothing of the message is left out."""
    kept: list[JsonObject] = data.get("parts", [])
    texts = _cut(message.text, [part["text"] for part in kept if "text" in part])
    calls = [_call(call.id, call.name, call.arguments) for call in message.calls]
    if len(texts) > sum("text" in part for part in kept):
        yield {"text": texts.pop(0)}
    for part in kept:
        signature = {SIGNATURE: part[SIGNATURE]} if SIGNATURE in part else {}
        if "part" in part:
            yield part["part"]
        elif "text" in part:
            text = texts.pop(0)
            if text or signature:
                yield {"text": text, **signature}
        elif calls:
            yield {**calls.pop(0), **signature}
    yield from calls


def _cut(text: str, lengths: list[int]) -> list[str]:
    """The pieces of a text. One that has changed (a secret in it was hidden) stays whole, in the first place."""
    if sum(lengths) == len(text):
        return [text[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]
    return [text, *[""] * (len(lengths) - 1)]


def _call(id_: str, name: str, arguments: JsonObject) -> JsonObject:
    return {"functionCall": {"id": id_, "name": name, "args": arguments}}
