"""Upgrades a log file of an older ahpkit: converts its states, but not its history.

The caller says how states are converted. The new file is built beside the old one and swapped
in when it is complete, so an interruption leaves the old file as it was. The old file is kept.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from ahpkit.log.entry import Recovery
from ahpkit.log.errors import StorageError
from ahpkit.log.salvage import create

_log = logging.getLogger(__name__)

Convert = Callable[[Recovery], Recovery | None]
"""Converts what an older ahpkit stored, without a tail; returns None when it is up to date already."""

_ROOM = 2
"""How much of the converted states has to fit on the disk: the tables and their write-ahead log."""

_SPARE = 16 << 20
"""Bytes that have to stay free besides."""


def upgrade(path: Path, content: Recovery, convert: Convert) -> bool:
    """Replace a file by one with converted states; False when there is nothing to convert."""
    _log.info("%s was written by an older ahpkit: converting %d channels", path, len(content.snapshots))
    converted = convert(content)
    if converted is None:
        return False
    needed = _ROOM * sum(len(snapshot.state) for snapshot in converted.snapshots.values()) + _SPARE
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise StorageError(
            f"{path} has to be converted, which needs {needed >> 20} MiB, and the disk has {free >> 20} MiB: make room"
            " and start again; nothing was changed"
        )
    create(path, converted, upgraded=True)
    _log.info("%s is converted; the file as it was is kept beside it as %s.old-N", path, path.name)
    return True


__all__ = ["Convert", "upgrade"]
