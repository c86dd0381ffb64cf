"""The toolbox: one list of functions and servers, in declared order, filtered and without collisions."""

from typing import Any

import pytest

from edge_agent.core.errors import ConfigError
from edge_agent.core.tooling import Tool, Tools
from edge_agent.tool import McpServer, tool
from edge_agent.tools.mcp_server import require_server_name
from edge_agent.tools.names import passes, unmatched
from edge_agent.tools.toolbox import Toolbox, ToolSource


def named(name: str) -> Tool:
    @tool(name=name)
    def made() -> str:
        return name

    return made


class Shelf:
    """A source whose tools and faults a test sets."""

    def __init__(self, name: str, *tools: str, fault: str | None = None, raises: bool = False) -> None:
        self.name, self.wanted, self.fault, self.raises = name, tools, fault, raises
        self.found: tuple[Tool, ...] = ()
        self.closed = 0

    async def refresh(self) -> tuple[str, ...]:
        if self.raises:
            raise RuntimeError("boom")
        self.found = () if self.fault else tuple(named(f"{self.name}__{tool}") for tool in self.wanted)
        return (self.fault,) if self.fault else ()

    def sign_in(self) -> None:
        return None

    def tools(self) -> tuple[Tool, ...]:
        return self.found

    async def close(self) -> None:
        self.closed += 1


def names(box: Tools) -> list[str]:
    return [spec.name for spec in box.offered()]


async def test_functions_come_first_then_servers_in_declared_order() -> None:
    box = Toolbox([named("b"), named("a")], [Shelf("z", "two", "one"), Shelf("y", "three")])
    assert names(box) == ["b", "a"]
    assert await box.refresh() == ()
    assert names(box) == ["b", "a", "z__two", "z__one", "y__three"]
    found = box.find("z__one")
    assert found is not None
    assert found.spec.name == "z__one"
    assert box.find("nothing") is None


async def test_a_server_that_fails_is_reported_and_skipped_and_comes_back_with_the_next_refresh() -> None:
    down = Shelf("docs", "search", fault="docs is down")
    box = Toolbox([named("a")], [down, Shelf("wiki", "read"), Shelf("odd", raises=True)])
    assert await box.refresh() == ("docs is down", "The tools of odd could not be taken in: RuntimeError: boom")
    assert names(box) == ["a", "wiki__read"]
    down.fault = None
    await box.refresh()
    assert names(box) == ["a", "docs__search", "wiki__read"]


async def test_globs_choose_over_all_names_and_deny_wins() -> None:
    shelf = Shelf("docs", "read", "write", "delete")
    box = Toolbox([named("pay"), named("look")], [shelf], allow=["docs__*", "look"], deny=["*__delete"])
    await box.refresh()
    assert names(box) == ["look", "docs__read", "docs__write"]
    assert box.find("docs__delete") is None


async def test_a_glob_that_matches_nothing_is_reported_once_when_every_server_was_reached() -> None:
    shelf = Shelf("docs", "read", fault="docs is down")
    box = Toolbox([named("look")], [shelf], allow=["look", "docs__raed"], deny=["Look"])
    assert await box.refresh() == ("docs is down",)
    shelf.fault = None
    said = await box.refresh()
    assert [("allow" in sentence, "raed" in sentence) for sentence in said] == [(True, True), (False, False)]
    assert "'Look'" in said[1]
    assert await box.refresh() == ()


async def test_closing_closes_every_source() -> None:
    shelves = [Shelf("a"), Shelf("b")]
    await Toolbox(sources=shelves).close()
    assert [shelf.closed for shelf in shelves] == [1, 1]


def plain(query: str) -> str:
    return query


@pytest.mark.parametrize(
    "tools, sources, said",
    [
        ([named("a"), named("a")], [], "two tools are named 'a'"),
        ([named("docs__x")], [Shelf("docs")], "'docs__x' is named like a tool of the server 'docs'"),
        ([], [Shelf("docs"), Shelf("docs")], "two servers are named 'docs'"),
        ([plain], [], "plain is not a tool; put @tool above"),
        ([], [Shelf("a__b")], "a server's name begins with a letter"),
    ],
)
def test_collisions_are_refused_when_the_box_is_made(tools: Any, sources: list[ToolSource], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Toolbox(tools, sources)


@pytest.mark.parametrize("name", ["docs", "my-docs", "my_docs2", "A"])
def test_names_a_server_may_have(name: str) -> None:
    require_server_name(name)


@pytest.mark.parametrize("name", ["", "a__b", "a_", "_a", "9a", "a b", "a.b", "x" * 33])
def test_names_a_server_may_not_have(name: str) -> None:
    with pytest.raises(ConfigError):
        require_server_name(name)


def test_globs_tell_upper_from_lower_case_and_an_empty_allow_list_allows_all() -> None:
    assert passes("a", (), ())
    assert not passes("a", (), ("a",))
    assert not passes("a", ("A",), ())
    assert passes("ab", ("a[bc]",), ())
    assert unmatched(["a*", "b"], ["ab"]) == ("b",)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"url": "docs.example.com/mcp"}, "must begin with https://"),
        ({"url": "stdio://server"}, "a Worker can start no process"),
        ({"url": "https://"}, "names no host"),
        ({"url": "https://me:secret@example.com/"}, "holds a user or password"),
        ({"url": "https://example.com:99999/"}, "is not a URL"),
        ({"url": "https://example.com/sse"}, "legacy HTTP\\+SSE"),
        ({"url": "https://example.com/mcp", "timeout": 0}, "seconds above 0"),
        ({"url": "https://example.com/mcp", "connect_timeout": float("inf")}, "seconds above 0"),
        ({"url": "https://example.com/mcp", "allow": "search_*"}, "must be a list of globs"),
    ],
)
def test_a_server_that_cannot_work_is_a_configuration_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        McpServer(**options)
    assert "secret" not in str(refused.value)


def test_a_servers_headers_are_never_shown() -> None:
    server = McpServer(url="https://mcp.example.com:444/mcp?key=1", headers={"Authorization": "Bearer s3cret"})
    assert "s3cret" not in repr(server)
    assert server.origin == "https://mcp.example.com:444"


async def test_fresh_headers_are_laid_over_the_fixed_ones() -> None:
    async def fresh() -> dict[str, str]:
        return {"B": "2"}

    server = McpServer(url="https://mcp.example.com/mcp", headers={"A": "1", "B": "1"}, get_headers=fresh)
    assert await server.current_headers() == {"A": "1", "B": "2"}
    plain_function = McpServer(url="https://mcp.example.com/mcp", get_headers=lambda: {"C": "3"})
    assert await plain_function.current_headers() == {"C": "3"}
