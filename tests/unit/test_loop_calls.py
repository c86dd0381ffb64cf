"""The calls of one answer: judged in order, run side by side, each with exactly one outcome."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from edge_agent import Hooks, Limits, ToolContext, ToolError, ToolFile, ToolOutput, tool
from edge_agent.core.compaction import Compaction
from edge_agent.core.errors import OutcomeUnknown
from edge_agent.core.events import (
    BudgetExceeded,
    Fault,
    QuestionAnswered,
    QuestionAsked,
    RunCancelled,
    RunCompleted,
    RunWaiting,
    ToolCalled,
    ToolProgress,
    ToolRejected,
    ToolResult,
    ToolUnknown,
)
from edge_agent.core.messages import JsonObject, ToolMessage, ToolSpec
from edge_agent.core.tooling import Tool
from edge_agent.loop.outcomes import model_view
from edge_agent.loop.walk import PARALLEL_CALLS
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill
from edge_agent.tools.toolbox import Toolbox
from edge_agent.wire import codec
from tests.unit.loop_kit import Lived, Setting, live


def asks(*calls: tuple[str, JsonObject | str]) -> ScriptedModel:
    return ScriptedModel(answers=[Answer(calls=calls), "done"])


def lived_with(made: Tool, arguments: JsonObject | str | None = None, **more: Any) -> Lived:
    model = more.pop("model", None) or asks((made.spec.name, arguments or {}))
    return live(Setting(model=model, tools=[made], **more))


def shown(lived: Lived, model: ScriptedModel) -> list[ToolMessage]:
    return [message for message in model.requests[-1].messages if isinstance(message, ToolMessage)]


# -- side by side
def test_five_run_at_a_time_and_the_order_stays() -> None:
    running, most = 0, 0

    @tool(read_only=True)
    async def work(number: int) -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(10 - number)
        running -= 1
        return str(number)

    model = asks(*(("work", {"number": number}) for number in range(9)))
    lived = live(Setting(model=model, tools=[work]))
    assert most == PARALLEL_CALLS
    assert [message.text for message in shown(lived, model)] == [str(number) for number in range(9)]


def test_one_that_fails_takes_no_sibling_down() -> None:
    @tool
    async def sometimes(fine: bool) -> str:
        """Work sometimes."""
        if not fine:
            raise ToolError("not today")
        await asyncio.sleep(1)
        return "fine"

    lived = lived_with(sometimes, model=asks(("sometimes", {"fine": False}), ("sometimes", {"fine": True})))
    assert sorted((r.ok, r.output) for r in lived.of(ToolResult)) == [
        (False, "sometimes failed: not today"),
        (True, "fine"),
    ]


# -- before a call
def test_what_cannot_run_is_answered_with_its_reason() -> None:
    @tool(read_only=True)
    async def look(q: str) -> str:
        """Look."""
        return q

    calls: tuple[tuple[str, JsonObject | str], ...] = (("ghost", {}), ("look", {}), ("look", "{oops"), ("look", "[1]"))
    lived = lived_with(look, model=asks(*calls))
    assert [(r.reason, r.message) for r in lived.of(ToolRejected)] == [
        ("unknown-tool", "There is no tool ghost. Tools: look."),
        ("invalid-arguments", "`q` is required"),
        ("invalid-arguments", "The arguments of look are not a JSON object: {oops"),
        ("invalid-arguments", "The arguments of look are not a JSON object: [1]"),
    ]
    assert not lived.of(ToolCalled)


def test_no_arguments_are_an_empty_object_and_twice_encoded_ones_are_decoded_twice() -> None:
    @tool(read_only=True)
    async def look(q: str = "nothing") -> str:
        """Look."""
        return q

    lived = lived_with(look, model=asks(("look", ""), ("look", '"{\\"q\\": \\"x\\"}"')))
    assert sorted(r.output for r in lived.of(ToolResult)) == ["nothing", "x"]


def test_over_the_cap_the_first_calls_run_and_the_others_are_told() -> None:
    @tool
    async def pay(n: int) -> str:
        """Pay."""
        await asyncio.sleep(5 - n)
        return str(n)

    model = asks(*(("pay", {"n": n}) for n in range(4)))
    lived = live(Setting(model=model, tools=[pay], limits=Limits(max_tool_calls=2)))
    assert [message.text for message in shown(lived, model)][:2] == ["0", "1"]
    assert [r.reason for r in lived.of(ToolRejected)] == ["budget", "budget"]
    assert [(b.kind, b.used, b.cap) for b in lived.of(BudgetExceeded)] == [("tool-calls", 2, 2)]
    assert lived.state.spent.tool_calls == 2


def test_a_tool_that_went_away_between_the_boundary_and_the_call_is_an_answered_call() -> None:
    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        return "x"

    class Going(Toolbox):
        asked = 0

        def find(self, name: str) -> Tool | None:
            self.asked += 1
            return super().find(name) if self.asked in self.there else None

        there: range

    for there, message in ((range(0), "look cannot be reached any more"), (range(3), "look is no longer offered.")):
        box = Going([look])
        box.there = there
        lived = live(Setting(model=asks(("look", {})), toolbox=box))
        assert lived.of(ToolRejected)[0].reason == "unknown-tool"
        assert lived.of(ToolRejected)[0].message.startswith(message)


# -- what a tool gives back
def test_a_tool_meets_its_context_and_a_copy_of_its_arguments() -> None:
    met: list[ToolContext] = []

    @tool(idempotent=True)
    async def book(context: ToolContext, where: dict[str, Any]) -> str:
        """Book."""
        met.append(context)
        context.progress(1, 2, "half")
        where["changed"] = True
        context.metadata["changed"] = True
        return context.secret("KEY")

    lived = lived_with(book, {"where": {"a": 1}}, secrets={"KEY": "shh"}, metadata={"user": 7})
    called = lived.of(ToolCalled)[0]
    assert called.arguments == {"where": {"a": 1}}
    assert (met[0].run_id, met[0].step, met[0].call_id) == ("run-1", 1, called.call_id)
    assert met[0].idempotency_key == called.idempotency_key
    progress = lived.passing(ToolProgress)[0]
    assert (progress.progress, progress.total, progress.message) == (1, 2, "half")
    assert [r.event for r in lived.object.instance.journal.in_order()] == [r.event for r in lived.records]


def test_an_exception_is_told_by_its_message_never_by_a_traceback() -> None:
    @tool
    async def broken() -> str:
        """Break."""
        raise ValueError

    lived = lived_with(broken)
    assert [(r.ok, r.output) for r in lived.of(ToolResult)] == [(False, "broken failed: ValueError")]


SEVEN: Any = 7  # what a tool of one's own may give back, whatever its type says


class Raw:
    """A tool of one's own that gives back whatever it likes."""

    spec = ToolSpec(name="raw", description="", parameters={"type": "object", "properties": {}})
    server, timeout, read_only, safe_to_repeat, on_unknown = None, 30.0, False, False, "report"
    requires_approval = False
    max_output = None

    def __init__(self, given: Any) -> None:
        self.given = given

    def check(self, arguments: JsonObject) -> None:
        pass

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return self.given


