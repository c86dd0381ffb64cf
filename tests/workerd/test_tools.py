"""Function tools in real workerd: progress, files, checked values, and reading on in a file."""

import pytest

from tests.workerd.client import Api, find

pytestmark = pytest.mark.workerd


def test_a_function_tells_how_far_it_is_and_leaves_files_that_are_downloads(api: Api) -> None:
    run_id = api.start(model="chart", agent="painter")
    events = list(api.stream(run_id))
    assert events[-1]["type"] == "run.completed", events[-1]
    told = [
        (event["progress"], event["total"], event["message"]) for event in events if event["type"] == "tool.progress"
    ]
    assert told == [(0, 100, "0 points"), (50, 100, "50 points"), (100, 100, "100 points")]
    result = find(events, "tool.result")
    table, picture = result["files"]
    assert (table["name"], picture["name"]) == (
        f"{result['call_id']}-points.csv",
        f"{result['call_id']}-.._my_chart.png",
    )
    assert result["structured"] == {"points": 100, "file": picture["name"]}
    answer = api.http.get(f"/v1/runs/{run_id}/files/{picture['name']}")
    assert answer.content == b"\x89PNG\r\n\x1a\n" + bytes(100)
    headers = [answer.headers[name] for name in ("content-type", "content-disposition", "x-content-type-options")]
    assert headers == ["image/png", f'attachment; filename="{picture["name"]}"', "nosniff"]
    assert api.http.get(f"/v1/runs/{run_id}/files/..%2Fmy%20chart.png").status_code == 404


def test_a_model_reads_a_saved_text_and_is_told_which_argument_is_wrong(api: Api) -> None:
    run_id = api.start(model="chart", agent="painter")
    assert api.ended(run_id)["spent"]["tool_calls"] == 1
    records = api.records(run_id)
    assert "`points`" in find(records, "tool.rejected")["message"]
    read = [record for record in records if record["type"] == "tool.result"][1]
    assert read["name"] == "read_result"
    assert read["output"].partition("\n")[2] == "\n".join(f"{x},{x * x}" for x in range(1, 100))
