"""The analytics example of the extensibility document, as a whole program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import requirement

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "extension_analytics.py"


@requirement("extensibility:practice:descriptive-names")
def test_it_advertises_receives_events_and_answers_the_summary() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=30, check=True)
    announced, summary = done.stdout.splitlines()
    assert announced == "announced: {'version': '1.0', 'events': ['user_action', 'model_call']}"
    assert summary == "summary: {'period': 'session', 'events': {'user_action': 1, 'model_call': 1}}"
