"""The client half of the official MCP SDK, imported past the package's own `__init__` files.

Those bring the server with them: starlette, sse-starlette and cryptography, which a Worker has no use for and, for the
last, no wheel of on PyPI. So `mcp` and `mcp.client` are put into sys.modules as bare packages first; their submodules
then import as usual. In such a process `import mcp` stays bare: import what you need from its submodules.
This leans on the layout of mcp 2.3.0 and on a private name of it; tests/mcp/test_sdk.py pins both.
"""

import importlib.util
import logging
import sys
from types import ModuleType


def _bare(name: str) -> None:
    """A package that finds its submodules, its own `__init__` not run. Does nothing where it is imported already."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError(f"{name} is not installed; the MCP client needs mcp==2.3.0")
    module = ModuleType(name)
    module.__path__ = list(spec.submodule_search_locations)
    module.__spec__, module.__package__, module.__file__ = spec, name, spec.origin
    sys.modules[name] = module
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, module)


_bare("mcp")
_bare("mcp.client")

import mcp_types as types  # noqa: E402 - after the bare packages
from mcp.client._probe import negotiate_auto  # noqa: E402
from mcp.client.session import ClientSession  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from mcp.client.subscriptions import listen  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402

# It logs each failed request with a traceback; what matters of that is in our own sentences.
logging.getLogger("mcp").addHandler(logging.NullHandler())

# What the SDK says where a server's HTTP error held no JSON-RPC answer: nothing else tells the two apart.
NO_ANSWER = "Server returned an error response"

__all__ = ["NO_ANSWER", "ClientSession", "MCPError", "listen", "negotiate_auto", "streamable_http_client", "types"]
