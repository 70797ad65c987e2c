"""A live chart: named series of points that an agent adds to while people watch. Pure: defines the document."""

from __future__ import annotations

import csv
import io
from typing import Any

from ahpkit.canvas.builtin.paged import Action, Document, PagedCanvas
from ahpkit.canvas.errors import LIMIT, CanvasError
from ahpkit.protocol.common.state import JsonObject

MAX_POINTS = 5_000
"""Points of a chart: as many as a screen can show. The oldest points of a series are removed first."""

MAX_SERIES = 12
"""Series of a chart. Nobody can distinguish more colours."""

_NAME = {"type": "string", "minLength": 1, "maxLength": 100}
_TITLE = {"type": "string", "maxLength": 200}
_POINTS = {
    "type": "array",
    "maxItems": MAX_POINTS,
    "items": {
        "anyOf": [
            {"type": "number"},
            {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        ]
    },
    "description": "Numbers, which are counted on, or [x, y] pairs.",
}
_SERIES = {"name": _NAME, "points": _POINTS}


def begin(given: JsonObject) -> Document:
    document: Document = {"title": given.get("title", "Chart"), "kind": given.get("kind", "line"), "series": []}
    for series in given.get("series", ()):
        document, _ = add_points(document, {"series": series["name"], "points": series.get("points", [])})
    return document


def add_points(document: Document, given: JsonObject) -> tuple[Document, Any]:
    """Append points to a series. A series that does not exist is created."""
    name, all_series = given["series"], document["series"]
    old = next((series["points"] for series in all_series if series["name"] == name), None)
    if old is None and len(all_series) >= MAX_SERIES:
        raise CanvasError(f"a chart has at most {MAX_SERIES} series", code=LIMIT)
    others = sum(len(series["points"]) for series in all_series if series["name"] != name)
    points = [*(old or ()), *_pairs(given["points"], after=old[-1][0] if old else None)]
    points = points[max(0, len(points) - (MAX_POINTS - others)) :] if others < MAX_POINTS else []
    changed = {"name": name, "points": points}
    if old is None:
        new = [*all_series, changed]
    else:
        new = [changed if series["name"] == name else series for series in all_series]
    return {**document, "series": new}, {"series": name, "points": len(points)}


def set_title(document: Document, given: JsonObject) -> tuple[Document, Any]:
    return {**document, "title": given["title"]}, None


def export(document: Document, given: JsonObject) -> tuple[Document, Any]:
    """The whole chart, as JSON or as CSV with a row for each point."""
    if given.get("format") != "csv":
        return document, document
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["series", "x", "y"])
    rows.writerows([_cell(series["name"]), *point] for series in document["series"] for point in series["points"])
    return document, text.getvalue()


def describe(document: Document) -> JsonObject:
    points = sum(len(series["points"]) for series in document["series"])
    return {"title": document["title"], "status": f"{points} points in {len(document['series'])} series"}


def _pairs(points: list[Any], *, after: float | None) -> list[list[float]]:
    pairs: list[list[float]] = []
    last = -1 if after is None else after
    for point in points:
        pairs.append([last + 1, point] if isinstance(point, int | float) else point)
        last = pairs[-1][0]
    return pairs


def _cell(text: str) -> str:
    """A cell in a form that no spreadsheet reads as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


CHART = PagedCanvas(
    "chart",
    "Chart",
    "A live line or bar chart. Open it with a title and series, then add points while people watch.",
    {
        "type": "object",
        "properties": {
            "title": _TITLE,
            "kind": {"enum": ["line", "bar"]},
            "series": {
                "type": "array",
                "maxItems": MAX_SERIES,
                "items": {"type": "object", "properties": _SERIES, "required": ["name"]},
            },
        },
    },
    "chart.html",
    begin,
    describe,
    {
        "addPoints": Action(
            "Append points to a series; a new name begins a new series.",
            {"type": "object", "properties": {"series": _NAME, "points": _POINTS}, "required": ["series", "points"]},
            add_points,
        ),
        "setTitle": Action(
            "Give the chart another title.",
            {"type": "object", "properties": {"title": _TITLE}, "required": ["title"]},
            set_title,
        ),
        "export": Action(
            "Return everything in the chart.",
            {"type": "object", "properties": {"format": {"enum": ["json", "csv"]}}},
            export,
        ),
    },
)

__all__ = ["CHART", "MAX_POINTS", "MAX_SERIES"]