def raw(given: object) -> Any:
    return Raw(given)


@pytest.mark.parametrize("given,named", [("text", "str"), (None, "NoneType"), ({"a": 1}, "dict")])
def test_what_is_no_tool_output_is_a_failed_call(given: object, named: str) -> None:
    lived = lived_with(raw(given))
    said = f"raw failed: it ran to its end, but gave back a {named}, not a ToolOutput"
    assert [(r.ok, r.output) for r in lived.of(ToolResult)] == [(False, said)]


@pytest.mark.parametrize(
    "output,text,structured",
    [
        (ToolOutput(text="", structured={"a": 1}), '{"a":1}', {"a": 1}),
        (ToolOutput(text="as told", structured={"a": math.nan}), "as told", None),
        (ToolOutput(text="", structured={"a": object()}), "", None),
        (ToolOutput(text="half \ud800", structured={"k\ud800": "v\ud800"}), "half \ufffd", {"k\ufffd": "v\ufffd"}),
        (ToolOutput(text=SEVEN), "7", None),
    ],
)
def test_what_json_cannot_say_breaks_nothing(output: ToolOutput, text: str, structured: JsonObject | None) -> None:
    result = lived_with(raw(output)).of(ToolResult)[0]
    assert (result.ok, result.output, result.structured) == (True, text, structured)


