"""Runs conformance fixtures of reducers and of round trips.

    report = run_reducer_fixtures("fixtures/reducers", protocol="1.0.0")
    assert report.failed == 0, report

Without `protocol` every fixture is run for the version it is for: the version that it names in `protocol`, or the
version in the name of a directory above it (`1.0.0`, `ahp-0.9.0`). A fixture without a version passes if one of the
known versions gives the expected result.

The formats are those of the public corpus. A reducer fixture is `{description, reducer, initial, actions, expected}`,
compared with nulls removed; reducers of 0.4.0 read a clock, which shows `NOW`. A round trip is `{name, type, input,
acceptableOutputs, preservedOutput?}`; we keep unknown keys, so `preservedOutput` is what counts where it is given. A
null that came in may go out again or be left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, cast

from ahpkit.dialects.v0_4 import channels as channels_0_4
from ahpkit.dialects.v0_4 import registry as registry_0_4
from ahpkit.protocol import channels as channels_1_0
from ahpkit.protocol import registry as registry_1_0
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.validation import check
from ahpkit.wire.codec import decode, decode_json, encode
from ahpkit.wire.errors import InvalidParams, RpcError

NOW: Final = 9999
"""What the clock shows in reducer fixtures of 0.4.0, in milliseconds after the epoch."""

Reduce = Callable[[JsonObject, JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class Protocol:
    """One version of the protocol: a reducer for each kind of channel, and the types by name."""

    reducers: Mapping[str, Reduce]
    types: Mapping[str, Any]


def _reducers_0_4() -> Mapping[str, Reduce]:
    def clocked(reducer: channels_0_4.Reducer) -> Reduce:
        return lambda state, action: reducer(state, action, now=NOW)

    channels = channels_0_4.CHANNELS.values()
    return {channel.name: clocked(channel.reducer) for channel in channels if channel.reducer is not None}


def _reducers_1_0() -> Mapping[str, Reduce]:
    channels = channels_1_0.CHANNELS.values()
    return {channel.name: channel.reducer for channel in channels if channel.reducer is not None}


_PROTOCOL_1_0 = Protocol(_reducers_1_0(), registry_1_0.TYPES)

PROTOCOLS: Final[Mapping[str, Protocol]] = {
    "1.0.0": _PROTOCOL_1_0,
    "0.9.0": _PROTOCOL_1_0,  # The additions of 1.0.0 change nothing that 0.9.0 has.
    "0.4.0": Protocol(_reducers_0_4(), registry_0_4.TYPES),
}
"""Version → its reducers and types, newest first."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A fixture that did not pass: why, and where the outcome differs."""

    fixture: str
    problem: str
    differences: tuple[Difference, ...] = ()

    def __str__(self) -> str:
        places = "".join(f"\n{place}" for place in self.differences).replace("\n", "\n  ")
        return f"FAILED {self.fixture}: {self.problem}{places}"

    def to_json(self) -> dict[str, Any]:
        """The same as JSON data, for programs."""
        places = [place.to_json() for place in self.differences]
        return {"fixture": self.fixture, "problem": self.problem, "differences": places}


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a directory of fixtures."""

    passed: int
    failures: tuple[Failure, ...]
    skipped: tuple[str, ...] = ()
    """JSON files that are not fixtures of this kind."""

    @property
    def failed(self) -> int:
        """How many fixtures did not pass."""
        return len(self.failures)

    def __str__(self) -> str:
        counts = f"{self.passed} passed, {self.failed} failed"
        if not self.skipped:
            return "\n\n".join([*map(str, self.failures), counts])
        others = "\n".join(f"skipped {name}: no fixture" for name in self.skipped)
        return "\n\n".join([*map(str, self.failures), others, f"{counts}, {len(self.skipped)} skipped"])

    def to_json(self) -> dict[str, Any]:
        """The same as JSON data, for programs."""
        failures = [failure.to_json() for failure in self.failures]
        return {"passed": self.passed, "failed": self.failed, "failures": failures, "skipped": [*self.skipped]}


def run_reducer_fixtures(directory: str | PathLike[str], *, protocol: str | None = None) -> Report:
    """Fold the actions of every fixture under `directory` and compare the outcome."""
    members = {"reducer": str, "initial": dict, "actions": list, "expected": dict}
    return _run(directory, members, _check_reducer, protocol)


def run_round_trips(directory: str | PathLike[str], *, protocol: str | None = None) -> Report:
    """Decode, check and encode the input of every fixture under `directory` and compare the outcome."""
    members = {"type": str, "input": object, "acceptableOutputs": list}
    return _run(directory, members, _check_round_trip, protocol)


Fixture = dict[str, Any]

_Check = Callable[[Protocol, str, Fixture], Failure | None]


def _run(directory: str | PathLike[str], members: Mapping[str, type], check: _Check, protocol: str | None) -> Report:
    root = Path(directory)
    outcomes = {
        path.relative_to(root).as_posix(): _outcome(path, path.relative_to(root).as_posix(), members, check, protocol)
        for path in fixture_paths(root)
    }
    failures = tuple(outcome for outcome in outcomes.values() if isinstance(outcome, Failure))
    skipped = tuple(name for name, outcome in outcomes.items() if outcome == "skipped")
    return Report(passed=len(outcomes) - len(failures) - len(skipped), failures=failures, skipped=skipped)


def _outcome(
    path: Path, name: str, members: Mapping[str, type], check: _Check, protocol: str | None
) -> Failure | Literal["skipped", "passed"]:
    try:
        fixture = read_fixture(path, members)
    except NoFixture:
        return "skipped"
    except MalformedFixture as exc:
        return Failure(name, str(exc))
    versions = [protocol] if protocol is not None else _meant(path, fixture)
    failures = [check(PROTOCOLS[version], name, fixture) for version in versions]
    return "passed" if None in failures else min(filter(None, failures), key=lambda failure: len(failure.differences))


def _meant(path: Path, fixture: Fixture) -> Sequence[str]:
    """The versions that a fixture is for: the one that it names, the one in its path, or all known versions."""
    named = [str(fixture.get("protocol")), *(part.removeprefix("ahp-") for part in reversed(path.resolve().parts))]
    known = [version for version in named if version in PROTOCOLS]
    return known[:1] or list(PROTOCOLS)


def _check_reducer(protocol: Protocol, name: str, fixture: Fixture) -> Failure | None:
    reduce = protocol.reducers.get(fixture["reducer"])
    if reduce is None:
        return Failure(name, f"unknown reducer {fixture['reducer']!r}")
    state: JsonObject = fixture["initial"]
    for action in fixture["actions"]:
        state = reduce(state, action)
    places = tuple(differences(without_nulls(fixture["expected"]), without_nulls(decode_json(encode(state)))))
    return Failure(name, str(fixture.get("description", "wrong state")), places) if places else None


def _check_round_trip(protocol: Protocol, name: str, fixture: Fixture) -> Failure | None:
    try:
        got = _there_and_back(protocol.types.get(fixture["type"]), fixture["type"], fixture["input"])
    except RpcError as exc:
        return Failure(name, f"refused as {fixture['type']}: {exc.message}")
    wanted: list[Any] = [fixture["preservedOutput"]] if "preservedOutput" in fixture else fixture["acceptableOutputs"]
    outcomes = [tuple(differences(expected, got)) for expected in wanted]
    outcomes += [tuple(differences(expected, without_nulls(got))) for expected in wanted]
    if () in outcomes:
        return None
    return Failure(name, "another output than expected", min(outcomes, key=len, default=()))


def _there_and_back(shape: Any, type_name: str, value: Any) -> Any:
    """The value after it was sent, received, checked against its type and sent on. An unknown type is not checked.

    Other peers may send null for a member without a value. We never write such a null, but pass it on unchanged.
    """
    data = encode(value)
    if type_name == "JsonRpcMessage":
        decode(data)
    received = decode_json(data)
    if shape is not None:
        _check_shape(shape, received)
    return decode_json(encode(received))


def _check_shape(shape: Any, value: Any) -> None:
    try:
        check(shape, value)
    except InvalidParams:
        check(shape, without_nulls(value))


class MalformedFixture(ValueError):
    """A file that cannot be used as a fixture; the text says what is wrong with it."""


class NoFixture(MalformedFixture):
    """A JSON file that is meant for something else: it has one of the required members at most."""


def fixture_paths(directory: Path) -> list[Path]:
    """The fixture files under `directory`, at any depth, in order of their names."""
    return sorted(path for path in directory.rglob("*.json") if path.is_file())


def read_fixture(path: Path, required: Mapping[str, type | tuple[type, ...]]) -> Fixture:
    """The fixture in `path`, with the required members of the given types. Raises `MalformedFixture`."""
    try:
        data: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as exc:
        raise MalformedFixture(f"cannot be read: {exc}") from exc
    if not isinstance(data, dict):
        raise NoFixture("is not a JSON object")
    fixture = cast("Fixture", data)
    problems = list(_problems(fixture, required))
    if problems:
        is_meant = len(fixture.keys() & required.keys()) > 1
        raise (MalformedFixture if is_meant else NoFixture)("; ".join(problems))
    return fixture


def _problems(fixture: Fixture, required: Mapping[str, type | tuple[type, ...]]) -> Iterator[str]:
    for name, kind in required.items():
        if name not in fixture:
            yield f'has no "{name}"'
        elif not isinstance(fixture[name], kind):
            yield f'"{name}" is a {type(fixture[name]).__name__}'


class _Absent:
    """Stands for a value that is not there, which is not null."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()

