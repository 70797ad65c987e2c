"""A canvas in twenty lines: a page of notes that an agent writes on.

Run: ahpkit serve --extension "python examples/canvas_notes.py"
"""

from html import escape
from typing import Any
from urllib.parse import quote

from ahpkit.canvas import canvas, canvas_action, run_extension


@canvas("notes", display_name="Notes", description="A page of notes to write on.")
class Notes:
    def __init__(self) -> None:
        self.pages: dict[str, list[str]] = {}

    def open(self, request: Any) -> Any:
        self.pages.setdefault(request["instanceId"], [])
        return {"title": "Notes", "url": self.url(request)}

    @canvas_action(description="Write a line.", input_schema={"type": "object", "required": ["text"]})
    def write(self, request: Any) -> None:
        self.pages[request["instanceId"]].append(escape(request["input"]["text"]))
        Notes.push(request["sessionId"], request["instanceId"], url=self.url(request))

    def close(self, request: Any) -> None:
        del self.pages[request["instanceId"]]

    def url(self, request: Any) -> str:
        return "data:text/html," + quote("<br>".join(self.pages[request["instanceId"]]))


if __name__ == "__main__":
    run_extension("example.notes", [Notes])
