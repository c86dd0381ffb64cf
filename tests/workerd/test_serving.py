"""`make dev` and the tests serve by scripts.serve: what it started ends with it, however it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import serve

pytestmark = pytest.mark.workerd

FREED_SECONDS = 30.0


def test_nobody_shares_the_port_or_the_state_of_a_program_and_both_are_free_when_it_is_killed(tmp_path: Path) -> None:
    port = serve.free_port()
    command = [sys.executable, "-m", "scripts.serve", "--port", str(port), "--state", str(tmp_path)]
    with subprocess.Popen(command, cwd=serve.ROOT, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert any(line.startswith("ready: ") for line in program.stdout)
        with pytest.raises(serve.ServeError, match="is taken"):
            serve.require_free(port, grace=0.0)
        with pytest.raises(serve.ServeError, match="is in use by another server"), serve.serve(state=tmp_path):
            pass
        program.kill()
    serve.require_free(port, FREED_SECONDS)
    with serve.serve(state=tmp_path, port=port):
        pass
