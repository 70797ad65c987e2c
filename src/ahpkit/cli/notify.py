"""Notifies a person that something waits or is over: by the terminal's bell, or on the desktop."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from ahpkit.cli.text import printable, shorten

Kind = Literal["none", "bell", "desktop"]
KINDS = get_args(Kind)

_LONGEST = 200
"""Characters of a notification."""

Start = Callable[[Sequence[str]], object]


def notify(kind: str, text: str, *, environment: Mapping[str, str] | None = None, start: Start | None = None) -> None:
    """Tell the person. If the desktop cannot be reached, the terminal's bell rings, if there is a terminal."""
    command = _desktop(shorten(printable(text), _LONGEST), environment or os.environ) if kind == "desktop" else None
    if command is not None:
        (_start if start is None else start)(command)
    elif kind != "none" and sys.stderr.isatty():
        sys.stderr.write("\a")
        sys.stderr.flush()


def _desktop(text: str, environment: Mapping[str, str]) -> list[str] | None:
    path = environment.get("PATH")
    if sys.platform == "darwin" and shutil.which("osascript", path=path):
        # The text is an argument of the script and no part of it: nothing in it can be run.
        script = 'on run argv\ndisplay notification (item 1 of argv) with title "ahpkit"\nend run'
        return ["osascript", "-e", script, text]
    has_screen = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    program = shutil.which("notify-send", path=path) if has_screen else None
    return None if program is None else [program, "--app-name", "ahpkit", "--", "ahpkit", text]


def _start(command: Sequence[str]) -> None:
    subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


__all__ = ["KINDS", "Kind", "notify"]
