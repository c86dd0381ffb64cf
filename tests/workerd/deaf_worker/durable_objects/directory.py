"""A directory that hears no report as long as DEAF is set: laid over the real one."""

import json

from edge_agent.cloudflare.directory import DirectoryObject


class Directory(DirectoryObject):
    async def ask(self, text: str) -> str:
        if json.loads(text)["method"] == "report" and getattr(self.env, "DEAF", ""):
            raise RuntimeError("deaf")
        return await super().ask(text)
