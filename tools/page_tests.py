"""Run the page's tests: types and Vitest; with `--browser` the built page in Chromium. Says so when it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import page


def main() -> None:
    command = page.npm()
    if command is None:
        return _say("No npm: the page's tests are skipped.")
    environment = {**os.environ, "PATH": os.pathsep.join([*page.node_directories(), os.environ.get("PATH", "")])}
    page.install(command, environment)
    if "--browser" not in sys.argv:
        for script in ("check", "test"):
            _run([*command, "run", "--silent", script], environment)
        return None
    if shutil.which("chromium") is None and "AHPKIT_CHROMIUM" not in os.environ:
        return _say("No Chromium: the browser's tests are skipped.")
    if not page.is_current():
        page.build()
    return _run([*command, "run", "--silent", "test:browser"], environment)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _run(command: list[str], environment: dict[str, str]) -> None:
    if code := subprocess.run(command, cwd=page.SOURCES, env=environment).returncode:
        raise SystemExit(code)


if __name__ == "__main__":
    main()
