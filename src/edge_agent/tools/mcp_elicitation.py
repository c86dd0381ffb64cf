"""What servers ask in the middle of a call, of both generations, as one question to a person.

The newer generation ends the call with its questions and takes the answers when it is made again. The older one holds
the call open and asks beside it. A person may take days, and a Worker's object is not kept in memory so long: where no
answer comes at once the call is cancelled, and made again when it is there; then the same question gets it.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from edge_agent.core.canonical import canonical
from edge_agent.core.errors import NeedsAnswer, ToolError
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Answers
from edge_agent.tools.mcp_import import types

T = TypeVar("T")

Ask = Callable[[NeedsAnswer], Awaitable[Answers | None]]


def needs_answer(server: str, result: types.InputRequiredResult) -> NeedsAnswer:
    """Raises ToolError where it asks for what this agent does not give: a model's answer, or folders."""
    asked: dict[str, types.ElicitRequestParams] = {}
    for key, request in (result.input_requests or {}).items():
        if not isinstance(request, types.ElicitRequest):
            raise ToolError(f"{server} asks for {request.method}, which this agent does not offer.")
        asked[key] = request.params
    return _question(server, asked, result.request_state)


def responses(answers: Sequence[Answers]) -> tuple[types.InputResponses | None, str | None]:
    """What goes along with a call that is made again: the newest answers, and the state they belong to."""
    if not answers:
        return None, None
    last = answers[-1]
    given: types.InputResponses = {key: types.ElicitResult.model_validate(one) for key, one in last.responses.items()}
    return given or None, last.request_state


class Elicited:
    """What one call of the older generation is asked, and what is known of that: each answer serves once, in order."""

    def __init__(self, server: str, answers: Sequence[Answers]) -> None:
        self._server, self.is_asked = server, False
        self._known = [known for one in answers for known in one.responses.items()]
        self._asked: asyncio.Queue[tuple[NeedsAnswer, asyncio.Future[JsonObject]]] = asyncio.Queue()

    def knows(self, params: types.ElicitRequestParams) -> bool:
        return any(key == _key(params) for key, _ in self._known)

    async def answer(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Never returns where the call is given up: with the session this waits no more."""
        key = _key(params)
        for known in self._known:
            if known[0] == key:
                self._known.remove(known)
                return types.ElicitResult.model_validate(known[1])
        self.is_asked = True
        given: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((_question(self._server, {key: params}, None), given))
        return types.ElicitResult.model_validate(await given)

    async def unless_asked(self, call: "asyncio.Future[T]", ask: Ask, let_go: Callable[[], None]) -> T:
        """The answer to the call. Raises NeedsAnswer where a person is asked who does not answer in time, with the call
        cancelled."""
        asking = asyncio.ensure_future(self._ask(ask))
        try:
            await asyncio.wait({call, asking}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise await asking
            return call.result()
        finally:
            asking.cancel()
            await asyncio.wait({asking})
            if not call.done():
                call.cancel()
                let_go()
                await asyncio.wait({call})

    async def _ask(self, ask: Ask) -> NeedsAnswer:
        """One question after the other, until one is left without an answer."""
        while True:
            question, given = await self._asked.get()
            answers = await ask(question)
            if answers is None:
                return question
            self.is_asked = not self._asked.empty()
            if not given.done():  # the server may have withdrawn it
                given.set_result(answers.responses[question.requests[0]])


def _key(params: types.ElicitRequestParams) -> str:
    """The same for the same question: the older generation names none."""
    return hashlib.sha256(canonical(_shown(params)).encode()).hexdigest()[:16]


def _shown(params: types.ElicitRequestParams) -> JsonObject:
    if isinstance(params, types.ElicitRequestURLParams):
        return {"message": params.message, "url": params.url}
    schema = params.model_dump(mode="json", by_alias=True, exclude_none=True)["requestedSchema"]
    return {"message": params.message, "schema": schema}


def _question(server: str, asked: Mapping[str, types.ElicitRequestParams], state: str | None) -> NeedsAnswer:
    shown = {key: _shown(params) for key, params in asked.items()}
    urls = [one["url"] for one in shown.values() if "url" in one]
    forms = {key: one["schema"] for key, one in shown.items() if "schema" in one}
    schema = next(iter(forms.values()), None) if len(shown) == 1 else _joined(forms)
    question = " ".join(str(one["message"]) for one in shown.values())
    return NeedsAnswer(
        server, question, tuple(shown), schema=schema, url=urls[0] if urls else None, request_state=state
    )


def _joined(forms: Mapping[str, JsonObject]) -> JsonObject | None:
    return {"type": "object", "properties": dict(forms), "required": list(forms)} if forms else None
