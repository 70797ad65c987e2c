"""Canvases: UI surfaces that agents open and drive. The bridge between agents, providers and clients."""

from ahpkit.canvas.feature import Canvases
from ahpkit.canvas.provider import Provider
from ahpkit.canvas.python import PythonProvider
from ahpkit.protocol.canvas import Canvas, CanvasError, canvas, canvas_action

__all__ = ["Canvas", "CanvasError", "Canvases", "Provider", "PythonProvider", "canvas", "canvas_action"]
