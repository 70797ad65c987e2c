"""What one connection's dialect does: reads its client's frames, projects what the client is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ahpkit.dialects import (
    AgreedVersion,
    ClientFacts,
    Dialect,
    Generation,
    MustReconnect,
    SessionLists,
    dialect_for,
    with_hints,
)
from ahpkit.dialects.generations import may_dispatch
from ahpkit.dialects.validation import is_newest
from ahpkit.protocol.errors import ContentNotFound, InvalidParams, MethodNotFound, NotFound
from ahpkit.protocol.registry import ACTIONS
from ahpkit.wire.codec import decode_json, encode
from ahpkit.wire.pieces import Items, write_pieces
from support import requirement

V = Generation
Json = dict[str, Any]

SESSION = "demo:/s"
CHAT = "ahp-chat://default/c"
NOW = 1_794_753_705_328
STARTED = "2026-11-15T14:41:45.000Z"


class Host:
    """The surroundings of a dialect: one session with one chat."""

    def __init__(self) -> None:
        self.states: dict[str, Json] = {
            SESSION: {
                "provider": "demo",
                "title": "T",
                "status": 24,
                "lifecycle": "failed",
                "defaultChat": CHAT,
                "activeClients": [],
                "chats": [],
                "workingDirectories": ["file:///a", "file:///b"],
                "_meta": {"ahpkit.dev/selection": {"model": {"id": "m"}}},
            },
            CHAT: {"resource": CHAT, "title": "", "status": 8, "modifiedAt": STARTED, "turns": []},
        }
        self.lists = SessionLists()

    def kind(self, uri: str) -> str | None:
        return {SESSION: "session", CHAT: "chat", f"{SESSION}/annotations": "annotations"}.get(uri)

    def session_of(self, uri: str) -> str | None:
        return SESSION

    def summary(self, session: str) -> Json | None:
        return {"resource": SESSION, "status": 1, "createdAt": STARTED, "modifiedAt": STARTED}

    def title(self, chat: str) -> str | None:
        return None

    def reading(self) -> ClientFacts:
        return ClientFacts("me", lambda: NOW, self.states.get)


@pytest.fixture
def host() -> Host:
    return Host()


def speaking(generation: Generation, host: Host, *, canvases: bool = False) -> Dialect:
    return dialect_for(AgreedVersion(generation.release, generation), host, canvases=canvases)


def envelope(action: Json) -> bytes:
    return encode({"channel": SESSION, "action": action, "serverSeq": 7, "origin": {"clientId": "me", "clientSeq": 1}})


def received(dialect: Dialect, action: Json) -> Json | None:
    data = dialect.action(action["type"], envelope(action))
    return None if data is None else decode_json(data)["action"]


# -- what a client says


@requirement("gen:project-action:started-at-added")
def test_an_old_turn_gets_what_it_could_not_say(host: Host) -> None:
    action = {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "hi", "origin": {"kind": "user"}}}
    read = speaking(V.V0_4, host).read_action(CHAT, action, host.reading())
    assert read["startedAt"] == "2026-11-15T14:41:45.328Z"
    assert read["message"]["model"] == {"id": "m"}
    assert "model" not in speaking(V.V0_5_0, host).read_action(CHAT, action, host.reading())["message"]


def test_cancelling_says_how_long_it_took(host: Host) -> None:
    host.states[CHAT]["activeTurn"] = {"id": "t", "startedAt": STARTED, "message": {}, "responseParts": []}
    action = {"type": "chat/turnCancelled", "turnId": "t"}
    assert speaking(V.V0_5_2, host).read_action(CHAT, action, host.reading())["duration"] == 328


@pytest.mark.parametrize(
    ("generation", "action", "named"),
    [
        (V.V0_4, {"type": "session/activeClientChanged"}, "action.activeClient: missing"),
        (
            V.V0_6,
            {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "", "origin": {"kind": "user"}}},
            "startedAt",
        ),
        (V.V0_7, {"type": "session/customizationToggled", "id": "x", "enablement": []}, "action.enabled: missing"),
        (V.V0_8, {"type": "session/customizationToggled", "id": "x"}, "action.enablement: missing"),
        (V.V1_0, {"type": "session/customizationToggled", "id": "x", "enabled": True}, "action.enablement: missing"),
        (V.V0_7, {"type": "annotations/set", "annotation": {"id": "n"}}, "action.annotation.turnId: missing"),
        (V.V0_9, {"type": "annotations/set", "annotation": {"id": "n"}}, "action.annotation.origin: missing"),
    ],
)
@requirement("gen:project:validate-own-shape")
@requirement("gen:enablement:toggle-malformed")
def test_an_error_names_the_fields_of_the_clients_own_version(
    host: Host, generation: Generation, action: Json, named: str
) -> None:
    with pytest.raises(InvalidParams, match=named):
        speaking(generation, host).read_action(SESSION, action, host.reading())


@pytest.mark.parametrize("generation", list(Generation))
def test_what_a_client_may_dispatch_has_a_form_in_its_version(generation: Generation) -> None:
    dispatched = [kind for kind in ACTIONS if may_dispatch(generation, kind, ours=True)]
    newest = [kind for kind in dispatched if is_newest(kind, generation)]
    assert "session/titleChanged" in newest
    assert generation < V.V1_0 or newest == dispatched


@pytest.mark.parametrize("generation", list(Generation))
@pytest.mark.parametrize(
    "members",
    [
        {"title": "T", "isRead": True, "isArchived": False, "config": {}, "turnId": "t", "directory": "file:///a"},
        {"title": 7, "isRead": "yes", "config": [], "turnId": None, "clientId": 1, "toolCallId": "c"},
        {},
    ],
)
def test_an_action_reads_the_same_with_an_empty_note_which_is_read_member_by_member(
    host: Host, generation: Generation, members: Json
) -> None:
    dialect = speaking(generation, host, canvases=True)

    def outcome(action: Json) -> Json | str:
        try:
            return {**dialect.read_action(SESSION, action, host.reading()), "_meta": {}}
        except InvalidParams as error:
            return error.message

    outcomes = {kind: outcome({"type": kind, **members}) for kind in ACTIONS}
    assert outcomes == {kind: outcome({"type": kind, **members, "_meta": {}}) for kind in ACTIONS}


@pytest.mark.parametrize(
    ("generation", "kind", "why"),
    [
        (V.V0_4, "session/activeClientSet", "unknown action type"),
        (V.V0_8, "chat/turnResume", "unknown action type"),
        (V.V0_9, "chat/isReadChanged", "unknown action type"),
        (V.V1_0, "session/activeClientChanged", "unknown action type"),
        (V.V1_0, "chat/delta", "by the host, not by clients"),
        (V.V1_0, "session/canvasRequestCompleted", "unknown action type"),
        (V.V1_0, "nobody/knows", "unknown action type"),
    ],
)
@requirement("gen:negotiation:dispatchable-by-version")
def test_what_may_be_dispatched_is_decided_by_version(host: Host, generation: Generation, kind: str, why: str) -> None:
    action: Json = {
        "type": kind,
        "turnId": "t",
        "partId": "p",
        "content": "",
        "isRead": True,
        "activeClient": {"clientId": "me", "tools": []},
        "requestId": "r",
    }
    with pytest.raises(InvalidParams, match=why):
        speaking(generation, host).read_action(CHAT, action, host.reading())


@requirement("gen:project-action:toggle-up")
def test_a_plain_switch_keeps_the_decisions_of_other_scopes(host: Host) -> None:
    everywhere = {"kind": "global", "enabled": False}
    server = {"type": "mcpServer", "id": "m", "enablement": [{"kind": "session", "enabled": False}, everywhere]}
    host.states[SESSION]["customizations"] = [{"type": "plugin", "id": "p", "children": [server]}]
    action = {"type": "session/customizationToggled", "id": "m", "enabled": True}
    for generation in (V.V0_4, V.V0_7, V.V0_8):
        read = speaking(generation, host).read_action(SESSION, action, host.reading())
        assert read == {
            "type": "session/customizationToggled",
            "id": "m",
            "enablement": [{"kind": "session", "enabled": True}, everywhere],
            "_meta": {"ahpkit.dev/switch": True},
        }


@requirement("gen:project-action:annotation-up")
def test_a_remark_keeps_where_it_came_from(host: Host) -> None:
    channel = f"{SESSION}/annotations"
    host.states[channel] = {"annotations": [{"id": "n", "origin": {"session": SESSION, "chat": CHAT, "turnId": "t"}}]}
    action = {"type": "annotations/updated", "annotationId": "n", "turnId": "u"}
    read = speaking(V.V0_8, host).read_action(channel, action, host.reading())
    assert read["origin"] == {"session": SESSION, "chat": CHAT, "turnId": "u"}


@pytest.mark.parametrize(
    ("generation", "method", "params", "read"),
    [
        (
            V.V0_4,
            "createSession",
            {"workingDirectory": "file:///a", "model": {"id": "m"}},
            {"workingDirectories": ["file:///a"]},
        ),
        (V.V0_6, "createSession", {"workingDirectory": "file:///a"}, {"workingDirectories": ["file:///a"]}),
        (
            V.V0_8,
            "createSession",
            {"fork": {"session": "s", "turnId": "t"}},
            {"_meta": {"ahpkit.dev/fork": {"session": "s", "turnId": "t"}}},
        ),
        (
            V.V0_6,
            "createChat",
            {"chat": "c", "source": {"chat": "d", "turnId": "t"}},
            {"source": {"kind": "fork", "chat": "d", "turnId": "t"}},
        ),
        (V.V0_4, "listSessions", {"channel": "ahp-root://", "filter": {}}, {"channel": "ahp-root://"}),
    ],
)
@requirement("gen:project-command:source-without-kind")
@requirement("gen:project-command:directory-up")
def test_params_are_read_as_the_newest(
    host: Host, generation: Generation, method: str, params: Json, read: Json
) -> None:
    _, found = speaking(generation, host).read(method, {"channel": SESSION, **params}, host.reading())
    assert found.items() >= read.items()
    assert not {"workingDirectory", "fork", "model", "filter"} & found.keys()


@pytest.mark.parametrize("count", [3, 3000])
async def test_a_list_of_any_length_is_translated(host: Host, count: int) -> None:
    """A long one while it is written, so that it holds up nobody."""
    time = "1970-01-01T00:00:09.999Z"
    items = [{"resource": f"s{number}", "modifiedAt": time, "workingDirectories": ["d"]} for number in range(count)]
    told = speaking(V.V0_4, host).result("listSessions", {}, {"items": items})
    assert isinstance(told["items"], Items) == (count == 3000)
    for _ in range(2):  # It may be written twice: once to measure it.
        written: Any = decode_json(b"".join([piece async for piece in write_pieces(told)]))
        assert [one["resource"] for one in written["items"]] == [f"s{number}" for number in range(count)]
        assert all(one["modifiedAt"] == 9999 and one["workingDirectory"] == "d" for one in written["items"])


def test_a_session_that_did_not_change_is_written_once_for_all_lists_of_a_generation() -> None:
    lists = SessionLists()
    first: list[Json] = [{"resource": name, "title": "old"} for name in ("a", "b", "c")]
    before = [*lists.written(first, V.V0_4)]
    changed = {"resource": "b", "title": "new"}
    after = [*lists.written([changed, first[0]], V.V0_4)]
    assert decode_json(bytes(after[0])) == changed
    assert after[1] is before[0]
    again = [*lists.written(first, V.V0_4)]  # Only the last list was kept.
    assert [one is two for one, two in zip(again, before, strict=True)] == [True, False, False]
    assert [*map(bytes, again)] == [*map(bytes, before)]
    assert next(iter(lists.written(first, V.V0_9))) is not again[0]


def test_a_method_of_a_later_version_does_not_exist(host: Host) -> None:
    with pytest.raises(MethodNotFound):
        speaking(V.V0_9, host).read("moveChat", {"channel": CHAT}, host.reading())


def test_reconnect_may_leave_out_the_channel(host: Host) -> None:
    params: Json = {"clientId": "me", "lastSeenServerSeq": 3, "subscriptions": []}
    assert speaking(V.V0_9, host).read("reconnect", params, host.reading())[1]["clientId"] == "me"


@requirement("gen:project:repeat-detection")
def test_a_repeated_action_is_known_by_what_the_client_said_of_it(host: Host) -> None:
    said = {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "hi", "origin": {"kind": "user"}}}
    dialect = speaking(V.V0_4, host)
    logged = dialect.read_action(CHAT, said, host.reading())
    assert dialect.is_repeat(said, logged)
    assert not dialect.is_repeat({**said, "turnId": "u"}, logged)
    taken: Json = {"type": "session/activeClientChanged", "activeClient": {"clientId": "me", "tools": []}}
    entered = with_hints(dialect.read_action(SESSION, taken, host.reading()), host.states[SESSION], by=V.V0_4)
    assert dialect.is_repeat(taken, entered)
    host.states[SESSION]["activeClients"] = [entered["activeClient"]]
    tools: Json = {"type": "session/activeClientToolsChanged", "tools": [{"name": "t"}]}
    renewed = with_hints(dialect.read_action(SESSION, tools, host.reading()), host.states[SESSION], by=V.V0_4)
    assert dialect.is_repeat(tools, renewed)
    assert not dialect.is_repeat({**tools, "tools": []}, renewed)


# -- active clients and the one that 0.4 sees


@requirement("gen:project-action:active-client-0-4")
@requirement("gen:project-action:active-client-up")
def test_the_one_active_client_of_0_4_is_the_last_that_took_the_role_there(host: Host) -> None:
    old, new = speaking(V.V0_4, host), speaking(V.V1_0, host)
    session = host.states[SESSION]

    def apply(action: Json, by: Generation | None) -> Json:
        logged = with_hints(action, session, by=by)
        clients = [one for one in session["activeClients"] if one["clientId"] != "me"]
        session["activeClients"] = [*clients, logged["activeClient"]] if "activeClient" in logged else clients
        return logged

    session["activeClients"] = [{"clientId": "first", "tools": []}]
    beside = with_hints(
        {"type": "session/activeClientSet", "activeClient": {"clientId": "x", "tools": []}}, session, by=V.V1_0
    )
    assert received(old, beside) is None
    said: Json = {"type": "session/activeClientChanged", "activeClient": {"clientId": "me", "tools": []}}
    logged = apply(old.read_action(SESSION, said, host.reading()), V.V0_4)
    assert received(old, logged) == said
    assert (received(new, logged) or {})["type"] == "session/activeClientSet"
    left = {"type": "session/activeClientChanged", "activeClient": None}
    gone = apply(old.read_action(SESSION, left, host.reading()), V.V0_4)
    assert received(old, gone) == {**left, "activeClient": {"clientId": "first", "tools": []}}


@requirement("gen:project-action:selection-0-4")
def test_choosing_a_model_is_seen_by_0_4_as_it_was_said(host: Host) -> None:
    dialect = speaking(V.V0_4, host)
    said = {"type": "session/modelChanged", "model": {"id": "other"}}
    logged = dialect.read_action(SESSION, said, host.reading())
    assert logged["type"] == "session/metaChanged"
    assert received(dialect, logged) == said


# -- what a client is told


@requirement("gen:project-state:session-0-4")
@requirement("gen:project-state:lifecycle")
@requirement("gen:project-state:directory")
def test_a_session_of_0_4_has_its_own_form(host: Host) -> None:
    host.states[SESSION]["openCanvases"] = []
    state = speaking(V.V0_4, host).state(SESSION, host.states[SESSION])
    assert state == {
        "summary": {
            "resource": SESSION,
            "provider": "demo",
            "title": "T",
            "status": 1,
            "createdAt": 1794753705000,
            "modifiedAt": 1794753705000,
            "workingDirectory": "file:///a",
            "model": {"id": "m"},
        },
        "lifecycle": "creationFailed",
        "defaultChat": CHAT,
        "chats": [],
        "openCanvases": [],
    }


@requirement("gen:project-action:canvas-capability")
def test_newer_clients_get_our_canvases_when_they_ask(host: Host) -> None:
    host.states[SESSION]["openCanvases"] = []
    assert "openCanvases" not in speaking(V.V1_0, host).state(SESSION, host.states[SESSION])
    assert "openCanvases" in speaking(V.V1_0, host, canvases=True).state(SESSION, host.states[SESSION])
    action: Json = {"type": "session/canvasRegistryChanged", "canvases": []}
    assert received(speaking(V.V0_9, host), action) is None
    assert received(speaking(V.V0_9, host, canvases=True), action) == action


@requirement("gen:project-action:canvas-capability")
@pytest.mark.parametrize("generation", [V.V0_5_0, V.V0_8, V.V0_9, V.V1_0])
def test_what_a_client_says_about_canvases_is_told_to_those_who_ask(host: Host, generation: Generation) -> None:
    """Otherwise a replica has members that no snapshot shows."""
    entry: Json = {"clientId": "a", "tools": [], "canvasProviders": [], "canRenderCanvases": True}
    action: Json = {"type": "session/activeClientSet", "activeClient": entry}
    told = received(speaking(generation, host), action)
    assert told is not None
    host.states[SESSION]["activeClients"] = [entry]
    [shown] = speaking(generation, host).state(SESSION, host.states[SESSION])["activeClients"]
    assert told["activeClient"] == shown == {"clientId": "a", "tools": []}
    assert received(speaking(generation, host, canvases=True), action) == action


@requirement("gen:project-state:input-requests")
@requirement("gen:project-state:input-part-cut")
def test_open_questions_are_a_list_before_0_6(host: Host) -> None:
    asked = {"kind": "inputRequest", "request": {"id": "q"}}
    answered = {"kind": "inputRequest", "request": {"id": "r"}, "response": "accept"}
    message = {"text": "", "origin": {"kind": "user"}}
    chat = host.states[CHAT]
    chat["activeTurn"] = {"id": "t", "startedAt": STARTED, "message": message, "responseParts": [answered, asked]}
    for generation, parts in ((V.V0_4, []), (V.V0_5_1, []), (V.V0_5_2, [answered]), (V.V0_6, [answered, asked])):
        state = speaking(generation, host).state(CHAT, chat)
        assert state["activeTurn"]["responseParts"] == parts
        assert state.get("inputRequests") == (None if generation >= V.V0_6 else [{"id": "q"}])


@requirement("gen:project:resync")
def test_what_cannot_be_told_asks_for_a_snapshot(host: Host) -> None:
    resume = {"type": "chat/turnResume", "turnId": "t"}
    with pytest.raises(MustReconnect):
        received(speaking(V.V0_7, host), resume)
    assert received(speaking(V.V0_9, host), resume) == resume


@requirement("gen:project-action:error-alias")
def test_an_error_has_its_old_place_beside_the_new(host: Host) -> None:
    error = {"errorType": "x", "message": "y"}
    action = {"type": "chat/error", "turnId": "t", "duration": 1, "part": {"kind": "error", "error": error}}
    assert received(speaking(V.V0_4, host), action) == {"type": "chat/error", "turnId": "t", "error": error}
    assert received(speaking(V.V0_8, host), action) == {**action, "error": error}
    assert received(speaking(V.V0_9, host), action) == action


@requirement("gen:project-state:summary-times")
@requirement("gen:summary:iso-times")
def test_times_of_summaries_are_numbers_in_0_4_and_texts_later(host: Host) -> None:
    summary = {"resource": SESSION, "modifiedAt": STARTED, "activity": "reading"}
    params = {"channel": "ahp-root://", "session": SESSION, "changes": summary}
    _, old = speaking(V.V0_4, host).notification("root/sessionSummaryChanged", params) or ("", {})
    assert old["changes"] == {"resource": SESSION, "modifiedAt": 1794753705000, "activity": "reading"}
    _, new = speaking(V.V0_5_0, host).notification("root/sessionSummaryChanged", params) or ("", {})
    assert new == params


@requirement("gen:auth:notification-object")
def test_who_must_sign_in_where_is_a_name_before_0_8(host: Host) -> None:
    params = {"channel": "ahp-root://", "resource": {"resource": "https://r", "scopes_supported": ["a"]}}
    assert speaking(V.V0_7, host).notification("auth/required", params) == (
        "auth/required",
        {"channel": "ahp-root://", "resource": "https://r"},
    )
    assert speaking(V.V0_8, host).notification("auth/required", params) == ("auth/required", params)


def test_progress_is_unknown_to_0_4(host: Host) -> None:
    params = {"channel": "ahp-root://", "progressToken": "p", "progress": 1}
    assert speaking(V.V0_4, host).notification("root/progress", params) is None
    assert speaking(V.V0_5_0, host).notification("root/progress", params) == ("root/progress", params)


@requirement("gen:errors:content-not-found")
def test_missing_content_has_another_code_since_0_9(host: Host) -> None:
    error = ContentNotFound("gone")
    assert speaking(V.V0_8, host).error("resourceRead", error) is error
    assert isinstance(speaking(V.V0_9, host).error("resourceRead", error), NotFound)


def test_choices_are_texts_in_0_4(host: Host) -> None:
    result = {"schema": {"type": "object", "properties": {"n": {"enum": [1, None, True, "x"]}}}, "values": {}}
    told = speaking(V.V0_4, host).result("resolveSessionConfig", {}, result)
    assert told["schema"]["properties"]["n"]["enum"] == ["1", "null", "true", "x"]
    assert speaking(V.V0_5_0, host).result("resolveSessionConfig", {}, result) == result


_FIXTURES = Path(__file__).parents[1] / "fixtures" / "reducers" / "1.0.0"


def test_what_has_the_same_form_has_the_same_bytes(host: Host) -> None:
    dialects = [
        dialect_for(AgreedVersion(one.release, one), host, canvases=canvases, apps=apps, needs_models=needs_models)
        for one in Generation
        for canvases, apps, needs_models in ((False, False, False), (True, True, True))
    ]

    def told(dialect: Dialect, action: Json) -> bytes | str | None:
        try:
            return dialect.action(action["type"], envelope(action))
        except MustReconnect:
            return "resync"

    formed: set[str] = set()
    for path in _FIXTURES.rglob("*.json"):
        for action in json.loads(path.read_text())["actions"]:
            outcomes: dict[str, set[bytes | str | None]] = {}
            for dialect in dialects:
                if (form := dialect.form(action["type"])) is not None:
                    outcomes.setdefault(form, set()).add(told(dialect, action))
                    formed.add(action["type"])
            assert all(len(outcome) == 1 for outcome in outcomes.values()), action
    assert {"annotations/set", "chat/error", "chat/delta"} <= formed
