"""Workers AI over REST that does as it is told: the scenarios and scripts of model_server.py, in OpenAI's form.

What differs from OpenAI's wire: the path names the model, whole answers and errors have an envelope, and usage comes
without being asked for.
"""

import json
import re

from tests.servers.model_server import Connection, Json, ModelServer, Request, Seen

_ASKED = re.compile(r"/client/v4/accounts/abc/ai/run/@cf/(.+)")
_ENVELOPE: Json = {"success": True, "errors": [], "messages": []}


class WorkersAiRest(ModelServer):
    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/client/v4/accounts/abc/ai"

    async def _handle(self, connection: Connection, request: Request) -> bool:
        method, path, headers, body = request
        if method == "POST" and (asked := _ASKED.fullmatch(path)):
            told = {"model": asked[1], "stream_options": {"include_usage": True}, **json.loads(body)}
            return await self._complete(connection, headers, told)
        return await super()._handle(connection, request)

    def document(self, seen: Seen) -> Json:
        return {"result": super().document(seen), **_ENVELOPE}

    def error(self, status: int, message: str, code: str) -> bytes:
        return json.dumps({**_ENVELOPE, "result": None, "success": False, "errors": [{"message": message}]}).encode()
