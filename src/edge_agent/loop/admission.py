"""Whether a run can work at all under its caps, judged before it is created."""

from collections.abc import Callable, Collection, Iterable, Sequence

from edge_agent.core.errors import Refusal
from edge_agent.core.events import RunCreated
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.messages import ToolSpec, UserMessage, user_message
from edge_agent.core.model import ModelRequest
from edge_agent.core.price import FREE, Price
from edge_agent.core.skills_in_play import InPlay
from edge_agent.loop import budget, prompts, skills
from edge_agent.loop.estimates import estimated_input
from edge_agent.loop.parts import Past
from edge_agent.loop.planning import Named, plan_schema
from edge_agent.loop.selection import at_first, catalogue, for_plans
from edge_agent.loop.work import ONE_MORE_REPORT

PriceOf = Callable[[str], Price | None]
Takes = Callable[[str], Collection[str]]


def require_prices(created: RunCreated, price: PriceOf) -> None:
    """Refuses a cap on dollars that nobody could keep."""
    if created.limits.max_cost_usd is None:
        return
    for name in (*created.models, *created.planner_models, *created.synthesizer_models):
        if price(name) is None:
            message = (
                f"limits.max_cost_usd needs the price of every model, and that of {name} is not known. "
                f'Set EDGE_AGENT_PRICES={{"{name}": {{"input": …, "cached": …, "output": …}}}}, '
                "in dollars per million tokens, or leave max_cost_usd out."
            )
            raise Refusal(422, "unknown_price", message, field="limits.max_cost_usd", model=name)


def require_taken(created: RunCreated, models: Iterable[str], takes: Takes) -> None:
    """Refuses images and files that one of these models does not take. `takes`: media types, by the model's name."""
    sent = dict.fromkeys(file.media_type for file in created.files)
    for name in dict.fromkeys(models) if sent else ():
        taken = takes(name)
        if missing := [media_type for media_type in sent if media_type not in taken]:
            message = (
                f"The model {name} is not known to take {', '.join(missing)}; it takes "
                f"{', '.join(taken) or 'text only'}. Ask another model, leave these parts out, or, where the model "
                "does take them, say so by `takes` of its entry in EDGE_AGENT_PROVIDERS, or of the Model itself."
            )
            raise Refusal(422, "unsupported_input", message, field="input", model=name, takes=list(taken))


def require_room(created: RunCreated, agent: AgentSpec, tools: Sequence[ToolSpec], window: int, price: PriceOf) -> None:
    """Refuses a cap too small for one call and the answer at the end. Tools of MCP servers, and skills that are not of
    the code, are not known yet."""
    if not budget.is_capped(created.limits):
        return
    planned = created.mode == "planned"
    first, last = (_planned if planned else _direct)(created, agent, tools)
    askers = (created.planner_models if planned else ()) or created.models
    writers = created.synthesizer_models or created.models
    prices = budget.Prices(
        call=price(askers[0]) or FREE, last=max((price(name) or FREE for name in writers), key=lambda p: p.per_output)
    )
    found = budget.too_low(
        created.limits,
        first_input=estimated_input(first),
        final_input=estimated_input(last) + (ONE_MORE_REPORT if planned else 0),
        cap=budget.stage_cap("plan" if planned else "round", created.limits, window),
        window=window,
        prices=prices,
    )
    if found is not None:
        field, smallest = found
        message = (
            f"limits.{field} is too low for one call of the model and the answer at the end, which is reserved from "
            f"the start. The smallest that works here is {smallest:g}."
        )
        raise Refusal(422, "limit_too_low", message, field=f"limits.{field}", smallest=smallest)


def _direct(created: RunCreated, agent: AgentSpec, tools: Sequence[ToolSpec]) -> tuple[ModelRequest, ModelRequest]:
    asked = (*Past(created.history).messages, user_message(created.input, created.attachments))
    system = skills.in_system(agent.skills, InPlay(), prompts.system(agent.instructions), works=True)
    first = ModelRequest(system=system, messages=asked, tools=at_first(agent, tools))
    return first, ModelRequest(system=system, messages=(*asked, UserMessage(text=prompts.LAST_ROUND)))


def _planned(created: RunCreated, agent: AgentSpec, tools: Sequence[ToolSpec]) -> tuple[ModelRequest, ModelRequest]:
    brief = f"{prompts.request(created.input)}\n\n{prompts.plan_so_far([], [])}"
    messages = (*Past(created.history).messages, user_message(brief, created.attachments))
    named = Named(tools=[tool.name for tool in for_plans(tools)], skills=skills.names(agent.skills, InPlay()))
    role = prompts.of_stage(prompts.PLANNER, agent.instructions)
    first = ModelRequest(
        system=skills.in_system(agent.skills, InPlay(), role, catalogue(agent, tools), plans=True),
        messages=messages,
        output_schema=plan_schema(named, created.limits.max_plan_steps or 1),
    )
    return first, ModelRequest(system=prompts.of_stage(prompts.SYNTHESIZER, agent.instructions), messages=messages)
