"""Typed functions as tools: definitions and results."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Annotated, Any, Literal, TypedDict

import pytest

from ahpkit.client.tools import Tool, ToolContext, ToolResult

CONTEXT = ToolContext(session="s", chat="c", turn_id="t", tool_call_id="id", meta={}, _show=lambda content: None)


class Point(TypedDict):
    x: int
    y: int


@dataclasses.dataclass
class Box:
    corner: Point
    colour: Literal["red", "blue"] = "red"


def draw(box: Box, times: Annotated[int, "how often"] = 1, note: str | None = None) -> str:
    """Draw a box."""
    return f"{box.colour} at {box.corner['x']}, {times} times"


def test_a_definition_is_made_from_hints_and_docstring():
    definition = Tool(draw).definition
    schema: Any = definition.get("inputSchema")

    assert definition["name"] == "draw"
    assert definition.get("description") == "Draw a box."
    assert schema["type"] == "object"
    assert schema["required"] == ["box"]
    assert schema["properties"]["times"]["description"] == "how often"


def test_name_title_and_annotations_can_be_given():
    tool = Tool(draw, name="paint", title="Paint", annotations={"readOnlyHint": True})

    assert tool.name == "paint"
    assert tool.definition.get("title") == "Paint"
    assert tool.definition.get("annotations") == {"readOnlyHint": True}


async def test_arguments_are_converted_and_text_becomes_content():
    result = await Tool(draw).run('{"box": {"corner": {"x": 1, "y": 2}}, "times": 3}', CONTEXT)

    assert result == {
        "success": True,
        "pastTenseMessage": "Ran draw",
        "content": [{"type": "text", "text": "red at 1, 3 times"}],
    }


@pytest.mark.parametrize(
    ("tool_input", "said"),
    [("{", "input of draw"), ('{"box": 1}', "$.box"), ("{}", "box"), ('{"box": {}, "nonsense": 1}', "nonsense")],
)
async def test_bad_input_is_a_failed_result_that_says_where(tool_input: str, said: str):
    result = await Tool(draw).run(tool_input, CONTEXT)

    assert result["success"] is False
    assert said in result.get("error", {})["message"] or "$.box" in result.get("error", {})["message"]


async def test_a_tool_that_raises_is_a_failed_result():
    def explode() -> None:
        raise ValueError("boom")

    result = await Tool(explode).run("", CONTEXT)

    assert result["success"] is False
    assert result.get("error") == {"message": "ValueError: boom"}


@pytest.mark.parametrize(
    ("returned", "content", "structured"),
    [
        (None, None, None),
        ("", None, None),
        ({"a": 1}, [{"type": "text", "text": '{"a":1}'}], {"a": 1}),
        ([1, 2], [{"type": "text", "text": "[1,2]"}], None),
        ({"type": "text", "text": "hi"}, [{"type": "text", "text": "hi"}], None),
        ([{"type": "resource", "uri": "file:///x"}], [{"type": "resource", "uri": "file:///x"}], None),
        (ToolResult("done", structured={"n": 1}), [{"type": "text", "text": "done"}], {"n": 1}),
    ],
)
async def test_what_is_returned_becomes_content(returned: Any, content: Any, structured: Any):
    async def tool() -> Any:
        return returned

    result = await Tool(tool).run("", CONTEXT)

    assert result.get("content") == content
    assert result.get("structuredContent") == structured


async def test_a_result_can_say_that_it_failed_and_what_was_done():
    def tool() -> ToolResult:
        return ToolResult("no such file", success=False, message="Looked for the file")

    result = await Tool(tool).run("", CONTEXT)

    assert (result["success"], result["pastTenseMessage"]) == (False, "Looked for the file")


async def test_a_context_parameter_is_filled_and_not_part_of_the_schema():
    shown: list[Any] = []

    def tool(text: str, context: ToolContext) -> str:
        context.show(text)
        return context.tool_call_id

    context = dataclasses.replace(CONTEXT, _show=shown.append)
    result = await Tool(tool).run('{"text": "half"}', context)

    assert list(Tool(tool).definition.get("inputSchema", {})["properties"]) == ["text"]
    assert shown == [[{"type": "text", "text": "half"}]]
    assert result.get("content") == [{"type": "text", "text": "id"}]


class _AtOnce(ThreadPoolExecutor):
    """Every call is over before anybody can wait for it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        wait([future])
        return future


async def test_what_a_quick_tool_shows_comes_before_its_result():
    loop, order = asyncio.get_running_loop(), list[str]()

    def quick(context: ToolContext) -> str:
        context.show("half")
        return "done"

    loop.set_default_executor(_AtOnce())

    def show(content: list[Any]) -> None:
        loop.call_soon_threadsafe(order.append, "shown")

    context = dataclasses.replace(CONTEXT, _show=show)
    await Tool(quick).run("{}", context)
    order.append("result")
    assert order == ["shown", "result"]
