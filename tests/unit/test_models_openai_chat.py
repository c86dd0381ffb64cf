"""The OpenAI-compatible model over real sockets: what only the connection shows."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx2
import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.messages import ToolSpec, UserMessage
from edge_agent.core.model import CalledTool, Finished, ModelEvent, ModelRequest, TextDelta
from edge_agent.models.endpoint import PROFILES, Endpoint, Profile
from edge_agent.models.httpx_transport import HttpxTransport
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.provider_model import ProviderModel
from tests.servers.model_server import ModelServer
from tests.servers.running import running
from tests.servers.scripted_server import serving

KEY = "sk-very-secret-key"
REQUEST = ModelRequest(system="", messages=(UserMessage(text="hello"),))
ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    script = {
        "json-call": [{"content": '{"tool": "add", "arguments": {"a": 1}}'}],
        "json-answer": [{"content": '{"answer": "It is \\u0033."}'}],
    }
    async with serving(ModelServer(script)) as running:
        yield running


def model(server: ModelServer, scenario: str, profile: Profile | None = None, **more: Any) -> ProviderModel:
    endpoint = Endpoint(provider="test", base_url=server.url, key=KEY, profile=profile or PROFILES["default"])
    return ProviderModel(
        adapter=OpenAIChat(), name=scenario, endpoint=endpoint, transport=HttpxTransport(httpx2.AsyncClient), **more
    )


async def listen(one: ProviderModel, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    async with aclosing(one.stream(request)) as events:
        return [event async for event in events]


async def failure(one: ProviderModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await listen(one)
    assert KEY not in caught.value.message
    assert f"test/{one.name} at 127.0.0.1" in caught.value.message
    return caught.value


async def test_the_key_goes_out_as_a_bearer_token(server: ModelServer) -> None:
    await listen(model(server, "text"))
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.seen[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "scenario, kind, retryable",
    [("html", "bad-answer", False), ("cut", "truncated", True), ("overflow", "context-overflow", False),
     ("error-in-stream", "overloaded", True), ("status-503", "unavailable", True),
     ("status-401", "unauthorized", False)],
)  # fmt: skip
async def test_each_way_to_fail_is_told_apart(server: ModelServer, scenario: str, kind: str, retryable: bool) -> None:
    error = await failure(model(server, scenario))
    assert (error.kind, error.retryable) == (kind, retryable)


async def test_a_refused_connection_is_one_and_retryable() -> None:
    async with serving(ModelServer()) as gone:
        pass
    error = await failure(model(gone, "text"))
    assert (error.kind, error.retryable) == ("connection", True)


async def test_a_connection_that_breaks_before_the_answer_may_be_counted_and_is_a_cut() -> None:
    async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    listening = await asyncio.start_server(hangs_up, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    endpoint = Endpoint(provider="test", base_url=f"http://127.0.0.1:{port}/v1")
    one = ProviderModel(adapter=OpenAIChat(), name="m", endpoint=endpoint, transport=HttpxTransport(httpx2.AsyncClient))
    async with listening:
        with pytest.raises(ModelError) as caught:
            await listen(one)
    assert (caught.value.kind, caught.value.retryable) == ("truncated", True)


@pytest.mark.parametrize("base_url", ["ftp://127.0.0.1/v1", "http://127.0.0.1:99999/v1"])
async def test_an_impossible_address_is_a_failed_connection(base_url: str) -> None:
    endpoint = Endpoint(provider="test", base_url=base_url)
    one = ProviderModel(adapter=OpenAIChat(), name="m", endpoint=endpoint, transport=HttpxTransport(httpx2.AsyncClient))
    with pytest.raises(ModelError) as caught:
        await listen(one)
    assert caught.value.kind == "connection"


@pytest.mark.parametrize("scenario", ["hang", "silent"])
async def test_silence_is_a_stall_and_closes_the_connection(server: ModelServer, scenario: str) -> None:
    error = await failure(model(server, scenario, stall_timeout=0.5))
    assert (error.kind, error.retryable) == ("stalled", True)
    await server.until(lambda seen: seen[0].closed_early)


async def test_the_whole_call_may_have_a_time_limit(server: ModelServer) -> None:
    error = await failure(model(server, "slow-text-400", timeout=0.5))
    assert (error.kind, error.retryable) == ("timeout", True)
    await server.until(lambda seen: seen[0].closed_early)


async def test_a_stream_that_keeps_talking_does_not_stall(server: ModelServer) -> None:
    events = await listen(model(server, "slow-text-25", stall_timeout=1))
    assert events[-1] == Finished(reason="stop")


async def test_time_a_consumer_takes_is_no_silence(server: ModelServer) -> None:
    pause = 0.7
    async with aclosing(model(server, "slow-text-4", stall_timeout=0.5).stream(REQUEST)) as events:
        async for _ in events:
            await asyncio.sleep(pause)
            pause = 0
    assert server.seen[0].done


async def test_a_cancel_before_the_headers_closes_the_connection(server: ModelServer) -> None:
    task = asyncio.ensure_future(listen(model(server, "silent")))
    await server.until(bool)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.until(lambda seen: seen[0].closed_early)


async def test_a_cancel_by_someone_else_is_no_stall(server: ModelServer) -> None:
    async def follow() -> None:
        async with asyncio.timeout(None) as limit:
            until.add_done_callback(lambda _: limit.reschedule(0))
            await listen(model(server, "hang", stall_timeout=30))

    until = asyncio.ensure_future(server.until(bool))
    with pytest.raises(TimeoutError):
        await follow()
    await server.until(lambda seen: seen[0].closed_early)


async def test_a_json_document_is_read_as_a_whole_answer(server: ModelServer) -> None:
    assert (await listen(model(server, "json")))[0] == TextDelta(text="The answer is here, word by word.")


async def test_a_redirect_is_not_followed_with_the_key(server: ModelServer) -> None:
    followed: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        followed.append(request)
        return httpx2.Response(307, headers={"location": "https://elsewhere.example/v1"})

    def client() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(answer), follow_redirects=True)

    endpoint = Endpoint(provider="test", base_url=server.url, key=KEY)
    error = await failure(
        ProviderModel(adapter=OpenAIChat(), name="m", endpoint=endpoint, transport=HttpxTransport(client))
    )
    assert (error.kind, error.retryable, len(followed)) == ("bad-answer", False, 1)


async def test_half_an_emoji_in_the_conversation_does_not_fail_the_call(server: ModelServer) -> None:
    await listen(model(server, "text"), ModelRequest(system="", messages=(UserMessage(text="a\ud83db"),)))
    assert server.seen[0].body["messages"][0]["content"] == "a?b"


async def test_a_shared_client_stays_open(server: ModelServer) -> None:
    async with httpx2.AsyncClient() as client:
        endpoint = Endpoint(provider="test", base_url=server.url)
        transport = HttpxTransport(lambda: client, shared=True)
        for _ in range(2):
            await listen(ProviderModel(adapter=OpenAIChat(), name="text", endpoint=endpoint, transport=transport))
        assert not client.is_closed


async def test_json_tool_mode_gives_ordinary_calls_and_text(server: ModelServer) -> None:
    request = ModelRequest(system="", messages=REQUEST.messages, tools=(ADD,))
    json_mode = Profile(tool_mode="json")
    assert CalledTool(name="add", arguments='{"a": 1}') in await listen(model(server, "json-call", json_mode), request)
    assert TextDelta(text="It is 3.") in await listen(model(server, "json-answer", json_mode), request)
    assert "tools" not in server.seen[0].body
    assert model(server, "x", PROFILES["small"]).force_text_after_tool


async def test_a_run_of_rounds_ends_with_a_text_and_survives_being_asked_again(server: ModelServer) -> None:
    request = ModelRequest(system="", messages=REQUEST.messages, tools=(ADD,))
    for _ in range(2):
        events = await listen(model(server, "rounds-1-3"), request)
        assert [event for event in events if isinstance(event, CalledTool)] == [
            CalledTool(name="add", arguments='{"a": 1}')
        ]


@pytest.mark.parametrize("scenario", ["late-cut", "late-hang"])
async def test_once_the_model_has_finished_a_broken_end_takes_nothing_away(server: ModelServer, scenario: str) -> None:
    events = await listen(model(server, scenario, stall_timeout=0.5))
    assert events[-1] == Finished(reason="stop")


async def test_a_refusal_whose_body_never_comes_is_told_all_the_same() -> None:
    closed = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 99\r\n\r\nBusy")
        await reader.read()
        writer.close()
        await writer.wait_closed()
        closed.set()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        endpoint = Endpoint(provider="test", base_url=f"http://127.0.0.1:{port}/v1", key=KEY)
        transport = HttpxTransport(httpx2.AsyncClient)
        error = await failure(
            ProviderModel(adapter=OpenAIChat(), name="m", endpoint=endpoint, transport=transport, stall_timeout=0.5)
        )
        assert error.kind == "unavailable"
        assert "Busy" in error.message
        await closed.wait()


async def test_the_server_runs_in_a_process_of_its_own_too() -> None:
    with running("model_server.py") as process:
        endpoint = Endpoint(provider="test", base_url=f"{process.url}/v1")
        one = ProviderModel(
            adapter=OpenAIChat(), name="m", endpoint=endpoint, transport=HttpxTransport(httpx2.AsyncClient)
        )
        await listen(one, ModelRequest(system="", messages=(UserMessage(text="Please do text-3."),)))
        assert [(seen["scenario"], seen["done"], seen["messages"]) for seen in process.log()] == [("text-3", True, 1)]
        httpx2.post(f"{process.url}/_reset").raise_for_status()
        assert process.log() == []
