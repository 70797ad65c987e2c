"""Canvases: UI surfaces that agents open and drive. The bridge between agents, providers and clients."""

from ahpkit.canvas.feature import Canvases
from ahpkit.canvas.provider import Provider, ProviderCall
from ahpkit.canvas.python import PythonProvider
from ahpkit.protocol.canvas import Canvas, CanvasError, canvas, canvas_action

__all__ = ["Canvas", "CanvasError", "Canvases", "Provider", "ProviderCall", "PythonProvider", "canvas", "canvas_action"]