def test_a_long_output_is_whole_in_a_file_and_the_model_sees_both_ends() -> None:
    text = "begin" + "x" * 5_000_000 + "end"

    @tool(read_only=True)
    async def big() -> ToolOutput:
        """Give a lot."""
        return ToolOutput(text=text, structured={"long": "y" * 70_000})

    model = asks(("big", {}))
    lived = lived_with(big, model=model)
    result = lived.of(ToolResult)[0]
    assert result.output == model_view(text, Compaction().max_tool_output_chars, result.call_id)
    assert result.model_chars == len(result.output) <= Compaction().max_tool_output_chars
    assert result.output.startswith("begin")
    assert result.output.endswith("end")
    assert result.structured is None
    names = [file.name for file in result.files]
    assert names == [f"{result.call_id}.txt", f"{result.call_id}.json"]
    file = lived.object.log.file(names[0])
    assert file is not None
    assert file.content.decode() == text
    assert result.files[0].bytes == len(text)
    assert shown(lived, model)[0].text == result.output


def test_an_output_between_the_two_sizes_is_whole_on_record_and_cut_for_the_model() -> None:
    @tool(read_only=True)
    async def medium() -> str:
        """Give much."""
        return "m" * 30_000

    model = asks(("medium", {}))
    lived = lived_with(medium, model=model)
    result = lived.of(ToolResult)[0]
    assert len(result.output) == 30_000
    assert len(shown(lived, model)[0].text) == result.model_chars <= Compaction().max_tool_output_chars


def test_files_have_names_an_address_can_hold_and_none_replaces_another() -> None:
    @tool(read_only=True)
    async def draw() -> ToolOutput:
        """Draw."""
        image = ToolFile(name="../a b/é.png", media_type="image/png", content=b"\x89PNG")
        return ToolOutput(text="two", files=(image, ToolFile(name="a b/é.png", media_type="image/png", content=b"2")))

    lived = lived_with(draw)
    result = lived.of(ToolResult)[0]
    assert [file.name for file in result.files] == [
        f"{result.call_id}-.._a_b_.png",
        f"{result.call_id}-a_b_.png",
    ]

    @tool(read_only=True, name="draw")
    async def twice() -> ToolOutput:
        """Draw."""
        image = ToolFile(name="a.png", media_type="image/png", content=b"1")
        return ToolOutput(text="two", files=(image, ToolFile(name="a.png", media_type="image/png", content=b"2")))

    lived = lived_with(twice)
    result = lived.of(ToolResult)[0]
    contents = [lived.object.log.file(file.name) for file in result.files]
    assert [content and content.content for content in contents] == [b"1", b"2"]


# -- secrets and sanitizers
def test_a_secret_a_tool_gives_back_is_in_no_record_file_frame_or_prompt() -> None:
    @tool(read_only=True)
    async def leak(context: ToolContext, long: bool = False) -> ToolOutput:
        """Leak."""
        context.progress(1, None, "hunter22")
        file = ToolFile(name="f", media_type="text/plain", content=b"hunter22")
        return ToolOutput(text="hunter22 " + "x" * 70_000 * long, structured={"hunter22": "hunter22"}, files=(file,))

    model = asks(("leak", {}), ("leak", {"long": True}))
    mask: Callable[[str], str] = lambda text: text.replace("hunter22", "[secret]")  # noqa: E731
    lived = live(Setting(model=model, tools=[leak], mask=lambda event: codec.masked(event, mask)))
    assert "hunter22" not in repr(lived.items)
    assert "hunter22" not in repr(model.requests[-1].messages)
    files = [lived.object.log.file(file.name) for r in lived.of(ToolResult) for file in r.files]
    assert len(files) == 3
    assert not any(file and b"hunter22" in file.content for file in files)


