"""How an agent asks: what code, variables and a request may say of it, and the person in this process."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from edge_agent import Agent, ConfigError, Decision, Hooks, ToolError, cpython, handoff, tool
from edge_agent.asking import Asker, OnApproval
from edge_agent.core.errors import Refusal
from edge_agent.core.events import ApprovalRequested, ApprovalResolved, Event, RunCreated, ToolCalled, ToolRejected
from edge_agent.core.messages import JsonObject
from edge_agent.deployment import Deployment
from edge_agent.in_process import InProcessRun
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.toolbox import ToolSource
from edge_agent.wire.http import StartRun
from edge_agent.wire.settings import Settings


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(requires_approval=True, read_only=True)
async def peek() -> str:
    """Look at what is private."""
    return "seen"


def paying(*names: str) -> ScriptedModel:
    calls = tuple((name, {"amount": 5} if name == "pay" else {}) for name in names or ("pay",))
    return ScriptedModel(answers=[Answer(calls=calls), "Done."])


def clerk(**more: Any) -> Agent:
    more.setdefault("model", paying())
    return Agent(name="clerk", tools=[pay, peek], **more)


def deployment(agent: Agent, source: Any = cpython.source, **env: str) -> Deployment:
    settings = Settings.from_env({f"EDGE_AGENT_{name}": value for name, value in env.items()})
    return Deployment([agent], settings, cpython.model, source, cpython.fetcher)


def configured(agent: Agent, request: Mapping[str, Any] = {}, **env: str) -> RunCreated:
    return deployment(agent, **env).configure(StartRun.model_validate({"input": "x", **request}))


# -- code and variables
def test_the_variable_is_laid_over_the_code_and_the_request_over_both() -> None:
    agent = clerk(approval="ask-writes", tool_rules={"pay": "ask", "bank__*": "deny"})
    assert configured(agent).approval == "ask-writes"
    over = configured(agent, APPROVAL="autopilot", TOOL_RULES='{"pay": "allow", "x": "deny"}')
    assert (over.approval, over.tool_rules) == ("autopilot", {"pay": "allow", "bank__*": "deny", "x": "deny"})
    request = {"approval": "read-only", "tool_rules": {"bank__*": "ask", "pay": "deny", "y": "ask"}}
    asked = configured(agent, request)
    assert asked.approval == "read-only"
    assert asked.tool_rules == {"pay": "deny", "bank__*": "deny", "y": "ask"}, "of two for one glob the stricter"


@pytest.mark.parametrize(
    "agent, request_",
    [
        ({"approval": "ask-writes"}, {"approval": "autopilot"}),
        ({"approval": "ask-all"}, {"approval": "read-only"}),
        ({"approval": "read-only"}, {"approval": "ask-all"}),
        ({"approval": "autopilot", "approval_modes": ("autopilot", "ask-all")}, {"approval": "ask-writes"}),
        ({"approval": "read-only"}, {"tool_rules": {"pay": "ask"}}),
    ],
)
def test_a_request_that_would_let_more_pass_is_refused_with_its_field(agent: JsonObject, request_: JsonObject) -> None:
    with pytest.raises(Refusal) as no:
        configured(clerk(**agent), request_)
    assert (no.value.status, no.value.code, no.value.more["field"]) == (422, "approval_too_loose", next(iter(request_)))


def test_the_modes_a_run_may_be_put_into_are_the_codes_or_the_stricter_ones() -> None:
    assert deployment(clerk(approval="ask-writes")).approval_modes("clerk") == ("ask-writes", "ask-all", "read-only")
    named = clerk(approval="ask-writes", approval_modes=["autopilot", "ask-writes"])
    assert deployment(named).approval_modes("clerk") == ("autopilot", "ask-writes")
    (shown,) = deployment(named, TOOL_RULES='{"pay": "ask"}').offer.agents()
    assert (shown.approval, shown.approval_modes, shown.tool_rules) == (
        "ask-writes", ("autopilot", "ask-writes"), {"pay": "ask"},
    )  # fmt: skip


def test_a_definition_that_cannot_work_is_refused_where_it_is_made() -> None:
    for wrong in (
        {"approval": "never"},
        {"approval_modes": ("sometimes",)},
        {"approval": "ask-all", "approval_modes": ("autopilot",)},
        {"tool_rules": {"pay": "perhaps"}},
        {"tool_rules": {"pay now": "deny"}},
    ):
        with pytest.raises(ConfigError, match="Agent"):
            clerk(**wrong)


def test_a_variable_that_names_a_mode_the_agent_does_not_allow_is_a_fault() -> None:
    agent = clerk(approval="ask-all", approval_modes=("ask-all",))
    with pytest.raises(ConfigError, match="EDGE_AGENT_APPROVAL"):
        configured(agent, APPROVAL="autopilot")
    assert "EDGE_AGENT_APPROVAL" in [fault.setting for fault in deployment(agent, APPROVAL="autopilot").offer.faults()]


@pytest.mark.parametrize(
    "name, value",
    [
        ("APPROVAL", "never"),
        ("TOOL_RULES", '{"pay": "perhaps"}'),
        ("TOOL_RULES", '{"pay now": "deny"}'),
        ("TOOL_RULES", "pay"),
        ("APPROVAL_TIMEOUT", "a day"),
    ],
)
def test_a_variable_that_is_wrong_is_named(name: str, value: str) -> None:
    (fault,) = Settings.from_env({f"EDGE_AGENT_{name}": value}).faults()
    assert fault.setting == f"EDGE_AGENT_{name}"
    assert repr(value) not in str(fault)


def test_the_variables_have_defaults() -> None:
    empty, never = Settings.from_env({}), Settings.from_env({"EDGE_AGENT_APPROVAL_TIMEOUT": "0"})
    assert (empty.approval, empty.tool_rules, empty.approval_timeout, never.approval_timeout) == (
        None,
        {},
        86_400,
        None,
    )


# -- other arguments for a call
async def edited(agent: Agent, name: str, arguments: JsonObject, **more: Any) -> JsonObject:
    return await deployment(agent, **more).edited("clerk", None, name, arguments)


async def test_other_arguments_are_sanitized_and_checked_and_the_field_is_named() -> None:
    def clean(name: str, arguments: JsonObject) -> JsonObject:
        return {key: value for key, value in arguments.items() if key != "pin"}

    agent = clerk(hooks=Hooks(sanitize_input=clean))
    assert await edited(agent, "pay", {"amount": 7, "pin": "4711"}) == {"amount": 7}
    with pytest.raises(Refusal) as no:
        await edited(clerk(), "pay", {"amount": "much"})
    assert (no.value.status, no.value.more["field"]) == (422, "arguments.amount")

    def fail(name: str, arguments: JsonObject) -> JsonObject:
        raise ToolError(f"pin {arguments}")

    with pytest.raises(Refusal) as failed:
        await edited(clerk(hooks=Hooks(sanitize_input=fail)), "pay", {"amount": 7})
    assert (failed.value.status, "7" in failed.value.message) == (422, False)


class DownSource:
    """A server that is not reached."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def refresh(self) -> tuple[str, ...]:
        return (f"{self.name} could not be reached.",)

    def sign_in(self) -> None:
        return None

    def tools(self) -> tuple[Any, ...]:
        return ()

    async def close(self) -> None:
        pass


