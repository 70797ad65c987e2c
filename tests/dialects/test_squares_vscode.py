"""The commuting square with the reducers that VS Code ships: readers of 0.9.0 arrive at what the host shows.

`python tools/vscode_protocol.py` fetches them; without them and node there is nothing to run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from ahpkit.dialects import Generation
from ahpkit.protocol.channels import CHANNELS as NEW
from ahpkit.protocol.chat.turns import find_tool_call, find_turn
from support import requirement
from support.histories import INITIAL, KINDS, SAID_BY_0_4, histories, opening
from support.properties import examples
from support.specification import reducer_fixtures
from support.squares import differences, hinted, plain, project, refused, resyncs, told, unexplained

Json = dict[str, Any]

READER = Generation.V0_9
ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "tests" / "support" / "vscode_reducers.mjs"


class VsCode:
    """The reducers of VS Code in a node process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def reduce(self, kind: str, state: Json, action: Json) -> Json:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, "state": plain(state), "action": action}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, f"{action['type']}: {answer['error']}"
        return answer["state"]


def protocol_folder() -> Path:
    where = [sys.executable, str(ROOT / "tools" / "vscode_protocol.py"), "--where"]
    return Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())


@contextmanager
def running_vscode() -> Generator[VsCode]:
    node = shutil.which("node")
    folder = protocol_folder()
    if node is None or not folder.is_dir():
        pytest.skip("needs node and the protocol of VS Code: python tools/vscode_protocol.py")
    with subprocess.Popen(
        [node, str(DRIVER), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield VsCode(process)


@pytest.fixture(scope="module")
def vscode() -> Iterator[VsCode]:
    with running_vscode() as running:
        yield running


def broken_squares(vscode: VsCode, kind: str, state: Json, actions: list[Json]) -> Iterator[tuple[str, Any]]:
    """The actions of a history after which VS Code sees something else than the host would show it."""
    reducer = NEW[kind].reducer
    assert reducer is not None
    for said in actions:
        if refused(kind, said, state):
            continue
        action = hinted(kind, said, state)
        after = reducer(state, action)
        if not resyncs(action, READER) and (received := told(action, READER)) is not None:
            reduced = vscode.reduce(kind, project(kind, state, READER), received)
            if wrong := unexplained(action, READER, reduced, project(kind, after, READER)):
                yield action["type"], wrong
        state = after


@pytest.mark.parametrize("kind", KINDS)
def test_vscode_arrives_at_what_the_host_shows(vscode: VsCode, kind: str) -> None:
    @examples(0.5)
    @given(histories(kind))
    def holds(history: list[Json]) -> None:
        started = [*opening(), *history] if kind == "chat" else history
        assert list(broken_squares(vscode, kind, INITIAL[kind], started)) == []

    holds()


def repeats(action: Json, state: Json) -> bool:
    """Whether an action would give an id to a second turn, part or call. No rule says what happens to the two."""
    turn: Json = state.get("activeTurn") or {}
    if action["type"] == "chat/turnStarted":
        return find_turn(state, action["turnId"]) is not None
    if action["type"] == "chat/toolCallStart":
        return find_tool_call(turn, action["toolCallId"]) is not None
    if action["type"] == "chat/responsePart":
        return any(part.get("id") == action["part"]["id"] for part in turn.get("responseParts", ()))
    return False


def disagreements(vscode: VsCode, kind: str, state: Json, actions: list[Json]) -> Iterator[tuple[Json, Any]]:
    """The actions, legal or not, after which our reducer and that of VS Code have different states."""
    reducer = NEW[kind].reducer
    assert reducer is not None
    for action in actions:
        if action["type"] in SAID_BY_0_4 or told(action, READER) is None or repeats(action, state):
            continue
        after = reducer(state, action)
        if found := list(differences(plain(after), vscode.reduce(kind, state, action))):
            yield action, found
        state = after


@pytest.mark.parametrize("kind", KINDS)
@requirement("gen:project:commuting-square")
def test_our_reducers_do_what_those_of_vscode_do(vscode: VsCode, kind: str) -> None:
    @examples(0.5)
    @given(histories(kind))
    def holds(history: list[Json]) -> None:
        started = [*opening(), *history] if kind == "chat" else history
        assert list(disagreements(vscode, kind, INITIAL[kind], started)) == []

    holds()


UNLIKE_VSCODE = {"an-open-question-may-carry-a-null", "canvases-open-change-and-close"}
"""The fixtures in which the two disagree: VS Code takes a response that is null for a response, but the host sends no
such null; and it has no canvases of a session."""


def test_fixtures_are_histories_too(vscode: VsCode) -> None:
    for path in reducer_fixtures():
        fixture = json.loads(path.read_text(encoding="utf-8"))
        if fixture["reducer"] in KINDS and path.stem not in UNLIKE_VSCODE:
            found = list(broken_squares(vscode, fixture["reducer"], fixture["initial"], fixture["actions"]))
            assert found == [], path.name
