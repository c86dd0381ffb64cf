"""The tools a model is shown, as the log keeps them: names, a hash of all descriptions, those of servers in a file."""

from collections.abc import Sequence

from edge_agent.core import keys
from edge_agent.core.canonical import canonical
from edge_agent.core.events import OfferedTools
from edge_agent.core.messages import ToolSpec
from edge_agent.core.ports import StoredFile
from edge_agent.loop.walk import Walk


def offer(tools: Sequence[ToolSpec]) -> OfferedTools:
    return OfferedTools(names=tuple(tool.name for tool in tools), version=keys.digest(tools)[:16])


def file_name(offered: OfferedTools) -> str:
    return f"tools-{offered.version}.json"


def is_of_server(name: str) -> bool:
    """`server__tool`; a function that is named so is described once more than needed, which does no harm."""
    return "__" in name


def described(walk: Walk, tools: Sequence[ToolSpec], offered: OfferedTools) -> tuple[StoredFile, ...]:
    """What servers say of their tools, for the append of the first record that offers them: nobody else knows it later.
    What the code says of its own is in the code."""
    theirs = [tool for tool in tools if is_of_server(tool.name)]
    name = file_name(offered)
    if not theirs or walk.journal.log.file(name) is not None:
        return ()
    content = walk.journal.cleaned_text(canonical(theirs)).encode()
    return (StoredFile(name=name, media_type="application/json", content=content),)
