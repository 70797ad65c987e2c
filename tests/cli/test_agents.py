import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ahpkit.agents.acp.registry import KNOWN_AGENTS
from ahpkit.cli.agents import agents
from ahpkit.testing.acp_agent import scripted_command


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there, and no keys."""
    for agent in KNOWN_AGENTS.values():
        for key in agent.keys:
            monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def acp_program(path: Path, **script: object) -> None:
    command = " ".join(scripted_command(path.with_suffix(".json"), **script))
    program(path, f'if [ "$1" = --version ]; then echo "version 1.2.3"; else exec {command}; fi')


def listed(*options: str) -> dict[str, dict[str, object]]:
    result = CliRunner().invoke(agents, ["--json", *options])
    assert result.exit_code == 0, result.output
    return {entry["name"]: entry for entry in json.loads(result.output)}


def test_every_known_agent_is_listed_with_how_to_install_it(bin: Path) -> None:
    found = listed()

    assert list(found) == sorted(KNOWN_AGENTS)
    assert {entry["state"] for entry in found.values()} == {"missing"}
    assert found["goose"]["install"] == KNOWN_AGENTS["goose"].install
    assert found["gemini"]["command"] == ["gemini", "--acp"]


def test_a_program_of_an_npm_package_has_its_version_and_is_not_run_for_it(bin: Path) -> None:
    package = bin / "lib" / "node_modules" / "@scope" / "agent"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text('{"name": "@scope/agent", "version": "2.4.0"}')
    program(package / "bin" / "run", f"touch {bin}/ran; exit 1")
    (bin / "pi-acp").symlink_to(package / "bin" / "run")

    assert listed()["pi"]["version"] == "2.4.0"
    assert not (bin / "ran").exists()


def test_an_agent_in_a_place_of_its_own_has_the_version_of_its_package_and_is_not_run_for_it(
    bin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = tmp_path / "places"
    monkeypatch.setenv("AHPKIT_AGENTS_DIR", str(places))
    package = places / "opencode" / "lib" / "node_modules" / "opencode-ai"
    site = places / "hermes" / "env" / "lib" / "python3.12" / "site-packages"
    for folder in (places / "bin", places / "opencode" / "bin", package, site / "hermes_agent-0.3.1.dist-info"):
        folder.mkdir(parents=True)
    for name in ("opencode", "hermes"):
        program(places / "bin" / name, f"touch {tmp_path}/ran; exit 1")
    (package / "package.json").write_text('{"name": "opencode-ai", "version": "1.18.33"}')
    program(package / "run", "exit 1")
    (places / "opencode" / "bin" / "opencode").symlink_to(package / "run")
    (site / "hermes_agent-0.3.1.dist-info" / "METADATA").write_text("Name: hermes-agent\nVersion: 0.3.1\n")

    found = listed()

    assert (found["opencode"]["version"], found["hermes"]["version"]) == ("1.18.33", "0.3.1")
    assert not (tmp_path / "ran").exists()


def test_an_installed_agent_has_a_path_a_version_and_its_keys_without_their_values(
    bin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bin / "gemini", 'echo "gemini-cli 0.61.0-rc.1 (node)"')
    program(bin / "goose", "echo no version here; exit 1")
    program(bin / "copilot", "echo GitHub Copilot CLI 1.0.102.")
    monkeypatch.setenv("GEMINI_API_KEY", "sk-secret")

    found = listed()

    assert (found["gemini"]["state"], found["gemini"]["version"]) == ("installed", "0.61.0-rc.1")
    assert found["gemini"]["path"] == str(bin / "gemini")
    assert found["gemini"]["keys"] == {"GEMINI_API_KEY": True, "GOOGLE_API_KEY": False}
    assert (found["goose"]["state"], found["goose"]["version"]) == ("installed", None)
    assert found["copilot"]["version"] == "1.0.102"
    assert "sk-secret" not in json.dumps(found)


def test_checking_starts_them_and_says_which_answer(bin: Path) -> None:
    acp_program(bin / "gemini")
    acp_program(bin / "goose", methods={"initialize": [{"stderr": "no config\n"}, {"exit": 2}]})

    found = listed("--check")

    assert (found["gemini"]["state"], found["gemini"]["version"]) == ("answers", "1.0")
    assert found["goose"]["state"] == "fails"
    assert "no config" in str(found["goose"]["detail"])
    assert found["claude"]["state"] == "missing"


def test_people_get_a_table(bin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bin / "gemini", "echo 1.0.0")
    monkeypatch.setenv("GEMINI_API_KEY", "sk-secret")

    output = CliRunner().invoke(agents, []).output

    lines = {line.split()[0]: line for line in output.splitlines() if line}
    assert "installed" in lines["gemini"]
    assert lines["gemini"].endswith("  set")
    assert lines["codex"].endswith("when it leaves its sandbox")


def test_the_table_fits_into_80_columns_with_every_agent_installed(bin: Path) -> None:
    for agent in KNOWN_AGENTS.values():
        program(bin / agent.command, "echo 2026.11.1-rc")

    lines = CliRunner().invoke(agents, []).output.splitlines()

    assert [line for line in lines if len(line) > 80] == []
    notes = [number for number, line in enumerate(lines) if ": no key in" in line]
    assert notes == [*range(notes[0], notes[0] + len(notes))], "one below the other"
    assert "goose: no key in" in "\n".join(lines)
