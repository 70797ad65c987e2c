import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ahpkit.cli.main import cli
from customizations.builders import skill, text, write
from support import requirement
from support.flow import open_session
from support.process import finish_cli, host_process


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = write(tmp_path / "home", {".claude/skills/mine/SKILL.md": skill("mine")})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("COLUMNS", "200")
    return write(
        tmp_path / "work",
        {
            ".git/HEAD": "",
            ".github/skills/deploy/SKILL.md": skill(
                "deploy", "Ships [bold]it[/bold].", disable_model_invocation="true"
            ),
            ".cursor/rules/ts.mdc": "---\nglobs: **/*.ts\ntools: *\n---\nRule",
            ".mcp.json": {"db": {"command": "secret-command"}},
            ".github/agents/README.md": "x",
        },
    )


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, ["customizations", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def test_it_prints_the_tree_for_people(workspace: Path) -> None:
    output = run(workspace).output
    assert ".github/skills        directory, writable  loaded" in output
    assert "skill deploy  (not by the model)  Ships [bold]it[/bold]." in output
    assert "rule ts  (**/*.ts)" in output
    assert "mcpServer db  (stopped)" in output
    assert "warning: ts.mdc:2: the front matter is not valid YAML" in output
    assert "~/.claude/skills" in output
    assert "secret-command" not in output
    assert "note:" not in output
    assert "10 containers, 4 customizations" in output


def test_notes_are_shown_when_asked_for(workspace: Path) -> None:
    assert "note: README.md: a README is not a component" in run(workspace, "--notes").output


def test_json_is_the_tree_clients_get_and_all_diagnostics(workspace: Path) -> None:
    data = json.loads(run(workspace, "--json").output)
    found = {entry["name"]: entry for entry in data["customizations"]}
    assert found[".github/skills"]["children"][0]["name"] == "deploy"
    assert "secret-command" not in json.dumps(data)
    rescued = next(item for item in data["diagnostics"] if item["code"] == "front-matter-rescued")
    assert rescued["container"] == found[".cursor/rules"]["id"]
    assert (rescued["path"], rescued["line"], rescued["level"]) == ("ts.mdc", 2, "warning")


def test_the_users_own_can_be_left_out_and_plugins_added(workspace: Path, tmp_path: Path) -> None:
    plugin = write(tmp_path / "p", {".plugin/plugin.json": {"name": "tools"}, "agents/a.md": text()})
    output = run(workspace, "--no-user", "--plugin", plugin).output
    assert "~/" not in output
    assert "agent tools:a" in output


def test_without_a_directory_it_is_the_current_one(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    assert "deploy" in run("--no-user").output


def test_names_that_are_no_text_can_be_printed(workspace: Path) -> None:
    write(workspace, {".claude/commands/\udcff.md": "x"})
    assert "unnamed" in run(workspace).output
    json.loads(run(workspace, "--json").output)


@requirement("enablement:switch:shown-and-undone", "enablement:config:listed-as-off")
async def test_what_is_off_in_a_session_is_listed_with_since_when_and_how_to_undo_it(tmp_path: Path) -> None:
    write(tmp_path, {".claude/commands/a.md": "Do a.", ".claude/commands/b.md": "Do b."})
    config = tmp_path / ".config" / "ahpkit" / "config.toml"
    write(tmp_path, {".config/ahpkit/config.toml": '[customizations]\noff = ["b"]\n'})
    async with host_process(tmp_path, "--config", str(config)) as host:
        client = await host.client("ahp-root://")
        await open_session(client, "ahp-session:/first")
        code, _, errors = await finish_cli(["customizations", "off", "a", "--session", "first"], tmp_path)
        assert code == 0, errors
        await open_session(client, "ahp-session:/later")
        command = ["customizations", "off", "--session", "later"]
        code, listed, errors = await finish_cli(command, tmp_path)
        lines = listed.splitlines()
        assert (code, len(lines)) == (0, 2), errors
        assert lines[0].startswith("a  off here since 20")
        assert lines[1].startswith("b  off by configuration; undo: ahpkit customizations on ")
        for line in lines:
            undo = line.rpartition("ahpkit ")[2].split()
            assert (await finish_cli([*undo, "--session", "later"], tmp_path))[0] == 0
        assert (await finish_cli(command, tmp_path))[1] == "nothing is off\n"


def test_a_server_of_the_users_own_configuration_stands_by_itself(workspace: Path) -> None:
    """As in a session: the file is no directory of customizations."""
    own = {".copilot/mcp-config.json": {"mcpServers": {"tickets": {"command": "secret-command"}}}}
    write(Path.home(), own)
    data = json.loads(run(workspace, "--json").output)
    [server] = [entry for entry in data["customizations"] if entry["type"] == "mcpServer"]
    assert (server["name"], server["state"]["kind"]) == ("tickets", "stopped")
    assert not [entry for entry in data["customizations"] if "mcp-config" in entry["uri"] and entry is not server]
    lines = run(workspace).output.splitlines()
    assert any(line.startswith("mcpServer tickets") for line in lines)
    assert not any("mcp-config.json" in line for line in lines)
    assert "10 containers, 5 customizations" in lines[-1]
