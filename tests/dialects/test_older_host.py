"""A client with a 1.0.0 mirror reads what an older host says, and tells it things in its own words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given

from ahpkit.dialects import Generation
from ahpkit.dialects.older_host import HostActions, HostContext, HostDialect
from ahpkit.dialects.v0_4.channels import CHANNELS as OLD
from ahpkit.protocol.channels import CHANNELS as NEW
from ahpkit.protocol.errors import LocalProtocolError
from support import requirement
from support.histories import INITIAL, KINDS, SESSION, histories, opening
from support.properties import examples
from support.squares import DERIVED, differences, hinted, plain, project, refused, resyncs, told

Json = dict[str, Any]

V = Generation
OLDEST = HostDialect("0.4.0", V.V0_4)
CHAT = "ahp-chat:/c"


def host_context(state: Json | None = None, *, channel: str = SESSION, session: Json | None = None) -> HostContext:
    states = {channel: state} if session is None else {channel: state, SESSION: session}
    return HostContext(channel, 1000, states.get, {channel: SESSION, SESSION: SESSION}.get)


class Mirror:
    """A client's copy of one channel of an older host."""

    def __init__(self, kind: str, snapshot: Json, generation: Generation = V.V0_4) -> None:
        self.kind = kind
        self.host = HostDialect(generation.release, generation)
        self.state = self.host.state(kind, snapshot, host_context())

    def take(self, action: Json) -> None:
        reducer = NEW[self.kind].reducer
        assert reducer is not None
        for one in self.host.actions(action, host_context(self.state)):
            self.state = reducer(self.state, one)


def unlike(mirror: Json, host: Json) -> list[str]:
    """Where a mirror, shown as 0.4 would show it, is not what the host has."""
    places = differences(plain(mirror), plain(host))
    return [at for at, _, _ in places if not at.endswith("modifiedAt") and not re.fullmatch(DERIVED, at)]


@pytest.mark.parametrize("kind", KINDS)
@requirement("gen:project-client:old-host")
def test_the_mirror_of_a_0_4_host_has_what_the_host_has(kind: str) -> None:
    reduce_old, reduce_new = OLD[kind].reducer, NEW[kind].reducer
    assert reduce_old is not None
    assert reduce_new is not None

    @examples(1.0)
    @given(histories(kind))
    def holds(history: list[Json]) -> None:
        state = INITIAL[kind]
        host = project(kind, state, V.V0_4)
        mirror = Mirror(kind, host)
        for said in [*opening(), *history] if kind == "chat" else history:
            action = hinted(kind, said, state)
            if refused(kind, said, state) or resyncs(action, V.V0_4):
                continue
            state = reduce_new(state, action)
            if (sent := told(action, V.V0_4)) is not None:
                host = reduce_old(host, sent, now=0)
                mirror.take(sent)
                assert unlike(project(kind, mirror.state, V.V0_4), host) == [], sent

    holds()


@pytest.mark.parametrize("generation", [one for one in V if V.V0_4 < one < V.V0_9])
@pytest.mark.parametrize("kind", KINDS)
@requirement("gen:project-client:old-host")
def test_the_mirror_of_a_host_between_0_4_and_0_9_has_what_the_host_has(kind: str, generation: Generation) -> None:
    reducer = NEW[kind].reducer
    assert reducer is not None

    @examples(0.3)
    @given(histories(kind))
    def holds(history: list[Json]) -> None:
        """A reader of that version knows what it was told of: what it was not told of is no part of its state."""
        state = known = INITIAL[kind]
        mirror = Mirror(kind, project(kind, state, generation), generation)
        for said in [*opening(), *history] if kind == "chat" else history:
            action = hinted(kind, said, state)
            if refused(kind, said, state) or resyncs(action, generation):
                continue
            state = reducer(state, action)
            if (sent := told(action, generation)) is not None:
                known = reducer(known, action)
                mirror.take(sent)
                assert unlike(project(kind, mirror.state, generation), project(kind, known, generation)) == [], sent

    holds()


OFF = {"type": "plugin", "id": "p", "name": "p", "uri": "x:p", "enabled": False}
DECIDED = {
    **{key: value for key, value in OFF.items() if key != "enabled"},
    "enablement": [{"kind": "session", "enabled": False}],
}


