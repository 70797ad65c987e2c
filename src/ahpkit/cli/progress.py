"""How far long work is, on a terminal; silence elsewhere. Knows nothing of the work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def progress(doing: str) -> Generator[Callable[[str], None]]:
    """Show what is being done while the block lasts; call what it gives with how far it is."""
    if not sys.stderr.isatty():
        yield lambda how_far: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{doing} …") as status:
        yield lambda how_far: status.update(f"{doing} … {how_far}")


__all__ = ["progress"]
