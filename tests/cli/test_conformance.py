"""`ahpkit conformance`: a readable report, a last line to parse, and exit statuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ahpkit.cli.main import cli

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["conformance", *map(str, arguments)])


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    good: dict[str, Any] = {"reducer": "root", "initial": {"agents": []}, "actions": [], "expected": {"agents": []}}
    bad: dict[str, Any] = {**good, "description": "keeps its agents", "expected": {"agents": [{"provider": "x"}]}}
    (tmp_path / "good.json").write_text(json.dumps(good))
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    return tmp_path


@pytest.mark.parametrize(("command", "folder"), [("reducers", "reducers"), ("round-trips", "round-trips")])
def test_passing_fixtures_end_with_the_counts_and_success(command: str, folder: str) -> None:
    result = run(command, FIXTURES / folder)
    count = len(list((FIXTURES / folder).rglob("*.json")))
    assert (result.exit_code, result.output) == (0, f"{count} passed, 0 failed\n")


def test_a_failure_shows_where_and_what_and_exits_with_1(failing: Path) -> None:
    result = run("reducers", failing)
    assert result.exit_code == 1
    assert (
        'FAILED bad.json: keeps its agents\n  $.agents[0]\n    expected {"provider": "x"}\n    got      (absent)'
        in result.output
    )
    assert result.output.splitlines()[-1] == "1 passed, 1 failed"


def test_json_is_one_object_and_has_the_same_exit_status(failing: Path) -> None:
    result = run("reducers", failing, "--json")
    report = json.loads(result.output)
    assert (result.exit_code, report["passed"], report["failed"]) == (1, 1, 1)
    assert report["failures"][0]["fixture"] == "bad.json"


@pytest.mark.parametrize("command", ["reducers", "round-trips"])
def test_a_directory_that_is_none_or_holds_no_fixture_exits_with_2(tmp_path: Path, command: str) -> None:
    for name in ("file", "other.json"):
        (tmp_path / name).write_text("{}")
    for directory in (tmp_path / "missing", tmp_path / "file", tmp_path):
        result = run(command, directory)
        assert result.exit_code == 2
        assert "DIR" in result.output


@pytest.mark.parametrize("command", [(), ("reducers",), ("round-trips",)])
def test_every_help_has_an_example(command: tuple[str, ...]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Example:" in result.output


@pytest.mark.parametrize(
    ("said", "rc"), [("0.9.0", 0), ("0.9", 0), ("1", 0), ("1.0", 0), ("0.7", 2), ("0", 2), ("", 2)]
)
def test_a_version_may_be_said_as_a_host_is_pinned_to_it(tmp_path: Path, said: str, rc: int) -> None:
    fixture: dict[str, Any] = {"reducer": "root", "initial": {"agents": []}, "actions": [], "expected": {"agents": []}}
    (tmp_path / "one.json").write_text(json.dumps(fixture))
    result = run("reducers", tmp_path, "--protocol", said)
    assert result.exit_code == rc, result.output
    assert ("1.0.0, 0.9.0, 0.4.0" in result.output) == (rc == 2)
