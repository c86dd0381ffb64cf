"""The object of a run, which says in the log which instance of it read the run from its storage."""

import uuid
from typing import Any

import js

from durable_objects.wiring import deployment_of, post_of
from edge_agent.cloudflare.live_runs import LiveRuns
from edge_agent.cloudflare.run_object import RunObject


class Run(RunObject):
    wiring = staticmethod(deployment_of)
    post = staticmethod(post_of)

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)
        self._instance = uuid.uuid4().hex[:8]

    def _runs(self) -> LiveRuns:
        first = self._kept is None
        runs = super()._runs()
        if first:
            js.console.log(f"instance {self._instance} has read {runs.own}")
        return runs
