"""`ahpkit config`, and which file sets what."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ahpkit.cli.settings import BUILT_IN, Settings, SettingsError, described, layered_settings, project_file
from support.process import finish_cli, host_process


async def test_init_writes_a_file_that_changes_nothing_and_never_replaces_one(tmp_path: Path) -> None:
    code, output, _ = await finish_cli(["config", "init"], tmp_path)
    file = tmp_path / ".config/ahpkit/config.toml"
    assert (code, file.exists(), "Written" in output) == (0, True, True)
    _, shown, _ = await finish_cli(["config", "show", "--json"], tmp_path)
    assert {row["origin"] for row in json.loads(shown)["values"]} == {"built in"}
    code, _, errors = await finish_cli(["config", "init"], tmp_path)
    assert (code, "--force replaces it" in errors) == (1, True)


async def test_the_first_file_explains_every_key_by_itself(tmp_path: Path) -> None:
    """Whoever installed the wheel has no other documentation at hand."""
    await finish_cli(["config", "init"], tmp_path)
    file = tmp_path / ".config/ahpkit/config.toml"
    text = file.read_text()
    assert "docs/" not in text
    file.write_text(re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE))
    usual, shown = Settings(), layered_settings(file, tmp_path, trusts=lambda path, settings: False)
    origins = {key: origin for key, _, origin in described(shown)}
    assert [key for key, origin in origins.items() if origin == BUILT_IN] == []
    assert shown.agents.keys() == {"claude", "mine", "local"}
    said = {key: value for key, value, _ in described(shown)}
    kept = {key: value for key, value, _ in described(usual) if isinstance(value, int | float | str)}
    assert {key: said[key] for key in kept} == kept, "what is shown as a default is the default"


async def test_show_names_the_file_of_each_value_and_hides_keys(tmp_path: Path) -> None:
    own = tmp_path / ".config/ahpkit/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[host]\nport = 7111\n[agents.mine]\ncommand = "x"\nenv = { KEY = "secret-value" }\n')
    work = tmp_path / "project"
    work.mkdir()
    (work / ".ahpkit.toml").write_text('[session]\nagent = "mine"\n[host]\nterminals = true\n')
    code, output, errors = await finish_cli(["config", "show"], work, HOME=str(tmp_path))
    assert code == 0
    output = re.sub(" +#", "   #", output)
    assert "host.port = 7111   # ~/.config/ahpkit/config.toml" in output
    assert 'session.agent = "mine"   # ~/project/.ahpkit.toml' in output
    assert "host.terminals = false   # built in" in output
    assert "secret-value" not in output
    assert "is not trusted, so it does not set host.terminals" in errors
    _, shown, _ = await finish_cli(["config", "show", "--json"], work, HOME=str(tmp_path))
    assert json.loads(shown)["leftOut"] == {str(work / ".ahpkit.toml"): ["host.terminals"]}


async def test_a_project_counts_as_a_whole_once_it_is_trusted_and_no_longer_when_it_changes(tmp_path: Path) -> None:
    work = tmp_path / "project"
    work.mkdir()
    file = work / ".ahpkit.toml"
    file.write_text("[host]\nterminals = true\n")
    variables = {"HOME": str(tmp_path)}
    code, output, errors = await finish_cli(["trust", "add", str(file)], work, **variables)
    assert (code, "trusted: settings .ahpkit.toml" in output) == (0, True), errors
    _, output, errors = await finish_cli(["config", "show"], work, **variables)
    assert re.search(r"^host.terminals = true +# ~/project/.ahpkit.toml$", output, re.MULTILINE)
    assert errors == ""
    file.write_text('[host]\nterminals = true\n[canvas]\nextensions = ["evil"]\n')
    _, output, errors = await finish_cli(["config", "show"], work, **variables)
    assert re.search("^host.terminals = false +# built in$", output, re.MULTILINE)
    assert "canvas.extensions" in errors


async def test_path_names_the_files_that_are_read(tmp_path: Path) -> None:
    _, output, _ = await finish_cli(["config", "path"], tmp_path)
    assert output == f"{tmp_path / '.config/ahpkit/config.toml'}   (does not exist)\n"


async def test_new_sessions_of_a_directory_have_the_agent_and_model_of_its_file(tmp_path: Path) -> None:
    work = tmp_path / "project"
    work.mkdir()
    (work / ".ahpkit.toml").write_text('[session]\nmodel = "demo-large"\n')
    async with host_process(tmp_path, "--durability", "memory", "--root", str(tmp_path)) as host:
        variables = {"HOME": str(tmp_path), "AHPKIT_URL": host.url, "AHPKIT_TOKEN": host.token or ""}
        _, output, errors = await finish_cli(["prompt", "hello"], work, **variables)
        assert "demo-large" in output, errors
        _, output, errors = await finish_cli(["prompt", "--model", "demo-small", "hello"], work, **variables)
        assert "demo-small" in output, errors


def test_the_nearest_project_file_counts_and_none_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, deep = tmp_path / "home", tmp_path / "home/app/src"
    deep.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / ".ahpkit.toml").write_text("")
    assert project_file(deep) is None
    (home / "app/.ahpkit.toml").write_text("")
    assert project_file(deep) == home / "app/.ahpkit.toml"


def test_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / ".ahpkit.toml").write_text("[session]\nagent = 7\n")
    with pytest.raises(SettingsError, match=r"\.ahpkit\.toml: session\.agent must be a string"):
        layered_settings(tmp_path / ".ahpkit.toml", tmp_path, trusts=lambda file, settings: False)
