"""`python3 -m scripts.local_model`: fetch or serve by hand."""

from __future__ import annotations

import argparse
import signal
import sys

from scripts.local_model.cache import LocalModelError
from scripts.local_model.model import ensure_model
from scripts.local_model.server import HOST, MODEL_NAME, start_server, tell


def main() -> None:
    options = _options()
    try:
        if options.command == "fetch":
            print(ensure_model(tell))
        else:
            _serve(options.port, options.alias)
    except (LocalModelError, OSError) as error:
        sys.exit(f"no local model: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The local language model.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="have the file, and print its path")
    serve = commands.add_parser("serve", help="fetch, then serve until Ctrl-C")
    serve.add_argument("--port", type=int, required=True)
    serve.add_argument("--alias", default=MODEL_NAME, help="the model's name in the API")
    return parser.parse_args()


def _serve(port: int, alias: str) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end it the same way
    process = start_server(ensure_model(tell), port, tell, alias=alias)
    tell(f"ready: EDGE_AGENT_MODEL=openai-compatible/{alias} EDGE_AGENT_BASE_URL=http://{HOST}:{port}/v1")
    try:
        process.wait()
    finally:
        process.terminate()
        process.wait()
    raise LocalModelError(f"the model's server ended with {process.returncode}")


if __name__ == "__main__":
    main()
