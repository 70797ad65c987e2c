"""Random histories of 1.0.0: for each kind of channel a first state, and actions that mostly make sense after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from hypothesis import strategies as st

Json = dict[str, Any]
Strategy = st.SearchStrategy[Json]

SESSION = "ahp-session:/s"

_turns = st.sampled_from(("t1", "t2"))
_calls = st.sampled_from(("k1", "k2"))
_parts = st.sampled_from(("p1", "p2"))
_questions = st.sampled_from(("q1", "q2"))
_words = st.sampled_from(("", "a", "some words", "Ünïcode"))
_times = st.sampled_from(("2026-11-15T10:00:00.000Z", "2026-11-15T10:00:01.500Z"))
_durations = st.integers(min_value=0, max_value=5000)
_error = st.just({"errorType": "broken", "message": "It broke."})
_directories = st.sampled_from(("file:///a", "file:///b"))


def _made(action_type: str, optional: Mapping[str, Any] | None = None, **members: Any) -> Strategy:
    """An action: strategies stay, everything else is a constant; `optional` members may be missing."""
    required = {"type": st.just(action_type), **{name: _strategy(value) for name, value in members.items()}}
    extra = {name: _strategy(value) for name, value in (optional or {}).items()}
    return st.fixed_dictionaries(required, optional=extra)


def _id(item: Json) -> str:
    return item["id"]


def _strategy(value: Any) -> st.SearchStrategy[Any]:
    return cast("st.SearchStrategy[Any]", value) if isinstance(value, st.SearchStrategy) else st.just(value)


_attachments = st.lists(
    st.sampled_from(
        (
            {"type": "simple", "label": "note"},
            {"type": "chat", "label": "another chat", "resource": "ahp-chat:/other", "endTurn": "t1"},
        )
    ),
    max_size=2,
)
_messages = st.fixed_dictionaries(
    {"text": _words, "origin": st.sampled_from(({"kind": "user"}, {"kind": "systemNotification"}))},
    optional={"attachments": _attachments, "model": st.just({"id": "m"}), "agent": st.just({"uri": "file:///agent"})},
)
_inputs = st.sampled_from(('{"a":1}', "text"))
_contributors = st.sampled_from(
    (
        {"kind": "mcp", "customizationId": "c"},
        {"kind": "client", "clientId": "one"},
        {"kind": "client", "clientId": "two"},
    )
)
_options = st.lists(
    st.sampled_from(({"id": "yes", "label": "Yes", "kind": "approve"}, {"id": "no", "label": "No", "kind": "deny"})),
    max_size=2,
    unique_by=lambda option: option["id"],
)

_call_of: dict[str, Any] = {"turnId": _turns, "toolCallId": _calls}
_text_content = st.lists(st.just({"type": "text", "text": "out"}), max_size=1)
_result = st.fixed_dictionaries(
    {"success": st.booleans(), "pastTenseMessage": st.just("Done")}, optional={"content": _text_content}
)

_CHAT: tuple[Strategy, ...] = (
    _made("chat/turnStarted", {"queuedMessageId": "w1"}, turnId=_turns, startedAt=_times, message=_messages),
    _made("chat/turnStarted", turnId=_turns, startedAt=_times, message=_messages),
    _made(
        "chat/responsePart",
        turnId=_turns,
        part=st.sampled_from(
            [{"kind": kind, "id": part, "content": ""} for kind in ("markdown", "reasoning") for part in ("p1", "p2")]
        ),
    ),
    _made("chat/delta", turnId=_turns, partId=_parts, content=_words),
    _made("chat/reasoning", turnId=_turns, partId=_parts, content=_words),
    _made(
        "chat/toolCallStart",
        {"contributor": _contributors, "intention": "look", "_meta": {"begun": True}},
        **_call_of,
        toolName="tool",
        displayName="Tool",
    ),
    _made("chat/toolCallDelta", {"invocationMessage": "Soon"}, **_call_of, content=st.just("x")),
    _made(
        "chat/toolCallReady",
        {
            "toolInput": _inputs,
            "confirmed": "not-needed",
            "riskAssessment": {"kind": "judge", "status": "loading"},
            "contributor": _contributors,
            "intention": "see",
            "confirmationTitle": "Really?",
            "options": _options,
            "editable": st.booleans(),
            "_meta": {"ready": True},
        },
        **_call_of,
        invocationMessage="Run it",
    ),
    _made(
        "chat/toolCallConfirmed",
        {"editedToolInput": "edited", "selectedOptionId": st.sampled_from(("yes", "unknown")), "_meta": {"sure": True}},
        **_call_of,
        approved=True,
        confirmed="user-action",
    ),
    _made(
        "chat/toolCallConfirmed",
        {"userSuggestion": _messages, "reasonMessage": "No", "selectedOptionId": "no"},
        **_call_of,
        approved=False,
        reason="denied",
    ),
    _made("chat/toolCallComplete", {"requiresResultConfirmation": True}, **_call_of, result=_result),
    _made("chat/toolCallResultConfirmed", **_call_of, approved=st.booleans()),
    _made("chat/toolCallContentChanged", **_call_of, content=_text_content),
    _made("chat/usage", turnId=_turns, usage={"inputTokens": 1}),
    _made("chat/turnComplete", turnId=_turns, duration=_durations),
    _made("chat/turnCancelled", turnId=_turns, duration=_durations),
    _made(
        "chat/error",
        turnId=_turns,
        duration=_durations,
        part=st.fixed_dictionaries({"kind": st.just("error"), "error": _error}, optional={"resumable": st.booleans()}),
    ),
    _made("chat/turnResume", turnId=_turns),
    _made("chat/truncated", {"turnId": _turns}),
    _made("chat/pendingMessageSet", kind=st.sampled_from(("queued", "steering")), id="w1", message=_messages),
    _made("chat/pendingMessageRemoved", kind=st.sampled_from(("queued", "steering")), id="w1"),
    _made(
        "chat/inputRequested",
        request=st.fixed_dictionaries(
            {"id": _questions, "questions": st.just([{"kind": "text", "id": "x", "message": "Well?"}])},
            optional={"message": _words},
        ),
    ),
    _made(
        "chat/inputAnswerChanged",
        {"answer": {"state": "draft", "value": {"kind": "text", "value": "so"}}},
        requestId=_questions,
        questionId="x",
    ),
    _made("chat/inputCompleted", requestId=_questions, response=st.sampled_from(("accept", "decline"))),
    _made("chat/draftChanged", {"draft": _messages}),
    _made("chat/activityChanged", {"activity": _words}),
    _made("chat/toolCallAuthRequired", **_call_of, auth={"reason": "required", "resource": {"resource": "https://r"}}),
    _made("chat/toolCallAuthResolved", **_call_of),
    _made("chat/workingDirectorySet", directory=_directories),
    _made("chat/workingDirectoryRemoved", directory=_directories),
    _made("chat/isReadChanged", isRead=st.booleans()),
    _made("chat/movableChanged", movable=st.booleans()),
    _made("chat/backgroundWorkSet", work={"kind": "shell", "id": "b", "label": "l", "startedAt": "", "command": "c"}),
)

_chats = st.fixed_dictionaries(
    {
        "resource": st.sampled_from(("ahp-chat:/c", "ahp-chat:/d")),
        "title": _words,
        "status": st.sampled_from((1, 8, 24)),
        "modifiedAt": _times,
    },
    optional={
        "origin": st.sampled_from(
            ({"kind": "user"}, {"kind": "sideChat", "chat": "ahp-chat:/c", "turnId": "t1", "selection": {"text": "x"}})
        ),
        "workingDirectories": st.lists(_directories, max_size=2, unique=True),
        "movable": st.booleans(),
    },
)
_clients = st.sampled_from(("one", "two"))
_decisions = st.sampled_from(
    (
        [],
        [{"kind": "session", "enabled": False}],
        [{"kind": "workspace", "uri": "file:///a", "enabled": True}, {"kind": "global", "enabled": False}],
    )
)


def _plugin(plugin: str) -> Strategy:
    server: Json = {
        "type": "mcpServer",
        "id": f"{plugin}-server",
        "uri": "file:///m",
        "name": "m",
        "state": {"kind": "stopped"},
        "enablement": [{"kind": "session", "enabled": False}],
    }
    return st.fixed_dictionaries(
        {"type": st.just("plugin"), "id": st.just(plugin), "uri": st.just("file:///p"), "name": st.just("p")},
        optional={"enablement": _decisions.filter(bool), "children": st.just([server])},
    )


_customizations = _plugin("x") | _plugin("y")
_servers = st.sampled_from(("x-server", "y-server"))
_switchable = st.sampled_from(("x", "x-server", "y-server"))
_active = st.fixed_dictionaries(
    {"clientId": _clients, "tools": st.lists(st.just({"name": "t"}), max_size=1)},
    optional={
        "customizations": st.lists(_customizations, max_size=1),
        "_meta": st.sampled_from([{"ahpkit.dev/primary": mark} for mark in (1, 2, 3)]),
    },
)

_active_0_4 = st.fixed_dictionaries(
    {"clientId": st.just("old"), "tools": st.lists(st.just({"name": "t"}), max_size=1)},
    optional={
        "customizations": st.just(
            [{"type": "plugin", "id": "z", "uri": "file:///z", "name": "z", "enabled": False, "nonce": "1"}]
        )
    },
)

SAID_BY_0_4 = frozenset(
    {
        "session/modelChanged",
        "session/agentChanged",
        "session/activeClientChanged",
        "session/activeClientToolsChanged",
    }
)
"""Actions in these histories that a 0.4 client with the id "old" dispatches."""

_SESSION: tuple[Strategy, ...] = (
    _made("session/ready"),
    _made("session/creationFailed", error=_error),
    _made("session/chatAdded", summary=_chats),
    _made("session/chatRemoved", chat="ahp-chat:/d"),
    _made(
        "session/chatUpdated",
        chat=st.sampled_from(("ahp-chat:/c", "ahp-chat:/d")),
        changes=st.fixed_dictionaries({}, optional={"title": _words, "workingDirectories": st.just(["file:///b"])}),
    ),
    _made("session/defaultChatChanged", {"defaultChat": "ahp-chat:/c"}),
    _made("session/titleChanged", title=_words),
    _made("session/isReadChanged", isRead=st.booleans()),
    _made("session/isArchivedChanged", isArchived=st.booleans()),
    _made("session/activityChanged", {"activity": _words}),
    _made("session/changesetsChanged", {"changesets": st.just([])}),
    _made("session/serverToolsChanged", tools=st.lists(st.just({"name": "t"}), max_size=1)),
    _made("session/activeClientSet", activeClient=_active),
    _made("session/activeClientSet", activeClient=_active),
    _made("session/activeClientRemoved", clientId=_clients),
    _made("session/customizationsChanged", customizations=st.lists(_customizations, max_size=2, unique_by=_id)),
    _made("session/customizationUpdated", customization=_customizations),
    _made("session/customizationToggled", id=_switchable, enablement=_decisions),
    _made("session/customizationRemoved", id=_switchable),
    _made("session/mcpServerStartRequested", id=_servers),
    _made(
        "session/mcpServerStateChanged", id=_servers, state=st.sampled_from(({"kind": "ready"}, {"kind": "starting"}))
    ),
    _made("session/configChanged", config={"depth": 2}),
    _made("session/metaChanged", {"_meta": st.just({"elsewhere": 1})}),
    _made("session/modelChanged", model=st.sampled_from(({"id": "m"}, {"id": "n"}))),
    _made("session/agentChanged", {"agent": {"uri": "file:///agent"}}),
    _made("session/activeClientChanged", activeClient=st.none() | _active_0_4),
    _made("session/activeClientToolsChanged", tools=[{"name": "other"}]),
    _made(
        "session/inputNeededSet",
        request={"kind": "chatInput", "id": "i", "chat": "ahp-chat:/c", "request": {"id": "q"}},
    ),
    _made("session/inputNeededRemoved", id="i"),
    _made("session/workingDirectorySet", directory=_directories),
    _made("session/chatsReordered", chats=["ahp-chat:/d", "ahp-chat:/c"]),
)

_claims = st.sampled_from(
    (
        {"kind": "client", "clientId": "one"},
        {"kind": "session", "session": SESSION, "chat": "ahp-chat:/c", "turnId": "t1"},
    )
)
_lives = st.sampled_from(({"status": "running"}, {"status": "exited", "exitCode": 3}, {"status": "exited"}))

_TERMINAL: tuple[Strategy, ...] = (
    _made("terminal/data", data=_words),
    _made("terminal/resized", cols=80, rows=24),
    _made("terminal/claimed", claim=_claims),
    _made("terminal/titleChanged", title=_words),
    _made("terminal/cwdChanged", cwd=_directories),
    _made("terminal/exited", exitCode=st.sampled_from((0, 1))),
    _made("terminal/cleared"),
    _made("terminal/commandDetectionAvailable"),
    _made("terminal/commandExecuted", commandId=_calls, commandLine="ls", timestamp=1),
    _made("terminal/commandFinished", {"exitCode": 0, "durationMs": 5}, commandId=_calls),
)

_agents = st.fixed_dictionaries(
    {"provider": st.just("demo"), "displayName": _words, "description": _words, "models": st.just([])},
    optional={"customizations": st.lists(_customizations, max_size=1)},
)
_terminals = st.fixed_dictionaries(
    {"resource": st.just("ahp-terminal:/t"), "title": _words, "claim": _claims, "lifecycle": _lives}
)

_ROOT: tuple[Strategy, ...] = (
    _made("root/agentsChanged", agents=st.lists(_agents, max_size=2)),
    _made("root/activeSessionsChanged", activeSessions=st.integers(min_value=0, max_value=3)),
    _made("root/terminalsChanged", terminals=st.lists(_terminals, max_size=2)),
    _made("root/configChanged", {"replace": st.booleans()}, config={"theme": "dark"}),
)

_origins = st.sampled_from(
    (
        {"session": SESSION},
        {"session": SESSION, "turnId": "t1"},
        {"session": SESSION, "chat": "ahp-chat:/c", "turnId": "t2"},
    )
)
_entries = st.just({"id": "e", "text": "look here"})
_annotations = st.fixed_dictionaries(
    {
        "id": st.sampled_from(("n1", "n2")),
        "origin": _origins,
        "resource": st.just("file:///f"),
        "resolved": st.booleans(),
        "entries": st.lists(_entries, min_size=1, max_size=1),
    }
)

_ANNOTATIONS: tuple[Strategy, ...] = (
    _made("annotations/set", annotation=_annotations),
    _made("annotations/updated", {"origin": _origins, "resolved": st.booleans()}, annotationId="n1"),
    _made("annotations/removed", annotationId="n2"),
    _made("annotations/entrySet", annotationId="n1", entry=_entries),
)

_files = st.fixed_dictionaries(
    {"id": st.sampled_from(("f1", "f2")), "edit": st.just({"after": {"uri": "file:///f", "content": {"uri": "x:/1"}}})}
)

_CHANGESET: tuple[Strategy, ...] = (
    _made("changeset/statusChanged", status=st.sampled_from(("computing", "recomputing", "ready"))),
    _made("changeset/fileSet", file=_files),
    _made("changeset/fileRemoved", fileId="f1"),
    _made("changeset/contentChanged", files=st.lists(_files, max_size=2, unique_by=_id)),
    _made("changeset/filesReviewChanged", files=["f1"], reviewed=st.booleans()),
    _made("changeset/cleared"),
)

INITIAL: Mapping[str, Json] = {
    "root": {"agents": [], "config": {"schema": {"type": "object", "properties": {}}, "values": {}}},
    "session": {
        "provider": "demo",
        "title": "",
        "status": 1,
        "lifecycle": "creating",
        "activeClients": [],
        "chats": [],
        "config": {
            "schema": {"type": "object", "properties": {"depth": {"type": "number", "title": "Depth", "enum": [1, 2]}}},
            "values": {"depth": 1},
        },
    },
    "chat": {
        "resource": "ahp-chat:/c",
        "title": "",
        "status": 1,
        "modifiedAt": "2026-11-15T09:00:00.000Z",
        "turns": [],
    },
    "terminal": {
        "title": "",
        "content": [],
        "claim": {"kind": "client", "clientId": "one"},
        "lifecycle": {"status": "running"},
    },
    "annotations": {"annotations": []},
    "changeset": {"status": "computing", "files": []},
}
"""The first state of each kind of channel."""

_ACTIONS: Mapping[str, tuple[Strategy, ...]] = {
    "root": _ROOT,
    "session": _SESSION,
    "chat": _CHAT,
    "terminal": _TERMINAL,
    "annotations": _ANNOTATIONS,
    "changeset": _CHANGESET,
}

KINDS = tuple(INITIAL)


def histories(kind: str, *, longest: int = 30) -> st.SearchStrategy[list[Json]]:
    """Lists of actions for a channel of that kind, to be applied to its `INITIAL` state."""
    return st.lists(st.one_of(_ACTIONS[kind]), min_size=1, max_size=longest)


def opening() -> list[Json]:
    """What a chat needs before most actions have an effect."""
    message = {"text": "hi", "origin": {"kind": "user"}}
    return [
        {"type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-11-15T10:00:00.000Z", "message": message},
        {"type": "chat/responsePart", "turnId": "t1", "part": {"kind": "markdown", "id": "p1", "content": ""}},
        {"type": "chat/toolCallStart", "turnId": "t1", "toolCallId": "k1", "toolName": "tool", "displayName": "Tool"},
    ]


Reduce = Callable[[Json, Json], Json]

__all__ = ["INITIAL", "KINDS", "SAID_BY_0_4", "SESSION", "Reduce", "histories", "opening"]
