"""Workers AI over REST that does as it is told: chat completions of model_server.py in another place.

What differs from OpenAI's wire: the path names the model, whole answers and errors have an envelope, and usage comes
without being asked for.
"""

import json
import re

from tests.servers.model_server import ModelServer
from tests.servers.scenarios import Json, Seen

_ENVELOPE: Json = {"success": True, "errors": [], "messages": []}


class WorkersAiRest(ModelServer):
    base = "/client/v4/accounts/abc/ai"

    def asked(self, address: str) -> Json | None:
        asked = re.fullmatch(rf"{self.base}/run/@cf/(.+)", address)
        return {"model": asked[1], "stream_options": {"include_usage": True}} if asked else None

    def document(self, seen: Seen) -> Json:
        return {"result": super().document(seen), **_ENVELOPE}

    def error(self, status: int, message: str, code: str) -> bytes:
        return json.dumps({**_ENVELOPE, "result": None, "success": False, "errors": [{"message": message}]}).encode()
