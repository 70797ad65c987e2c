"""A server that fails to start, once a file says that it may: until then it is starting."""

from __future__ import annotations

import sys
import time
from pathlib import Path

LONGEST = 1200
"""Looks at the file before it ends by itself: two minutes."""

for _ in range(LONGEST):
    if Path(sys.argv[1]).exists():
        break
    time.sleep(0.1)
raise SystemExit("no such database")
