"""A session whose canvases a renderer shows in a browser."""

from __future__ import annotations

from dataclasses import dataclass

from ahpkit.host.agent import CanvasRuntime
from support.browser import Browser, Frame


@dataclass(frozen=True)
class Show:
    agent: CanvasRuntime
    address: str
    """The address of the renderer's page."""

    async def open(self, browser: Browser) -> Frame:
        """The renderer's page, once it is there."""
        page = await browser.open(self.address)
        await page.wait_for("document.body.dataset.version")
        return page


__all__ = ["Show"]
