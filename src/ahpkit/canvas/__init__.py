"""Canvases: UI surfaces that agents open and drive. The bridge between agents, providers and clients.

A name is loaded when it is first used, so that a small extension does not load the host.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ahpkit.authoring.canvas import Canvas, CanvasError, canvas, canvas_action
    from ahpkit.canvas.author import run_extension
    from ahpkit.canvas.extensions import ExtensionProcess, ExtensionSocket
    from ahpkit.canvas.feature import Canvases
    from ahpkit.canvas.provider import Provider, PythonProvider
    from ahpkit.canvas.url_policy import UrlPolicy, check_url

_HOMES = {
    "ahpkit.canvas.author": ["run_extension"],
    "ahpkit.canvas.extensions": ["ExtensionProcess", "ExtensionSocket"],
    "ahpkit.canvas.feature": ["Canvases"],
    "ahpkit.canvas.provider": ["Provider", "PythonProvider"],
    "ahpkit.canvas.url_policy": ["UrlPolicy", "check_url"],
    "ahpkit.authoring.canvas": ["Canvas", "CanvasError", "canvas", "canvas_action"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


__all__ = [
    "Canvas",
    "CanvasError",
    "Canvases",
    "ExtensionProcess",
    "ExtensionSocket",
    "Provider",
    "PythonProvider",
    "UrlPolicy",
    "canvas",
    "canvas_action",
    "check_url",
    "run_extension",
]
