"""The conformance kit: on our fixtures, on the public ones when they are beside the checkout, and on broken ones."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ahpkit.testing import Report, run_reducer_fixtures, run_round_trips
from support import requirement
from support.specification import specification_folder

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "tests" / "fixtures"
VERSIONS = ("0.4.0", "0.9.0", "1.0.0")


def folders(version: str) -> list[Path]:
    """Where fixtures of a version are: our own, and the public ones when they are beside the checkout."""
    ours = OURS / "reducers"
    older = [folder for folder in sorted(ours.iterdir()) if folder.name != "1.0.0"] + [OURS / "round-trips"]
    public = specification_folder(f"ahp-{version}", "fixtures")
    found = older if version == "0.4.0" else [ours / "1.0.0"]
    return found if public is None else [*found, public / "reducers", public / "round-trips"]


def write(directory: Path, name: str, content: Any) -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return directory


def reducer_fixture(**more: Any) -> dict[str, Any]:
    action = {"type": "root/activeSessionsChanged", "activeSessions": 2}
    expected: dict[str, Any] = {"agents": [], "activeSessions": 2, "config": None}
    return {"reducer": "root", "initial": {"agents": []}, "actions": [action], "expected": expected, **more}


def round_trip(**more: Any) -> dict[str, Any]:
    return {"name": "n", "type": "StringOrMarkdown", "input": "x", "acceptableOutputs": ["y", "x"], **more}


@requirement("core:reducer:fixtures-null-is-absent")
def test_our_reducer_fixtures_pass() -> None:
    report = run_reducer_fixtures(OURS / "reducers")
    assert report.failed == 0, str(report)
    assert report.passed > 100


@requirement("enablement:child:skill-and-agent-flag", "enablement:child:flag-on-every-type")
def test_our_round_trips_pass() -> None:
    report = run_round_trips(OURS / "round-trips")
    assert report.failed == 0, str(report)
    assert report.passed > 20


def test_nulls_count_as_absent_in_reducer_fixtures(tmp_path: Path) -> None:
    assert run_reducer_fixtures(write(tmp_path, "a.json", reducer_fixture())) == Report(passed=1, failures=())


def test_a_wrong_state_is_reported_with_its_differences(tmp_path: Path) -> None:
    expected: dict[str, Any] = {"agents": [], "activeSessions": 3, "terminals": []}
    write(tmp_path, "sub/a.json", reducer_fixture(description="counts", expected=expected))
    report = run_reducer_fixtures(write(tmp_path, "ok.json", reducer_fixture()))
    assert (report.passed, report.failed) == (1, 1)
    assert str(report) == (
        "FAILED sub/a.json: counts\n"
        "  $.activeSessions\n"
        "    expected 3\n"
        "    got      2\n"
        "  $.terminals\n"
        "    expected []\n"
        "    got      (absent)\n"
        "\n"
        "1 passed, 1 failed"
    )


def test_a_report_for_machines(tmp_path: Path) -> None:
    report = run_reducer_fixtures(write(tmp_path, "a.json", reducer_fixture(expected={"activeSessions": 2})))
    assert report.to_json() == {
        "passed": 0,
        "failed": 1,
        "failures": [{"fixture": "a.json", "problem": "wrong state", "differences": [{"path": "$.agents", "got": []}]}],
        "skipped": [],
    }


@pytest.mark.parametrize(
    ("fixture", "problem"),
    [
        (reducer_fixture(reducer="nobody"), "unknown reducer 'nobody'"),
        (reducer_fixture(reducer="telemetry"), "unknown reducer 'telemetry'"),
        (reducer_fixture(initial=[]), '"initial" is a list'),
        ({"initial": {}, "actions": [], "expected": {}}, 'has no "reducer"'),
        ({"reducer": "root", "actions": []}, 'has no "initial"; has no "expected"'),
    ],
)
def test_a_broken_reducer_fixture_is_a_failure_with_a_reason(tmp_path: Path, fixture: Any, problem: str) -> None:
    (failure,) = run_reducer_fixtures(write(tmp_path, "a.json", fixture)).failures
    assert problem in failure.problem


def test_json_that_is_no_fixture_is_named_and_does_not_fail(tmp_path: Path) -> None:
    others: dict[str, Any] = {"package.json": {"type": "module"}, "schema.json": {"type": "object"}, "list.json": []}
    for name, other in others.items():
        write(tmp_path, name, other)
    nothing = run_reducer_fixtures(tmp_path)
    assert (nothing.passed, nothing.failed) == (0, 0)
    write(tmp_path, "reducers/a.json", reducer_fixture())
    write(tmp_path, "round-trips/a.json", round_trip())
    skipped = ("list.json", "package.json", "round-trips/a.json", "schema.json")
    assert run_reducer_fixtures(tmp_path) == Report(passed=1, failures=(), skipped=skipped)
    report = run_round_trips(tmp_path)
    assert (report.passed, report.failed) == (1, 0)
    assert report.to_json()["skipped"] == [*report.skipped]
    assert str(report) == (
        "skipped list.json: no fixture\n"
        "skipped package.json: no fixture\n"
        "skipped reducers/a.json: no fixture\n"
        "skipped schema.json: no fixture\n"
        "\n"
        "1 passed, 0 failed, 4 skipped"
    )
    (tmp_path / "broken.json").write_text("{")
    assert run_round_trips(tmp_path).failed == 1, "it may be one"


def test_actions_that_are_not_actions_change_nothing(tmp_path: Path) -> None:
    fixture = reducer_fixture(actions=[None, 7, [], {}, {"type": 1}], expected={"agents": []})
    assert run_reducer_fixtures(write(tmp_path, "a.json", fixture)).failed == 0


@pytest.mark.parametrize(
    "fixture",
    [
        round_trip(),
        round_trip(type="SessionStatus", input=2**40, acceptableOutputs=[2**40]),
        round_trip(type="Nobody"),
        round_trip(
            type="ActionOrigin",
            input={"clientId": "c", "clientSeq": 1, "_meta": None},
            acceptableOutputs=[{"clientId": "c", "clientSeq": 1}],
        ),
        round_trip(
            type="StringOrMarkdown", input={"markdown": "x", "more": 1}, preservedOutput={"markdown": "x", "more": 1}
        ),
    ],
)
def test_a_round_trip_passes_with_an_acceptable_or_with_the_preserved_output(tmp_path: Path, fixture: Any) -> None:
    assert run_round_trips(write(tmp_path, "a.json", fixture)).failed == 0


@pytest.mark.parametrize(
    ("fixture", "problem"),
    [
        (round_trip(type="Nobody", acceptableOutputs=["z"]), "another output than expected"),
        (round_trip(input=7), "refused as StringOrMarkdown"),
        (
            round_trip(type="JsonRpcMessage", input={"jsonrpc": "1.0", "id": 1, "method": "x"}),
            "refused as JsonRpcMessage",
        ),
        (round_trip(acceptableOutputs=["z"]), "another output than expected"),
        (round_trip(acceptableOutputs=[]), "another output than expected"),
        (round_trip(preservedOutput="z"), "another output than expected"),
        ({"type": "StringOrMarkdown", "acceptableOutputs": []}, 'has no "input"'),
    ],
)
def test_a_round_trip_that_fails_says_why(tmp_path: Path, fixture: Any, problem: str) -> None:
    (failure,) = run_round_trips(write(tmp_path, "a.json", fixture)).failures
    assert problem in failure.problem


def test_a_round_trip_shows_the_nearest_output(tmp_path: Path) -> None:
    fixture = round_trip(input={"markdown": "x"}, acceptableOutputs=[{"a": 1}, {"markdown": "y"}])
    (failure,) = run_round_trips(write(tmp_path, "a.json", fixture)).failures
    assert [place.path for place in failure.differences] == ["$.markdown"]


def test_the_how_to_page_runs_and_its_examples_are_fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "how-to" / "run-conformance.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    exec(page.partition("```python\n")[2].partition("\n```")[0], {})
    reducer, trip = re.findall(r"```json\n(.*?)\n```", page, re.DOTALL)
    assert run_reducer_fixtures(write(tmp_path / "reducers", "a.json", json.loads(reducer))).passed == 1
    assert run_round_trips(write(tmp_path / "trips", "a.json", json.loads(trip))).passed == 1


@requirement("core:reducer:fixtures-null-is-absent")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("named", [True, False])
def test_the_fixtures_of_every_version_pass(version: str, named: bool) -> None:
    protocol = version if named else None
    for folder in folders(version):
        run = run_round_trips if folder.name == "round-trips" else run_reducer_fixtures
        report = run(folder, protocol=protocol)
        assert report.failed == 0, f"{folder}: {report}"
        assert report.passed == len([*folder.rglob("*.json")]) - len(report.skipped)
        assert report.passed > 0


FLAT: dict[str, Any] = {
    "provider": "p",
    "title": "old",
    "status": 1,
    "lifecycle": "ready",
    "activeClients": [],
    "chats": [],
}
TITLED = {"type": "session/titleChanged", "title": "new"}


def flat_fixture(**more: Any) -> dict[str, Any]:
    return {"reducer": "session", "initial": FLAT, "actions": [TITLED], "expected": {**FLAT, "title": "new"}, **more}


def test_a_fixture_is_run_for_the_version_it_is_for(tmp_path: Path) -> None:
    write(tmp_path / "unnamed", "a.json", flat_fixture())
    write(tmp_path / "named", "a.json", flat_fixture(protocol="1.0.0"))
    write(tmp_path / "ahp-0.9.0" / "reducers", "a.json", flat_fixture())
    assert run_reducer_fixtures(tmp_path).passed == 3
    write(tmp_path / "ahp-0.4.0", "a.json", flat_fixture())
    write(tmp_path / "wrong", "a.json", flat_fixture(protocol="0.4.0"))
    failures = run_reducer_fixtures(tmp_path).failures
    assert sorted(failure.fixture for failure in failures) == ["ahp-0.4.0/a.json", "wrong/a.json"]


def test_a_version_that_is_asked_for_counts_for_all(tmp_path: Path) -> None:
    write(tmp_path, "a.json", flat_fixture(protocol="1.0.0"))
    assert run_reducer_fixtures(tmp_path, protocol="0.9.0").failed == 0
    assert run_reducer_fixtures(tmp_path, protocol="0.4.0").failed == 1
