"""The service behind the AI binding, as the runtime's own class `Ai` calls it: Workers AI, and AI Gateway.

    python -m tests.servers.workers_ai_server --port 8099 --script FILE.json

    POST /run, /ai-gateway/run                    {"inputs", "options"}, the model in cf-consn-model-id
    POST /ai-gateway/universal/run/<gateway>      [{"provider", "endpoint", "headers", "query"}]
    GET  /ai-gateway/gateways/<gateway>/logs/<id> what is kept of a call that went through a gateway

The script is JSON {"scenario": [turn, …]}: the scenario is the last word of the newest user message that is one, the
turn is the number of the model's messages before. A turn is an answer, or a list of answers to one attempt after the
other; the last stands for all that follow. An answer is

    {"status", "headers", "json": document}       or "text" instead of "json"
    {"events": [payload, …], "end": "done"}       a stream; end: done ([DONE]), cut (the connection breaks), hang
    either with "log": the fields that the gateway's log of the call has

GET /_log: the requests, in order. GET /health: it is up.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.servers.connection import ClientGone, Connection

Json = dict[str, Any]
LOG_HEADER = "cf-aig-log-id"


@dataclass(slots=True)
class Asked:
    """One call of a model. `closed_early`: the binding closed the connection before the answer's end."""

    path: str
    headers: dict[str, str]
    model: str
    inputs: Json
    options: Json = field(default_factory=dict[str, Any])
    entry: Json = field(default_factory=dict[str, Any])
    scenario: str = ""
    closed_early: bool = False


class WorkersAiServer:
    def __init__(self, script: Mapping[str, list[Any]]) -> None:
        self._script = script
        self._asked: list[Asked] = []
        self._attempts: Counter[str] = Counter()
        self._logs: dict[str, Json] = {}

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        with suppress(ClientGone, ConnectionError, asyncio.IncompleteReadError):
            while request := await connection.request():
                method, path, headers, body = request
                path = path.partition("?")[0]
                if method == "POST":
                    if not await self._call(connection, _asked(path, headers, json.loads(body))):
                        break
                else:
                    await self._read(connection, path)
        writer.close()

    async def _read(self, connection: Connection, path: str) -> None:
        log = self._logs.get(path.rpartition("/")[2])
        if path == "/_log":
            await connection.answer(200, json.dumps([asdict(asked) for asked in self._asked]).encode())
        elif path == "/health":
            await connection.answer(200, b"{}")
        elif log is not None:
            await connection.answer(200, json.dumps({"success": True, "result": log}).encode())
        else:
            fault = {"success": False, "errors": [{"code": 7001, "message": "Log not found"}]}
            await connection.answer(404, json.dumps(fault).encode())

    async def _call(self, connection: Connection, asked: Asked) -> bool:
        """Whether the connection goes on."""
        self._asked.append(asked)
        answer = self._answer(asked)
        headers = {**answer.get("headers", {}), **self._logged(asked, answer)}
        try:
            if "events" not in answer:
                whole = answer["text"] if "text" in answer else json.dumps(answer["json"])
                kind = headers.pop("content-type", "application/json")
                await connection.answer(answer.get("status", 200), whole.encode(), kind, **headers)
                return True
            connection.begin(**headers)
            for event in answer["events"]:
                await connection.send(f"data: {json.dumps(event)}\n\n")
            if answer["end"] == "hang":
                await connection.until_closed()
            if answer["end"] == "cut":
                return False
            await connection.send("data: [DONE]\n\n")
            await connection.end()
        except ClientGone:
            asked.closed_early = True
            return False
        return True

    def _answer(self, asked: Asked) -> Json:
        messages: list[Json] = asked.inputs["messages"]
        said = [word for message in messages if message["role"] == "user" for word in message["content"].split()]
        asked.scenario = next(word for word in reversed(said) if word in self._script)
        turns = self._script[asked.scenario]
        turn = min(sum(message["role"] == "assistant" for message in messages), len(turns) - 1)
        attempts = turns[turn] if isinstance(turns[turn], list) else [turns[turn]]
        made = self._attempts[f"{asked.scenario} {turn}"]
        self._attempts[f"{asked.scenario} {turn}"] += 1
        return attempts[min(made, len(attempts) - 1)]

    def _logged(self, asked: Asked, answer: Json) -> dict[str, str]:
        """The header with the log's id, of what goes through a gateway."""
        if not asked.path.startswith("/ai-gateway/"):
            return {}
        told = {"provider": asked.entry.get("provider", "workers-ai"), "model": asked.model, "status_code": 200}
        log: Json = {
            "id": f"log-{len(self._asked)}",
            **told,
            "created_at": "2026-11-30T12:00:00Z",
            **answer.get("log", {}),
        }
        self._logs[log["id"]] = log
        return {LOG_HEADER: log["id"]}


def _asked(path: str, headers: dict[str, str], body: Any) -> Asked:
    if "universal" in path:
        entry: Json = body[0]
        query: Json = entry["query"]
        return Asked(path=path, headers=headers, model=query["model"], inputs=query, entry=entry)
    model = headers["cf-consn-model-id"]
    return Asked(path=path, headers=headers, model=model, inputs=body["inputs"], options=body["options"])


async def _main() -> None:
    parser = argparse.ArgumentParser(description="The service behind the AI binding, scripted.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--script", type=Path, required=True)
    arguments = parser.parse_args()
    service = WorkersAiServer(json.loads(arguments.script.read_text()))
    server = await asyncio.start_server(service.connected, "127.0.0.1", arguments.port)
    await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main())