def test_sanitizers_see_everything_before_it_is_recorded() -> None:
    @tool
    async def pay(card: str) -> ToolOutput:
        """Pay."""
        if card == "***":
            raise OutcomeUnknown("4111 4111 timed out")
        return ToolOutput(text="x")

    hooks = Hooks(
        sanitize_input=lambda name, arguments: {**arguments, "card": "***"},
        sanitize_output=lambda name, text: text.replace("4111", "****"),
    )
    lived = lived_with(pay, {"card": "4111"}, hooks=hooks)
    assert "4111" not in repr(lived.items)
    assert lived.of(ToolCalled)[0].arguments == {"card": "***"}
    assert lived.of(ToolUnknown)[0].message.endswith("**** **** timed out")


@pytest.mark.parametrize("given", [None, 7, [1], {"when": object()}, {"n": math.inf}])
def test_an_input_sanitizer_that_fails_or_gives_no_json_makes_the_call_invalid(given: Any) -> None:
    @tool
    async def pay(card: str = "") -> str:
        """Pay."""
        return "x"

    def sanitize(name: str, arguments: JsonObject) -> JsonObject:
        if given is None:
            raise RuntimeError("4111")
        return given

    lived = lived_with(pay, {"card": "4111"}, hooks=Hooks(sanitize_input=sanitize))
    assert "4111" not in repr(lived.items)
    assert [r.reason for r in lived.of(ToolRejected)] == ["invalid-arguments"]
    lived = lived_with(pay, "{4111", hooks=Hooks(sanitize_input=sanitize))
    assert "4111" not in repr(lived.items)


@pytest.mark.parametrize("raising", [True, False])
def test_an_output_sanitizer_that_fails_leaves_the_output_and_the_files_out(raising: bool) -> None:
    @tool(read_only=True)
    async def look() -> ToolOutput:
        """Look."""
        file = ToolFile(name="f", media_type="text/plain", content=b"4111")
        return ToolOutput(text="4111", structured={"a": "4111"}, files=(file,))

    def sanitize(name: str, text: str) -> Any:
        if raising:
            raise RuntimeError(text)
        return None  # as a hook may do that forgets to return

    lived = lived_with(look, hooks=Hooks(sanitize_output=sanitize))
    result = lived.of(ToolResult)[0]
    assert (result.ok, result.output) == (False, "(left out: the output sanitizer failed on it)")
    assert (result.structured, result.files) == (None, ())
    assert isinstance(lived.end, RunCompleted)


# -- unknown outcomes
def test_an_unsafe_call_that_takes_too_long_has_an_unknown_outcome_and_a_safe_one_an_error() -> None:
    @tool(timeout=2)
    async def pay() -> str:
        """Pay."""
        await asyncio.sleep(60)
        return "paid"

    @tool(timeout=2, read_only=True)
    async def look() -> str:
        """Look."""
        await asyncio.sleep(60)
        return "seen"

    lived = live(Setting(model=asks(("pay", {}), ("look", {})), tools=[pay, look]))
    unknown = lived.of(ToolUnknown)[0]
    assert (unknown.cause, unknown.policy) == ("timed-out", "report")
    assert unknown.message.endswith("no answer within 2 s")
    assert [(r.ok, r.output) for r in lived.of(ToolResult)] == [(False, "look failed: no answer within 2 s")]


def test_a_tool_cancelled_by_nobody_has_an_unknown_outcome_and_the_run_goes_on() -> None:
    class Strayed(Raw):
        async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
            raise asyncio.CancelledError

    strayed: Any = Strayed(None)
    lived = lived_with(strayed)
    assert lived.of(ToolUnknown)[0].cause == "lost"
    assert isinstance(lived.end, RunCompleted)


