"""A canvas as Python code: of a class, an object or functions, with one set of handlers for every place."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ahpkit.authoring.canvas import Canvas, CanvasError, answer, call_context, canvas, canvas_action


class Recorder:
    """Serves a canvas and writes down what it says."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def canvas_declared(self, canvas: Canvas) -> None:
        self.said.append(canvas.declaration)

    def canvas_pushed(self, canvas: Canvas, session_id: str, instance_id: str, changes: dict[str, Any]) -> None:
        self.said.append((session_id, instance_id, changes))


class Base:
    @canvas_action()
    def zoom(self, request: Any) -> str:
        return "base"

    @property
    def broken(self) -> None:
        raise AssertionError("properties are not looked at")


class Board(Base):
    def open(self, request: Any) -> dict[str, Any]:
        return {"title": request["instanceId"], "url": None, "color": "red"}

    @canvas_action("add-card", description="Add", input_schema={"type": "object"})
    async def add(self, request: Any) -> int:
        return 7

    @canvas_action(description="Closer")
    def zoom(self, request: Any) -> str:
        return "board"


def nothing(request: Any) -> None: ...


board = canvas("board", display_name="Board", description="A board")(Board)


def test_actions_are_declared_in_the_order_they_were_written() -> None:
    assert board.declaration == {
        "canvasId": "board",
        "displayName": "Board",
        "description": "A board",
        "actions": [
            {"name": "zoom", "description": "Closer"},
            {"name": "add-card", "description": "Add", "inputSchema": {"type": "object"}},
        ],
    }


async def test_handlers_may_wait_or_not() -> None:
    assert await answer(board, "action", {"actionName": "add-card"}) == {"kind": "action", "value": 7}
    assert await answer(board, "action", {"actionName": "zoom"}) == {"kind": "action", "value": "board"}
    assert await answer(board, "open", {"instanceId": "b"}) == {"kind": "open", "title": "b"}
    assert await answer(board, "close", {}) == {"kind": "close"}


async def test_a_canvas_of_functions() -> None:
    closed: list[Any] = []

    @canvas("note", display_name="Note", description="A note")
    async def note(request: Any) -> dict[str, str]:
        return {"url": "https://note.example"}

    recorder = Recorder()
    note.attach(recorder)
    note.action("write")(nothing)
    note.on_close(closed.append)

    assert recorder.said == [note.declaration]
    assert note.declaration.get("actions") == [{"name": "write"}]
    assert await answer(note, "open", {}) == {"kind": "open", "url": "https://note.example"}
    assert await answer(note, "action", {"actionName": "write"}) == {"kind": "action"}
    await answer(note, "close", {"instanceId": "n"})
    assert closed == [{"instanceId": "n"}]


async def test_a_canvas_without_handlers_opens_and_closes() -> None:
    empty = Canvas("x", display_name="X", description="x")
    assert await answer(empty, "open", {}) == {"kind": "open"}
    assert await answer(empty, "close", {}) == {"kind": "close"}


@pytest.mark.parametrize("opening", [["url"], "https://x.example", {"url": 7}, {"title": ["x"]}, {"status": False}])
async def test_what_is_no_answer_to_open_is_the_providers_error(opening: Any) -> None:
    def open(request: Any) -> Any:
        return opening

    with pytest.raises(CanvasError) as raised:
        await answer(canvas("x", display_name="X", description="x")(open), "open", {})
    assert raised.value.code == "canvas_provider_error"


async def test_an_unknown_action_and_an_unknown_kind_have_no_handler() -> None:
    with pytest.raises(CanvasError, match="no action 'fly'") as raised:
        await answer(board, "action", {"actionName": "fly"})
    assert raised.value.code == "canvas_action_no_handler"
    with pytest.raises(CanvasError, match="'dance' are not understood"):
        await answer(board, cast(Any, "dance"), {})


def test_a_push_goes_to_whoever_serves_the_canvas() -> None:
    note = Canvas("note", display_name="Note", description="A note")
    with pytest.raises(CanvasError, match="not served"):
        note.push("s", "i", title="T")
    recorder = Recorder()
    note.attach(recorder)
    note.push("s", "i", title="T", status=None)
    assert recorder.said == [("s", "i", {"title": "T", "status": None})]


def test_a_schema_cannot_be_changed_behind_the_declaration() -> None:
    schema = {"type": "object"}
    made = Canvas("x", display_name="X", description="x", input_schema=schema)
    schema["type"] = "array"
    assert made.declaration.get("inputSchema") == {"type": "object"}


def test_two_actions_with_one_name_are_a_mistake() -> None:
    class Twice:
        @canvas_action("same")
        def one(self, request: Any) -> None: ...

        @canvas_action("same")
        def two(self, request: Any) -> None: ...

    with pytest.raises(ValueError, match="two actions named 'same'"):
        Canvas("x", Twice, display_name="X", description="x")


def test_the_context_of_a_call_comes_from_the_session() -> None:
    assert call_context("ahp-session:/s1", {}) == {
        "sessionId": "s1",
        "host": {"capabilities": {"canvases": False}},
        "session": {},
    }
    state = {
        "summary": {"workingDirectory": "file:///work"},
        "activeClient": {"clientId": "me", "canRenderCanvases": True},
    }
    assert call_context("ahp-session:/s1", state) == {
        "sessionId": "s1",
        "host": {"capabilities": {"canvases": True}},
        "session": {"workingDirectory": "file:///work"},
    }
