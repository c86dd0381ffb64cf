"""What this deployment offers, and whether it is well."""

from fastapi import APIRouter, Request

from edge_agent.http.openapi import problems
from edge_agent.http.ports import Deps
from edge_agent.wire.http_answers import AgentsAnswer, ConfigFault, Health, ToolsAnswer


def offer_routes(deps: Deps) -> APIRouter:
    router = APIRouter(tags=["deployment"])

    @router.get("/v1/agents", responses=problems(503))
    async def list_agents() -> AgentsAnswer:
        """The agents a run can be started with."""
        return AgentsAnswer(agents=tuple(deps.offer.agents()))

    @router.get("/v1/tools", responses=problems(503))
    async def list_tools(request: Request) -> ToolsAnswer:
        """The tools of all agents, those of MCP servers included; a server that cannot be reached is named."""
        return await deps.offer.tools(request.state.caller.name)

    @router.get("/healthz")
    async def health() -> Health:
        """Liveness, the version, and what is wrong with the configuration (no values). Needs no token."""
        mask = deps.settings.mask
        faults = tuple(
            ConfigFault(setting=fault.setting, fault=mask(fault.fault), example=fault.example)
            for fault in deps.offer.faults()
        )
        status = "misconfigured" if faults else "ok"
        return Health(status=status, version=deps.offer.version, runtime=deps.runtime, faults=faults)

    return router
