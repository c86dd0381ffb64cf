"""Key material for run tokens where neither a token nor a secret is set (loopback): made once and stored."""

import base64
import secrets
from typing import Any

from workers import DurableObject

from edge_agent.cloudflare.sql import ObjectSql, raw_storage


class KeyStore(DurableObject):
    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self._sql = ObjectSql(raw_storage(ctx))

    async def key(self) -> str:
        """32 bytes, base64."""
        self._sql.run("create table if not exists key(value text not null)")
        if not self._sql.run("select value from key"):
            self._sql.run("insert into key values(?)", base64.b64encode(secrets.token_bytes(32)).decode())
        return str(self._sql.run("select value from key")[0][0])
