"""`ahpkit trust`: what would run, what changed, what asks. As a person would type it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ahpkit.cli.trust import trust
from ahpkit.host.trust import CLIENT, TRUST_FILE, Runnable, Trust


class Owner:
    """Types commands about one data directory, and has a project with a hook and a server."""

    def __init__(self, data: Path, project: Path) -> None:
        self.data = data
        self.project = project
        self.hooks = project / ".github" / "hooks" / "a.json"
        self.hooks.parent.mkdir(parents=True)
        self.hook("./check.sh")
        (project / "check.sh").write_text("true")
        (project / "sub").mkdir()
        (project / "sub" / ".mcp.json").write_text(json.dumps({"db": {"command": "db"}}))

    def hook(self, command: str) -> None:
        self.hooks.write_text(json.dumps({"hooks": {"PreToolUse": [{"command": command}]}}))

    def types(self, *words: str) -> Result:
        return CliRunner().invoke(trust, [*words, "--data-dir", str(self.data)])

    def states(self) -> dict[str, str]:
        lines = self.types("list", "--json").output.splitlines()
        items: list[Any] = [json.loads(line) for line in lines]
        return {item["name"]: item["state"] for item in items}


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Owner:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Owner(tmp_path / "data", tmp_path / "project")


def test_a_directory_is_trusted_with_everything_below_it_as_it_is(owner: Owner) -> None:
    assert owner.states() == {}
    shown = owner.types("show", str(owner.project)).output
    assert "./check.sh" in shown
    assert "new  hook PreToolUse" in shown
    assert owner.types("add", str(owner.project)).output.count("trusted: ") == 2
    assert owner.states() == {"PreToolUse": "trusted", "db": "trusted"}


def test_a_declaration_and_a_script_that_changed_are_told_with_what_was_trusted(owner: Owner) -> None:
    owner.types("add", str(owner.project))
    (owner.project / "check.sh").write_text("false")
    assert owner.states()["PreToolUse"] == "changed"
    owner.hook("./other.sh")
    shown = owner.types("show", str(owner.project)).output
    assert "what was trusted:" in shown
    assert "./other.sh" in shown
    assert "./check.sh" in shown
    listed = owner.types("list").output
    assert f"trusted directory: {owner.project}" in listed
    assert "what is not trusted does not run" in listed


def test_what_came_later_is_new_and_what_went_is_gone(owner: Owner) -> None:
    owner.types("add", str(owner.project))
    (owner.project / ".mcp.json").write_text(json.dumps({"late": {"command": "x"}}))
    (owner.project / "sub" / ".mcp.json").unlink()
    assert owner.states() == {"PreToolUse": "trusted", "db": "gone", "late": "new"}


def test_one_file_and_one_item_can_be_trusted_alone(owner: Owner) -> None:
    assert owner.types("add", str(owner.hooks)).exit_code == 0
    assert owner.states() == {"PreToolUse": "trusted"}
    owner.hook("./new.sh")
    [line] = owner.types("list", "--json").output.splitlines()
    assert owner.types("add", json.loads(line)["id"]).exit_code == 0
    assert owner.states() == {"PreToolUse": "trusted"}


def test_consent_to_what_a_client_brought(owner: Owner) -> None:
    server = Runnable("server", "theirs", f"{CLIENT}virtual://x", {"command": "x"})
    kept = Trust(owner.data / TRUST_FILE)
    kept.ask([server], now=1)
    kept.ask([server], now=2)
    assert owner.states() == {"theirs": "asks"}
    assert not kept.may_run(server)
    assert owner.types("add", server.digest[:12]).exit_code == 0
    assert owner.states() == {"theirs": "trusted"}
    assert kept.may_run(server)
    assert owner.types("remove", server.digest[:12]).exit_code == 0
    assert not kept.may_run(server)


def test_trust_is_taken_back_by_path(owner: Owner) -> None:
    owner.types("add", str(owner.project))
    assert owner.types("remove", str(owner.project)).output == "2 no longer trusted\n"
    assert owner.states() == {}
    refused = owner.types("remove", str(owner.project))
    assert (refused.exit_code, "nothing of" in refused.output) == (1, True)
    assert owner.types("show", "nothing").exit_code == 1


def test_a_directory_in_which_nothing_runs_can_be_trusted(owner: Owner, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "nothing in it would run" in owner.types("add", str(tmp_path / "empty")).output
    assert f"trusted directory: {tmp_path / 'empty'}" in owner.types("list").output


def test_what_lies_in_a_trusted_directory_and_in_a_plugin_of_the_owner_is_listed_once(owner: Owner) -> None:
    plugin = owner.project / "plugin"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text('{"name": "plugin"}')
    with_plugins = Trust(owner.data / TRUST_FILE)
    with_plugins.remember_own([], [plugin], now=0)
    owner.types("add", str(owner.project))
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {"late": {"command": "late"}}}))
    listed = [json.loads(line) for line in owner.types("list", "--json").output.splitlines()]
    assert [item["state"] for item in listed if item["name"] == "late"] == ["new"]