_SHOWN = 300
"""Characters of a value that are printed: one or two lines. The path shows where the rest is."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the values differ."""

    path: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.path}\n  expected {_shown(self.expected)}\n  got      {_shown(self.got)}"

    def to_json(self) -> dict[str, Any]:
        """For machines: an absent value is an absent key."""
        values = {"expected": self.expected, "got": self.got}
        return {"path": self.path, **{key: value for key, value in values.items() if value is not ABSENT}}


def differences(expected: Any, got: Any, path: str = "$") -> Iterator[Difference]:
    """Every innermost place where `got` is not what was expected."""
    if isinstance(expected, dict) and isinstance(got, dict):
        yield from _in_objects(cast("dict[str, Any]", expected), cast("dict[str, Any]", got), path)
    elif isinstance(expected, list) and isinstance(got, list):
        pairs = zip_longest(cast("list[Any]", expected), cast("list[Any]", got), fillvalue=ABSENT)
        for index, (left, right) in enumerate(pairs):
            yield from differences(left, right, f"{path}[{index}]")
    elif isinstance(expected, bool) is not isinstance(got, bool) or expected != got:
        yield Difference(path, expected, got)


def without_nulls(value: Any) -> Any:
    """`value` without the members that are null: reducer fixtures write null for "absent"."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: without_nulls(member) for key, member in members if member is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast("list[Any]", value)]
    return value


def _in_objects(expected: dict[str, Any], got: dict[str, Any], path: str) -> Iterator[Difference]:
    for key in {**expected, **got}:
        place = f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]"
        yield from differences(expected.get(key, ABSENT), got.get(key, ABSENT), place)


def _shown(value: Any) -> str:
    if value is ABSENT:
        return repr(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


__all__ = [
    "ABSENT",
    "NOW",
    "PROTOCOLS",
    "Difference",
    "Failure",
    "Fixture",
    "MalformedFixture",
    "NoFixture",
    "Report",
    "differences",
    "fixture_paths",
    "read_fixture",
    "run_reducer_fixtures",
    "run_round_trips",
    "without_nulls",
]
