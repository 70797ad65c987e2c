"""Canvases that every host has: a live chart and a shared checklist."""

from __future__ import annotations

from ahpkit.canvas.builtin.chart import CHART
from ahpkit.canvas.builtin.checklist import CHECKLIST
from ahpkit.canvas.builtin.paged import PagedProvider
from ahpkit.canvas.pages import Pages

EXTENSION_ID = "ahpkit"


def builtin_provider(pages: Pages) -> PagedProvider:
    """The provider of these canvases. They are declared only in sessions with a client that can show canvases."""
    return PagedProvider(EXTENSION_ID, [CHART, CHECKLIST], pages, name="ahpkit", needs_renderer=True)


__all__ = ["EXTENSION_ID", "builtin_provider"]
