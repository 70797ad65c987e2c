"""One namespace of tools: unique, takeable, stable."""

from __future__ import annotations

import re
import tracemalloc
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.protocol.session.state import ToolDefinition
from ahpkit.tools.registry import MAX_NAME, Owner, OwnerKind, ToolRegistry, input_object, search, tool_hints
from support import requirement

AGENT, CLIENT, TIME = Owner("agent", "demo"), Owner("client", "c1", "Editor"), Owner("mcp", "s1", "time")


def tools(*names: str) -> list[ToolDefinition]:
    return [cast("ToolDefinition", {"name": name, "description": f"does {name}"}) for name in names]


def names(registry: ToolRegistry) -> list[str]:
    return [tool.name for tool in registry]


def test_a_clients_tool_gives_way_to_the_agents_own() -> None:
    registry = ToolRegistry()
    registry.offer(CLIENT, tools("calculate", "show"))
    registry.offer(AGENT, tools("calculate"))
    assert names(registry) == ["calculate", "client_calculate", "show"]
    found = registry.find("client_calculate")
    assert found is not None
    assert (found.owner, found.own_name) == (CLIENT, "calculate")
    assert registry.find("calculate") is not None
    assert registry.find("calculate").owner == AGENT  # type: ignore[union-attr]  # It is there.


def test_a_servers_tools_carry_its_name() -> None:
    registry = ToolRegistry()
    registry.offer(TIME, tools("now", "in zone?"))
    assert names(registry) == ["time_now", "time_in_zone"]


def test_names_stay_when_others_come_and_go() -> None:
    registry = ToolRegistry()
    other = Owner("mcp", "s0", "time")
    registry.offer(TIME, tools("now"))
    assert names(registry) == ["time_now"]
    registry.offer(other, tools("now"))
    assert registry.find("time_now").owner == TIME  # type: ignore[union-attr]  # It is there.
    assert len(registry) == 2
    registry.withdraw(TIME)
    assert "time_now" not in names(registry)
    registry.offer(TIME, tools("now"))
    assert registry.find("time_now").owner == TIME  # type: ignore[union-attr]  # It is there.


def test_a_server_that_changes_its_tools_for_ever_takes_no_more_and_more_room() -> None:
    registry = ToolRegistry(max_past=50, max_names=500)
    sizes: list[int] = []
    tracemalloc.start()
    try:
        for number in range(26):
            offered = tools(*(f"t{number}_{one}" for one in range(50)), "now")
            registry.offer(TIME, [{**tool, "description": "x" * 10_000} for tool in offered])
            assert len(registry) == 51
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[25] < 1.2 * sizes[13]
    assert registry.find("time_now") is not None
    assert [tool.name for tool in registry.gone()] == [f"time_t24_{one}" for one in range(50)]
    registry.offer(TIME, tools("t24_49", "t25_0"))
    assert names(registry) == ["time_t24_49", "time_t25_0"]
    assert "time_t24_49" not in [tool.name for tool in registry.gone()]


def test_nobody_takes_the_names_with_which_tools_are_found_and_called() -> None:
    registry = ToolRegistry()
    registry.offer(CLIENT, tools("find_tool", "call_tool"))
    registry.offer(Owner("mcp", "s1", "call"), tools("tool"))
    assert {"find_tool", "call_tool"}.isdisjoint(names(registry))
    assert len(registry) == 3


def test_one_tool_of_two_clients_is_shown_once_and_run_by_who_began() -> None:
    registry = ToolRegistry()
    second = Owner("client", "c2", "Phone")
    registry.offer(CLIENT, tools("show"))
    registry.offer(second, tools("show"))
    assert names(registry) == ["show"]
    found = registry.find("show")
    assert found is not None
    assert found.by("c2") == second
    assert found.by("c1") == found.by(None) == found.by("somebody") == CLIENT


def test_an_offer_that_is_the_same_changes_nothing() -> None:
    registry = ToolRegistry()
    assert registry.offer(TIME, tools("now"))
    assert not registry.offer(TIME, tools("now"))
    assert registry.offer(TIME, tools())
    assert not registry.offer(CLIENT, [])
    assert registry.withdraw(TIME)
    assert not registry.withdraw(TIME)


KINDS: list[OwnerKind] = ["mcp", "client"]


OWNERS = st.tuples(st.sampled_from(KINDS), st.text(max_size=4))


@given(st.dictionaries(OWNERS, st.lists(st.text(max_size=80), max_size=6), max_size=6))
def test_every_name_is_unique_and_one_that_models_take(offers: dict[tuple[OwnerKind, str], list[str]]) -> None:
    registry = ToolRegistry()
    for (kind, id), offered in offers.items():
        registry.offer(Owner(kind, id, id), tools(*offered))
    before = names(registry)
    assert len(set(before)) == len(registry)
    for name in before:
        assert re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}", name)
    for kind, id in offers:
        registry.withdraw(Owner(kind, id, id))
    assert len(registry) == 0
    for (kind, id), offered in reversed(offers.items()):
        registry.offer(Owner(kind, id, id), tools(*offered))
    assert set(names(registry)) == set(before)


@pytest.mark.parametrize(("query", "first"), [("now", "time_now"), ("zone", "time_zone"), ("", "time_now")])
def test_tools_are_found_by_words(query: str, first: str) -> None:
    registry = ToolRegistry()
    registry.offer(TIME, tools("now", "zone"))
    definitions = [tool.definition for tool in registry]
    assert search(definitions, query, 5)[0]["name"] == first
    assert search(definitions, "nothing like it", 5) == []


@requirement("session:tool:annotation-defaults")
@pytest.mark.parametrize(
    "definition", [{}, {"annotations": {}}, {"annotations": None}, {"annotations": {"title": "T"}}]
)
def test_a_tool_that_says_nothing_about_itself_may_do_anything(definition: Any) -> None:
    assert tool_hints({"name": "t", **definition}) == (False, True, False, True)


@requirement("session:tool:annotation-defaults")
def test_what_a_tool_says_counts_and_the_rest_has_its_default() -> None:
    assert tool_hints({"annotations": {"readOnlyHint": True}}) == (True, True, False, True)
    assert tool_hints({"annotations": {"destructiveHint": False}}) == (False, False, False, True)
    assert tool_hints({"annotations": {"idempotentHint": True, "openWorldHint": False}}) == (False, True, True, False)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "9" * 5_000, "[1]", "null", '"text"'])
def test_an_input_that_is_no_object_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="the input is not"):
        input_object(text)


def test_no_input_is_an_empty_object() -> None:
    assert (input_object(""), input_object('{"a": 1}')) == ({}, {"a": 1})