async def test_other_arguments_for_a_tool_of_a_server_that_is_down_are_refused_for_now() -> None:
    def source(name: str, server: McpServer, settings: Settings, user: str) -> ToolSource:
        return DownSource(name)

    agent = clerk(mcp_servers={"bank": McpServer(url="https://bank.example/mcp")})
    with pytest.raises(Refusal) as no:
        await edited(agent, "bank__pay", {}, source=source)
    assert (no.value.status, no.value.code) == (503, "tool_unavailable")


# -- in this process
async def heard(agent: Agent, on_approval: OnApproval | None) -> list[Event]:
    return [event async for event in agent.stream("Pay.", on_approval=on_approval)]


def of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def test_the_person_in_this_process_may_say_yes_or_no_or_decide_in_full() -> None:
    async def later(request: ApprovalRequested) -> bool:
        await asyncio.sleep(0)
        return True

    assert of(await heard(clerk(approval="ask-writes"), later), ToolCalled)
    assert not of(await heard(clerk(approval="ask-writes"), lambda _: False), ToolCalled)
    other = Decision(approved=True, arguments={"amount": 1})
    (called,) = of(await heard(clerk(approval="ask-writes"), lambda _: other), ToolCalled)
    assert called.arguments == {"amount": 1}
    state = await clerk(approval="ask-writes").run("Pay.", on_approval=lambda _: True)
    assert state.spent.tool_calls == 1


