"""The OAuth half of the official MCP SDK, imported past its `__init__` files like the rest (see mcp_import).

Private names of mcp 2.3.0 that are leaned on here and in mcp_grants are pinned by tests/mcp/test_sdk.py.
"""

import logging

import edge_agent.tools.mcp_import  # the bare packages come first

# isort: split
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, PKCEParameters
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import is_valid_client_metadata_url, validate_authorization_response_iss
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

assert edge_agent.tools.mcp_import  # noqa: S101 - it is imported for its effect

# It logs what an authorization server answered, word for word.
_log = logging.getLogger("mcp.client.auth")
_log.addHandler(logging.NullHandler())
_log.propagate = False

__all__ = [
    "OAuthClientInformationFull",
    "OAuthClientMetadata",
    "OAuthClientProvider",
    "OAuthContext",
    "OAuthFlowError",
    "OAuthMetadata",
    "OAuthToken",
    "PKCEParameters",
    "ProtectedResourceMetadata",
    "is_valid_client_metadata_url",
    "validate_authorization_response_iss",
]
