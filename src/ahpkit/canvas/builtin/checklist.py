"""A checklist or kanban board that the user and the agent both change. Pure: defines the document."""

from __future__ import annotations

from typing import Any

from ahpkit.canvas.builtin.paged import Action, Document, PagedCanvas
from ahpkit.canvas.errors import INVALID_INPUT, LIMIT, CanvasError
from ahpkit.protocol.common.state import JsonObject

MAX_ITEMS = 500
"""The largest number of items of a board."""

_COLUMNS = ["To do", "Doing", "Done"]
_TEXT = {"type": "string", "minLength": 1, "maxLength": 1_000}
_COLUMN = {"type": "string", "minLength": 1, "maxLength": 60}
_ID = {"type": "string", "maxLength": 20}


def begin(given: JsonObject) -> Document:
    columns = list(dict.fromkeys(given.get("columns") or _COLUMNS))
    document: Document = {"title": given.get("title", "Checklist"), "columns": columns, "items": [], "next": 1}
    items: list[Any] = given.get("items", [])
    for item in items:
        document, _ = add_item(document, {"text": item} if isinstance(item, str) else item)
    return document


def add_item(document: Document, given: JsonObject) -> tuple[Document, Any]:
    if len(document["items"]) >= MAX_ITEMS:
        raise CanvasError(f"a board has at most {MAX_ITEMS} items", code=LIMIT)
    column = _column(document, given.get("column", document["columns"][0]))
    item = {"id": str(document["next"]), "text": given["text"], "column": column}
    return {**document, "items": [*document["items"], item], "next": document["next"] + 1}, item


def move_item(document: Document, given: JsonObject) -> tuple[Document, Any]:
    """Move an item to the end of a column, or before another item."""
    item = {**_item(document, given["id"]), "column": _column(document, given["column"])}
    others = [one for one in document["items"] if one["id"] != item["id"]]
    ids = [one["id"] for one in others]
    place = ids.index(given["before"]) if given.get("before") in ids else len(others)
    return {**document, "items": [*others[:place], item, *others[place:]]}, item


def edit_item(document: Document, given: JsonObject) -> tuple[Document, Any]:
    item = {**_item(document, given["id"]), "text": given["text"]}
    return {**document, "items": [item if one["id"] == item["id"] else one for one in document["items"]]}, item


def remove_item(document: Document, given: JsonObject) -> tuple[Document, Any]:
    item = _item(document, given["id"])
    return {**document, "items": [one for one in document["items"] if one["id"] != item["id"]]}, None


def read(document: Document, given: JsonObject) -> tuple[Document, Any]:
    return document, {key: document[key] for key in ("title", "columns", "items")}


def describe(document: Document) -> JsonObject:
    done = sum(item["column"] == document["columns"][-1] for item in document["items"])
    return {"title": document["title"], "status": f"{done} of {len(document['items'])} done"}


def _item(document: Document, id: str) -> JsonObject:
    item = next((one for one in document["items"] if one["id"] == id), None)
    if item is None:
        raise CanvasError(f"there is no item {id!r}", code=INVALID_INPUT)
    return item


def _column(document: Document, name: str) -> str:
    if name not in document["columns"]:
        raise CanvasError(
            f"there is no column {name!r}; there are: {', '.join(document['columns'])}", code=INVALID_INPUT
        )
    return name


def _takes(*required: str, **properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(required)}


CHECKLIST = PagedCanvas(
    "checklist",
    "Checklist",
    "A board of items in columns that the user and the agent both change. The last column is what is done.",
    {
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 200},
            "columns": {"type": "array", "items": _COLUMN, "maxItems": 8},
            "items": {
                "type": "array",
                "maxItems": MAX_ITEMS,
                "items": {"anyOf": [_TEXT, _takes("text", text=_TEXT, column=_COLUMN)]},
            },
        },
    },
    "checklist.html",
    begin,
    describe,
    {
        "addItem": Action("Add an item.", _takes("text", text=_TEXT, column=_COLUMN), add_item, by_user=True),
        "moveItem": Action(
            "Move an item to another column, to its end or before another item.",
            _takes("id", "column", id=_ID, column=_COLUMN, before=_ID),
            move_item,
            by_user=True,
        ),
        "editItem": Action(
            "Change the text of an item.", _takes("id", "text", id=_ID, text=_TEXT), edit_item, by_user=True
        ),
        "removeItem": Action("Remove an item.", _takes("id", id=_ID), remove_item, by_user=True),
        "read": Action("Return the board as it is now, with what the user did.", _takes(), read),
    },
)

__all__ = ["CHECKLIST", "MAX_ITEMS"]
