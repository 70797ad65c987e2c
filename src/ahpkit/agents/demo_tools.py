"""Tools of the demo agent: they really run, and do no harm."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

from ahpkit.agents.tools import Toolbox, ToolError
from ahpkit.host.agent import Turn
from ahpkit.wire.errors import RpcError

READER: ContextVar[Callable[[Path], Awaitable[str]] | None] = ContextVar("READER", default=None)
"""Reads files for the running turn, through the host's fence if there is one."""

_MAX_FILE = 64 * 1024
"""Bytes of a file that are shown: enough to see that it was read."""

_MAX_EXPRESSION = 1_000
"""Characters of an expression: more than a person types, and too few for deep nesting."""

_MAX_BASE, _MAX_EXPONENT = 10**20, 100
"""The largest power that is computed. Without a limit, `9**9**9` would take all memory."""

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: lambda left, right: _power(left, right),
}

_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {
    ast.USub: lambda operand: -operand,
    ast.UAdd: lambda operand: operand,
}


def demo_tools() -> Toolbox:
    """A new toolbox with all the tools. Each one asks for approval, and its input can be edited."""
    tools = Toolbox(
        options=[
            {"id": "allow", "label": "Allow once", "kind": "approve", "group": 0},
            {"id": "deny", "label": "Deny", "kind": "deny", "group": 0},
        ],
        editable=True,
    )
    tools.tool(title="Calculate")(calculate)
    tools.tool(title="Read file")(read_file)
    return tools


def calculate(expression: Annotated[str, "such as (1 + 2) * 3"]) -> str:
    """Compute an arithmetic expression."""
    if len(expression) > _MAX_EXPRESSION:
        raise ToolError(f"an expression has at most {_MAX_EXPRESSION} characters")
    try:
        return str(_value(ast.parse(expression.strip(), mode="eval").body))
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except OverflowError:
        raise ToolError("the result is too large") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(f"{expression!r} is not an arithmetic expression") from None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left), _value(right))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case _:
            raise ValueError("not arithmetic")


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > _MAX_EXPONENT or abs(base) > _MAX_BASE:
        raise OverflowError
    if base < 0 and exponent != int(exponent):
        raise ValueError("not a real number")
    return base**exponent


async def read_file(turn: Turn, path: Annotated[str, "relative to the working directory"]) -> str:
    """Read a text file in the working directory."""
    reader = READER.get()
    if reader is None:
        return await asyncio.to_thread(_read, turn.chat.working_directory, path)
    try:
        return (await reader(turn.chat.working_directory / path))[:_MAX_FILE]
    except RpcError as error:
        raise ToolError(error.message) from None
    except ValueError:
        raise ToolError(f"{path!r} cannot be read") from None


def _read(directory: Path, path: str) -> str:
    try:
        root = directory.resolve()
        file = (root / path).resolve()
        if not file.is_relative_to(root):
            raise ToolError(f"{path} is outside the working directory")
        if not file.is_file():
            raise ToolError(f"{path} is not a file")
        with file.open("rb") as stream:
            return stream.read(_MAX_FILE).decode(errors="replace")
    except (OSError, ValueError):
        raise ToolError(f"{path!r} cannot be read") from None


__all__ = ["READER", "calculate", "demo_tools", "read_file"]
