"""Trust: bound to content, kept in a private file, shared by the command line and the running host."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ahpkit.host.owner_file import OwnerFile, OwnerFileError
from ahpkit.host.trust import CLIENT, Runnable, Trust, fingerprint, fingerprints


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    return Trust(tmp_path / "data" / "trust.json")


@pytest.fixture
def hook(tmp_path: Path) -> Runnable:
    script = tmp_path / "check.sh"
    script.write_text("exit 0")
    return Runnable(
        "hook",
        "PreToolUse",
        source=str(tmp_path / ".github/hooks/a.json"),
        declaration={"command": "./check.sh"},
        files=fingerprints([script]),
    )


def test_what_was_never_trusted_is_unknown(trust: Trust, hook: Runnable) -> None:
    assert trust.standing(hook) == "unknown"
    assert not trust.may_run(hook)


def test_exactly_the_content_that_was_added_is_trusted(trust: Trust, hook: Runnable) -> None:
    trust.add([hook], now=1)

    assert trust.standing(hook) == "trusted"
    assert trust.standing(replace(hook, declaration={"command": "./other.sh"})) == "changed"
    assert trust.standing(replace(hook, source="/elsewhere/a.json")) == "unknown"


def test_a_script_that_changed_changes_the_content(trust: Trust, hook: Runnable) -> None:
    trust.add([hook], now=1)
    [script] = hook.files
    Path(script).write_text("rm -rf /")

    assert trust.standing(replace(hook, files=fingerprints([script]))) == "changed"


def test_of_one_declaration_only_the_newest_content_is_trusted(trust: Trust, hook: Runnable) -> None:
    newer = replace(hook, declaration={"command": "./new.sh"})
    trust.add([hook], now=1)
    trust.add([newer], now=2)

    assert trust.standing(newer) == "trusted"
    assert trust.standing(hook) == "changed"


def test_a_directory_is_trusted_as_it_is_and_what_it_held_before_is_forgotten(
    trust: Trust, hook: Runnable, tmp_path: Path
) -> None:
    trust.add([hook], now=1)
    trust.add([], now=2, directory=tmp_path)

    assert trust.standing(hook) == "unknown"
    assert trust.directories() == [str(tmp_path)]
    assert trust.remove(lambda one: True, directory=tmp_path) == 0
    assert trust.directories() == []


def test_consent_is_for_a_content_whichever_client_brings_it(trust: Trust) -> None:
    server = Runnable("server", "db", source=f"{CLIENT}virtual://a", declaration={"command": "db"})
    trust.add([server], now=1)

    assert trust.may_run(replace(server, source=f"{CLIENT}virtual://b"))
    assert not trust.may_run(replace(server, declaration={"command": "db", "args": ["--evil"]}))
    assert not trust.may_run(replace(server, source="/project/.mcp.json"))


def test_what_is_trusted_at_a_place_is_no_consent_for_clients(trust: Trust, hook: Runnable) -> None:
    trust.add([hook], now=1)

    assert not trust.consented(replace(hook, source=f"{CLIENT}virtual://a"))


def test_another_process_sees_the_word_at_once_and_the_file_is_private(
    trust: Trust, hook: Runnable, tmp_path: Path
) -> None:
    other = Trust(tmp_path / "data" / "trust.json")
    assert other.standing(hook) == "unknown"
    before = other.stamp
    trust.add([hook], now=1)

    assert other.standing(hook) == "trusted"
    assert other.stamp != before
    assert {os.stat(path).st_mode & 0o077 for path in (tmp_path / "data").iterdir()} == {0}
    assert trust.remove(lambda one: one.name == hook.name) == 1
    assert other.standing(hook) == "unknown"


def test_trusted_files_are_the_declaration_and_the_scripts(trust: Trust, hook: Runnable) -> None:
    client = Runnable("server", "db", source=f"{CLIENT}virtual://a", declaration={})
    trust.add([hook, client], now=1)

    assert trust.files() == {hook.source, *hook.files}


def test_without_a_file_the_word_lasts_as_long_as_the_process(hook: Runnable) -> None:
    trust = Trust(None)
    before = trust.stamp
    trust.add([hook], now=1)

    assert trust.standing(hook) == "trusted"
    assert trust.stamp != before


def test_only_regular_files_have_a_fingerprint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert fingerprint(tmp_path / "pipe") == fingerprint(tmp_path / "none") == fingerprint(tmp_path) == "missing"


@pytest.mark.parametrize("content", ["[", "[]"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(content)
    with pytest.raises(OwnerFileError, match=str(path)):
        OwnerFile(path).read()


def test_a_change_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    kept = OwnerFile(tmp_path / "x.json")
    kept.change(lambda content: {"a": 1})
    with pytest.raises(TypeError):
        kept.change(lambda content: {"a": object()})
    assert json.loads(kept.path.read_text()) == {"a": 1}
