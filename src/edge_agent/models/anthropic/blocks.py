"""The blocks of an answer, put together from their pieces in the order in which they came."""

import json
from dataclasses import dataclass, field
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import CalledTool
from edge_agent.models.anthropic.layout import THOUGHTS
from edge_agent.models.deltas import Deltas, mended

_IMPLIED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


@dataclass(slots=True, eq=False)
class _Block:
    """`start` as it came, `pieces` of what its deltas added, by their field."""

    start: JsonObject
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def kind(self) -> str:
        return str(self.start.get("type"))

    def add(self, name: str, piece: str) -> None:
        self.pieces.setdefault(name, []).append(piece)

    def whole(self, name: str) -> str:
        begun = self.start.get(name)
        return mended("".join([begun if isinstance(begun, str) else "", *self.pieces.get(name, ())]))

    @property
    def input(self) -> str:
        """Arguments as the model wrote them. No piece at all means those of the start, most often none."""
        return "".join(self.pieces.get("partial_json", ())) or json.dumps(
            self.start.get("input") or {}, ensure_ascii=False
        )


class Blocks:
    """Text and thoughts go to `deltas` as they come. `answer_tool`: the tool whose input is the answer; that input is
    the text then, and text beside it is left out unless the tool is not called."""

    def __init__(self, deltas: Deltas, answer_tool: str | None) -> None:
        self._deltas, self._answer_tool = deltas, answer_tool
        self._blocks: list[_Block] = []
        self._by_index: dict[Any, _Block] = {}
        self._grown: list[str] = []

    def start(self, index: Any, content: Any) -> None:
        """An index that comes again begins another block: a gateway may splice two streams."""
        block = _Block(cast(JsonObject, content) if isinstance(content, dict) else {})
        self._blocks.append(block)
        self._by_index[index] = block
        if block.kind == "text":
            self._say(block.whole("text"))
        elif block.kind == "thinking":
            self._deltas.reasoning(block.whole("thinking"))

    def delta(self, index: Any, delta: JsonObject) -> None:
        """A piece of a block; of one that was not begun where its kind is plain from the piece."""
        kind = str(delta.get("type"))
        name = _FIELDS.get(kind)
        piece = delta.get(name) if name else None
        if name is None or not isinstance(piece, str):
            return
        if index not in self._by_index and kind in _IMPLIED:
            self.start(index, {"type": _IMPLIED[kind]})
        block = self._by_index.get(index)
        if block is not None:
            block.add(name, piece)
            self._tell(block, name, piece)

    def stop(self, index: Any) -> None:
        """Input that came whole with the start of the answer's tool is told now."""
        block = self._by_index.get(index)
        if block is not None and self._is_answer(block) and not any(block.pieces.values()):
            self._deltas.text(block.input)

    def growth(self) -> str:
        """What the calls have grown by since this was asked last."""
        grown = "".join(self._grown)
        self._grown.clear()
        return grown

    def end(self) -> None:
        """Text that was held back for an answer that did not come."""
        if self._answer_tool and not any(map(self._is_answer, self._blocks)):
            self._deltas.text("".join(block.whole("text") for block in self._blocks if block.kind == "text"))

    @property
    def spoke(self) -> bool:
        return any(block.kind == "text" and block.whole("text") for block in self._blocks)

    def calls(self) -> list[CalledTool]:
        return [
            CalledTool(name=str(block.start.get("name", "")), arguments=mended(block.input))
            for block in self._blocks
            if self._is_call(block)
        ]

    def layout(self) -> list[JsonObject]:
        """The order of the blocks, for layout.py. A thought without a signature cannot be shown again."""
        entries: list[JsonObject] = []
        calls = 0
        answered = any(map(self._is_answer, self._blocks))
        for block in self._blocks:
            if self._is_call(block):
                entries.append({"call": calls})
                calls += 1
            elif self._is_answer(block):
                entries.append({"text": len(mended(block.input))})
            elif block.kind == "text" and not answered:
                entries.append({"text": len(block.whole("text"))})
            elif kept := _kept(block):
                entries.append(kept)
        return entries

    def _tell(self, block: _Block, name: str, piece: str) -> None:
        if name == "text":
            self._say(piece)
        elif name == "thinking":
            self._deltas.reasoning(piece)
        elif name == "partial_json" and self._is_answer(block):
            self._deltas.text(piece)
        elif name == "partial_json":
            self._grown.append(piece)

    def _say(self, text: str) -> None:
        if self._answer_tool is None:
            self._deltas.text(text)

    def _is_call(self, block: _Block) -> bool:
        return block.kind == "tool_use" and not self._is_answer(block)

    def _is_answer(self, block: _Block) -> bool:
        return block.kind == "tool_use" and block.start.get("name") == self._answer_tool


def _kept(block: _Block) -> JsonObject | None:
    """What has to be shown to the model again as it came: thoughts, and what ran on its provider's side."""
    if block.kind == "thinking":
        signature = block.whole("signature")
        told = {"type": "thinking", "thinking": block.whole("thinking"), "signature": signature}
        return told if signature else None
    if block.kind in THOUGHTS or block.kind.endswith("_tool_result"):
        return block.start
    if block.kind != "server_tool_use":
        return None
    try:
        return {**block.start, "input": json.loads(block.input)}
    except (ValueError, RecursionError):
        return block.start
