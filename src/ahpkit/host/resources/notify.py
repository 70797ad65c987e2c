"""Watches files by the system's notifications, or by polling where the system has no watchers left."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence

from watchfiles._rust_notify import RustNotify  # watchfiles documents it as its backend; `awatch` blocks while it opens

_log = logging.getLogger(__name__)

_POLL_MS = 1_000
"""How often folders are checked when the system cannot notify us."""


def open_notify(paths: Sequence[str], *, recursive: bool) -> RustNotify:
    """Watch these paths; raises `FileNotFoundError` when one is not there.

    Linux gives a user 128 watchers and some ten thousand watched folders, for all programs together.
    """
    try:
        return _told_by_the_system(paths, recursive)
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:
        if missing := next((path for path in paths if not os.path.exists(path)), None):
            raise FileNotFoundError(missing) from error
        _log.warning(
            "the system cannot watch more files (%s); %d places are checked every second instead", error, len(paths)
        )
        return RustNotify(list(paths), False, True, _POLL_MS, recursive, True)


def _told_by_the_system(paths: Sequence[str], recursive: bool) -> RustNotify:
    """Raises `OSError` when the system has no more watchers, or watches no more folders.

    A backend that leaves out what it may not read says nothing of the second. So it is asked to only where there is
    such a folder, and after a folder of its own was watched.
    """
    try:
        return RustNotify(list(paths), False, False, 0, recursive, False)
    except PermissionError:
        with tempfile.TemporaryDirectory() as folder:
            RustNotify([folder], False, False, 0, False, False).close()
        return RustNotify(list(paths), False, False, 0, recursive, True)


__all__ = ["RustNotify", "open_notify"]
