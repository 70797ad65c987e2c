"""The checklist's document: items with lasting ids, in columns, the last of which is done."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.canvas import CanvasError
from ahpkit.canvas.builtin.checklist import CHECKLIST, MAX_ITEMS
from ahpkit.canvas.registry import check_input


def do(document: Any, action: str, **given: Any) -> tuple[Any, Any]:
    check_input(CHECKLIST.actions[action].schema, given)
    return CHECKLIST.actions[action].change(document, given)


@pytest.fixture
def board() -> Any:
    return CHECKLIST.begin({"title": "Trip", "items": ["pack", {"text": "book", "column": "Done"}, "pay"]})


def texts(board: Any) -> list[str]:
    return [f"{item['id']} {item['text']}: {item['column']}" for item in board["items"]]


def test_a_board_begins_with_its_input(board: Any) -> None:
    assert texts(board) == ["1 pack: To do", "2 book: Done", "3 pay: To do"]
    assert CHECKLIST.describe(board) == {"title": "Trip", "status": "1 of 3 done"}
    assert CHECKLIST.begin({"columns": ["a", "b", "a"]})["columns"] == ["a", "b"]


def test_ids_are_never_used_again(board: Any) -> None:
    board, _ = do(board, "removeItem", id="3")
    board, item = do(board, "addItem", text="new")
    assert item == {"id": "4", "text": "new", "column": "To do"}


def test_items_move_to_the_end_or_before_another(board: Any) -> None:
    board, moved = do(board, "moveItem", id="1", column="Done")
    assert moved["column"] == "Done"
    assert texts(board) == ["2 book: Done", "3 pay: To do", "1 pack: Done"]
    board, _ = do(board, "moveItem", id="1", column="Doing", before="2")
    assert texts(board) == ["1 pack: Doing", "2 book: Done", "3 pay: To do"]
    board, _ = do(board, "moveItem", id="1", column="Doing", before="gone")
    assert texts(board)[-1] == "1 pack: Doing"


def test_text_can_change(board: Any) -> None:
    board, _ = do(board, "editItem", id="2", text="book it")
    assert texts(board)[1] == "2 book it: Done"


def test_reading_changes_nothing(board: Any) -> None:
    same, result = do(board, "read")
    assert same is board
    assert set(result) == {"title", "columns", "items"}


@pytest.mark.parametrize(
    ("action", "given", "word"),
    [
        ("moveItem", {"id": "9", "column": "Done"}, "no item '9'"),
        ("moveItem", {"id": "1", "column": "Nowhere"}, "there are: To do, Doing, Done"),
        ("addItem", {"text": "x", "column": "Nowhere"}, "no column"),
        ("editItem", {"id": "9", "text": "x"}, "no item"),
        ("removeItem", {"id": "9"}, "no item"),
        ("addItem", {"text": ""}, "input"),
        ("addItem", {"text": "x" * 1001}, "input"),
    ],
)
def test_what_is_not_there_cannot_be_changed(board: Any, action: str, given: Any, word: str) -> None:
    with pytest.raises(CanvasError, match=word) as raised:
        do(board, action, **given)
    assert raised.value.code == "canvas_invalid_input"


def test_a_board_is_bounded() -> None:
    board = CHECKLIST.begin({"items": ["x"] * MAX_ITEMS})
    with pytest.raises(CanvasError) as raised:
        do(board, "addItem", text="one more")
    assert raised.value.code == "canvas_limit"
