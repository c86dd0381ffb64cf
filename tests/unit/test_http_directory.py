"""What spans runs, over HTTP: the list, what runs used, deletion, runs that continue others, the cap."""

from dataclasses import asdict
from typing import Any

import pytest

from edge_agent.core.listing import DIRECTORY, Listing, ModelUse
from edge_agent.core.ports import Send
from edge_agent.core.usage import Usage
from tests.unit.http_fakes import TOKEN, Api, problem

NOON = 1_764_504_000_000  # 2025-11-30T12:00Z
SAID = [{"role": "user", "text": "hello"}, {"role": "assistant", "text": "Hello!"}]


async def tell(api: Api, run_id: str, **other: Any) -> None:
    fields: dict[str, Any] = {"agent": "a", "status": "completed", "created": NOON, "updated": NOON, "seq": 5, **other}
    listing = Listing(run_id=run_id, title="t", **fields)
    await api.directory.receive(Send(key="k", destination=DIRECTORY, method="report", arguments=asdict(listing)))


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [run["run_id"] for run in answer.json()["runs"]]


# -- the list
async def test_the_runs_of_all_shards_are_merged_newest_first_and_paged_by_a_cursor() -> None:
    api = Api()
    expected = [f"run-{number:02}" for number in range(50)][::-1]
    for number in range(50):
        await tell(api, f"run-{number:02}", created=NOON + number // 3)
    seen: list[str] = []
    cursor = ""
    for page in range(8):
        answer = await api.get(f"/v1/runs?limit=7{cursor}")
        seen += ids(answer)
        if page == 0:
            await tell(api, "newer", created=NOON + 99)
        cursor = f"&cursor={answer.json().get('cursor')}"
    assert seen == expected
    assert cursor == "&cursor=None"
    assert ids(await api.get("/v1/runs"))[0] == "newer"


async def test_a_run_is_shown_with_what_it_told() -> None:
    api = Api()
    uses = tuple(ModelUse(model=model, usage=Usage(input=3, output=4), cost_usd=0.5) for model in "mn")
    told: dict[str, Any] = {"uses": uses, "stop_reason": "stop", "metadata": {"k": 1}, "updated": NOON + 5}
    await tell(api, "r1", **told)
    (run,) = (await api.get("/v1/runs?status=completed&agent=a")).json()["runs"]
    assert run == {
        "run_id": "r1",
        "agent": "a",
        "status": "completed",
        "created_at": "2025-11-30T12:00:00.000Z",
        "updated_at": "2025-11-30T12:00:00.005Z",
        "title": "t",
        "stop_reason": "stop",
        "usage": {"input": 6, "cached": 0, "cache_write": 0, "output": 8, "reasoning": 0},
        "cost_usd": 1.0,
        "metadata": {"k": 1},
    }
    assert ids(await api.get("/v1/runs?status=failed")) == ids(await api.get("/v1/runs?agent=b")) == []


@pytest.mark.parametrize(
    "query,field",
    [
        ("status=odd", "status"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=%C3%BC", "cursor"),
        ("cursor=MTIz", "cursor"),
        ("cursor=" + "A" * 301, "cursor"),
    ],
)
async def test_a_wrong_question_names_its_field(query: str, field: str) -> None:
    answer = await Api().get(f"/v1/runs?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)


# -- what runs used
async def test_what_runs_used_is_added_up_over_the_shards() -> None:
    api = Api()
    for number in range(20):
        use = ModelUse(model=f"m{number % 2}", usage=Usage(input=number, output=1), cost_usd=0.25)
        await tell(api, f"r{number}", agent="even" if number % 2 == 0 else "odd", uses=(use,))
    told = (await api.get("/v1/usage?by=agent")).json()
    assert (told["total"]["runs"], told["total"]["input"], told["total"]["cost_usd"]) == (20, 190, 5.0)
    assert [(group["name"], group["runs"], group["input"]) for group in told["groups"]] == [
        ("even", 10, 90),
        ("odd", 10, 100),
    ]
    assert [group["name"] for group in (await api.get("/v1/usage?by=day")).json()["groups"]] == ["2025-11-30"]
    assert [group["name"] for group in (await api.get("/v1/usage?by=model")).json()["groups"]] == ["m0", "m1"]


@pytest.mark.parametrize(
    "since,runs",
    [
        ("2025-11-30", 1),
        ("2025-11-30T12:00Z", 1),
        ("2025-11-30T12:00:00.001Z", 0),
        ("2025-11-30T14:00:00%2B02:00", 1),
        ("2025-12-01", 0),
    ],
)
async def test_a_run_counts_from_the_moment_of_its_creation(since: str, runs: int) -> None:
    api = Api()
    await tell(api, "r1")
    told = (await api.get(f"/v1/usage?since={since}")).json()
    assert (told["total"]["runs"], told["groups"]) == (runs, [])


async def test_a_wrong_question_about_usage_names_its_field() -> None:
    assert problem(await Api().get("/v1/usage?since=yesterday"), 422, "invalid_request")["field"] == "since"
    assert problem(await Api().get("/v1/usage?by=moon"), 422, "invalid_request")["field"] == "by"


async def test_a_run_token_opens_neither_the_list_nor_a_deletion() -> None:
    api = Api("https://agent.example", TOKEN=TOKEN)
    started = (await api.post("/v1/runs", {"input": "x", "run_id": "r1"}, authorization=f"Bearer {TOKEN}")).json()
    shown = f"Bearer {started['stream_token']}"
    problem(await api.get("/v1/runs", authorization=shown), 403, "token_scope")
    problem(await api.get("/v1/usage", authorization=shown), 403, "token_scope")
    deleted = await api.client.delete("/v1/runs/r1", headers={"authorization": shown})
    problem(deleted, 403, "token_scope")
    assert (await api.client.delete("/v1/runs/r1", headers={"authorization": f"Bearer {TOKEN}"})).status_code == 204


# -- deletion
async def test_a_deletion_is_asked_of_the_runs_own_object_and_answered_with_nothing() -> None:
    api = Api()
    await api.post("/v1/runs", {"input": "x", "run_id": "r1"})
    answer = await api.client.delete("/v1/runs/r1")
    assert (answer.status_code, answer.content) == (204, b"")
    assert api.runs.asked[-1] == ("r1", "delete", {})
    problem(await api.client.delete("/v1/runs/nobody"), 404, "unknown_run")


# -- runs that continue others
async def test_what_was_said_in_the_run_that_is_continued_becomes_the_history() -> None:
    api = Api()
    api.runs.turns = SAID
    await api.post("/v1/runs", {"input": "x", "run_id": "r1"})
    assert (await api.post("/v1/runs", {"input": "y", "continues": "r1"})).status_code == 202
    (_, _, asked), (_, _, payload) = api.runs.asked[-2:]
    assert asked == {}
    assert payload["created"]["history"] == [{**turn, "attachments": None} for turn in SAID]


async def test_what_cannot_be_continued_is_refused_and_starts_nothing() -> None:
    api = Api()
    told = problem(await api.post("/v1/runs", {"input": "y", "continues": "nobody"}), 404, "unknown_run")
    assert told["field"] == "continues"
    both = {"input": "y", "continues": "r1", "history": SAID}
    assert problem(await api.post("/v1/runs", both), 422, "invalid_request")["field"] == "continues"
    await api.post("/v1/runs", {"input": "x", "run_id": "r1"})
    for long in ([{"role": "user", "text": "x"}] * 1_001, [{"role": "user", "text": "x" * 1_000_001}]):
        api.runs.turns = long
        problem(await api.post("/v1/runs", {"input": "y", "continues": "r1"}), 409, "history_too_long")
    assert list(api.runs.known) == ["r1"]


async def test_a_repeat_finds_its_run_though_what_it_continues_is_gone() -> None:
    api = Api()
    api.runs.turns = SAID
    await api.post("/v1/runs", {"input": "x", "run_id": "r1"})
    body = {"input": "y", "continues": "r1"}
    first = await api.post("/v1/runs", body, idempotency_key="k")
    del api.runs.known["r1"]
    assert (await api.post("/v1/runs", body, idempotency_key="k")).json()["run_id"] == first.json()["run_id"]
    problem(await api.post("/v1/runs", body, idempotency_key="other"), 404, "unknown_run")


# -- the cap
async def test_a_full_deployment_starts_and_resumes_nothing_but_answers_a_repeat() -> None:
    api = Api(MAX_RUNS="2")
    first = await api.post("/v1/runs", {"input": "x"}, idempotency_key="k")
    await tell(api, "r1", status="waiting")
    await tell(api, "r2", status="running")
    refused = await api.post("/v1/runs", {"input": "x"})
    told = problem(refused, 429, "too_many_runs")
    assert (told["limit"], told["active"], refused.headers["retry-after"]) == (2, 2, "5")
    problem(await api.post("/v1/runs/r1/resume"), 429, "too_many_runs")
    again = await api.post("/v1/runs", {"input": "x"}, idempotency_key="k")
    assert (again.status_code, again.json()["run_id"]) == (202, first.json()["run_id"])
    await tell(api, "r2", seq=9)
    assert (await api.post("/v1/runs", {"input": "x"})).status_code == 202


async def test_without_a_cap_nobody_is_asked_how_many_runs_there_are() -> None:
    api = Api()
    api.directory.shards.clear()
    assert (await api.post("/v1/runs", {"input": "x"})).status_code == 202
    assert ids(await api.get("/v1/runs")) == []
