"""The `Tools` of a run: functions first, then what each server offers, all in declared order."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from edge_agent.core.errors import ConfigError
from edge_agent.core.messages import ToolSpec
from edge_agent.core.tooling import ALWAYS_RUN, BUILT_IN, SignIn, Tool
from edge_agent.tools.find_tools import find_tools_tool
from edge_agent.tools.mcp_server import require_server_name
from edge_agent.tools.names import passes, unmatched


class ToolSource(Protocol):
    """Tools that come and go: those of one remote server. Every name begins with `<name>__`."""

    @property
    def name(self) -> str: ...

    async def refresh(self) -> tuple[str, ...]:
        """Connect if need be and take in the list. Never raises; a sentence for each thing that went wrong."""
        ...

    def sign_in(self) -> SignIn | None:
        """Where a person has to sign in first, if the last refresh found that."""
        ...

    def tools(self) -> tuple[Tool, ...]:
        """What the last refresh found; empty before it, and when it failed."""
        ...

    async def close(self) -> None:
        """Ends sessions and tasks. Tools found so far stay, and connect again when called."""
        ...


class Toolbox:
    """The tools of one run.

    allow, deny: globs over all names, MCP and native; deny wins, an empty allow list allows all. A glob that matches
    nothing is reported by the first refresh that reached every server. searchable: with `find_tools` over all of them.
    Raises ConfigError for two tools of one name, and for a function that is named like a server's tool.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        sources: Iterable[ToolSource] = (),
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        searchable: bool = False,
    ) -> None:
        self._functions, self._sources = tuple(tools), tuple(sources)
        self._allow, self._deny = tuple(allow), tuple(deny)
        self._globs_judged = False
        self._refuse_collisions()
        if searchable:
            self._functions = (*self._functions, find_tools_tool(self._catalogue))
        self._tools: dict[str, Tool] = {}
        self._take_in()

    async def refresh(self) -> tuple[str, ...]:
        """All servers at once; one that fails is skipped and tried again by the next refresh. Never raises."""
        heard = await asyncio.gather(*(_heard(source) for source in self._sources))
        self._take_in()
        said = tuple(sentence for sentences in heard for sentence in sentences)
        return said or (() if self.sign_ins() else self._judged_globs())

    def sign_ins(self) -> tuple[SignIn, ...]:
        return tuple(sign_in for source in self._sources if (sign_in := source.sign_in()))

    def offered(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    def find(self, name: str) -> Tool | None:
        """None for an unknown tool, and for one of a server that was not reached or not yet asked: refresh first."""
        return self._tools.get(name)

    async def close(self) -> None:
        """Ends every session. Call it at the end of a slice of work; the next refresh or call connects again."""
        await asyncio.gather(*(source.close() for source in self._sources))

    def _take_in(self) -> None:
        self._tools = {tool.spec.name: tool for tool in self._all() if self._passes(tool.spec.name)}

    def _passes(self, name: str) -> bool:
        return name in ALWAYS_RUN or passes(name, self._allow, self._deny)

    def _catalogue(self) -> tuple[Tool, ...]:
        """What a search looks through."""
        return tuple(tool for name, tool in self._tools.items() if name not in BUILT_IN)

    def _all(self) -> Iterator[Tool]:
        yield from self._functions
        for source in self._sources:
            yield from source.tools()

    def _judged_globs(self) -> tuple[str, ...]:
        if self._globs_judged:
            return ()
        self._globs_judged = True
        names = [tool.spec.name for tool in self._all()]
        return tuple(
            f"The {kind} rule {glob!r} matches no tool; check its spelling against the names of the tools."
            for kind, globs in (("allow", self._allow), ("deny", self._deny))
            for glob in unmatched(globs, names)
        )

    def _refuse_collisions(self) -> None:
        servers: set[str] = set()
        for source in self._sources:
            require_server_name(source.name)
            if source.name in servers:
                raise ConfigError("mcp_servers", f"two servers are named {source.name!r}", '{"docs": …, "wiki": …}')
            servers.add(source.name)
        names: set[str] = set()
        for function in self._functions:
            if not hasattr(function, "spec"):
                called = getattr(function, "__name__", repr(function))
                raise ConfigError("tools", f"{called} is not a tool; put @tool above its definition", "@tool")
            name = function.spec.name
            if name in names:
                raise ConfigError("tools", f"two tools are named {name!r}", '@tool(name="search_wiki")')
            server, mark, _ = name.partition("__")
            if mark and server in servers:
                fault = f"the function {name!r} is named like a tool of the server {server!r}"
                raise ConfigError("tools", fault, '@tool(name="search_docs")')
            names.add(name)


async def _heard(source: ToolSource) -> tuple[str, ...]:
    try:
        return await source.refresh()
    except Exception as error:  # noqa: BLE001 - the port promises never to raise, whatever a source does
        return (f"The tools of {source.name} could not be taken in: {type(error).__name__}: {error}",)
