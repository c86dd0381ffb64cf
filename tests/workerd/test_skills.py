"""Skills in real workerd, by way of the API: stored, planned, loaded, read, restricting; and lessons that stay."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.serve import Server, serve
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, find, types, whole

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(600)]
HERE = Path(__file__).parent / "skills_worker"
SKILL = """---
name: measure-twice
description: Measure with care. Use it before anything is cut.
allowed-tools: measure
---

Measure twice, cut once; rates.md says how.
"""
LESSON = {"name": "cm-not-mm", "description": "Lengths are in centimetres.", "text": "The tool answers in cm."}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": tool, "arguments": arguments}]}


SCRIPT: dict[str, list[dict[str, Any]]] = {
    "folds": [
        {"when": ["You sum up work"], "answers": [{"text": "Plots were surveyed."}]},
        {"when": ["What you have done so far, summed up"], "answers": [{"text": "all tidy"}]},
        {
            "when": [],
            "answers": [call("load_skill", name="tidy-desk"), *(call("survey", plot=plot) for plot in range(9))],
        },
    ],
    "loads": [
        call("load_skill", name="measure-twice"),
        call("read_skill_file", name="measure-twice", path="rates.md"),
        call("weigh", n=1),
        call("measure", n=2),
        {"text": "done"},
    ],
    "tidies": [
        call("load_skill", name="tidy-desk"),
        call("read_skill_file", name="tidy-desk", path="references/places.md"),
        call("read_skill_file", name="tidy-desk", path="%2e%2e/agents.py"),
        {"text": "tidy"},
    ],
    "plans": [
        {
            "text": json.dumps(
                {
                    "thought": "With care.",
                    "steps": [{"id": "one", "description": "measure it", "expected_outcome": "a length"}],
                    "skills": ["measure-twice", "no-such-skill"],
                }
            )
        },
    ],
    "saves": [call("save_skill", **LESSON), {"text": "noted"}],
    "leaks": [call("save_skill", **{**LESSON, "text": "Use AKIAIOSFODNN7EXAMPLE."}), {"text": "not noted"}],
    "recalls": [call("load_skill", name="cm-not-mm"), {"text": "known"}],
    "forgets": [call("forget_skill", name="cm-not-mm"), {"text": "gone"}],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    script = tmp_path_factory.mktemp("model") / "script.json"
    script.write_text(json.dumps(SCRIPT))
    with running("model_server.py", "--script", str(script)) as server:
        yield server


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, model: Running) -> Iterator[Server]:
    variables = {"EDGE_AGENT_MODEL": "openai-compatible/text", "EDGE_AGENT_BASE_URL": f"{model.url}/v1"}
    with serve(state=tmp_path_factory.mktemp("skills"), overlay=HERE, variables=variables) as server:
        yield server


@pytest.fixture
def api(worker: Server) -> Iterator[Api]:
    with Api(worker.url) as client:
        yield client


def store(api: Api) -> None:
    assert api.http.put("/v1/skills/measure-twice", json={"content": SKILL}).status_code in (200, 201)
    answer = api.http.put("/v1/skills/measure-twice/files/rates.md", json={"content": "Twice is twice."})
    assert answer.status_code in (200, 201), answer.text


def ended(api: Api, model: str, **fields: Any) -> list[Event]:
    run_id = api.start(model=model, **fields)
    assert api.ended(run_id)["status"] == "completed", api.records(run_id)[-1]
    records = api.records(run_id)
    whole(records)
    return records


def outputs(records: list[Event]) -> list[str]:
    return [event["output"] for event in records if event["type"] == "tool.result"]


def test_skills_are_stored_listed_read_and_deleted(api: Api) -> None:
    store(api)
    listed = {one["name"]: one["origin"] for one in api.http.get("/v1/skills").json()["skills"]}
    assert {"measure-twice": "stored", "tidy-desk": "bundled"}.items() <= listed.items()
    shown = api.http.get("/v1/skills/measure-twice").json()
    assert shown["allowed_tools"] == ["measure"]
    assert shown["files"] == [{"path": "rates.md", "bytes": 15}]
    bundled = api.http.get("/v1/skills/tidy-desk/files/references/places.md").json()
    assert bundled["content"] == "Pens belong into the cup.\n"
    refused = api.http.put("/v1/skills/tidy-desk", json={"content": SKILL})
    assert (refused.status_code, refused.json()["code"]) == (409, "skill_bundled")
    assert api.http.delete("/v1/skills/measure-twice").status_code == 204
    assert api.http.get("/v1/skills/measure-twice").json()["code"] == "unknown_skill"


def test_a_stored_skill_is_loaded_its_file_read_and_its_list_restricts_the_tools(api: Api) -> None:
    store(api)
    records = ended(api, "loads", agent="skilled")
    assert [one["name"] for one in find(records, "skills.listed")["skills"]] == ["measure-twice"]
    active = find(records, "skill.activated")
    assert (active["key"], active["by"], active["origin"]) == ("s1/r1/c0/skill", "tool", "stored")
    state = api.state(active["run_id"])
    assert state["skills"] == [
        {"name": "measure-twice", "origin": "stored", "by": "tool", "revision": active["revision"]}
    ]
    said = outputs(records)
    assert said[0].startswith("# Skill: measure-twice\nMeasure twice, cut once")
    assert said[1:] == ["Twice is twice.", "2 cm"]
    assert find(records, "tool.rejected")["name"] == "weigh"
    offered = [event["tools"]["names"] for event in records if event["type"] == "boundary"]
    assert "weigh" in offered[0]
    assert offered[1] == ["measure", "load_skill", "read_skill_file"]


def test_a_skill_of_the_code_is_read_from_its_folder_and_nothing_beside_it(api: Api) -> None:
    records = ended(api, "tidies", agent="skilled")
    said = outputs(records)
    assert said[0].endswith("Files, for read_skill_file: references/places.md")
    assert said[1] == "Pens belong into the cup.\n"
    assert "without escapes" in said[2]
    assert find(records, "skill.activated")["origin"] == "bundled"


def test_a_loaded_skill_is_in_the_prompt_when_its_round_was_folded(api: Api, model: Running) -> None:
    before = len(model.log())
    records = ended(api, "folds", agent="folding")
    folded = find(records, "context.compacted")
    assert folded["replaces"][0] == "s1/r1"
    *_, summed_up, last = [one["body"]["messages"] for one in model.log()[before:]]
    text = find(records, "skill.activated")["text"]
    assert text not in summed_up[-1]["content"]
    assert [message["role"] for message in last[:2]] == ["system", "user"]
    assert last[1]["content"].endswith(f"Plots were surveyed.\n\n# Skill: tidy-desk\n{text}")
    assert "load_skill" not in json.dumps(last[2:])


def test_a_plan_names_a_skill_which_is_in_the_prompts_of_its_steps(api: Api, model: Running) -> None:
    store(api)
    before = len(model.log())
    records = ended(api, "plans", agent="skilled", mode="planned")
    created = find(records, "plan.created")
    assert created["plan"]["skills"] == ["measure-twice"]
    assert created["warnings"] == ["unknown skills were dropped: no-such-skill"]
    active = find(records, "skill.activated")
    assert (active["key"], active["by"], active["batch"]) == ("plan/skill/0", "plan", created["batch"])
    systems = [one["body"]["messages"][0]["content"] for one in model.log()[before:]]
    assert "- measure-twice: Measure with care." in systems[0]
    assert "# Skill: measure-twice" not in systems[0]
    assert all(one.endswith("Measure twice, cut once; rates.md says how.") for one in systems[1:])
    log = api.http.get(f"/v1/runs/{created['run_id']}/log").text
    store_other = SKILL.replace("cut once", "cut never")
    assert api.http.put("/v1/skills/measure-twice", json={"content": store_other}).status_code == 200
    replayed = api.http.post("/v1/replay", content=log, headers={"content-type": "application/x-ndjson"}).json()
    assert replayed["differences"] == [], replayed
    fork = api.post(f"/v1/runs/{created['run_id']}/fork", {"at": created["seq"]}).json()["run_id"]
    api.ended(fork)
    assert find(api.records(fork), "skill.activated")["text"] == active["text"]


def test_a_run_of_an_agent_without_skills_says_nothing_of_them(api: Api, model: Running) -> None:
    store(api)
    before = len(model.log())
    records = ended(api, "text", agent="plain")
    assert not {"skills.listed", "skill.activated"} & {*types(records)}
    assert "kill" not in json.dumps(model.log()[before]["body"])


def test_a_lesson_is_saved_when_a_person_agrees_and_the_next_run_knows_it(api: Api, model: Running) -> None:
    run_id = api.start(model="saves", agent="learner")
    asked = api.until(run_id, lambda state: bool(state["approvals"]))["approvals"][0]
    assert (asked["name"], asked["arguments"]) == ("save_skill", LESSON)
    assert api.post(f"/v1/runs/{run_id}/approvals/{asked['call_id']}", {"approved": True}).status_code == 200
    api.ended(run_id)
    learned = find(api.records(run_id), "skill.learned")
    assert (learned["name"], learned["update"], learned["revision"], learned["chars"]) == ("cm-not-mm", False, 1, 23)
    shown = api.http.get("/v1/skills/cm-not-mm").json()
    assert (shown["origin"], shown["run_id"], shown["sources"]) == ("learned", run_id, [])
    before = len(model.log())
    records = ended(api, "recalls", agent="learner")
    system = model.log()[before]["body"]["messages"][0]["content"]
    assert "- cm-not-mm: Lengths are in centimetres. (a note of an earlier run)" in system
    assert "It is no instruction" in outputs(records)[0]
    again = find(ended(api, "saves", agent="free"), "skill.learned")
    assert (again["update"], again["revision"]) == (True, 2)
    assert find(ended(api, "forgets", agent="free"), "skill.forgotten")["name"] == "cm-not-mm"
    assert api.http.get("/v1/skills/cm-not-mm").status_code == 404


def test_a_secret_is_never_saved(api: Api) -> None:
    records = ended(api, "leaks", agent="free")
    assert outputs(records) == [
        "save_skill failed: Not saved: it holds a secret (AWS access key). Leave it out and save it again."
    ]
    assert api.http.get("/v1/skills/cm-not-mm").status_code == 404


def test_a_kill_between_the_save_and_its_record_saves_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, model: Running
) -> None:
    """Killed at moments around the call; the revision is 1 whatever was lost."""
    variables = {"EDGE_AGENT_MODEL": "openai-compatible/text", "EDGE_AGENT_BASE_URL": f"{model.url}/v1"}
    with serve(state=tmp_path_factory.mktemp("kill"), overlay=HERE, variables=variables) as server:
        with Api(server.url) as api:
            run_id = api.start(model="saves", agent="free")
            for event in api.stream(run_id):
                if event["type"] == "tool.called":
                    server.kill_runtime()
                    break
        server.wait_until_ready()
        with Api(server.url) as api:
            state = api.ended(run_id)
            assert state["status"] == "completed"
            records = api.records(run_id)
            assert types(records).count("skill.learned") == 1
            assert find(records, "skill.learned")["revision"] == 1
            assert api.http.get("/v1/skills/cm-not-mm").json()["revision"] == 1
