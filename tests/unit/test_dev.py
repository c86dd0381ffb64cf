"""`make dev`: what it passes on to the Worker and what it says instead of starting. The clock of the first agent."""

import socket
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


def test_a_port_that_is_taken_is_refused_with_the_way_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "FREED_SECONDS", 0.0)
    with socket.create_server((serve.HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(serve.ServeError, match=rf"port {port} is taken .*PORT={port + 1} make dev"):
            serve.require_free(port)
    serve.require_free(port)


def test_an_edit_is_seen_whatever_its_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "agents.py"
    source.write_text("agents = [")
    before = dev.edits()
    assert dev.edits() == before
    source.unlink()
    assert dev.edits() != before


def test_a_broken_source_is_named_in_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("src", "durable_objects"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "agents.py").write_text("good = 1\nbad = (1,\n")
    monkeypatch.setattr(stage, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["stage.py", str(tmp_path / "staged")])
    stage.main()
    assert capsys.readouterr().err == "src/agents.py:2: '(' was never closed\n"


@pytest.mark.parametrize(
    "offset, told", [({}, "UTC"), ({"utc_offset": 2}, "UTC+02:00"), ({"utc_offset": -3.5}, "UTC-03:30")]
)
async def test_the_clock_tells_the_time_in_utc_or_beside_it(offset: dict[str, float], told: str) -> None:
    assert (await clock.run(offset, CONTEXT)).text.endswith(f" {told}")


@pytest.mark.parametrize("offset", [14.5, -15, 1.25])
async def test_the_clock_knows_no_other_offsets(offset: float) -> None:
    with pytest.raises(ToolError, match="in halves"):
        await clock.run({"utc_offset": offset}, CONTEXT)
