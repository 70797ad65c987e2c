"""What agents and providers may send: JSON, not too much of it, and a copy."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.canvas import CanvasError
from ahpkit.canvas.limits import (
    MAX_DEPTH,
    MAX_INPUT,
    check_declarations,
    check_id,
    own_answer,
    own_changes,
    own_error,
    own_input,
)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_input_is_copied() -> None:
    given = {"a": [1]}
    assert own_input(given) == given
    assert own_input(given)["a"] is not given["a"]


@pytest.mark.parametrize("value", [object(), {1, object()}, "x" * MAX_INPUT, nested(MAX_DEPTH + 1), nested(5000)])
def test_input_that_cannot_stand_in_a_state_is_refused(value: Any) -> None:
    with pytest.raises(CanvasError) as raised:
        own_input(value)
    assert raised.value.code == "canvas_invalid_input"


def test_input_may_be_nested_to_the_limit() -> None:
    assert own_input(nested(MAX_DEPTH)) == nested(MAX_DEPTH)


@pytest.mark.parametrize("value", ["", "x" * 201, 7, None])
def test_an_instance_id_is_a_short_string(value: Any) -> None:
    with pytest.raises(CanvasError, match="1 to 200 characters"):
        check_id(value)


def test_a_long_url_is_no_answer() -> None:
    with pytest.raises(CanvasError, match="url is longer"):
        own_answer({"kind": "open", "url": "https://" + "x" * 70_000})


def test_errors_are_cut() -> None:
    error = own_error(CanvasError("m" * 5000, code="c" * 5000))
    assert (len(error["code"]), len(error["message"])) == (100, 2_000)


def test_of_a_push_only_text_counts() -> None:
    pushed = {"title": None, "status": "s", "url": ["u"], "availability": None, "canvasId": "x"}
    assert own_changes(pushed) == {"title": None, "status": "s", "availability": "stale"}
    assert own_changes({"title": "x" * 501}) == {}


FINE: Any = {"canvasId": "a", "displayName": "A", "description": "An a"}


@pytest.mark.parametrize(
    ("declared", "word"),
    [
        ("nothing", "expected array"),
        ([{"canvasId": "a"}], "displayName: missing"),
        ([FINE, FINE], "canvas id"),
        ([{**FINE, "actions": [{"name": "x"}, {"name": "x"}]}], "action name"),
        ([{**FINE, "actions": [{"title": "x"}]}], "name: missing"),
        ([{**FINE, "description": "x" * 300_000}], "at most"),
    ],
)
def test_declarations_that_are_none_are_refused_with_the_place(declared: Any, word: str) -> None:
    assert word in (check_declarations(declared) or "")


def test_declarations_may_carry_what_nobody_knows() -> None:
    assert check_declarations([{**FINE, "icon": "🌍", "inputSchema": ["opaque"]}]) is None
