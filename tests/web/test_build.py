"""How the page gets into packages: the lock file, the build backend, what is committed."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LOCK = ROOT / "web" / "package-lock.json"
SOURCES = (ROOT / "web" / "src").rglob("*.ts*")


def test_the_lock_file_names_no_registry_and_pins_everything_by_hash() -> None:
    packages = json.loads(LOCK.read_text())["packages"]
    assert [name for name, package in packages.items() if "resolved" in package] == []
    unpinned = [name for name, one in packages.items() if name and "integrity" not in one and not one.get("link")]
    assert unpinned == []


def test_the_lock_file_has_the_bundler_for_every_platform() -> None:
    packages = json.loads(LOCK.read_text())["packages"]
    bindings = packages["node_modules/rolldown"]["optionalDependencies"]
    assert [name for name in bindings if f"node_modules/{name}" not in packages] == []


def test_the_built_page_is_not_committed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(
        ["git", "ls-files", "src/ahpkit/web/page", "web/node_modules"], cwd=ROOT, capture_output=True
    )
    assert listed.stdout == b""


def test_an_editable_install_asks_for_no_node_and_builds_no_page() -> None:
    script = (
        "import sys; sys.path.insert(0, 'tools'); import backend, hatchling.build as plain;"
        "assert backend.build_editable is plain.build_editable;"
        "assert backend.get_requires_for_build_editable is plain.get_requires_for_build_editable"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    if "No module named 'hatchling'" in done.stderr:
        pytest.skip("hatchling is only there while something is built")
    assert done.returncode == 0, done.stderr


def test_a_page_that_is_current_is_not_built_again_and_a_changed_source_makes_it_stale(tmp_path: Path) -> None:
    script = """
import sys, pathlib; sys.path.insert(0, 'tools'); import page
base = pathlib.Path(sys.argv[1]); page.SOURCES = base / 'web'; page.PAGE = base / 'page'
(base / 'web' / 'src').mkdir(parents=True); (base / 'page').mkdir()
for name in ('index.html', 'package.json', 'package-lock.json', 'vite.config.ts', 'tsconfig.json'):
    (base / 'web' / name).write_text('1')
(base / 'web' / 'src' / 'a.ts').write_text('1')
assert not page.is_current()
(base / 'page' / 'index.html').write_text('1')
assert not page.is_current()
(base / 'page' / page.STAMP).write_text(page.fingerprint())
assert page.is_current()
(base / 'web' / 'src' / 'a.ts').write_text('2')
assert not page.is_current()
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, check=True)


def test_ctrl_c_ends_a_build_in_the_background_where_shells_ignore_it(tmp_path: Path) -> None:
    """`make run` builds the page beside the host; after Ctrl-C the next build would meet this one."""
    for folder in ("tools", "web", "bin", "src/ahpkit/web"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "page.py", tmp_path / "tools")
    for name in ("index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json"):
        (tmp_path / "web" / name).touch()
    npm = tmp_path / "bin" / "npm"
    npm.write_text("#!/bin/sh\nkill -INT $PPID\nexec sleep 600\n")
    npm.chmod(0o755)
    command = f"trap '' INT; exec {sys.executable} tools/page.py --soft"
    environment = {**os.environ, "PATH": f"{npm.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, timeout=60, check=False)
    assert (done.returncode, [*(tmp_path / "src/ahpkit/web").iterdir()]) == (130, [])


def test_texts_of_a_page_have_a_packed_copy_and_pictures_have_none(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.js").write_text("let one = 1;" * 100)
    (tmp_path / "icon.png").write_bytes(b"picture")
    script = "import sys, pathlib; sys.path.insert(0, 'tools'); import page; page.pack(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, check=True)
    assert {path.name for path in tmp_path.rglob("*.gz")} == {"a.js.gz"}
    assert gzip.decompress((tmp_path / "assets" / "a.js.gz").read_bytes()).startswith(b"let one")


def test_the_page_names_no_other_host_to_load_from() -> None:
    allowed = {"www.w3.org"}  # The name of a format, not a place.
    found = {
        (path.name, host)
        for path in SOURCES
        for host in re.findall(r"[\"'`]https?://([^/\"'`$]+)", path.read_text())
        if host not in allowed
    }
    assert found == set()