OLDER_WORDS: list[tuple[Generation, Json, Json]] = [
    (
        V.V0_8,
        {"type": "chat/error", "turnId": "t", "duration": 3, "error": {"errorType": "x", "message": "y"}},
        {"part": {"kind": "error", "error": {"errorType": "x", "message": "y"}}, "duration": 3},
    ),
    (V.V0_5_0, {"type": "chat/turnStarted", "turnId": "t"}, {"startedAt": "1970-01-01T00:00:01.000Z"}),
    (V.V0_5_2, {"type": "chat/turnComplete", "turnId": "t"}, {"duration": 0}),
    (
        V.V0_7,
        {"type": "session/customizationToggled", "id": "p", "enabled": False},
        {"enablement": [{"kind": "session", "enabled": False}]},
    ),
    (
        V.V0_7,
        {"type": "session/activeClientSet", "activeClient": {"clientId": "a", "customizations": [OFF]}},
        {"activeClient": {"clientId": "a", "customizations": [DECIDED]}},
    ),
    (
        V.V0_8,
        {"type": "annotations/set", "annotation": {"id": "a", "turnId": "t"}},
        {"annotation": {"id": "a", "origin": {"session": SESSION, "turnId": "t"}}},
    ),
    (
        V.V0_5_2,
        {"type": "changeset/filesReviewedChanged", "fileIds": ["f"], "reviewed": True},
        {"type": "changeset/filesReviewChanged", "files": ["f"], "reviewed": True},
    ),
    (
        V.V0_6,
        {"type": "chat/turnsLoaded", "turns": [{"id": "t", "responseParts": [], "error": {"message": "y"}}]},
        {"turns": [{"id": "t", "responseParts": [{"kind": "error", "error": {"message": "y"}}]}]},
    ),
]


@pytest.mark.parametrize(("generation", "action", "read"), OLDER_WORDS)
def test_words_that_only_older_hosts_have_are_read(generation: Generation, action: Json, read: Json) -> None:
    [found] = HostDialect(generation.release, generation).actions(action, host_context({}))
    assert found.items() >= read.items()
    assert not {"error", "enabled", "fileIds"} & found.keys()


@pytest.mark.parametrize(
    ("generation", "written"),
    [
        (V.V0_5_0, {"workingDirectory": "file:///a", "fork": {"session": "s", "turnId": "t"}}),
        (V.V0_6, {"workingDirectory": "file:///a", "fork": {"session": "s", "turnId": "t"}}),
        (V.V0_8, {"workingDirectories": ["file:///a"], "fork": {"session": "s", "turnId": "t"}}),
    ],
)
def test_a_session_is_asked_for_in_the_words_of_its_host(generation: Generation, written: Json) -> None:
    host = HostDialect(generation.release, generation)
    params = {"workingDirectories": ["file:///a"], "_meta": {"ahpkit.dev/fork": {"session": "s", "turnId": "t"}}}
    assert host.write("createSession", params) == written
    source = {"kind": "sideChat", "chat": CHAT, "turnId": "t"}
    if generation < V.V0_7:
        with pytest.raises(LocalProtocolError, match="has no chat of kind sideChat"):
            host.write("createChat", {"source": source})
        assert host.write("createChat", {"source": {**source, "kind": "fork"}})["source"] == {
            "chat": CHAT,
            "turnId": "t",
        }
    else:
        assert host.write("createChat", {"source": source}) == {"source": source}


def test_hosts_of_0_9_and_1_0_are_read_as_they_are() -> None:
    action = {"type": "chat/turnStarted", "turnId": "t"}
    for generation in (V.V0_9, V.V1_0):
        dialect = HostDialect(generation.release, generation)
        assert dialect.actions(action, host_context()) == [action]
        assert dialect.result("listSessions", {"items": [{"createdAt": "x"}]}) == {"items": [{"createdAt": "x"}]}


def test_another_active_client_of_0_4_takes_the_place_of_the_one_before() -> None:
    session: Json = {"activeClients": [{"clientId": "a", "tools": []}]}
    action: Json = {"type": "session/activeClientChanged", "activeClient": {"clientId": "b", "tools": []}}
    assert [one["type"] for one in OLDEST.actions(action, host_context(session))] == [
        "session/activeClientRemoved",
        "session/activeClientSet",
    ]


