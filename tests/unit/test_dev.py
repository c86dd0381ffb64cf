"""`make dev`: what it passes on to the Worker and what it says instead of starting. The clock of the first agent."""

import socket
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from agents import clock
from edge_agent import ToolContext, ToolError
from scripts import dev, serve, stage

CONTEXT = ToolContext(run_id="r", call_id="c", step=1, idempotency_key="k")


def test_what_is_for_this_machine_does_not_reach_the_worker() -> None:
    for_it = {"EDGE_AGENT_MODEL": "openai/gpt-5-mini", "OPENAI_API_KEY": "k", "EDGE_AGENT_LIMITS": "{}"}
    others = {"EDGE_AGENT_LOCAL_MODEL": "1.5b", "EDGE_AGENT_LOCAL_MODEL_FILE": "m.gguf", "HOME": "x", "EDGE_AGENT_": ""}
    assert dev.passed_on({**for_it, **others}) == for_it


def test_a_port_that_is_taken_is_refused_with_the_way_to_another() -> None:
    with socket.create_server((serve.HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(serve.ServeError, match=rf"port {port} is taken .*PORT={port + 1} make dev"):
            serve.require_free(port, grace=0.0)
    serve.require_free(port)


@pytest.mark.parametrize("text", ["abc", "-1", "65536", ""])
def test_what_is_no_port_is_refused_with_one_that_is(text: str) -> None:
    assert serve.port_number("8788") == 8788
    with pytest.raises(ArgumentTypeError, match=r"is no port: .* PORT=8788 make dev"):
        serve.port_number(text)


def test_a_state_that_cannot_be_written_to_is_refused_with_the_way_to_another(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = r"file/state cannot be written to \(Not a directory\); take another one: STATE=folder make dev"
    with pytest.raises(serve.ServeError, match=told), serve.serve(state=tmp_path / "file" / "state"):
        pass


def test_an_edit_is_seen_whatever_its_time(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "agents.py"
    source.write_text("agents = [")
    before = dev.edits(tmp_path)
    assert dev.edits(tmp_path) == before
    source.unlink()
    assert dev.edits(tmp_path) != before
    (tmp_path / "src" / "SKILL.md").write_text("---\n")
    assert [path.name for path in dev.edits(tmp_path)] == ["SKILL.md"]


def test_a_broken_source_is_named_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "agents.py").write_text("good = 1\nbad = (1,\n")
    assert list(stage.broken_sources(tmp_path)) == ["src/agents.py:2: '(' was never closed"]


UNLOADED = """\
✘ [ERROR] service core:user:edge-agent: Uncaught Error: PythonError: Traceback (most recent call last):

    File "/session/metadata/edge_agent/core/skills.py", line 193, in _text_of
      return path.read_bytes().decode()
  FileNotFoundError: [Errno 44] No such file or directory

  The above exception was the direct cause of the following exception:

  Traceback (most recent call last):
    File "/session/metadata/durable_objects/wiring.py", line 13, in <module>
      from agents import agents
    File "/session/metadata/agents.py", line 35, in <module>
      skills=[Skill.from_dir(Path("skills"))],
    File "/session/metadata/edge_agent/core/skills.py", line 198, in _text_of
      raise ConfigError(fault) from error
  edge_agent.core.errors.ConfigError: SKILL.md cannot be read. Example: ---
  name: invoice-check
  ---

    at null.<anonymous> (pyodideRuntime-internal:pyodide.asm:1:569084) in new_error

If you think this is a bug then please create an issue
"""


def test_what_keeps_the_worker_from_being_loaded_is_told_with_the_users_own_place() -> None:
    why = "SKILL.md cannot be read. Example: ---\n  name: invoice-check\n  ---"
    told = f"==> the Worker cannot be loaded: src/agents.py:35: edge_agent.core.errors.ConfigError: {why}"
    assert serve.python_fault(UNLOADED) == told
    assert serve.python_fault("[wrangler:info] GET /healthz 200 OK (48ms)\n") == ""


@pytest.mark.parametrize(
    "offset, told", [({}, "UTC"), ({"utc_offset": 2}, "UTC+02:00"), ({"utc_offset": -3.5}, "UTC-03:30")]
)
async def test_the_clock_tells_the_time_in_utc_or_beside_it(offset: dict[str, float], told: str) -> None:
    assert (await clock.run(offset, CONTEXT)).text.endswith(f" {told}")


@pytest.mark.parametrize("offset", [14.5, -15, 1.25])
async def test_the_clock_knows_no_other_offsets(offset: float) -> None:
    with pytest.raises(ToolError, match="in halves"):
        await clock.run({"utc_offset": offset}, CONTEXT)
