"""Fetches the protocol that VS Code ships (AHP 0.9.0, plain JavaScript) into a cache, for the tests that run it.

No part of it is copied into this repository. Tests that need it are skipped, with that reason, where it was not
fetched.

    python tools/vscode_protocol.py            fetch it, if it is not there
    python tools/vscode_protocol.py --where    only say where it belongs
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "@codingame/monaco-vscode-api"
VERSION = "37.6.1"
INSIDE = "package/vscode/src/vs/platform/agentHost/common/state/protocol/"


def folder() -> Path:
    """Where the protocol is, or will be."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "ahpkit" / "vscode-protocol" / VERSION


def fetch() -> None:
    """Download the package with npm, without running anything of it, and keep the protocol's folder only."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not installed; the protocol of VS Code was not fetched")
    target = folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        subprocess.run(
            [npm, "pack", "--silent", "--ignore-scripts", f"{PACKAGE}@{VERSION}"],
            cwd=scratch,
            check=True,
            stdout=sys.stderr,
        )
        _unpack(next(Path(scratch).glob("*.tgz")), Path(scratch) / "protocol")
        (Path(scratch) / "protocol").rename(target)


def _unpack(archive: Path, target: Path) -> None:
    target.mkdir()
    (target / "package.json").write_text('{"type": "module"}\n', encoding="utf-8")
    with tarfile.open(archive) as files:
        for member in files:
            if member.isfile() and member.name.startswith(INSIDE) and member.name.endswith(".js"):
                member.name = member.name.removeprefix(INSIDE)
                files.extract(member, target, filter="data")


def main() -> None:
    if "--where" not in sys.argv[1:] and not folder().is_dir():
        fetch()
    sys.stdout.write(f"{folder()}\n")


if __name__ == "__main__":
    main()
