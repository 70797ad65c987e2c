"""Does without a browser what a person does on the page of a built-in canvas."""

from __future__ import annotations

import re
from typing import Any

from ahpkit.canvas.pages import Pages
from ahpkit.http.router import Router
from support.http import Answer, get, post


async def as_user(url: str, action: str, **given: Any) -> Answer:
    """Do something on the page."""
    found = re.search(r'key: "([\w-]+)"', (await get(url)).text)
    assert found is not None
    return await post(f"{url}change", {"key": found[1], "action": action, "input": given})


async def shown(url: str) -> Any:
    """What the page shows."""
    return (await get(f"{url}news")).json()["data"]


def routes_of(pages: Pages) -> Router:
    """A server's routes with nothing but these pages."""
    router = Router()
    pages.mount(router)
    return router


__all__ = ["as_user", "routes_of", "shown"]
