"""Lets Hypothesis look for new examples: one file of properties after the other, until the time is over."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1]


def files() -> list[Path]:
    """The tests that have properties."""
    return sorted(file for file in TESTS.rglob("test_*.py") if "hypothesis" in file.read_text())


def explore(seed: int, seconds: float, told: Callable[[str], None]) -> str | None:
    """Look for that long; what was found wrong, for a person, or None."""
    rng, until = random.Random(seed), time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        file = rng.choice(files())
        told(file.relative_to(TESTS).as_posix())
        options = ("-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile", "brief")
        command = [sys.executable, "-m", "pytest", *options, f"--hypothesis-seed={rng.randrange(1 << 30)}", str(file)]
        try:
            done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode not in (0, 5):
            return f"{' '.join(command[1:])}\n{done.stdout[-6000:]}"
    return None


__all__ = ["explore", "files"]
