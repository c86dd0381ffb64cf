"""`handoff(target)`: a tool by which an agent gives the work to another one."""

from dataclasses import dataclass, field

from edge_agent.agent import Agent
from edge_agent.core.errors import InvalidArguments
from edge_agent.core.events import OnUnknown
from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.tooling import HANDOFF, ToolContext, ToolOutput

REASON = {"type": "string", "description": "Why, in a sentence."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """A tool without effect: what follows from its call is the loop's business (loop/turns.py)."""

    target: Agent
    spec: ToolSpec
    server: None = None
    timeout: float = 5.0
    read_only: bool = True
    safe_to_repeat: bool = True
    requires_approval: bool = False
    max_output: None = None
    on_unknown: OnUnknown = field(default="report")

    def check(self, arguments: JsonObject) -> None:
        if not set(arguments) <= {"reason"} or not isinstance(arguments.get("reason", ""), str):
            raise InvalidArguments(f"{self.spec.name} takes nothing but `reason`, a text.")

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002 - the port's form
        return ToolOutput(text=f"The work is handed over to {self.target.name}.")


def handoff(target: Agent, *, when: str = "", description: str = "") -> Handoff:
    """The tool `transfer_to_<name>`. From the next round on the target's instructions, model, tools and hooks apply;
    the run's limits and what it has used go on. At most three times into the same agent, then the run fails.

    when: for the model, as in "the question is about an invoice". description: of the target, in place of its own.
    """
    what = description or target.description
    told = " ".join(part for part in (f"Hand the work over to {target.name}", f"when {when}" if when else "") if part)
    parameters: JsonObject = {"type": "object", "properties": {"reason": REASON}, "additionalProperties": False}
    spec = ToolSpec(name=f"{HANDOFF}{target.name}"[:64], description=f"{told}. {what}".strip(), parameters=parameters)
    return Handoff(target=target, spec=spec)
