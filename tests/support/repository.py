"""A git repository for tests: real git, a scratch directory, nothing of the user's configuration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
}


class Repository:
    """Runs git as a person would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "-b", "main")
        self.git("config", "user.name", "A Person")
        self.git("config", "user.email", "person@example.org")

    def git(self, *arguments: str, check: bool = True) -> str:
        """One command; its output."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env={**os.environ, **_ENV}, capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def write(self, path: str, text: str | bytes) -> Path:
        """A file with this content."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def commit(self, message: str = "a commit", **files: str) -> None:
        """Write files (`a_txt` is `a.txt`), then commit everything."""
        for name, text in files.items():
            self.write(name.replace("_", "."), text)
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)

    def status(self) -> set[str]:
        """Paths that git calls changed, renames as two."""
        out = self.git("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
        return {entry[3:] for entry in out.split("\0") if entry}


__all__ = ["Repository"]
