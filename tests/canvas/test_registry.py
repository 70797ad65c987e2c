"""The aggregated registry, and finding the one canvas that is meant."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.canvas import CanvasError
from ahpkit.canvas.registry import check_input, client_entries, find_action, find_canvas, server_entries

BOARD: Any = {"canvasId": "board", "displayName": "Board", "description": "A board"}
ME: Any = {"clientId": "me"}
REGISTRY = [*server_entries("one", None, [BOARD]), *server_entries("two", "Two", [BOARD])]


def test_what_a_declaration_says_about_its_owner_does_not_count() -> None:
    forged = {**BOARD, "extensionId": "forged", "source": "server", "clientId": "other"}
    [entry] = client_entries(ME | {"canvasProviders": [forged]})
    assert (entry["extensionId"], entry["source"], entry["clientId"]) == ("client:me", "activeClient", "me")
    [entry] = server_entries("one", None, [{**forged, "source": "activeClient"}])
    assert (entry["extensionId"], entry["source"]) == ("one", "server")
    assert "clientId" not in entry


def test_without_a_client_there_is_nothing_of_it() -> None:
    assert client_entries(ME) == []


def test_the_error_for_an_unknown_canvas_names_those_there_are() -> None:
    with pytest.raises(CanvasError, match="'chart'; declared: board"):
        find_canvas(REGISTRY, "chart", None)
    with pytest.raises(CanvasError, match="'board' of 'three'"):
        find_canvas(REGISTRY, "board", "three")
    with pytest.raises(CanvasError, match="declared: none"):
        find_canvas([], "board", None)


def test_the_error_for_an_ambiguous_canvas_names_the_candidates() -> None:
    with pytest.raises(CanvasError, match="'one', 'two'"):
        find_canvas(REGISTRY, "board", None)
    assert find_canvas(REGISTRY, "board", "two")["extensionName"] == "Two"


def test_the_error_for_an_unknown_action_names_those_there_are() -> None:
    with pytest.raises(CanvasError, match="no action 'fly'; it has: add, move"):
        find_action({**BOARD, "actions": [{"name": "add"}, {"name": "move"}]}, "fly")


@pytest.mark.parametrize("schema", [None, {"type": "object"}, True])
def test_no_input_counts_as_an_empty_object(schema: Any) -> None:
    check_input(schema, None)


@pytest.mark.parametrize("schema", [{"type": "no such type"}, {"$ref": "https://evil.example/schema"}, 7])
def test_a_schema_that_cannot_be_used_lets_nothing_through(schema: Any) -> None:
    with pytest.raises(CanvasError) as raised:
        check_input(schema, {})
    assert raised.value.code == "canvas_invalid_input"
