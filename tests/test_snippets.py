"""The snippets of all pages have their imports and run; those of the first pages pass strict type checking."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from support.process import HostProcess, finish_cli, host_process

ROOT = Path(__file__).resolve().parent.parent


def snippets(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [name for file in FILES if snippets(name := file.relative_to(ROOT).as_posix())]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[HostProcess]:
    home = tmp_path_factory.mktemp("home")
    async with host_process(home, "--durability", "memory", "--terminals", "--root", str(home.parent)) as running:
        yield running


@pytest.mark.slow
def test_the_snippets_of_the_first_pages_pass_strict_type_checking(tmp_path: Path) -> None:
    """One by one, as a reader copies them."""
    for number, snippet in enumerate([*snippets("README.md"), *snippets("docs/tutorial/first-client.md")]):
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


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.asyncio(loop_scope="module")
async def test_the_snippets_of_a_page_run(page: str, tmp_path: Path, host: HostProcess) -> None:
    """In the order of the page, in one program, beside a host. What is behind `__name__ == "__main__"` is not run."""
    program = tmp_path / "page.py"
    program.write_text("\n".join(snippets(page)), encoding="utf-8")
    (tmp_path / "tests").symlink_to(ROOT / "tests")  # The conformance page names its fixtures from the checkout.
    known = {"AHPKIT_URL": host.url, "AHPKIT_TOKEN": host.token or "", "PYTHONPATH": str(ROOT / "tests")}
    code, _, errors = await finish_cli([str(program)], tmp_path, module="support.run_page", **known)
    assert code == 0, errors
