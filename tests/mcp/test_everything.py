"""The protocol's own reference server, npm's server-everything (2025-11-25, with sessions)."""

import asyncio
from collections.abc import Iterator

import pytest

from edge_agent.core.errors import InvalidArguments
from edge_agent.tools.mcp_source import McpSource
from tests.mcp.conftest import Desk, our_tasks, tool_of
from tests.servers.everything import everything, why_not

pytestmark = [pytest.mark.mcp, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with everything() as (url, _):
        yield url


async def connected(desk: Desk, url: str) -> McpSource:
    source = desk.source(url, name="all")
    assert await source.refresh() == ()
    return source


async def test_its_tools_are_listed_and_called(desk: Desk, server: str) -> None:
    source = await connected(desk, server)
    assert {"all__echo", "all__get-sum", "all__get-tiny-image"} <= {tool.spec.name for tool in source.tools()}
    assert "hello" in (await desk.run(tool_of(source, "echo"), message="hello")).text
    assert "5" in (await desk.run(tool_of(source, "get-sum"), a=2, b=3)).text
    with pytest.raises(InvalidArguments, match="'message' is a required property"):
        tool_of(source, "echo").check({})


async def test_its_picture_links_and_structured_content(desk: Desk, server: str) -> None:
    source = await connected(desk, server)
    picture = await desk.run(tool_of(source, "get-tiny-image"))
    assert [file.media_type for file in picture.files] == ["image/png"]
    assert picture.files[0].content.startswith(b"\x89PNG")
    links = await desk.run(tool_of(source, "get-resource-links"), count=2)
    assert links.text.count("[link to ") == 2
    weather = await desk.run(tool_of(source, "get-structured-content"), location="New York")
    assert weather.structured is not None
    assert "warning" not in weather.text


async def test_its_progress_and_a_cancel(desk: Desk, server: str) -> None:
    source = await connected(desk, server)
    long = tool_of(source, "trigger-long-running-operation")
    await desk.run(long, duration=0.2, steps=2)
    assert [(done, total) for done, total, _ in desk.progress] == [(1, 2), (2, 2)]
    desk.heard.clear()
    call = asyncio.ensure_future(desk.run(long, duration=60, steps=600))
    async with asyncio.timeout(10):
        await desk.heard.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert "on" in (await desk.run(tool_of(source, "echo"), message="on")).text
    await source.close()
    assert our_tasks() == []


async def test_it_may_be_restarted_between_two_calls(desk: Desk) -> None:
    with everything() as (url, port):
        source = await connected(desk, url)
    with everything(port):
        assert "again" in (await desk.run(tool_of(source, "echo"), message="again")).text
