"""The canvas calls as tools for any agent."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.canvas.runtime import TOOLS, call
from ahpkit.host.agent import CanvasRuntime
from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.protocol.validation import check
from support import requirement
from support.bench import Bench
from support.canvases import EXTENSION, failure, runtime


@pytest.fixture
async def agent(bench: Bench) -> CanvasRuntime:
    client = await bench.client()
    _, chat = await bench.session(client)
    return await runtime(bench, client, chat)


def test_the_tools_are_proper_definitions() -> None:
    for tool in TOOLS:
        check(ToolDefinition, dict(tool))
        assert tool.get("description")
    assert [tool["name"] for tool in TOOLS if tool.get("annotations", {}).get("readOnlyHint")] == [
        "canvas_list",
        "canvas_list_open",
    ]


@requirement("canvas:agent:list", "canvas:agent:list-open", "canvas:agent:open", "canvas:agent:invoke")
@requirement("canvas:agent:close")
async def test_every_call_has_the_shape_of_the_runtimes_interface(agent: CanvasRuntime) -> None:
    listed = await call(agent, "canvas_list")
    assert [one["canvasId"] for one in listed["canvases"]] == ["board"]
    given = {"canvasId": "board", "instanceId": "b1", "extensionId": EXTENSION, "input": {"title": "A"}}
    opened = await call(agent, "canvas_open", given)
    assert (opened["instanceId"], opened["title"], opened["reopen"]) == ("b1", "A", False)
    assert [one["instanceId"] for one in (await call(agent, "canvas_list_open", {}))["openCanvases"]] == ["b1"]
    added = {"instanceId": "b1", "actionName": "add", "input": {"card": 1}}
    assert await call(agent, "canvas_invoke", added) == {"result": {"cards": [1]}}
    assert await call(agent, "canvas_invoke", {"instanceId": "b1", "actionName": "echo"}) == {}
    assert await call(agent, "canvas_close", {"instanceId": "b1"}) == {}


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("canvas_dance", {}, "canvas_action_no_handler"),
        ("canvas_open", {}, "canvas_invalid_input"),
        ("canvas_open", {"canvasId": "board", "instanceId": 7}, "canvas_invalid_input"),
        ("canvas_open", {"canvasId": "none", "instanceId": "x"}, "canvas_not_found"),
        ("canvas_invoke", {"instanceId": "x", "actionName": "add"}, "canvas_instance_not_found"),
        ("canvas_close", None, "canvas_invalid_input"),
    ],
)
async def test_calls_that_fail_have_a_code(agent: CanvasRuntime, name: str, arguments: Any, code: str) -> None:
    assert (await failure(call(agent, name, arguments))).code == code
