"""Every generation arrives at the state that the host shows it: the commuting square, over random histories.

Fixtures are histories too: our own, and the specification's when its data is beside the checkout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from ahpkit.dialects import Generation
from ahpkit.dialects.v0_4.channels import CHANNELS as OLD
from ahpkit.protocol.channels import CHANNELS as NEW
from support import for_each, requirement
from support.histories import INITIAL, KINDS, histories, opening
from support.properties import examples
from support.specification import reducer_fixtures
from support.squares import ACCEPTED, hinted, project, refused, resyncs, told, unexplained

Json = dict[str, Any]

OLDEST = Generation.V0_4


def reduce_new(kind: str, state: Json, action: Json) -> Json:
    reducer = NEW[kind].reducer
    assert reducer is not None
    return reducer(state, action)


def reduce_old(kind: str, state: Json, action: Json) -> Json:
    reducer = OLD[kind].reducer
    assert reducer is not None
    return reducer(state, action, now=0)


def broken_squares(kind: str, state: Json, actions: list[Json]) -> Iterator[tuple[str, Any]]:
    """The actions of a history after which a 0.4 reader sees something else than the host would show it."""
    for said in actions:
        if refused(kind, said, state):
            continue
        action = hinted(kind, said, state)
        after = reduce_new(kind, state, action)
        if not resyncs(action, OLDEST):
            received = told(action, OLDEST)
            before = project(kind, state, OLDEST)
            reduced = before if received is None else reduce_old(kind, before, received)
            if wrong := unexplained(action, OLDEST, reduced, project(kind, after, OLDEST)):
                yield action["type"], wrong
        state = after


@pytest.mark.parametrize("kind", KINDS)
@requirement("gen:project:commuting-square")
@requirement("gen:project:pure")
def test_a_reader_of_0_4_arrives_at_what_the_host_shows(kind: str) -> None:
    @examples(1.0)
    @example([])
    @given(histories(kind))
    def holds(history: list[Json]) -> None:
        started = [*opening(), *history] if kind == "chat" else history
        assert list(broken_squares(kind, INITIAL[kind], started)) == []

    holds()


def test_a_client_of_the_old_role_that_announces_itself_in_a_newer_version_keeps_it() -> None:
    marked: Json = {"clientId": "two", "tools": [], "_meta": {"ahpkit.dev/primary": 1}}
    entries: list[Json] = [{"clientId": "one", "tools": []}, marked, {"clientId": "two", "tools": []}]
    history: list[Json] = [{"type": "session/activeClientSet", "activeClient": entry} for entry in entries]
    assert list(broken_squares("session", INITIAL["session"], history)) == []


@for_each(reducer_fixtures())
def test_fixtures_are_histories_too(path: Path) -> None:
    fixture = json.loads(path.read_text(encoding="utf-8"))
    kind: str = fixture["reducer"].replace("resource-watch", "resourceWatch")
    if kind in OLD:
        assert list(broken_squares(kind, fixture["initial"], fixture["actions"])) == []


def test_no_loss_is_accepted_for_actions_that_stream() -> None:
    assert not {"chat/delta", "chat/reasoning", "terminal/data", "chat/turnComplete"} & set(ACCEPTED)


def test_every_accepted_loss_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "topics" / "generations.md").read_text(encoding="utf-8")
    for action, (below, _, reason) in ACCEPTED.items():
        assert f"| `{action}` | before {below.release} | {reason} |\n" in page
    assert len(re.findall(r"^\| `\w+/\w+` \| before ", page, re.MULTILINE)) == len(ACCEPTED)
