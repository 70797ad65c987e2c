"""The snippets of the pages for beginners are whole: they have their imports and pass strict type checking."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/how-to/write-a-python-agent.md", "docs/tutorial/first-client.md")


def snippets(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_the_snippets_of_the_readme_pass_strict_type_checking(tmp_path: Path) -> None:
    """One by one, as a reader copies them."""
    for number, snippet in enumerate(snippets("README.md")):
        (tmp_path / f"snippet_{number}.py").write_text(snippet, encoding="utf-8")
    settings = {"typeCheckingMode": "strict", "venvPath": str(ROOT), "venv": ".venv", "extraPaths": [str(ROOT / "src")]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_a_page_imports_what_its_snippets_use(page: str, tmp_path: Path) -> None:
    code = tmp_path / "page.py"
    code.write_text("\n".join(snippets(page)), encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "--quiet", str(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
