"""Converts `file:` URIs to paths; `Path.as_uri` writes them.

All other code uses this module, except `ahpkit.tools.subject`, where rules look at every path that a text may mean, on
any machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit


def local_path(uri: str, *, any_host: bool = False) -> Path | None:
    """The absolute path that a `file:` URI names on this machine; None for everything else.

    A URI with a host name is refused, except for `localhost`, because it is a file of another machine. A shell puts its
    own machine's name there; `any_host` accepts that. Names that are not UTF-8 keep their bytes.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.query or parts.fragment:
        return None
    if not any_host and parts.netloc.lower() not in ("", "localhost"):
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if not path.startswith("/") or "\0" in path:
        return None
    path = f"/{path.lstrip('/')}"
    return Path(path[1:] if sys.platform == "win32" and path[2:3] == ":" else path)


__all__ = ["local_path"]
