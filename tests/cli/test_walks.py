"""The consoles of the how-to pages, replayed letter by letter in a terminal. Programs of others have stand-ins."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.process import finish_cli, host_process
from support.shell import shell
from support.walk import Walk, blocks, walking

ROOT = Path(__file__).resolve().parents[2]

NOT_REPLAYED = {
    "$ podman build": "needs a container engine and the network",
    "$ podman run": "needs a container engine and the network",
    "$ python bench": "a benchmark takes its time: `make bench`",
    "$ ahpkit mcp login": "needs a browser",
    "$ node out/server-main.js": "needs VS Code: `make test-vscode`",
    "$ make run": "installs packages: tests/test_install.py",
    "$ ahpkit chat --agent goose": "asks for a key: tests/cli/test_login.py",
    "$ ahpkit prompt --worktree": "works in a repository: tests/changes",
    "$ ahpkit tail ahp-otlp": "never ends: tests/cli/test_tail.py",
    "$ eval": "shell completion: tests/cli/test_shell_completion.py",
    "$ .venv/bin/ahpkit": "two terminals at once: tests/cli/test_walkthrough.py",
    "> /sleep 60": "a host that is killed: tests/cli/test_walkthrough.py",
    "$ make soak": "takes its time: tests/soak",
}
"""How consoles begin that need more than a terminal, and where they are tried instead."""

REPLAYED = {
    "how-to/run-as-a-service.md": ["$ ahpkit prompt", "$ ahpkit service install", "$ ahpkit up\n"],
    "how-to/use-acp-agents.md": ["$ ahpkit agents\n"],
    "how-to/mcp-servers.md": ["$ ahpkit mcp list"],
}
"""Consoles that show what a command prints."""

STARTED = "$ ahpkit serve"
"""Consoles that start a host in the terminal."""

CONFORMANCE = "$ ahpkit conformance"

SERVER = """
from mcp.server import MCPServer

server = MCPServer("time")


@server.tool()
def get_current_time(timezone: str) -> str:
    return f"2026-11-15T10:00:00 {timezone}"


server.run()
"""


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def console(name: str, begins: str) -> str:
    [found] = [block for block in blocks(page(name)) if f"{block}\n".startswith(begins)]
    return found


PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("name", [name for name in PAGES if blocks(page(name))])
def test_every_console_is_replayed_or_says_where_it_is_tried(name: str) -> None:
    begun = (*NOT_REPLAYED, STARTED, CONFORMANCE, *REPLAYED.get(name, []))
    assert [block for block in blocks(page(name)) if not f"{block}\n".startswith(begun)] == []


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins for what other people make."""
    place = tmp_path / "programs"
    place.mkdir()
    (place / "script.json").write_text("{}")
    (place / "server.py").write_text(SERVER)
    agent = f"exec {sys.executable} -m ahpkit.testing.acp_agent {place / 'script.json'}"
    texts = {
        "my-agent": agent,
        "gemini": f"case $1 in --version) echo 0.61.0;; *) {agent};; esac",
        "uvx": f"exec {sys.executable} {place / 'server.py'}",
        "node": "echo v22.0.0",
        "systemctl": "exit 0",
        "npm": f'mkdir -p "$6/bin" && cp {place / "my-agent"} "$6/bin/claude-agent-acp"',
    }
    for name, text in texts.items():
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
    return place


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A new one, in which a host takes any port."""
    place = tmp_path / "home"
    (place / ".config" / "ahpkit").mkdir(parents=True)
    (place / ".config" / "ahpkit" / "config.toml").write_text("[host]\nport = 0\n")
    return place


@asynccontextmanager
async def stage(home: Path, programs: Path) -> AsyncGenerator[Walk]:
    """A shell of a person at home; every host that they start is ended."""
    try:
        async with walking(home, programs, AHPKIT_AUTO_START="1", GEMINI_API_KEY="a key") as walk:
            yield walk
    finally:
        await finish_cli(["down", "--all"], home)


@pytest.mark.parametrize("begins", REPLAYED["how-to/run-as-a-service.md"])
async def test_the_host_as_a_service(home: Path, programs: Path, begins: str) -> None:
    async with stage(home, programs) as walk:
        await walk.replay(console("how-to/run-as-a-service.md", begins))


async def test_agents_by_name(home: Path, programs: Path) -> None:
    async with stage(home, programs) as walk:
        await walk.replay(console("how-to/use-acp-agents.md", "$ ahpkit agents\n"))


async def test_mcp_servers_by_hand(home: Path, programs: Path) -> None:
    [table] = [text for text in page("how-to/mcp-servers.md").split("```toml\n")[1:] if "uvx" in text]
    with (home / ".config" / "ahpkit" / "config.toml").open("a") as file:
        file.write(table.partition("```")[0])
    async with stage(home, programs) as walk:
        ready = "$ ahpkit prompt --keep x > x.txt 2>&1; ahpkit mcp list --watch | grep -q ready\n"
        await walk.replay(ready + console("how-to/mcp-servers.md", "$ ahpkit mcp list"))


@pytest.mark.parametrize("name", [name for name in PAGES if f"```console\n{STARTED}" in page(name)])
async def test_the_hosts_of_a_page_start(home: Path, programs: Path, name: str) -> None:
    (home / "ahpkit.toml").write_text("[host]\nport = 0\n")
    async with stage(home, programs) as walk:
        for block in blocks(page(name)):
            for command in (line[2:] for line in block.splitlines() if line.startswith(STARTED)):
                await walk.person.until(lambda screen: screen.line.endswith("$ "))
                walk.person.enter(command.replace("--port 7110", "--port 0"))
                await walk.person.see("ahpkit is listening on", "Try it in another terminal:")
                walk.person.interrupt()
        await walk.person.until(lambda screen: screen.line.endswith("^C$ "))


async def test_the_conformance_kit_is_run_as_its_page_says(home: Path) -> None:
    (home / "tests").symlink_to(ROOT / "tests")
    checks, *others = blocks(page("how-to/run-conformance.md"))
    for block in others:
        for line in block.splitlines():
            code, output, errors = await shell(line[2:], home)
            assert (code, errors) == (0, ""), output
    async with host_process(home) as host:
        command, *shown = checks.splitlines()
        words = command.removeprefix("$ ahpkit ").split()
        code, output, errors = await finish_cli([*words, "--url", host.url, "--token", host.token or ""], home)
    assert (code, errors) == (0, ""), output
    assert [line for line in shown if line != "…" and line not in output.splitlines()] == []
