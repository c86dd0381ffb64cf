"""The agents of the tests' Worker. Their tools act on the counting tool server of the tests."""

import asyncio
import json
from typing import Any

import js
from pydantic import BaseModel
from workers import env

from edge_agent import Agent, Hooks, ToolContext, ToolError, tool
from edge_agent.cloudflare.ai_binding import AiBinding
from edge_agent.cloudflare.environment import ai_binding
from edge_agent.cloudflare.javascript import js_object

SECRET = "pin-4711-0815"
PNG = b"\x89PNG\r\n\x1a\n"


async def _post(path: str, context: ToolContext, **fields: Any) -> str:
    body = json.dumps({"key": context.idempotency_key, "run": context.run_id, **fields})
    init = js.JSON.parse(json.dumps({"method": "POST", "body": body}))
    return str(await (await js.fetch(f"{env.TOOL_SERVER_URL}{path}", init)).text())


@tool
async def charge(context: ToolContext, n: int) -> str:
    """Charge once; never to be repeated."""
    return await _post("/charge", context, n=n)


@tool(read_only=True)
async def lookup(context: ToolContext, n: int) -> str:
    """Look something up."""
    return await _post("/lookup", context, n=n)


@tool(on_unknown="ask")
async def transfer(context: ToolContext, n: int) -> str:
    """Move money; a person decides when it is unknown whether it happened."""
    return await _post("/transfer", context, n=n)


@tool(timeout=1)
async def hang(context: ToolContext) -> str:
    """Never answer in time, and not be safe to repeat."""
    return await _post("/hang", context)


@tool(timeout=1, read_only=True)
async def hang_reading(context: ToolContext) -> str:
    """Never answer in time."""
    return await _post("/hang", context)


@tool
async def raises() -> str:
    """Raise."""
    raise ToolError("the printer is out of paper")


@tool
async def wrong() -> int:
    """Return something else than promised."""
    return "not a number"  # pyright: ignore[reportReturnType]  (the fault under test)


@tool
async def big() -> str:
    """Return 5 MB."""
    return "0123456789" * 524_288


@tool(read_only=True)
async def progress(context: ToolContext) -> str:
    """Report progress."""
    for done in range(3):
        context.progress(done, 3, f"step {done}")
    return "done"


class Chart(BaseModel):
    points: int
    file: str


@tool(read_only=True, max_output=500)
async def chart(context: ToolContext, points: int) -> Chart:
    """Draw a chart, and tell how far it is."""
    for done in range(0, points + 1, 50):
        context.progress(done, points, f"{done} points")
    context.files.save("points.csv", "\n".join(f"{x},{x * x}" for x in range(points)), "text/csv; charset=utf-8")
    return Chart(points=points, file=context.files.save("../my chart.png", PNG + bytes(points), "image/png"))


@tool(read_only=True)
async def raced(scenario: str) -> str:
    """Call a model while another call, which asks for no Response, overwrites the options that both share."""
    ai, model = ai_binding(env), "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
    inputs = json.dumps({"messages": [{"role": "user", "content": scenario}]})
    asked = asyncio.ensure_future(AiBinding(ai).post(f"https://workers-binding.ai/run/{model}", {}, inputs.encode()))
    await asyncio.sleep(0)
    other = ai.run(model, js.JSON.parse(inputs), js_object({}))
    reply = await asked
    body = b"".join([chunk async for chunk in reply.chunks()])
    await asyncio.gather(other, return_exceptions=True)
    return json.dumps({"status": reply.status, "body": body.decode()})


@tool
async def login(pin: str) -> str:
    """Take a secret."""
    return f"logged in with {pin}"


def _without_pins(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: "(hidden)" if name == "pin" else value for name, value in arguments.items()}


def _output_without_pins(tool: str, text: str) -> str:
    return text.replace(SECRET, "(hidden)")


agents = [
    Agent(name="counter", tools=[charge, lookup]),
    Agent(name="careful", tools=[transfer]),
    Agent(name="troubled", tools=[raises, wrong, big, hang, hang_reading, progress, lookup]),
    Agent(name="accountant", tools=[raced]),
    Agent(name="painter", tools=[chart]),
    Agent(
        name="discreet",
        tools=[login],
        hooks=Hooks(sanitize_input=_without_pins, sanitize_output=_output_without_pins),
    ),
]
