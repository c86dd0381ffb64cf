"""Writes the session of README.md anew, with what a running server says today.

    STATE=$(mktemp -d) PORT=8800 make dev
    .venv/bin/python -m tests.docs.capture http://127.0.0.1:8800

Needs a state in which there is no run `counting` yet, and the local model.
"""

import json
import re
import subprocess
import sys
import tempfile

from tests.docs.documents import README

SHOWN = "http://localhost:8787"
WHOLE = ("tool.called", "tool.result", "step.text-delta", "run.completed")  # the events that are shown whole
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FRAMES = re.compile(r"^```text\nid: .*?^```$", re.MULTILINE | re.DOTALL)
_COUNTED = " | grep ^event | uniq -c"


class Session:
    """Runs the commands of the README at another address, and with the id the server chose for the first run."""

    def __init__(self, url: str, first: str) -> None:
        self._url, self._first = url, first
        self.run_id = ""
        self.streams: list[str] = []

    def said(self, command: str) -> str:
        if command.endswith(_COUNTED):
            self.streams.append(self._run(command.removesuffix(_COUNTED)))
            return self._run(_COUNTED.removeprefix(" | "), self.streams[-1])
        answer = self._run(command)
        self.run_id = self.run_id or json.loads(answer)["run_id"]
        return answer

    def block(self, found: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (.+)$", found[1], re.MULTILINE)
        lines = [line for command in commands for line in (f"$ {command}", self.said(command)) if line]
        return "```console\n{}\n```".format("\n".join(lines))

    def _run(self, command: str, given: str = "") -> str:
        command = command.replace(self._first, self.run_id).replace(SHOWN, self._url)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ["bash", "-c", command], input=given, cwd=folder, capture_output=True, text=True, check=True
            )
        return done.stdout.strip("\n")


def main() -> None:
    text = README.read_text(encoding="utf-8")
    first = re.findall(r'"run_id":"(\w{32})"', text)[0]
    session = Session(sys.argv[1].rstrip("/"), first)
    text = _CONSOLE.sub(session.block, text)
    frames = session.streams[0].split("\n\n")
    shown = "\n\n".join(next(frame for frame in frames if f"event: {kind}\n" in f"{frame}\n") for kind in WHOLE)
    text = _FRAMES.sub(lambda _: f"```text\n{shown}\n```", text)
    README.write_text(text.replace(first, session.run_id), encoding="utf-8")


if __name__ == "__main__":
    main()
