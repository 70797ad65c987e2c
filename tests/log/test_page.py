"""The examples of the documentation page run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support.waiting import BOUND

PAGE = Path(__file__).parents[2] / "docs" / "topics" / "durable-log.md"


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    examples: list[str] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2

    for example in examples:
        subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True, timeout=BOUND)

    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["lock", "log.db"]
