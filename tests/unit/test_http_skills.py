"""The library of skills over HTTP: what is stored, read and refused, and where its caps are."""

from typing import Any

import httpx2
import pytest

from edge_agent.core.errors import Refusal
from edge_agent.core.skill_library import Lesson
from edge_agent.storage.skills import MOST_OF_FILES, MOST_STORED
from tests.unit.http_fakes import TOKEN, Api, problem

SKILL = "---\nname: {}\ndescription: Check a bill.\nlicense: MIT\nmetadata:\n  version: '2'\n---\n\nAdd it up.\n"


async def put(api: Api, path: str, content: Any) -> httpx2.Response:
    return await api.client.put(f"/v1/skills/{path}", json={"content": content})


async def stored(name: str = "bill") -> Api:
    api = Api()
    assert (await put(api, name, SKILL.format(name))).status_code == 201
    return api


async def learn(api: Api, name: str, key: str = "k") -> tuple[int, bool]:
    sources = ("https://a.example.com/x",)
    lesson = Lesson(name=name, description="A.", text="Mind the gap.", sources=sources, run_id="run-1", key=key)
    return await api.library.learn(lesson)


async def test_a_skill_is_stored_read_rewritten_and_deleted() -> None:
    api = await stored()
    assert (await put(api, "bill/files/references/rates.md", "10 %")).status_code == 201
    assert (await put(api, "bill/files/references/rates.md", "11 %")).status_code == 200
    assert (await put(api, "bill", SKILL.format("bill"))).status_code == 200
    assert (await api.get("/v1/skills/bill")).json() == {
        "name": "bill",
        "description": "Check a bill.",
        "origin": "stored",
        "revision": 2,
        "at": 1_000_000_000,
        "instructions": "Add it up.",
        "license": "MIT",
        "metadata": {"version": "2"},
        "files": [{"path": "references/rates.md", "bytes": 4}],
    }
    assert (await api.get("/v1/skills/bill/files/references/rates.md")).json()["content"] == "11 %"
    assert (await api.client.delete("/v1/skills/bill/files/references/rates.md")).status_code == 204
    problem(await api.get("/v1/skills/bill/files/references/rates.md"), 404, "unknown_file")
    problem(await api.client.delete("/v1/skills/bill/files/references/rates.md"), 404, "unknown_file")
    assert (await api.client.delete("/v1/skills/bill")).status_code == 204
    problem(await api.client.delete("/v1/skills/bill"), 404, "unknown_skill")


async def test_the_list_names_each_skill_once_with_its_origin() -> None:
    api = await stored()
    await learn(api, "gap")
    answer = (await api.get("/v1/skills")).json()["skills"]
    assert [(one["name"], one["origin"]) for one in answer] == [
        ("bill", "stored"),
        ("gap", "learned"),
        ("tidy", "bundled"),
    ]
    assert answer[1]["run_id"] == "run-1"
    assert answer[1]["sources"] == ["https://a.example.com/x"]


async def test_a_skill_of_the_code_is_read_and_never_changed() -> None:
    api = Api()
    assert (await api.get("/v1/skills/tidy")).json()["instructions"] == "1. Tidy."
    assert (await api.get("/v1/skills/tidy/files/a.md")).json() == {"path": "a.md", "content": "A"}
    problem(await put(api, "tidy", SKILL.format("tidy")), 409, "skill_bundled")
    problem(await put(api, "tidy/files/a.md", "B"), 409, "skill_bundled")
    problem(await api.client.delete("/v1/skills/tidy"), 409, "skill_bundled")
    problem(await api.client.delete("/v1/skills/tidy/files/a.md"), 409, "skill_bundled")


async def test_what_a_skill_of_the_code_hides_can_still_be_deleted() -> None:
    """A lesson, or a stored skill, whose name the code has taken since."""
    api = Api()
    await learn(api, "tidy")
    assert (await api.get("/v1/skills/tidy")).json()["origin"] == "bundled"
    assert (await api.client.delete("/v1/skills/tidy")).status_code == 204
    assert (await api.library.listed(("learned",))) == ()
    problem(await api.client.delete("/v1/skills/tidy"), 409, "skill_bundled")


@pytest.mark.parametrize(
    "path, content, said",
    [
        ("bill", "Add it up.", "must begin with a line of three dashes"),
        ("bill", SKILL.format("other"), "its name is 'other', and it is stored as 'bill'"),
        ("Bill", SKILL.format("Bill"), "lower case"),
        ("bill", SKILL.format("bill").replace("license", "price"), "belong under metadata"),
        ("bill/files/%2e%2e/x.md", "x", "may not leave"),
        ("bill/files/%252e%252e/x.md", "x", "without escapes"),
        ("bill/files/a//b.md", "x", "empty parts"),
        ("bill/files//etc/passwd", "x", "relative"),
        ("bill/files/SKILL.md", "x", "not SKILL.md itself"),
    ],
)
async def test_what_is_no_skill_and_no_path_says_why(path: str, content: str, said: str) -> None:
    code = "bad_path" if "/" in path else "bad_skill"
    assert said in problem(await put(Api(), path, content), 422, code)["detail"]


async def test_there_is_a_most_of_everything_and_it_is_told() -> None:
    api = await stored()
    problem(await put(api, "bill/files/big.md", "x" * 262_145), 413, "file_too_large")
    for number in range(MOST_OF_FILES // 262_144):
        assert (await put(api, f"bill/files/{number}.md", "x" * 262_144)).status_code == 201
    problem(await put(api, "bill/files/more.md", "x"), 409, "files_too_large")
    for number in range(1, MOST_STORED):
        assert (await put(api, f"bill-{number}", SKILL.format(f"bill-{number}"))).status_code == 201
    problem(await put(api, "one-more", SKILL.format("one-more")), 409, "too_many_skills")
    assert (await put(api, "bill", SKILL.format("bill"))).status_code == 200, "a rewrite is none more"


async def test_the_users_skill_takes_the_place_of_a_lesson_and_not_the_other_way_round() -> None:
    api = Api()
    assert await learn(api, "bill") == (1, False)
    assert await learn(api, "bill") == (1, False), "the same call again"
    assert await learn(api, "bill", "k2") == (2, True)
    problem(await put(api, "bill/files/a.md", "x"), 409, "skill_learned")
    assert (await put(api, "bill", SKILL.format("bill"))).status_code == 201
    with pytest.raises(Refusal, match="a skill bill of the user's"):
        await learn(api, "bill", "k3")
    with pytest.raises(Refusal, match="it stays"):
        await api.library.forget("bill", "k4")
    assert (await api.get("/v1/skills/bill")).json()["origin"] == "stored"


async def test_there_are_at_most_fifty_lessons() -> None:
    api = Api()
    for number in range(50):
        await learn(api, f"lesson-{number}", f"k{number}")
    with pytest.raises(Refusal, match="50 lessons, which is the most"):
        await learn(api, "one-more", "k50")
    assert (await api.client.delete("/v1/skills/lesson-7")).status_code == 204
    assert await learn(api, "one-more", "k51") == (1, False)


async def test_the_library_is_closed_without_a_token() -> None:
    problem(await Api(TOKEN=f"alice:{TOKEN}").get("/v1/skills"), 401, "token_required")
    problem(await Api("https://agent.example.com").get("/v1/skills"), 401, "token_required")