def doubtful(policy: Any, *, times: int = 1, safe: bool = False) -> tuple[Tool, list[int]]:
    tried: list[int] = []

    @tool(on_unknown=policy, idempotent=safe)
    async def pay() -> str:
        """Pay."""
        tried.append(len(tried))
        if len(tried) <= times:
            raise OutcomeUnknown("the line went dead")
        return "paid"

    return pay, tried


def test_by_policy_an_unknown_outcome_is_tried_again_at_most_three_times() -> None:
    pay, tried = doubtful("retry")
    assert lived_with(pay).of(ToolResult)[0].output == "paid"
    assert len(tried) == 2
    pay, tried = doubtful("retry", times=99)
    lived = lived_with(pay)
    assert len(tried) == 4
    assert len({called.idempotency_key for called in lived.of(ToolCalled)}) == 1
    assert lived.of(ToolUnknown)[0].policy == "retry"
    assert lived.state.spent.tool_calls == 1


def test_by_policy_an_unknown_outcome_ends_the_run() -> None:
    pay, _ = doubtful("fail")
    lived = lived_with(pay)
    assert (lived.error.kind, lived.error.code) == ("tool", "unknown-outcome")


def answer(text: str) -> Callable[[Any], object]:
    def act(inbox: Any) -> object:
        for record in inbox.journal.types["question.asked"]:
            inbox.answer(record.event.question_id, text)
        return None

    return act


def test_by_policy_a_person_is_asked_and_may_let_it_be_tried_again() -> None:
    pay, tried = doubtful("ask")
    lived = lived_with(pay, acts={"wait/8": answer("retry")})
    assert lived.of(QuestionAsked)[0].question.endswith("or say what happened.")
    assert lived.of(QuestionAnswered)[0].by == "person"
    assert len(tried) == 2
    assert lived.of(ToolResult)[0].output == "paid"
    assert lived.of(RunWaiting)[0].for_ == ("answer",)


def test_a_person_is_asked_no_more_when_the_call_can_be_made_no_more() -> None:
    pay, tried = doubtful("ask", times=99)
    lived = lived_with(pay, acts={f"s1/r1/c0/ask/{number}": answer("retry") for number in range(9)})
    assert (len(lived.of(QuestionAsked)), len(tried)) == (3, 4)
    assert "A person says" not in lived.of(ToolUnknown)[0].message
    assert lived.state.spent.tool_calls == 1


def test_what_a_person_says_is_told_to_the_model() -> None:
    pay, tried = doubtful("ask", times=9)
    lived = lived_with(pay, acts={"s1/r1/c0/ask/0": answer("it was paid")})
    assert len(tried) == 1
    assert lived.of(ToolUnknown)[0].message.endswith("A person says: it was paid")


def test_a_question_nobody_answers_expires_after_a_day() -> None:
    pay, _ = doubtful("ask")
    lived = lived_with(pay)
    asked, answered = (r for r in lived.records if r.type.startswith("question."))
    assert answered.at - asked.at in range(86_400_000 - 1, 86_400_001)
    assert lived.of(QuestionAnswered)[0].by == "expiry"
    assert lived.of(ToolUnknown)[0].cause == "lost"


def test_the_cause_a_person_was_told_stays_the_cause_after_a_restart() -> None:
    @tool(on_unknown="ask", timeout=1)
    async def pay() -> str:
        """Pay."""
        await asyncio.sleep(60)
        return "paid"

    lived = lived_with(pay, kills=[Kill(7, "after"), Kill(9, "before")])
    assert {q.cause for q in lived.of(QuestionAsked)} == {u.cause for u in lived.of(ToolUnknown)}


def test_a_lost_safe_call_is_made_again_with_its_key_at_most_three_times() -> None:
    @tool(idempotent=True)
    async def put() -> str:
        """Put."""
        return "done"

    def put_with(*kills: int) -> Lived:
        model = ScriptedModel(answers=[Answer(calls=(("put", {}),)), "done"], by_turn=True)
        return lived_with(put, model=model, kills=[Kill(append, "before") for append in kills])

    lived = put_with(7)  # before its result
    assert [key for key in lived.all_keys() if "/call" in key] == ["s1/r1/c0/call", "s1/r1/c0/call/1"]
    assert len({called.idempotency_key for called in lived.of(ToolCalled)}) == 1
    assert isinstance(lived.end, RunCompleted)
    lived = put_with(7, 9, 11, 13)
    assert len(lived.of(ToolCalled)) == 4
    assert lived.of(ToolUnknown)[0].cause == "lost"


