"""What holds for a run in real workerd on a model of any provider's own wire.

A file about one provider says which `Provider` it is and asserts this of its `Deployed`, and beside it what is
particular to the wire. The server behind checks every request against the rules of the API; one that breaks them would
end its run."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scripts.serve import serve
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, events_of, every, find, text_of, thoughts_of, types
from tests.workerd.conftest import HERE, variables

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
KINDS = ("input", "cached", "cache_write", "output", "reasoning")  # cached and cache_write are part of input
Counts = list[tuple[int, ...]]  # the tokens of each answer of a run by these kinds
# Scenarios of the server: a fault that passes with the failures on record, one that stays with its error and tries.
PASSING: list[tuple[str, list[str]]] = [("429-retry-after-1", ["rate-limited"]), ("json", [])]
STAYING = [
    ("error-in-stream", "overloaded", 2),
    ("cut", "truncated", 2),
    ("hang", "stalled", 2),
    ("html", "bad-answer", 1),
    ("overflow", "context-overflow", 1),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """`server` and `script` play it. `told_in`: the field of a request that holds the conversation. `price` is in
    dollars for a million tokens of a kind."""

    name: str
    model: str
    server: str
    script: str
    path: str
    settings: Mapping[str, str]
    key: str
    price: Mapping[str, float]
    told_in: str = "messages"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def full_name(self) -> str:
        return f"{self.name}/{self.model}"

    @contextmanager
    def deployed(self, state: Path, tools: Running, other: Running | None = None) -> Generator["Deployed"]:
        """`other`: a server of chat completions, for runs that are not the provider's."""
        with running(self.server, "--script", str(HERE / self.script)) as server:
            key_name = f"{self.name.upper()}_API_KEY"
            settings = {"base_url": f"{server.url}{self.path}", "key": key_name, **self.settings}
            given = {
                **variables(other or server, tools),
                "EDGE_AGENT_MODEL": self.full_name,
                "EDGE_AGENT_PROVIDERS": json.dumps({self.name: settings}),
                "EDGE_AGENT_PRICES": json.dumps({self.full_name: self.price}),
                "EDGE_AGENT_MAX_RETRIES": "1",
                key_name: self.key,
                **self.variables,
            }
            with serve(state=state, overlay=HERE / "worker", variables=given) as worker, Api(worker.url) as api:
                yield Deployed(self, api, server)


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment whose model is the provider's, and the server behind it."""

    provider: Provider
    api: Api
    server: Running

    def asked(self, run_id: str) -> list[dict[str, Any]]:
        """What the server got of one run, known by its id in the text."""
        return [seen for seen in self.server.log() if run_id in json.dumps(seen["body"][self.provider.told_in])]

    def says(self) -> Counts:
        """After a call, a text streams; its tokens are counted and paid."""
        events = self._followed("says")
        assert list(text_of(events).values()) == ["One two three four."]
        assert find(events, "run.completed")["text"] == "One two three four."
        return self._counts("says", events)

    def thinks(self) -> Counts:
        """After a call, thoughts and text stream with two calls at once, then thoughts and text; all of it is counted
        and paid."""
        events = self._followed("thinks")
        assert list(thoughts_of(events).values()) == ["First I look.", "Now I know it."]
        assert list(text_of(events).values()) == ["Looking.", "All are done."]
        assert list(thoughts_of(events)) == list(text_of(events))
        assert types(events).count("tool.result") == 3
        return self._counts("thinks", events)

    def _followed(self, scenario: str) -> list[Event]:
        """The run named so, from where it waits for an approval: so that nothing is said before someone listens."""
        self.api.start(f"run {scenario}", run_id=scenario, agent="counter", approval="ask-writes")
        (request,) = self.api.until(scenario, lambda state: state["status"] == "waiting")["approvals"]
        with self.api.socket(scenario) as socket:
            approved = self.api.post(f"/v1/runs/{scenario}/approvals/{request['call_id']}", {"approved": True})
            assert approved.status_code == 200, approved.text
            return list(events_of(socket))

    def _counts(self, run_id: str, events: list[Event]) -> Counts:
        assert self.provider.key not in str(events) + str(self.api.log(run_id))
        answers = every(self.api.records(run_id), "model.answered")
        assert [seen["status"] for seen in self.asked(run_id)] == [200] * len(answers)
        usage = [answer["usage"] for answer in answers]
        costs = [self._cost(one) for one in usage]
        assert [answer["cost_usd"] for answer in answers] == [pytest.approx(cost) for cost in costs]
        state = self.api.state(run_id)
        assert state["cost_usd"] == pytest.approx(sum(costs))
        spent = [sum(one[kind] for one in usage) for kind in ("input", "output")]
        assert [state["spent"]["input"], state["spent"]["output"]] == spent
        return [tuple(one.get(kind, 0) for kind in KINDS) for one in usage]

    def _cost(self, usage: Mapping[str, int]) -> float:
        """Dollars of one call. What a cache gave or took is part of the input."""
        cached, written = usage.get("cached", 0), usage.get("cache_write", 0)
        tokens = {**usage, "input": usage["input"] - cached - written}
        return sum(tokens.get(kind, 0) * dollars for kind, dollars in self.provider.price.items()) / 1e6

    def gives_the_form(self, run_id: str, model: str | None = None) -> dict[str, Any]:
        """An answer comes in the form asked for. Returns the body of the request that asked."""
        task = f"run {run_id} that forms"
        self.api.start(task, run_id=run_id, model=model or self.provider.full_name, output_schema=SCHEMA)
        assert find(list(self.api.stream(run_id)), "run.completed")["output"] == {"n": 7}
        return self.asked(run_id)[-1]["body"]

    def outlives(self, scenario: str, failures: list[str]) -> None:
        """A fault that passes costs a retry and no run."""
        run_id = self.api.start(f"please do {scenario}")
        state = self.api.ended(run_id)
        failed = [event["error"] for event in every(self.api.records(run_id), "model.failed")]
        assert (state["status"], failed) == ("completed", failures)
        assert state["text"] == "The answer is here, word by word."

    def ends_by(self, scenario: str, error: str, tries: int) -> None:
        """A fault that stays ends the run and says what to do."""
        run_id = self.api.start(f"please do {scenario}")
        state = self.api.ended(run_id)
        failed = every(self.api.records(run_id), "model.failed")
        assert state["status"] == "failed"
        assert [event["error"] for event in failed] == [error] * tries
        assert f"{self.provider.full_name} at 127.0.0.1" in failed[-1]["message"]
        assert self.provider.key not in str(self.api.log(run_id))

    def refuses(self) -> None:
        """A refusal is an answer that explains itself."""
        events = list(self.api.stream(self.api.start("please do refuse")))
        answer = find(events, "model.answered")
        assert (answer["finish_reason"], answer["message"]["text"]) == ("filtered", "I cannot help with that.")
        assert find(events, "run.completed")["text"] == "I cannot help with that."
