"""What the documents say is so: examples run, and every route, variable, event, folder and link they name exists."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from edge_agent.core.events import Event, PassingEvent
from edge_agent.core.limits import Limits
from edge_agent.core.state import RunState
from edge_agent.wire.http_answers import Problem, RunStartedAnswer
from edge_agent.wire.settings import Settings
from scripts.local_model import cache
from scripts.serve import serve
from tests.docs.documents import DOCUMENTS, README, ROOT, Block, blocks, calls, prose, section
from tests.servers.running import running
from tests.unit import http_fakes
from tests.workerd.client import Api, find

EXAMPLES = [block for document in DOCUMENTS for block in blocks(document) if block.language == "python"]
EVENTS = {event.__dataclass_fields__["type"].default: event for event in get_args(Event)}
PASSING = {event.__dataclass_fields__["type"].default for event in get_args(PassingEvent)}
COMMON = {"type", "run_id", "at", "agent", "seq", "key", "batch", "life", "money"}
FOR_THIS_MACHINE = {cache.CHOICE, cache.FILE}
PLACES = (ROOT, ROOT / "src", ROOT / "src/edge_agent")  # what a path in a document may be counted from
SECONDS = 60


def _named(text: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, text))


# -- the examples
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda block: block.place)
def test_every_python_example_runs_and_prints_what_it_says(example: Block, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(example.text, encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        env={**inherited, "PYTHONPATH": str(ROOT / "src")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (example.output or "")


def test_the_first_agent_is_no_longer_than_fifteen_lines() -> None:
    lines = [line for line in EXAMPLES[0].text.splitlines() if line.strip()]
    assert len(lines) <= 15


@pytest.mark.workerd
def test_the_readmes_agent_for_the_worker_serves_a_run_there(tmp_path: Path) -> None:
    example = next(block for block in EXAMPLES if block.text.startswith("# src/agents.py"))
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "agents.py").write_text(example.text, encoding="utf-8")
    with running("model_server.py") as model:
        variables = {"EDGE_AGENT_MODEL": "openai-compatible/rounds-1", "EDGE_AGENT_BASE_URL": f"{model.url}/v1"}
        with serve(state=tmp_path / "state", overlay=overlay, variables=variables) as server, Api(server.url) as api:
            events = list(api.stream(api.start("Two lamps, please.")))
    assert events[-1]["type"] == "run.completed"
    assert find(events, "tool.result")["output"].startswith("ordered: ")


# -- the session
async def _operations() -> set[tuple[str, str]]:
    """Every (method, path) of the API, the parameters of its paths as {}."""
    described = (await http_fakes.Api().get("/openapi.json")).json()
    return {(verb.upper(), _general(path)) for path, verbs in described["paths"].items() for verb in verbs}


def _general(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def _asked(path: str) -> str:
    return re.sub(r"^(/v1/runs)/[^/]+", r"\1/{}", path)


async def test_every_curl_of_the_readme_asks_for_a_route_there_is() -> None:
    operations = await _operations()
    asked = {(call.method, _asked(call.path)) for call in calls(README)}
    assert len(asked) >= 5
    assert asked <= operations


async def test_every_route_the_documents_name_exists() -> None:
    operations = await _operations()
    for document in DOCUMENTS:
        named = re.findall(r"`(GET|POST|PUT|DELETE) (/[^\s`?]+)(?:\?[^\s`]+)?`", prose(document))
        assert {(method, _general(path)) for method, path in named} <= operations, document.name


def test_the_answers_the_readme_shows_have_the_fields_of_today() -> None:
    shown = [(call.path, re.findall(r"^{.*}$", call.printed, re.MULTILINE)) for call in calls(README)]
    answers = [(path, json.loads(line)) for path, lines in shown for line in lines]
    assert len(answers) >= 4
    for path, answer in answers:
        kind = Problem if "code" in answer else RunStartedAnswer if path == "/v1/runs" else RunState
        adapter = TypeAdapter[Any](kind)
        adapter.validate_python(answer)
        assert set(answer) <= set(adapter.json_schema()["properties"]), path


def test_the_events_the_readme_shows_have_the_fields_of_today() -> None:
    frames = re.findall(r"^event: (\S+)\ndata: (.+)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(frames) >= 5
    for kind, data in frames:
        event = json.loads(data)
        own = {field.name for field in dataclasses.fields(EVENTS[kind])}
        needed = {field.name for field in dataclasses.fields(EVENTS[kind]) if field.default is dataclasses.MISSING}
        assert set(event) <= own | COMMON, kind
        assert needed <= set(event), kind
    counted = _named(README.read_text(encoding="utf-8"), r"(?m)^ +\d+ event: (\S+)$")
    assert counted
    assert counted <= set(EVENTS)


# -- what is named
def test_the_event_trees_name_every_event_and_those_that_pass_in_italics() -> None:
    tree = section(README, "The events of a run")
    named = _named(tree, r"`([a-z-]+\.[a-z-]+|boundary|handoff|usage|retry|log|fault|timer)`")
    assert named == set(EVENTS)
    assert _named(tree, r"\*`([a-z.-]+)`\*") == named & PASSING


def test_every_variable_the_readme_names_is_read_and_every_one_that_is_read_is_named() -> None:
    named = _named(README.read_text(encoding="utf-8"), r"EDGE_AGENT_[A-Z_]+[A-Z]")
    source = (ROOT / "src/edge_agent/wire/variables.py").read_text(encoding="utf-8")
    read = _named(source, r"EDGE_AGENT_[A-Z_]+[A-Z]") - {"EDGE_AGENT_FIXTURES"}
    assert named - FOR_THIS_MACHINE == read
    assert named >= FOR_THIS_MACHINE
    faults = Settings.from_env(dict.fromkeys(read, "x")).faults()
    assert not [fault for fault in faults if "is not a variable" in fault.fault]


def test_every_limit_of_the_readme_exists() -> None:
    named = _named(README.read_text(encoding="utf-8"), r"\bmax_[a-z_]+")
    assert named
    assert named <= {field.name for field in dataclasses.fields(Limits)}


def test_the_folder_map_names_what_is_there() -> None:
    folders = section(README, "Folders")
    rows = [row.split("|")[1] for row in folders.splitlines() if row.startswith("| `")]
    named = {path for row in rows for path in re.findall(r"`([^`]+)`", row)}
    assert len(named) > 10
    assert not [path for path in named if not (ROOT / path).exists()]
    kinds = re.search(r"by what they need: (.+) \|", folders)
    assert kinds
    assert not [kind for kind in re.findall(r"`(\w+)`", kinds[1]) if not (ROOT / "tests" / kind).is_dir()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_a_document_links_to_or_names_is_there(document: Path) -> None:
    text = prose(document)
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert not [link for link in links if not (document.parent / link).exists()]
    tops = [folder.name for place in PLACES for folder in place.iterdir() if folder.is_dir() and folder.name[0] != "."]
    named = [path for path in re.findall(r"`([\w.-]+/[\w./-]*)`", text) if path.split("/")[0] in tops]
    assert not [path for path in named if not any((place / path).exists() for place in PLACES)]


def test_every_make_target_of_the_documents_exists() -> None:
    targets = _named((ROOT / "Makefile").read_text(encoding="utf-8"), r"(?m)^([a-z-]+):")
    text = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    commands = re.findall(r"(?m)(?:`|^|=\S+ )make ((?:[a-z-]+ ?)+)", text)
    named = {target for command in commands for target in command.split()}
    assert {"dev", "test", "check", "deploy"} <= named <= targets


def test_no_document_names_a_path_of_a_machine_or_a_registrys_host() -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert not re.findall(r"/(?:home|root|work|tmp|Users)/\S+|pypi\.org|npmjs|pythonhosted", text), document.name
