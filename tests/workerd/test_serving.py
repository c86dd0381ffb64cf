"""`make dev` and the tests serve by scripts.serve: what it started ends with it, however it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import serve

pytestmark = pytest.mark.workerd

FREED_SECONDS = 30.0


def test_a_program_that_is_killed_leaves_no_server_that_holds_its_port(tmp_path: Path) -> None:
    port = serve.free_port()
    command = [sys.executable, "-m", "scripts.serve", "--port", str(port), "--state", str(tmp_path)]
    with subprocess.Popen(command, cwd=serve.ROOT, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert any(line.startswith("ready: ") for line in program.stdout)
        with pytest.raises(serve.ServeError, match="is taken"):
            serve.require_free(port, grace=0.0)
        program.kill()
    serve.require_free(port, FREED_SECONDS)
