"""What a host says when it is ready."""

import json
import os
import sys
from pathlib import Path

import pytest

from ahpkit.cli.announce import announce, own_command, tilde


def test_people_are_told_where_it_listens_and_what_to_try(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr(sys, "argv", ["/usr/lib/ahpkit/__main__.py", "serve"])
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    announce("ws://127.0.0.1:7110", "secret", Path("/home/ada/data"), ["parrot", "demo"], as_json=False)
    assert capsys.readouterr().out == (
        "ahpkit is listening on ws://127.0.0.1:7110\n"
        "Sessions are kept in ~/data; the token is in the file 'token' there\n"
        "Agents: parrot, demo\n"
        "Try it in another terminal:  /usr/bin/python3 -m ahpkit chat\n"
    )


def test_without_a_token_none_is_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    announce("ws://127.0.0.1:7110", None, Path("/srv/data"), ["demo"], as_json=False)
    output = capsys.readouterr().out
    assert "Sessions are kept in /srv/data\n" in output
    assert "token" not in output


def test_programs_get_one_line_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    announce("ws://127.0.0.1:1", "secret", Path("/srv/data"), ["demo"], as_json=True)
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    facts = {"url": "ws://127.0.0.1:1", "token": "secret", "pid": os.getpid(), "dataDir": "/srv/data"}
    assert json.loads(output) == {**facts, "agents": ["demo"]}


def test_only_paths_below_home_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert [tilde(Path(p)) for p in ("/home/ada/x", "/home/adam/x", "/x")] == ["~/x", "/home/adam/x", "/x"]


def test_the_line_to_try_works_where_the_host_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my env" / "bin" / "ahpkit"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_command() == "'my env/bin/ahpkit'"
    monkeypatch.setenv("PATH", str(program.parent))
    assert own_command() == "ahpkit"