def test_a_lost_call_whose_tool_is_gone_is_unknown() -> None:
    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        return "x"

    class Once(Toolbox):
        def offered(self) -> tuple[ToolSpec, ...]:
            return (look.spec,)

        def find(self, name: str) -> Tool | None:
            return look if simulated[0] == 0 else None

    simulated = [0]

    def restarted() -> None:
        simulated[0] = len(seen)
        seen.append(None)

    seen: list[None] = []
    model = ScriptedModel(answers=[Answer(calls=(("look", {}),)), "done"], by_turn=True)
    lived = live(Setting(model=model, toolbox=Once(), kills=[Kill(7, "before")], ports=restarted))
    assert lived.of(ToolUnknown)[0].cause == "lost"


# -- hooks
def test_after_tool_is_told_each_result_and_on_error_each_exception() -> None:
    @tool
    async def work(fine: bool) -> str:
        """Work."""
        if not fine:
            raise RuntimeError("broken")
        return "fine"

    told: list[tuple[str, bool]] = []
    errors: list[tuple[str, str | None, str]] = []
    hooks = Hooks(
        after_tool=lambda call, result: told.append((call.name, result.ok)),
        on_error=lambda kind, name, error: errors.append((kind, name, str(error))),
    )
    lived = lived_with(work, model=asks(("work", {"fine": True}), ("work", {"fine": False})), hooks=hooks)
    assert sorted(told) == [("work", False), ("work", True)]
    assert errors == [("tool", "work", "broken")]
    assert isinstance(lived.end, RunCompleted)


def test_on_error_may_end_the_run_at_a_tools_error_after_every_sibling_has_ended() -> None:
    @tool
    async def work(fine: bool) -> str:
        """Work."""
        if not fine:
            raise RuntimeError("broken")
        await asyncio.sleep(5)
        return "fine"

    model = asks(("work", {"fine": False}), ("work", {"fine": True}))
    hooks = Hooks(on_error=lambda kind, name, error: False)
    lived = live(Setting(model=model, tools=[work], hooks=hooks, acts={"end/0": lambda inbox: inbox.resume()}))
    assert [f.kind for f in lived.of(Fault)] == ["tool"]
    assert lived.all_keys().index("s1/r1/c1/result") < lived.all_keys().index("end/0")
    assert isinstance(lived.end, RunCompleted), "the recorded verdict ends only its own life"


# -- cancel
def test_a_cancel_cuts_the_calls_under_way_and_nothing_begins_any_more() -> None:
    begun: list[int] = []

    @tool
    async def pay(n: int) -> str:
        """Pay."""
        begun.append(n)
        await asyncio.sleep(60)
        return "paid"

    model = asks(*(("pay", {"n": n}) for n in range(8)))
    lived = live(Setting(model=model, tools=[pay], acts={"s1/r1/c4/call": lambda inbox: inbox.cancel()}))
    assert isinstance(lived.end, RunCancelled)
    assert len(begun) <= 5
    assert {u.cause for u in lived.of(ToolUnknown)} == {"cancelled"}
    assert len(lived.of(ToolUnknown)) == len(lived.of(ToolCalled)) == 5


def test_a_tool_that_will_not_be_cancelled_ends_with_what_it_gives_back() -> None:
    @tool
    async def stubborn() -> str:
        """Go on."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done all the same"
        return "done"

    def cancel_soon(inbox: Any) -> None:
        asyncio.get_running_loop().call_later(1, inbox.cancel)

    lived = lived_with(stubborn, acts={"s1/r1/c0/call": cancel_soon})
    assert isinstance(lived.end, RunCancelled)
