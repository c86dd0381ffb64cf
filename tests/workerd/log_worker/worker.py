"""A Worker that runs the contract of the log on the SQLite of a Durable Object, one check an object."""

import json
import traceback
from typing import Any

from workers import DurableObject, Request, Response, WorkerEntrypoint

from edge_agent.cloudflare.sql import ObjectSql, raw_storage
from edge_agent.core.ports import Log
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import codec
from tests.contracts.log_contract import CONTRACT, Subject


class Run(DurableObject):
    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self._sql = ObjectSql(raw_storage(ctx))

    def _fresh(self) -> Log:
        for (name,) in self._sql.run(
            "select name from sqlite_master where type = 'table' and name not like '\\_cf%' escape '\\'"
        ):
            self._sql.run(f'drop table "{name}"')
        return self._again()

    def _again(self) -> Log:
        return SqlLog(self._sql, codec)

    async def check(self, name: str) -> str:
        """Empty when it holds."""
        check = next(check for check in CONTRACT if check.__name__ == name)
        try:
            await check(Subject(self._fresh, self._again))
        except Exception:  # noqa: BLE001 - whatever it is, the test tells it
            return traceback.format_exc()
        return ""


class KeyStore(DurableObject):
    """Named in the configuration, not used here."""


class Directory(DurableObject):
    """Likewise."""


class Default(WorkerEntrypoint):
    async def fetch(self, request: Request) -> Response:
        name = request.url.rsplit("/", 1)[1]
        if name == "healthz":
            return Response("ok")
        return Response(json.dumps(await self.env.RUN.getByName(name).check(name)))
