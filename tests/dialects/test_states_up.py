"""What ahpkit wrote when it was 0.4.0 inside becomes 1.0.0, and nothing of it is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from ahpkit.dialects import Generation
from ahpkit.dialects.states_up import migrate_channels, migrate_turns
from ahpkit.protocol.channels import CHANNELS as NEW
from ahpkit.protocol.validation import check
from support import requirement
from support.histories import INITIAL, KINDS, SESSION, histories, opening
from support.properties import examples
from support.squares import hinted, plain, project, refused

Json = dict[str, Any]

OLDEST = Generation.V0_4

USER = {"text": "hi", "origin": {"kind": "user"}}
ERROR = {"errorType": "x", "message": "y"}

LOGGED: dict[str, Json] = {
    "ahp-root://": {
        "agents": [],
        "terminals": [
            {
                "resource": "ahp-terminal:/t",
                "title": "sh",
                "claim": {"kind": "session", "session": SESSION},
                "exitCode": 3,
            }
        ],
    },
    SESSION: {
        "summary": {
            "resource": SESSION,
            "provider": "demo",
            "title": "T",
            "status": 33,
            "createdAt": 1794753705328,
            "modifiedAt": 1794753705329,
            "model": {"id": "m"},
            "workingDirectory": "file:///a",
            "changes": {"files": 2},
        },
        "lifecycle": "creationFailed",
        "creationError": ERROR,
        "activeClient": {"clientId": "c", "tools": []},
        "chats": [
            {
                "resource": "ahp-chat:/c",
                "title": "",
                "status": 1,
                "modifiedAt": "2026-11-15T10:00:00.000Z",
                "workingDirectory": "file:///b",
                "agent": {"uri": "file:///agent"},
            }
        ],
        "defaultChat": "ahp-chat:/c",
        "customizations": [
            {"type": "plugin", "id": "p", "uri": "file:///p", "name": "p", "enabled": False},
            {"type": "plugin", "id": "q", "uri": "file:///q", "name": "q", "enabled": True},
        ],
        "openCanvases": [],
        "_meta": {"kept": 1},
    },
    "ahp-chat:/c": {
        "resource": "ahp-chat:/c",
        "title": "",
        "status": 24,
        "modifiedAt": "2026-11-15T10:00:00.000Z",
        "turns": [{"id": "t", "message": USER, "responseParts": [], "state": "error", "error": ERROR}],
        "activeTurn": {"id": "u", "message": USER, "responseParts": []},
        "inputRequests": [{"id": "q"}],
    },
    f"{SESSION}/annotations": {
        "annotations": [
            {"id": "n", "turnId": "t", "resource": "file:///f", "resolved": False, "entries": []},
            {"id": "o", "turnId": "", "resource": "file:///f", "resolved": False, "entries": []},
        ]
    },
    "ahp-terminal:/t": {"title": "sh", "content": [], "claim": {"kind": "client", "clientId": "c"}},
}

KIND_OF = {
    "ahp-root://": "root",
    SESSION: "session",
    "ahp-chat:/c": "chat",
    f"{SESSION}/annotations": "annotations",
    "ahp-terminal:/t": "terminal",
}


def migrated() -> dict[str, Any]:
    return dict(migrate_channels(LOGGED, KIND_OF.get, lambda uri: SESSION))


def test_every_migrated_state_has_the_shape_of_1_0() -> None:
    for uri, channel in migrated().items():
        check(NEW[KIND_OF[uri]].state, channel.state)


def test_a_session_is_flat_and_its_times_are_beside_it() -> None:
    state, listed = migrated()[SESSION]
    assert listed["createdAt"] == "2026-11-15T14:41:45.328Z"
    assert listed["modifiedAt"] == "2026-11-15T14:41:45.329Z"
    assert listed["changes"] == {"files": 2}
    assert state["lifecycle"] == "failed"
    assert state["workingDirectories"] == ["file:///a"]
    assert state["activeClients"] == [{"clientId": "c", "tools": []}]
    assert state["_meta"] == {"kept": 1, "ahpkit.dev/selection": {"model": {"id": "m"}}}
    assert state["chats"][0]["workingDirectories"] == ["file:///b"]
    assert [one.get("enablement") for one in state["customizations"]] == [[{"kind": "session", "enabled": False}], None]
    assert not {"summary", "activeClient", "resource", "createdAt"} & state.keys()


@requirement("gen:project-client:old-error")
def test_questions_and_errors_become_parts() -> None:
    chat = migrated()["ahp-chat:/c"].state
    assert chat["turns"][0]["responseParts"] == [{"kind": "error", "error": ERROR}]
    assert chat["activeTurn"]["responseParts"] == [{"kind": "inputRequest", "request": {"id": "q"}}]
    assert chat["activeTurn"]["startedAt"] == "2026-11-15T10:00:00.000Z"


@requirement("gen:project-action:terminal-claim-up")
def test_terminals_live_and_remarks_have_an_origin() -> None:
    assert migrated()["ahp-terminal:/t"].state["lifecycle"] == {"status": "running"}
    listed = migrated()["ahp-root://"].state["terminals"][0]
    assert listed["lifecycle"] == {"status": "exited", "exitCode": 3}
    assert listed["claim"]["chat"] == "ahp-chat:/c"
    remarks = migrated()[f"{SESSION}/annotations"].state["annotations"]
    assert [one["origin"] for one in remarks] == [{"session": SESSION, "turnId": "t"}, {"session": SESSION}]


def test_a_second_migration_changes_nothing() -> None:
    once = {uri: channel.state for uri, channel in migrated().items()}
    again = migrate_channels(once, KIND_OF.get, lambda uri: SESSION)
    assert {uri: channel.state for uri, channel in again.items()} == once


@pytest.mark.parametrize("kind", KINDS)
def test_0_4_loses_nothing_on_the_way_up_and_down_again(kind: str) -> None:
    uri = next((uri for uri, known in KIND_OF.items() if known == kind), "x:/y")

    @examples(0.5)
    @given(histories(kind))
    def holds(history: list[Json]) -> None:
        reducer = NEW[kind].reducer
        assert reducer is not None
        state = INITIAL[kind]
        for said in [*opening(), *history] if kind == "chat" else history:
            if not refused(kind, said, state):
                state = reducer(state, hinted(kind, said, state))
        old = plain(project(kind, state, OLDEST))
        up = migrate_channels({uri: old}, lambda uri: kind, lambda uri: SESSION)[uri].state
        assert plain(project(kind, up, OLDEST)) == old

    holds()


def test_turns_of_an_old_export_and_of_a_new_one_can_be_read() -> None:
    turn: Json = {"id": "t", "message": USER, "responseParts": [], "state": "error", "error": ERROR}
    read = migrate_turns([turn])
    assert read[0]["responseParts"] == [{"kind": "error", "error": ERROR}]
    assert migrate_turns(read) == read
