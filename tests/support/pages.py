"""What a person does on the page of a built-in canvas, without a browser."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

from support.http import Answer, get


async def as_user(url: str, action: str, **given: Any) -> Answer:
    """Do something on the page."""
    found = re.search(r'key: "([\w-]+)"', (await get(url)).text)
    assert found is not None
    query = urlencode({"key": found[1], "do": json.dumps({"action": action, "input": given})})
    return await get(f"{url}change?{query}")


async def shown(url: str) -> Any:
    """What the page shows."""
    return (await get(f"{url}news")).json()["data"]


__all__ = ["as_user", "shown"]
