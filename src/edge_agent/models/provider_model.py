"""A model behind an adapter and a transport: what is left for I/O to do."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from edge_agent.core.errors import ModelError
from edge_agent.core.model import GatewayLog, ModelEvent, ModelRequest, Warned
from edge_agent.models.adapter import Adapter, Answer, Call
from edge_agent.models.body import cut
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.failures import failed_status, thinking_refused
from edge_agent.models.patience import OutOfPatience, Patience
from edge_agent.models.source import Source
from edge_agent.models.transport import Reply, Transport, TransportError

MAX_ERROR_BYTES = 65_536  # read of the body of a refusal
GATEWAY_LOG = "cf-aig-log-id"  # the response header in which AI Gateway names its log of the call


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderModel:
    """Implements the Model port.

    stall_timeout: seconds the server may say nothing, before the headers as well. timeout: seconds for the whole call.
        None: no limit.
    """

    name: str
    endpoint: Endpoint
    adapter: Adapter
    transport: Transport
    stall_timeout: float | None = 60.0
    timeout: float | None = None

    @property
    def provider(self) -> str:
        return self.endpoint.provider

    @property
    def force_text_after_tool(self) -> bool:
        return self.endpoint.profile.force_text_after_tool

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        source = Source.of(self.endpoint, self.name)
        call = self.adapter.call(request, self.endpoint, self.name)
        answer = self.adapter.answer(request, self.endpoint, source)
        patience = Patience(stall=self.stall_timeout, total=self.timeout)
        reply: Reply | None = None
        chunks: AsyncIterator[bytes] | None = None
        for warning in call.warnings:
            yield Warned(message=warning)
        try:
            reply = await self._ask(request, call, source, patience)
            if log_id := reply.headers.get(GATEWAY_LOG):
                yield GatewayLog(id=log_id)
            chunks = reply.chunks()
            while not answer.over and (chunk := await self._next(chunks, answer, source, patience)) is not None:
                for event in answer.feed(chunk):
                    yield event
            for event in answer.end():
                yield event
        finally:
            patience.stop()
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()  # left to the garbage collector, its own `finally` would run late
            if reply is not None:
                await reply.close()

    async def _ask(self, request: ModelRequest, call: Call, source: Source, patience: Patience) -> Reply:
        """An answer with status 2xx."""
        # What has no UTF-8 (half an emoji in a user's text) must not fail the call.
        body = json.dumps(call.body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            reply = await patience.wait(self.transport.post(self.endpoint.url(call.path), call.headers, body))
        except TransportError as error:
            if error.sent:
                raise cut(source, f"broke off before its answer ({error})") from error
            remedy = "Check that the base URL is right and the server runs."
            raise source.error("connection", f"cannot be reached ({error})", remedy, retryable=True) from error
        except OutOfPatience as over:
            raise _impatient(source, over) from None
        if reply.status // 100 == 2:  # noqa: PLR2004 (2xx)
            return reply
        try:
            error = failed_status(source, reply.status, reply.headers, await _read_error(reply, patience))
            raise thinking_refused(request, error) or error
        finally:
            await reply.close()

    async def _next(
        self, chunks: AsyncIterator[bytes], answer: Answer, source: Source, patience: Patience
    ) -> bytes | None:
        """The next piece; None at the end. Once the model has said why it stopped, a server that is silent or breaks
        off takes nothing away any more."""
        try:
            return await patience.wait(anext(chunks))
        except StopAsyncIteration:
            return None
        except TransportError as error:
            if answer.finished:
                return None
            raise cut(source, f"lost the connection ({error})") from error
        except OutOfPatience as over:
            if answer.finished and over.limit == "stalled":
                return None
            raise _impatient(source, over) from None


async def _read_error(reply: Reply, patience: Patience) -> bytes:
    """The beginning of a refusal's body; what came of it when it breaks off."""
    body, chunks = b"", reply.chunks()
    try:
        while len(body) < MAX_ERROR_BYTES:
            body += await patience.wait(anext(chunks))
    except (StopAsyncIteration, TransportError, OutOfPatience):
        pass
    return body[:MAX_ERROR_BYTES]


def _impatient(source: Source, over: OutOfPatience) -> ModelError:
    if over.limit == "timeout":
        remedy = "Raise EDGE_AGENT_MODEL_TIMEOUT (0 switches it off), or ask for less."
        return source.error("timeout", f"did not end within {over.seconds:g} s", remedy, retryable=True)
    remedy = "Raise EDGE_AGENT_STALL_TIMEOUT if this model thinks for longer without a word."
    return source.error("stalled", f"said nothing for {over.seconds:g} s", remedy, retryable=True)
