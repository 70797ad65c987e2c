"""Canvases that are a document and a page: agents and users change the document, the page shows it.

A `PagedCanvas` says what a document is, in pure functions. `PagedProvider` keeps one for every open instance, through
restarts of the host, serves its page, and lets the page and the agent do the same things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any

from ahpkit.authoring.canvas import Canvas
from ahpkit.canvas.errors import INSTANCE_NOT_FOUND, NO_HANDLER, CanvasError
from ahpkit.canvas.pages import Page, Pages
from ahpkit.canvas.provider import ProviderEvents, PythonProvider
from ahpkit.canvas.registry import check_input
from ahpkit.host.feature import Values
from ahpkit.protocol.common.state import JsonObject

Document = JsonObject

Change = Callable[[Document, JsonObject], tuple[Document, Any]]
"""A document and an action's input become another document and the action's result. Pure; raises `CanvasError`."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can be done to a document."""

    description: str
    schema: JsonObject
    change: Change
    by_user: bool = False
    """Whether the page may do it, too."""


@dataclass(frozen=True, slots=True)
class PagedCanvas:
    """The definition of one canvas. All functions are pure."""

    canvas_id: str
    display_name: str
    description: str
    schema: JsonObject
    page: str
    """Name of the HTML file beside this module."""
    begin: Callable[[JsonObject], Document]
    describe: Callable[[Document], JsonObject]
    """Title and status of an instance."""
    actions: Mapping[str, Action]

    def html(self) -> str:
        return _file(self.page).replace("__COMMON__", _file("page.js"))


def _file(name: str) -> str:
    return (files("ahpkit.canvas.builtin") / name).read_text(encoding="utf-8")


@dataclass(slots=True)
class _Instance:
    document: Document
    page: Page


class PagedProvider(PythonProvider):
    """Serves paged canvases."""

    _values: Values

    def __init__(
        self,
        extension_id: str,
        canvases: Iterable[PagedCanvas],
        pages: Pages,
        *,
        name: str | None = None,
        needs_renderer: bool = False,
    ) -> None:
        self._pages = pages
        self._instances: dict[str, _Instance] = {}
        super().__init__(
            extension_id, [self._canvas_of(canvas) for canvas in canvases], name=name, needs_renderer=needs_renderer
        )

    def attach(self, events: ProviderEvents) -> None:
        super().attach(events)
        self._values = events.values

    def _canvas_of(self, kind: PagedCanvas) -> Canvas:
        canvas = Canvas(
            kind.canvas_id,
            partial(self._open, kind),
            display_name=kind.display_name,
            description=kind.description,
            input_schema=kind.schema,
        )
        canvas.on_close(self._close)
        for name, action in kind.actions.items():
            canvas.action(name, description=action.description, input_schema=action.schema)(
                partial(self._by_agent, kind)
            )
        return canvas

    async def _open(self, kind: PagedCanvas, request: Mapping[str, Any]) -> JsonObject:
        key = self._key(request)
        kept = self._values.get(key) if request.get("reopen") else None
        document = kept or kind.begin(request.get("input") or {})
        page = await self._pages.open(kind.html(), on_change=partial(self._by_user, kind, request))
        self._forget(key)
        self._instances[key] = _Instance(document, page)
        self._keep(key, document)
        return {"url": page.url, **kind.describe(document)}

    async def _by_agent(self, kind: PagedCanvas, request: Mapping[str, Any]) -> Any:
        return self._change(kind, request, request["actionName"], request.get("input") or {})

    async def _by_user(self, kind: PagedCanvas, request: Mapping[str, Any], done: JsonObject) -> Any:
        """Apply an action that came from the page. Its input has not been checked yet."""
        action = kind.actions.get(done["action"])
        if action is None or not action.by_user:
            raise CanvasError(f"the page cannot do {done['action']!r}", code=NO_HANDLER)
        given: JsonObject = done.get("input", {})
        check_input(action.schema, given)
        return self._change(kind, request, done["action"], given)

    def _change(self, kind: PagedCanvas, request: Mapping[str, Any], action: str, given: JsonObject) -> Any:
        key = self._key(request)
        instance = self._instances.get(key)
        if instance is None:
            raise CanvasError(f"{request['instanceId']!r} is not open", code=INSTANCE_NOT_FOUND)
        document, result = kind.actions[action].change(instance.document, given)
        if document is not instance.document:
            instance.document = document
            self._keep(key, document)
            self._canvas(request).push(request["sessionId"], request["instanceId"], **kind.describe(document))
        return result

    async def _close(self, request: Mapping[str, Any]) -> None:
        self._forget(self._key(request))
        self._values.set(self._key(request), None)

    def _keep(self, key: str, document: Document) -> None:
        self._values.set(key, document)
        self._instances[key].page.publish(document)

    def _forget(self, key: str) -> None:
        instance = self._instances.pop(key, None)
        if instance is not None:
            self._pages.release(instance.page)

    def _key(self, request: Mapping[str, Any]) -> str:
        return f"canvas/{self.extension_id}/{request['sessionId']}/{request['canvasId']}/{request['instanceId']}"


__all__ = ["Action", "Change", "Document", "PagedCanvas", "PagedProvider"]