def test_the_model_of_a_message_is_chosen_before_it() -> None:
    message = {"text": "hi", "origin": {"kind": "user"}, "model": {"id": "m"}, "agent": {"uri": "file:///a"}}
    action = {"type": "chat/turnStarted", "turnId": "t", "startedAt": "x", "message": message}
    session = {"_meta": {"ahpkit.dev/selection": {"agent": {"uri": "file:///a"}}}}
    written = OLDEST.write_action(action, host_context({}, channel=CHAT, session=session))
    assert written == HostActions(
        {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "hi", "origin": {"kind": "user"}}},
        [(SESSION, {"type": "session/modelChanged", "model": {"id": "m"}})],
    )


@pytest.mark.parametrize(
    ("action", "written"),
    [
        (
            {"type": "session/activeClientSet", "activeClient": {"clientId": "me", "tools": []}},
            {"type": "session/activeClientChanged", "activeClient": {"clientId": "me", "tools": []}},
        ),
        (
            {"type": "session/activeClientRemoved", "clientId": "me"},
            {"type": "session/activeClientChanged", "activeClient": None},
        ),
        (
            {"type": "session/customizationToggled", "id": "x", "enablement": [{"kind": "session", "enabled": False}]},
            {"type": "session/customizationToggled", "id": "x", "enabled": False},
        ),
        ({"type": "chat/turnCancelled", "turnId": "t", "duration": 3}, {"type": "chat/turnCancelled", "turnId": "t"}),
    ],
)
def test_actions_are_written_in_the_words_of_0_4(action: Json, written: Json) -> None:
    assert OLDEST.write_action(action, host_context({})).action == written


@pytest.mark.parametrize(
    ("generation", "kind"),
    [(V.V0_4, "chat/draftChanged"), (V.V0_4, "chat/turnResume"), (V.V0_9, "chat/isReadChanged")],
)
def test_what_a_host_cannot_be_told_is_said_in_words(generation: Generation, kind: str) -> None:
    with pytest.raises(LocalProtocolError, match=f"speaks {generation.release}, which has no {kind}"):
        HostDialect(generation.release, generation).write_action({"type": kind}, host_context())


def test_params_are_written_in_the_words_of_0_4() -> None:
    params = {
        "channel": SESSION,
        "workingDirectories": ["file:///a", "file:///b"],
        "progressToken": "p",
        "_meta": {"ahpkit.dev/selection": {"model": {"id": "m"}}, "ahpkit.dev/fork": {"session": "s", "turnId": "t"}},
    }
    assert OLDEST.write("createSession", params) == {
        "channel": SESSION,
        "workingDirectory": "file:///a",
        "model": {"id": "m"},
        "fork": {"session": "s", "turnId": "t"},
    }
    source = {"kind": "fork", "chat": CHAT, "turnId": "t"}
    assert OLDEST.write("createChat", {"channel": SESSION, "source": source})["source"] == {"chat": CHAT, "turnId": "t"}
    with pytest.raises(LocalProtocolError):
        OLDEST.write("createChat", {"channel": SESSION, "source": {**source, "kind": "sideChat"}})
    with pytest.raises(LocalProtocolError):
        OLDEST.write("moveChat", {"channel": CHAT})


def test_lists_and_notifications_of_0_4_have_the_newest_form() -> None:
    items = [{"resource": SESSION, "createdAt": 0, "modifiedAt": 1, "model": {"id": "m"}}]
    listed = OLDEST.result("listSessions", {"items": items})["items"][0]
    assert listed["createdAt"] == "1970-01-01T00:00:00.000Z"
    assert listed["_meta"] == {"ahpkit.dev/selection": {"model": {"id": "m"}}}
    changed = OLDEST.notification("root/sessionSummaryChanged", {"session": SESSION, "changes": {"activity": ""}})
    assert changed["changes"] == {"activity": None}
    assert OLDEST.notification("auth/required", {"resource": "https://r"})["resource"] == {"resource": "https://r"}
