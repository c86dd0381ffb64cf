"""The server itself: llama.cpp's own, in a process of the environment that holds it.

server.py starts this file by its path; it imports nothing of the project.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import time
from typing import Any

HOST = "127.0.0.1"
CONTEXT_TOKENS = 8192
ANSWER_TOKENS = 2048  # where the request sets no cap: a small model can ramble for ever
PROMPT_CACHE_MB = 128  # llama.cpp's own default is 8 GiB
BATCH_TOKENS = 512  # of a prompt; while one is worked on, nobody else is served and no cancel is seen
# One core is left to the runtime and the tests beside it: llama.cpp's threads wait for each other at every layer, and
# one that has to share its core holds all of them up (2 threads on 2 busy cores: 1 to 5 tokens a second; 1 thread: 40).
THREADS = max(1, min(4, (os.cpu_count() or 2) - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a model file with llama.cpp on loopback.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--parent", type=int, required=True, help="the process whose end ends this one")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    llama: Any = importlib.import_module("xllamacpp")
    server = llama.Server(_settings(llama, options.model, options.port, options.alias))
    print(f"listening on {server.listening_address}", flush=True)
    while os.getppid() == options.parent:
        time.sleep(1)
    os._exit(0)  # llama.cpp's threads are not waited for: nobody is there to be answered


def _settings(llama: Any, model: str, port: int, alias: str) -> Any:
    settings = llama.CommonParams()
    settings.model.path = model
    settings.model_alias = {alias}
    settings.hostnames = [HOST]
    settings.port = port
    settings.ui = False
    settings.cors_origins = f"http://{HOST}"  # the default lets any web page in the user's browser ask it
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_predict = ANSWER_TOKENS
    settings.n_parallel = 2  # a subagent beside its parent; each may use the whole context
    settings.kv_unified = True
    settings.cache_ram_mib = PROMPT_CACHE_MB
    settings.n_batch = BATCH_TOKENS
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = THREADS
    return settings


if __name__ == "__main__":
    main()
