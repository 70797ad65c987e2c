"""The lists of a server: one bad entry costs itself alone, and only public parts of the SDK are used for that."""

from __future__ import annotations

import ast
import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import parse_server_result

import ahpkit.mcp
from ahpkit.mcp.connect import ServerConfig
from ahpkit.mcp.tolerance import MAX_LEFT_OUT, LeftOut, without_bad_entries
from mcp_servers.running import Answers, Port, running, text_of

OLD, NEW = "2025-06-18", "2026-07-28"
EXTRAS: dict[str, dict[str, Any]] = {OLD: {}, NEW: {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
GOOD: dict[str, Any] = {"name": "fine", "inputSchema": {"type": "object"}}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "outputSchema"]), inner),
    max_leaves=8,
)


def kept(version: str, key: str, *entries: Any) -> tuple[list[Any], LeftOut]:
    left_out: LeftOut = {}
    answer = without_bad_entries({key: list(entries), **EXTRAS[version]}, version, left_out)
    return answer[key], left_out


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    ("bad", "name", "why"),
    [
        ({"name": "none"}, "none", "inputSchema: Field required"),
        ({"name": "text", "inputSchema": "object"}, "text", "inputSchema"),
        ({"name": "array", "inputSchema": {"type": "array"}}, "array", "inputSchema"),
        ({"name": 7, "inputSchema": {"type": "object"}}, "a tool without a name", "name"),
        ("not an object", "a tool without a name", "it is not an object"),
    ],
)
def test_a_bad_tool_is_left_out_and_named(version: str, bad: Any, name: str, why: str) -> None:
    tools, left_out = kept(version, "tools", bad, GOOD)
    assert tools == [GOOD]
    assert list(left_out) == [name]
    assert why in left_out[name]


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    "odd",
    [
        {"inputSchema": {}},
        {"inputSchema": {"properties": {"a": {"type": "string"}}}},
        {"inputSchema": {"type": "object"}, "outputSchema": "text"},
        {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "perhaps"}},
        {"inputSchema": {"type": "object"}, "icons": 3},
    ],
)
def test_a_tool_with_one_odd_member_is_used_without_it(version: str, odd: dict[str, Any]) -> None:
    tools, left_out = kept(version, "tools", {"name": "odd", "description": "works", **odd}, GOOD)
    assert [(tool["name"], tool.get("description")) for tool in tools] == [("odd", "works"), ("fine", None)]
    assert left_out == {}


@pytest.mark.parametrize(
    ("key", "bad", "good", "name"),
    [
        ("prompts", {"name": "p", "arguments": 3}, {"name": "q"}, "prompt p"),
        ("resources", {"name": "r"}, {"name": "s", "uri": "test://s"}, "resource r"),
        ("resourceTemplates", {"name": "t"}, {"name": "u", "uriTemplate": "test://{u}"}, "resource template t"),
    ],
)
def test_so_are_prompts_and_resources(key: str, bad: Any, good: Any, name: str) -> None:
    entries, left_out = kept(OLD, key, bad, good)
    assert (entries, list(left_out)) == ([good], [name])


def test_only_some_of_what_is_left_out_is_named() -> None:
    entries, left_out = kept(OLD, "tools", *({"name": f"bad{number}"} for number in range(1000)))
    assert (entries, len(left_out)) == ([], MAX_LEFT_OUT)


@given(st.lists(JSON, max_size=4), st.sampled_from([OLD, NEW]))
def test_whatever_is_in_a_list_the_rest_of_it_is_one_that_the_sdk_takes(entries: list[Any], version: str) -> None:
    answer = {"tools": [*entries, GOOD], **EXTRAS[version]}
    before = copy.deepcopy(answer)
    filtered = without_bad_entries(answer, version, {})
    assert GOOD in filtered["tools"]
    assert answer == before
    parse_server_result("tools/list", version, filtered)


@pytest.mark.parametrize(
    "answer", [{}, {"tools": 3}, {"content": [], "tools": ["mine"]}, {"capabilities": {"tools": {}}}]
)
def test_other_answers_are_not_touched(answer: dict[str, Any]) -> None:
    assert without_bad_entries(answer, OLD, {}) is answer


RAW = """
import json, sys

ANSWERS = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = ANSWERS.get(message["method"], {"error": {"code": -32601, "message": "no"}})
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
HELLO: dict[str, Any] = {
    "protocolVersion": OLD,
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}


def raw(directory: Path, **answers: Any) -> ServerConfig:
    """A server that gives these answers, whatever they are. `tools_list` is the method `tools/list`."""
    program = directory / "raw.py"
    program.write_text(RAW)
    yes = {"content": [{"type": "text", "text": "yes"}]}
    said: dict[str, Any] = {"initialize": {"result": HELLO}, "tools/call": {"result": yes}}
    said |= {method.replace("_", "/"): answer for method, answer in answers.items()}
    return ServerConfig(name="raw", command=(sys.executable, str(program), json.dumps(said)))


async def test_every_list_of_a_running_server_keeps_what_is_good(tmp_path: Path) -> None:
    config = raw(
        tmp_path,
        tools_list={"result": {"tools": [{"name": "bad"}, GOOD]}},
        prompts_list={"result": {"prompts": [{"name": 3}, {"name": "poem"}]}},
        resources_list={"result": {"resources": [{"name": "r"}, {"name": "s", "uri": "test://s"}]}},
    )
    async with running(config, Port()) as server:
        assert [tool["name"] for tool in server.lists.tools] == ["fine"]
        assert [prompt["name"] for prompt in server.lists.prompts] == ["poem"]
        assert [resource["uri"] for resource in server.lists.resources] == ["test://s"]
        assert set(server.lists.left_out) == {"bad", "a prompt without a name", "resource r"}
        assert any("bad is left out" in line for line in server.log())
        assert text_of(await server.call_tool("fine", {}, Answers())) == "yes"
        listed = await server.request("tools/list", {}, Answers())
        assert [tool["name"] for tool in listed["tools"]] == ["fine"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"error": {"code": -32603, "message": "the prompts are on fire"}}, "the prompts are on fire"),
        ({"result": {"prompts": "none"}}, "prompts"),
        ({"result": {}}, "prompts"),
    ],
)
async def test_prompts_that_cannot_be_listed_do_not_cost_the_tools(tmp_path: Path, answer: Any, why: str) -> None:
    config = raw(tmp_path, tools_list={"result": {"tools": [GOOD]}}, prompts_list=answer)
    async with running(config, Port()) as server:
        assert [tool["name"] for tool in server.lists.tools] == ["fine"]
        assert why in server.lists.left_out["every prompt"]


@pytest.mark.parametrize(
    "answer", [{"result": {"tools": "none"}}, {"result": {}}, {"error": {"code": 1, "message": "no"}}]
)
async def test_tools_that_cannot_be_listed_are_an_error_in_one_line(tmp_path: Path, answer: Any) -> None:
    port = Port()
    async with running(raw(tmp_path, tools_list=answer), port, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "error")
        message: str = server.state["error"]["message"]
        assert message.startswith("raw: ")
        assert ("\n" in message, "pydantic" in message) == (False, False)


def test_no_private_part_of_another_library_is_used() -> None:
    """The SDK may change its private parts at any time."""
    for path in Path(ahpkit.mcp.__path__[0]).glob("*.py"):
        attributes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)]
        private = {ast.unparse(node) for node in attributes if re.match(r"_(?!_|replace$)", node.attr)}
        assert {used for used in private if not used.startswith(("self._", "cls._"))} == set(), path.name