async def test_without_a_person_in_this_process_to_ask_is_to_deny() -> None:
    events = await heard(clerk(approval="ask-writes"), None)
    assert not of(events, ApprovalRequested)
    assert "nobody can be asked" in of(events, ToolRejected)[0].message
    assert of(await heard(clerk(), None), ToolCalled), "what is allowed needs no person"


async def test_a_tool_that_requires_approval_asks_also_on_autopilot() -> None:
    events = await heard(clerk(model=paying("peek", "pay")), lambda request: request.name == "peek")
    assert [request.name for request in of(events, ApprovalRequested)] == ["peek"]
    assert len(of(events, ToolCalled)) == 2


def _raises(_: ApprovalRequested) -> bool:
    raise ValueError("no idea")


NO_DECISION: Any = "yes"  # what a function may give back, whatever its type says


FAILING: list[tuple[OnApproval, str]] = [
    (_raises, "raised ValueError: no idea"),
    (lambda _: NO_DECISION, "neither a bool nor a Decision"),
    (lambda _: Decision(approved=True, remember=True, pattern={"no": "*"}), "is no good"),
    (lambda _: Decision(approved=True, arguments={"amount": "much"}), "amount"),
]


@pytest.mark.parametrize("person, why", FAILING, ids=[why for _, why in FAILING])
async def test_a_person_who_fails_or_answers_nonsense_allows_nothing(person: OnApproval, why: str) -> None:
    events = await heard(clerk(approval="ask-writes"), person)
    assert not of(events, ToolCalled)
    assert why in of(events, ToolRejected)[0].message


async def test_a_person_who_is_too_slow_finds_the_request_expired() -> None:
    asked: list[str] = []

    async def slow(request: ApprovalRequested) -> bool:
        asked.append(request.name)
        await asyncio.Event().wait()
        return True

    made = deployment(clerk(approval="ask-writes"), APPROVAL_TIMEOUT="0.05")
    created = made.configure(StartRun(input="Pay."))
    run = InProcessRun("r", lambda hub, clock: made.ports(created, hub, clock))
    asker = Asker(run.hub, run.inbox, slow)
    state = await run.start(created)
    asker.stop()
    assert (asked, state.status, state.approvals) == (["pay"], "completed", ())
    resolved = [r.event for r in run.journal.in_order() if isinstance(r.event, ApprovalResolved)]
    assert [event.by for event in resolved] == ["expiry"]


async def test_the_deny_rules_of_an_agent_count_while_it_works_on_what_it_was_handed() -> None:
    model = ScriptedModel(
        answers=[Answer(calls=(("transfer_to_teller", {}),)), Answer(calls=(("pay", {"amount": 5}),)), "Done."]
    )
    teller = Agent(name="teller", tools=[pay], tool_rules={"pay": "deny"})
    desk = Agent(name="desk", tools=[handoff(teller)], model=model)
    events = await heard(desk, None)
    assert [rejected.name for rejected in of(events, ToolRejected)] == ["pay"]
