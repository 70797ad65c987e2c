"""A real disk that a test can fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.waiting import BOUND

needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@contextmanager
def small_disk(place: Path, *, size: str = "3m", mode: str = "rw") -> Generator[Path]:
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},{mode}", "tmpfs", str(place)], capture_output=True, timeout=BOUND
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.decode()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, timeout=BOUND)


def fill(place: Path) -> Path:
    """Take all the room there is."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return filler


__all__ = ["fill", "needs_mount", "small_disk"]
