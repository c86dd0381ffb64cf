"""The API as one ASGI application."""

from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.http.approval_routes import approval_routes
from edge_agent.http.call_routes import call_routes
from edge_agent.http.context_routes import context_routes
from edge_agent.http.directory_routes import directory_routes
from edge_agent.http.fork_routes import fork_routes
from edge_agent.http.gate import Gate
from edge_agent.http.mcp_routes import mcp_routes
from edge_agent.http.offer_routes import offer_routes
from edge_agent.http.openapi import described
from edge_agent.http.ports import Deps
from edge_agent.http.replay_routes import replay_routes
from edge_agent.http.routing import nearby
from edge_agent.http.run_routes import run_routes
from edge_agent.http.skill_routes import skill_routes
from edge_agent.http.steering_routes import steering_routes
from edge_agent.http.stream_routes import stream_routes


class Api(FastAPI):
    """FastAPI with our own description and no page that loads anything from elsewhere."""

    def openapi(self) -> JsonObject:
        return described(self)


def create_app(deps: Deps) -> FastAPI:
    """Every route and dependency is async: the runtime has no threads."""
    app = Api(
        title="Edge Agent",
        version=deps.offer.version,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[Middleware(Gate, deps=deps)],
        exception_handlers={HTTPException: _to_the_gate, RequestValidationError: _to_the_gate},
        generate_unique_id_function=lambda route: route.name,
        # Off, all of it: its logs would hold messages of exceptions, unmasked.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(described(app))

    app.state.routes = [route for route in app.routes if isinstance(route, APIRoute)]
    of_runs = (run_routes, call_routes, directory_routes, fork_routes, steering_routes, approval_routes)
    of_all = (replay_routes, context_routes, mcp_routes, offer_routes, skill_routes)
    for router in (*(made(deps) for made in of_runs), stream_routes(), *(made(deps) for made in of_all)):
        app.include_router(router)
        app.state.routes += [route for route in router.routes if isinstance(route, APIRoute)]
    return app


async def _to_the_gate(request: Request, error: Exception) -> Response:
    """The framework's own errors become problems where all others do."""
    match error:
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            raise _no_such_route(request) from None
        case HTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED):
            raise _no_such_method(request) from None
        case _:
            raise error


def _no_such_route(request: Request) -> Refusal:
    routes: list[APIRoute] = request.app.state.routes
    near = nearby(request.url.path, ["/docs", *(route.path_format for route in routes)])
    hint = f" Near it: {', '.join(near)}." if near else " GET /openapi.json lists all there are."
    return Refusal(404, "unknown_route", f"There is nothing at {request.url.path[:200]}.{hint}", nearby=near)


def _no_such_method(request: Request) -> Refusal:
    """The framework names the methods of the first route of a path alone."""
    routes: list[APIRoute] = request.app.state.routes
    of_path = (route.methods or () for route in routes if route.path_regex.match(request.url.path))
    allow = sorted({method for methods in of_path for method in methods})
    return Refusal(405, "method_not_allowed", f"This path takes {' or '.join(allow)} only.", allow=allow)
