"""`make dev`: serve the agent in the real runtime, reload on every edit, with a local model if none is configured.

    make dev [PORT=8787] [STATE=.edge-agent/state]

The environment's EDGE_AGENT_* variables and the providers' keys reach the Worker as secrets, and so does what
.dev.vars holds (the environment wins). STATE keeps the runs between starts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from scripts import local_model
from scripts.console import say
from scripts.local_model import cache
from scripts.serve import (
    HOST,
    READY_SECONDS,
    ServeError,
    Server,
    end_on_signals,
    free_port,
    port_number,
    require_free,
    serve,
)
from scripts.stage import KEPT_SUFFIXES, ROOT

MODEL = "EDGE_AGENT_MODEL"
TABLE = ("┌", "│", "├", "└")  # wrangler's list of every module, at each reload
PASSED_ON = re.compile(r"EDGE_AGENT_\w+|\w+_API_KEY|CF_AIG_TOKEN")
FOR_THIS_MACHINE = frozenset({cache.CHOICE, cache.FILE})  # the Worker knows no such variables
# A busy machine may take minutes to the local model's first token, and its server has room for so many tokens.
WITH_LOCAL_MODEL = {"EDGE_AGENT_STALL_TIMEOUT": "600", "EDGE_AGENT_CONTEXT_WINDOW": "8192"}


def main() -> None:
    """Serve until Ctrl-C or SIGTERM; end with a message and 1 when something cannot be had."""
    parser = argparse.ArgumentParser(description="Serve the agent in the real Workers runtime.")
    parser.add_argument("--port", type=port_number, default=8787)
    parser.add_argument("--state", type=Path, default=ROOT / ".edge-agent" / "state")
    options = parser.parse_args()
    end_on_signals()
    try:
        _serve(options.port, options.state)
    except KeyboardInterrupt:
        say("\nstopped")
    except ServeError as error:
        sys.exit(f"\nthe server is not up: {error}")


def _serve(port: int, state: Path) -> None:
    require_free(port)  # before a model is loaded
    variables = passed_on(os.environ)
    model = variables.get(MODEL) or _in_dev_vars(MODEL)
    with _model_variables(model) as more:
        variables |= more
        served = False
        while True:
            before = edits()  # before anything is staged: a mend while it starts is not overlooked
            try:
                with serve(state=state, port=port, variables=variables, live=True, progress=say) as server:
                    served = True
                    _announce(server.url, model or variables[MODEL], variables)
                    _tell_faults(server.url)
                    _follow(server)
            except ServeError as error:
                if not served:
                    raise
                say(str(error))
            # wrangler ends over a reload it cannot load (a syntax error, a missing import): an edit may mend it, also
            # one that was made before wrangler gave up.
            if before == edits():
                say("==> wrangler ended; it starts again at the next edit (Ctrl-C to stop)")
            else:
                say("==> wrangler ended; it starts again with the edits there have been (Ctrl-C to stop)")
            while before == edits():
                time.sleep(0.5)


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment is meant for the Worker."""
    return {
        name: value
        for name, value in environ.items()
        if PASSED_ON.fullmatch(name) and value and name not in FOR_THIS_MACHINE
    }


def _follow(server: Server) -> None:
    """Print what wrangler says from now on (requests, the Worker's own log, faults on a reload) until it ends."""
    with server.log.open(encoding="utf-8", errors="replace") as log:
        log.seek(0, os.SEEK_END)
        running = True
        while running:
            running = server.process.poll() is None
            sys.stdout.writelines(line for line in log if not line.startswith(TABLE))
            sys.stdout.flush()
            time.sleep(0.2)
    if fault := server.fault():
        say(fault)


def edits(root: Path = ROOT) -> dict[Path, int]:
    """Return the time of the last edit of each file that the Worker is made of, also of skills."""
    times: dict[Path, int] = {}
    for folder in ("src", "durable_objects"):
        for path in (root / folder).rglob("*"):
            with suppress(FileNotFoundError):  # an editor replaces it just now
                if path.suffix in KEPT_SUFFIXES:
                    times[path] = path.stat().st_mtime_ns
    return times


def _in_dev_vars(name: str) -> str | None:
    """Return the value that wrangler's own file of local secrets gives a variable, if it does."""
    file = ROOT / ".dev.vars"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    found = re.search(rf"^\s*(?:export\s+)?{name}\s*=\s*['\"`]?([^'\"`\n]+)", text, re.MULTILINE)
    return found[1].strip() if found else None


@contextmanager
def _model_variables(model: str | None) -> Generator[dict[str, str]]:
    """Yield the variables a local model needs, with the model running; none where one is configured."""
    if model:
        yield {}
        return
    say(f"==> {MODEL} is not set: a small local model answers (set it, and a provider's key, to use another)")
    port = free_port()
    try:
        path = local_model.ensure_model(say)
        server = local_model.start_server(path, port)
    except Exception as error:  # noqa: BLE001 - whatever it is, the way out is the same
        sys.exit(
            f"\nno local model: {error}\n"
            f"Way out: name one of a provider's, e.g. OPENAI_API_KEY=... {MODEL}=openai/gpt-5-mini make dev"
        )
    try:
        provider = {"local": {"base_url": f"http://{HOST}:{port}/v1", "profile": "small"}}
        wanted = {name: value for name, value in WITH_LOCAL_MODEL.items() if not _is_set(name)}
        yield {"EDGE_AGENT_PROVIDERS": json.dumps(provider), MODEL: f"local/{path.stem}", **wanted}
    finally:
        server.terminate()
        server.wait()


def _is_set(name: str) -> bool:
    return bool(os.environ.get(name) or _in_dev_vars(name))


def _announce(url: str, model: str, variables: Mapping[str, str]) -> None:
    token = " -H 'authorization: Bearer '$EDGE_AGENT_TOKEN" if "EDGE_AGENT_TOKEN" in variables else ""
    say(
        f"\nready   {url}  (the page; edits to src/ and durable_objects/ reload it)\n"
        f"model   {model}\n"
        f'try     curl{token} --json \'{{"input": "What is 17 * 23?"}}\' {url}/v1/runs\n'
    )


def _tell_faults(url: str) -> None:
    """What is wrong with the configuration, which the first run would be refused for."""
    with urllib.request.urlopen(f"{url}/healthz", timeout=READY_SECONDS) as answer:  # noqa: S310 - our own http address
        for fault in json.load(answer)["faults"]:
            say(f"fault   {fault['setting']}: {fault['fault']}. Example: {fault['example']}")


if __name__ == "__main__":
    main()
