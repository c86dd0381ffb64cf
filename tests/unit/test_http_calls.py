"""GET /v1/runs/{run_id}/calls: what each model call cost."""

from dataclasses import asdict

from edge_agent.core.events import ModelAnswered, ModelFailed, ModelRequested
from edge_agent.core.messages import AssistantMessage
from edge_agent.core.model_calls import AnsweredCall, answered_calls
from edge_agent.core.ports import Record
from edge_agent.core.usage import Usage
from tests.unit.http_fakes import Api, problem

USAGE = Usage(input=12, output=5)


def call(seq: int, log_id: str | None = None) -> AnsweredCall:
    return AnsweredCall(
        seq=seq, key=f"s1/r{seq}/a0", stage="round", model="p/m", usage=USAGE, estimated=False, cost_usd=0.5,
        gateway_log_id=log_id,
    )  # fmt: skip


async def asked(calls: list[AnsweredCall]) -> Api:
    api = Api()
    await api.post("/v1/runs", {"input": "x", "run_id": "r"})
    api.runs.calls = [asdict(one) for one in calls]
    return api


async def test_calls_are_told_in_pages_in_the_order_of_the_log() -> None:
    api = await asked([call(seq) for seq in range(1, 51)])
    first = (await api.get("/v1/runs/r/calls")).json()
    assert ([one["seq"] for one in first["calls"]], first["after"]) == ([*range(1, 41)], 40)
    rest = (await api.get("/v1/runs/r/calls?after=40")).json()
    assert [one["seq"] for one in rest["calls"]] == [*range(41, 51)]
    assert "after" not in rest


async def test_a_gateways_log_is_asked_for_by_the_binding_only() -> None:
    api = await asked([call(1), call(2, "log-1")])
    assert (await api.get("/v1/runs/r/calls")).json()["calls"][1]["gateway_log_id"] == "log-1"
    told = problem(await api.get("/v1/runs/r/calls?gateway=true"), 503, "configuration")
    assert "EDGE_AGENT_GATEWAY" in told["detail"]


def test_only_calls_that_were_answered_are_told_each_with_its_model() -> None:
    requested = ModelRequested(stage="round", model="m", provider="p", attempt=0, prompt_hash="h", estimated_input=1)
    failed = ModelFailed(stage="round", attempt=0, error="stalled", message="x", retryable=True, usage=Usage())
    answered = ModelAnswered(
        stage="round", message=AssistantMessage(text="hi"), finish_reason="stop", usage=USAGE, estimated=False,
        latency_ms=1, cost_usd=0.5,
    )  # fmt: skip
    events = {"s1/r1/a0": requested, "s1/r1/a0/end": failed, "s1/r1/a1": requested, "s1/r1/a1/end": answered}
    records = [
        Record(seq=seq, key=key, batch=seq, life=0, by="loop", at=0, agent="a", event=event, money={})
        for seq, (key, event) in enumerate(events.items(), start=1)
    ]
    assert list(answered_calls(records)) == [
        AnsweredCall(seq=4, key="s1/r1/a1", stage="round", model="p/m", usage=USAGE, estimated=False, cost_usd=0.5)
    ]
