"""The tools a model is shown, as the log keeps them: names, a hash of all descriptions, those of servers in a file."""

import operator
from collections.abc import Sequence

from edge_agent.core import keys
from edge_agent.core.canonical import canonical
from edge_agent.core.events import OfferedTools
from edge_agent.core.journal import Journal
from edge_agent.core.messages import ToolSpec
from edge_agent.core.ports import StoredFile


def offer(tools: Sequence[ToolSpec]) -> OfferedTools:
    return OfferedTools(names=tuple(tool.name for tool in tools), version=keys.digest(tools)[:16])


class Offers:
    """Of one round after another: the tools that were offered last are not hashed again."""

    def __init__(self) -> None:
        self._tools: Sequence[ToolSpec] = ()
        self._offered = offer(())

    def of(self, tools: Sequence[ToolSpec]) -> OfferedTools:
        same = len(tools) == len(self._tools) and all(map(operator.is_, tools, self._tools))
        if not same:
            self._tools, self._offered = tuple(tools), offer(tools)
        return self._offered


def file_name(offered: OfferedTools) -> str:
    return f"tools-{offered.version}.json"


def is_of_server(name: str) -> bool:
    """`server__tool`; a function that is named so is described once more than needed, which does no harm."""
    return "__" in name


def described(journal: Journal, tools: Sequence[ToolSpec], offered: OfferedTools) -> tuple[StoredFile, ...]:
    """What servers say of their tools, for the append of the first record that offers them: nobody else knows it later.
    What the code says of its own is in the code."""
    theirs = [tool for tool in tools if is_of_server(tool.name)]
    name = file_name(offered)
    if not theirs or journal.log.file(name) is not None:
        return ()
    content = journal.cleaned_text(canonical(theirs)).encode()
    return (StoredFile(name=name, media_type="application/json", content=content),)
