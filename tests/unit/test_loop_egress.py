"""Requests of tools in the log: each on record at once, whatever becomes of the call."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from edge_agent.core.egress import Fetch, Fetched, Requested
from edge_agent.core.errors import EgressRefused
from edge_agent.core.events import EgressRequest, RunCancelled, RunCompleted, ToolResult, ToolUnknown
from edge_agent.loop.fork import kept
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill
from edge_agent.tool import ToolContext, tool
from tests.unit.loop_kit import Setting, cancels, live


class Outside:
    """A `Fetcher` that counts. What is at /no is refused, what is at /slow takes a minute."""

    def __init__(self) -> None:
        self.sent = 0

    def __call__(self, tell: Callable[[Requested], None]) -> Fetch:
        async def fetch(
            url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, content: bytes = b""
        ) -> Fetched:
            if url.endswith("/no"):
                tell(Requested(method=method, url=url, allowed=False, reason="no"))
                raise EgressRefused("no")
            self.sent += 1
            try:
                await asyncio.sleep(60 if url.endswith("/slow") else 0)
            except asyncio.CancelledError:
                tell(Requested(method=method, url=url, allowed=True, reason="given up"))
                raise
            tell(Requested(method=method, url=url, allowed=True, status=200))
            return Fetched(url=url, status=200, content=b"so")

        return fetch


def reading(*paths: str, read_only: bool = True) -> tuple[Outside, Setting]:
    """A run with one call that fetches these."""

    @tool(read_only=read_only, timeout=30)
    async def read(context: ToolContext) -> str:
        """Read."""
        return " ".join([(await context.fetch(f"https://example.com{path}")).text for path in paths])

    outside = Outside()
    model = ScriptedModel(answers=[Answer(calls=(("read", {}),)), "done"])
    return outside, Setting(model=model, tools=[read], fetcher=outside)


def test_each_request_is_on_record_before_the_result_with_its_call() -> None:
    lived = live(reading("/a", "/b")[1])
    requests = lived.of(EgressRequest)
    assert [(one.url, one.status) for one in requests] == [
        ("https://example.com/a", 200),
        ("https://example.com/b", 200),
    ]
    assert {one.call_id for one in requests} == {lived.of(ToolResult)[0].call_id}
    at = lived.all_keys().index("s1/r1/c0/call")
    assert lived.all_keys()[at : at + 4] == [f"s1/r1/c0/{key}" for key in ("call", "egress/0", "egress/1", "result")]
    assert {record.by for record in lived.records if record.type == "egress.request"} == {"note"}


def test_a_refusal_is_told_to_the_model_and_on_record() -> None:
    lived = live(reading("/a", "/no", "/c")[1])
    assert [(one.allowed, one.reason) for one in lived.of(EgressRequest)] == [(True, None), (False, "no")]
    result = lived.of(ToolResult)[0]
    assert (result.ok, result.output) == (False, "read failed: no")


def test_without_an_egress_a_tool_is_told_how_to_get_one() -> None:
    setting = reading("/a")[1]
    setting.fetcher = None
    assert "Agent(egress=Egress(" in live(setting).of(ToolResult)[0].output


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("append", range(6, 10))
def test_requests_of_a_call_that_is_lost_are_on_record_and_its_repeat_adds_its_own(append: int, when: str) -> None:
    outside, setting = reading("/a", "/b")
    setting.kills = [Kill(append, "before" if when == "before" else "after")]
    lived = live(setting)
    assert isinstance(lived.end, RunCompleted)
    assert lived.of(ToolResult)[0].output == "so so"
    keys = [key for key in lived.all_keys() if "/egress/" in key]
    assert keys == [f"s1/r1/c0/egress/{number}" for number in range(len(keys))]
    assert 0 <= outside.sent - len(keys) <= 1, "at most the one that was under way at the kill is not on record"
    assert len(keys) >= 2


def test_a_request_of_an_unsafe_call_that_is_lost_is_not_repeated_and_stays_on_record() -> None:
    numbers: dict[int, tuple[int, int, int]] = {}
    for append in range(6, 10):
        outside, setting = reading("/a", read_only=False)
        setting.kills = [Kill(append, "after")]
        lived = live(setting)
        numbers[append] = (outside.sent, len(lived.of(EgressRequest)), len(lived.of(ToolUnknown)))
    assert all(sent <= 1 for sent, _, _ in numbers.values())
    assert (1, 1, 1) in numbers.values(), "killed between the request's record and the result"


def test_a_request_that_a_cancel_or_the_tools_deadline_cuts_off_is_on_record() -> None:
    late = live(reading("/slow")[1])
    assert [one.reason for one in late.of(EgressRequest)] == ["given up"]
    _, setting = reading("/slow")
    setting.acts = {"s1/r1/c0/call": cancels}
    cancelled = live(setting)
    assert isinstance(cancelled.end, RunCancelled)
    assert len(cancelled.of(EgressRequest)) <= 1
    assert cancelled.records[-1].type == "run.cancelled"


def test_a_fork_takes_the_requests_of_calls_that_have_their_result_and_no_others() -> None:
    lived = live(reading("/a", "/b")[1])
    at = lived.all_keys().index("s1/r1/c0/egress/1") + 1
    assert not [record for record in kept(lived.records[:at]) if record.type == "egress.request"]
    assert len([record for record in kept(lived.records) if record.type == "egress.request"]) == 2
