"""The agents of this deployment. This is the file to edit: the first agent is the default one."""

import ast
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from edge_agent import Agent, ToolError, tool

_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: lambda left, right: left**right,
    ast.BitXor: lambda left, right: left**right,  # 2^10 is what people and small models write for 2**10
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: getattr(math, name)
        for name in ("sqrt", "sin", "cos", "tan", "log", "log2", "log10", "exp", "floor", "ceil")
    },
    "abs": abs,
    "round": round,
    "min": min,
    "max": max,
}
_NAMES = {"pi": math.pi, "e": math.e}
_EXACT = 10**15  # a whole number below it is shown without an exponent
_FARTHEST = 14  # hours from UTC
_MOST = 10**300  # a larger number than this is no answer, and its power would stop the runtime


@tool(read_only=True)
async def calculator(expression: str) -> str:
    """Work out an arithmetic expression. Use it for every calculation.

    Args:
        expression: For example `17 * 23`, `(3 + 4) ** 2`, `sqrt(2) * pi`.
    """
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, TypeError, RecursionError) as error:
        raise ToolError(f"cannot work out {expression!r}: {error}") from error
    return str(int(value)) if float(value).is_integer() and abs(value) < _EXACT else str(value)


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(op, _value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(argument) for argument in arguments))
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is no arithmetic")


def _bounded(op: ast.operator, left: float, right: float) -> float:
    if (
        isinstance(op, ast.Pow | ast.BitXor)
        and abs(left) > 1
        and abs(right) * math.log10(abs(left)) > math.log10(_MOST)
    ):
        raise ValueError("the power is too large")
    result = _BINARY[type(op)](left, right)
    if isinstance(result, complex) or abs(result) > _MOST:
        raise ValueError("the result is no number that can be shown")
    return result


@tool(read_only=True)
async def clock(utc_offset: float = 0.0) -> str:
    """Tell the current date, time and weekday, in UTC or with an offset from it.

    Args:
        utc_offset: Hours ahead of UTC, from -14 to 14 and in halves: 2 for Berlin in summer, -3.5 for St. John's.
    """
    if abs(utc_offset) > _FARTHEST or not (2 * utc_offset).is_integer():
        raise ToolError(f"{utc_offset} is no offset from UTC: hours from -14 to 14, in halves")
    zone = timezone(timedelta(hours=utc_offset)) if utc_offset else UTC
    return datetime.now(zone).strftime("%A, %Y-%m-%d %H:%M:%S %Z")


agents = [
    Agent(
        name="assistant",
        description="Answers questions, calculates, tells the time, and uses what EDGE_AGENT_MCP_SERVERS brings.",
        instructions="You are a helpful assistant. Use the tools for facts and calculations rather than your memory.",
        tools=[calculator, clock],
    )
]
