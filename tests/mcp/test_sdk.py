"""What we lean on in the MCP SDK beyond its documented surface: an upgrade must look at each of these again."""

import importlib.metadata
import inspect
import subprocess
import sys

import pytest

from edge_agent.tools.mcp_auth_import import OAuthClientProvider, OAuthContext
from edge_agent.tools.mcp_import import NO_ANSWER, ClientSession, listen, negotiate_auto, streamable_http_client

pytestmark = pytest.mark.mcp


def test_the_version_is_the_one_this_was_written_against() -> None:
    assert importlib.metadata.version("mcp") == "2.3.0"


def test_the_private_name_of_the_negotiation_is_where_we_import_it_from() -> None:
    assert negotiate_auto.__module__ == "mcp.client._probe"
    assert list(inspect.signature(negotiate_auto).parameters) == ["session"]


def test_the_transport_says_what_we_compare_with_where_an_http_error_held_no_answer() -> None:
    source = inspect.getsource(sys.modules[streamable_http_client.__module__])
    assert f'message="{NO_ANSWER}"' in source


def test_a_request_runs_in_the_context_of_whoever_made_the_call() -> None:
    source = inspect.getsource(sys.modules[streamable_http_client.__module__])
    assert "sender_ctx.run(tg_local.start_soon, _handle_message, session_message)" in source


def test_the_parts_of_a_session_we_call_take_what_we_give() -> None:
    assert {"request", "result_type", "progress_callback"} <= set(
        inspect.signature(ClientSession.send_request).parameters
    )
    assert {"message_handler", "client_info"} <= set(inspect.signature(ClientSession).parameters)
    assert {"http_client", "max_sse_event_size"} <= set(inspect.signature(streamable_http_client).parameters)
    assert "tools_list_changed" in inspect.signature(listen).parameters


def test_the_private_parts_of_the_login_are_there_and_take_what_we_give() -> None:
    taken = {
        "_initialize": ["self"],
        "_perform_authorization_code_grant": ["self"],
        "_refresh_token": ["self"],
        "_handle_refresh_response": ["self", "response"],
        "_exchange_token_authorization_code": ["self", "auth_code", "code_verifier"],
        "_handle_token_response": ["self", "response"],
    }
    for name, parameters in taken.items():
        assert list(inspect.signature(getattr(OAuthClientProvider, name)).parameters) == parameters
    known = set(OAuthContext.__dataclass_fields__)
    assert {"oauth_metadata", "protected_resource_metadata", "auth_server_url", "token_expiry_time"} <= known


def test_a_flow_asks_for_the_authorization_where_we_end_it() -> None:
    source = inspect.getsource(getattr(OAuthClientProvider, "_perform_authorization"))  # noqa: B009 - private
    assert "await self._perform_authorization_code_grant()" in source


LEAN = """
import sys
import edge_agent.tool, edge_agent.tools.toolbox
heavy = {"mcp", "mcp_types", "httpx2", "jsonschema"} & set(sys.modules)
assert not heavy, f"@tool brings {heavy}"
import edge_agent.tools.mcp_source
server = {"mcp.server", "mcp.client.client", "starlette", "sse_starlette", "cryptography", "jwt", "jsonschema"}
assert not server & set(sys.modules), f"the client brings {server & set(sys.modules)}"
assert "mcp.client.session" in sys.modules
"""


def test_functions_bring_no_client_and_the_client_brings_no_server() -> None:
    """In a process of its own: the tests beside this one import a server."""
    command = [sys.executable, "-c", LEAN]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={"PYTHONPATH": "src"})
    assert done.returncode == 0, done.stderr
