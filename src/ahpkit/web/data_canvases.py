"""Serves canvases whose content is in their address (`data:`), under a separate policy.

In a frame of the page a `data:` URL inherits the page's policy, and its scripts do not run. Served from here it runs,
without an origin and without a network, also when somebody opens its address by itself.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import OrderedDict
from urllib.parse import unquote_to_bytes

KEPT = 64
"""How many canvases are kept: the most recently used ones."""

MAX_LENGTH = 65_536
"""Characters of an address."""

_KIND = re.compile(r"[\w.+-]+/[\w.+-]+(;[\w-]+=[\w.-]+)*", re.ASCII)

HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class DataCanvases:
    """The `data:` URLs that browsers want to show, by their hash."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._found: OrderedDict[str, str] = OrderedDict()

    def keep(self, data: str) -> str:
        """Keep a `data:` URL; the id to ask for. Raises `ValueError` for anything else."""
        if not data.startswith("data:") or len(data) > MAX_LENGTH:
            raise ValueError(f"expected a data: URL of at most {MAX_LENGTH} characters")
        id = hashlib.sha256(data.encode()).hexdigest()
        self._found[id] = data
        self._found.move_to_end(id)
        while len(self._found) > self._kept:
            self._found.popitem(last=False)
        return id

    def get(self, id: str) -> tuple[str, bytes] | None:
        """The content type and the content with this id; None if it is not kept."""
        data = self._found.get(id)
        return None if data is None else decoded(data)


def decoded(data: str) -> tuple[str, bytes]:
    """Content type and content of a `data:` URL (RFC 2397). Malformed base64 gives empty content."""
    head, _, rest = data.removeprefix("data:").partition(",")
    content = unquote_to_bytes(rest)
    kind = head.removesuffix(";base64")
    if kind != head:
        try:
            content = base64.b64decode(content)
        except ValueError:
            content = b""
    return kind if _KIND.fullmatch(kind) else "text/plain;charset=US-ASCII", content


__all__ = ["HEADERS", "KEPT", "MAX_LENGTH", "DataCanvases", "decoded"]
