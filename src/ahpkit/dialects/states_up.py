"""Rewrites states of 0.4 to 0.9, and the values inside them, to 1.0.0. Pure.

Used for messages of clients and older hosts, and for old logs and exports. A value that is 1.0 already does not change,
so the caller need not know its version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from ahpkit.dialects.generations import PRIMARY, SELECTION
from ahpkit.dialects.states_down import primary_mark
from ahpkit.protocol.common.reducing import iso_time, put, without
from ahpkit.protocol.common.state import JsonObject

_REMOTE: Final = "vscode-remote://"

DefaultChat = Callable[[str], str | None]
"""Finds the default chat of a session."""


def with_selection(value: JsonObject) -> JsonObject:
    """Move the model and agent of 0.4 sessions and chats into a note in `_meta`."""
    kept = {key: value[key] for key in ("model", "agent") if value.get(key) is not None}
    return with_note(without(value, "model", "agent"), SELECTION, kept) if kept else without(value, "model", "agent")


def with_note(value: JsonObject, key: str, note: object) -> JsonObject:
    """`value` with one of ahpkit's notes in its `_meta`."""
    meta: JsonObject = value.get("_meta") or {}
    return {**value, "_meta": {**meta, key: note}}


def working_directories(value: JsonObject) -> JsonObject:
    """A single directory becomes a list."""
    if "workingDirectory" not in value:
        return value
    directory: str | None = value["workingDirectory"]
    rest = without(value, "workingDirectory")
    return rest if directory is None or "workingDirectories" in rest else {**rest, "workingDirectories": [directory]}


def local_directories(value: JsonObject) -> JsonObject:
    """Directories as `file:` URIs. VS Code up to 1.136 puts the address of its server's page into them:
    `vscode-remote://127.0.0.1:8000/work` means `file:///work`.
    """
    after = put(value, "cwd", local_directory(value["cwd"])) if isinstance(value.get("cwd"), str) else value
    directories: object = value.get("workingDirectories")
    if not isinstance(directories, list):  # Not a list where this version or method has no such member.
        return after
    listed = cast("list[object]", directories)
    local = [local_directory(one) if isinstance(one, str) else one for one in listed]
    return put(after, "workingDirectories", local)


def local_directory(uri: str) -> str:
    """Does for one directory what `local_directories` does for a list."""
    return f"file:///{uri.removeprefix(_REMOTE).partition('/')[2]}" if is_remote(uri) else uri


def is_remote(uri: str) -> bool:
    """Whether a URI names a folder of VS Code's server."""
    return uri.startswith(_REMOTE)


# -- customizations and clients ------------------------------------------------------------------------------------


def customization(value: JsonObject) -> JsonObject:
    """A plugin, directory or MCP server, with its children. A plain switch becomes a decision for this session."""
    after = value
    if value.get("type") in ("plugin", "mcpServer") and "enabled" in value:
        after = without(value, "enabled")
        if "enablement" not in value and value["enabled"] is False:
            after = {**after, "enablement": [{"kind": "session", "enabled": False}]}
    children: Sequence[JsonObject] | None = (
        after.get("children") if value.get("type") in ("plugin", "directory") else ()
    )
    return {**after, "children": [customization(child) for child in children]} if children else after


def with_customizations(value: JsonObject) -> JsonObject:
    """A value that contains customizations, such as a session, an agent, or an active client."""
    held: Sequence[JsonObject] | None = value.get("customizations")
    return {**value, "customizations": [customization(one) for one in held]} if held else value


def marked_primary(client: JsonObject, clients: Sequence[JsonObject]) -> JsonObject:
    """Mark the active client that 0.4 readers see from now on."""
    return with_note(client, PRIMARY, 1 + max(map(primary_mark, clients), default=0))


# -- chats ---------------------------------------------------------------------------------------------------------


def turn(value: JsonObject) -> JsonObject:
    """A finished turn. Its error becomes its last part. Some hosts write `"error": null` when there is none."""
    if "error" not in value:
        return value
    parts: list[JsonObject] = value["responseParts"]
    if value["error"] is not None and not (parts and parts[-1].get("kind") == "error"):
        parts = [*parts, {"kind": "error", "error": value["error"]}]
    return {**without(value, "error"), "responseParts": parts}


def chat_summary(value: JsonObject) -> JsonObject:
    """A chat's entry in its session, or changes of it."""
    return with_selection(working_directories(value))


def chat_state(state: JsonObject) -> JsonObject:
    """The state of a chat. 0.4 does not store the start of an active turn: the chat's last change is the best guess."""
    turns: Sequence[JsonObject] = state["turns"]
    after = chat_summary(without({**state, "turns": [turn(one) for one in turns]}, "inputRequests"))
    active: JsonObject | None = state.get("activeTurn")
    if active is None:
        return after
    open_requests: Sequence[JsonObject] = state.get("inputRequests") or ()
    parts = [*active["responseParts"], *({"kind": "inputRequest", "request": request} for request in open_requests)]
    return {**after, "activeTurn": {"startedAt": state["modifiedAt"], **active, "responseParts": parts}}


# -- sessions ------------------------------------------------------------------------------------------------------

_NOT_IN_STATE: Final = ("resource", "createdAt", "modifiedAt", "changes")
"""Members of a session's summary that are not in its state."""


def session_summary(value: JsonObject) -> JsonObject:
    """A session's entry in a list, or changes of it. Times become texts."""
    after = with_selection(working_directories(value))
    numbers = {key: time for key in ("createdAt", "modifiedAt") if isinstance(time := after.get(key), int | float)}
    return {**after, **{key: iso_time(int(min(max(_FIRST, time), _LAST))) for key, time in numbers.items()}}


_FIRST, _LAST = 0, 253_402_300_799_999
"""Milliseconds since the epoch: the times that can be written, from 1970 to 9999. A wrong clock may give others."""


def session_state(state: JsonObject) -> JsonObject:
    """The state of a session: without `summary`, and with a list of active clients. Its times are only in `listed`."""
    after = state
    summary: JsonObject | None = state.get("summary")
    if summary is not None:
        own = session_summary(summary)
        notes: JsonObject = {**state.get("_meta", {}), **own.get("_meta", {})}
        after = put({**without(own, *_NOT_IN_STATE), **without(state, "summary")}, "_meta", notes or None)
    if after.get("lifecycle") == "creationFailed":
        after = {**after, "lifecycle": "failed"}
    chats: Sequence[JsonObject] = state["chats"]
    after = {**working_directories(with_customizations(after)), "chats": [chat_summary(chat) for chat in chats]}
    clients: list[JsonObject] = [state["activeClient"]] if state.get("activeClient") else state.get("activeClients", [])
    return {**without(after, "activeClient"), "activeClients": [with_customizations(client) for client in clients]}


def listed(state: JsonObject) -> JsonObject | None:
    """The list entry in a session's 0.4 state; None when there is none."""
    summary: JsonObject | None = state.get("summary")
    return None if summary is None else session_summary(summary)


# -- root, terminals, annotations ----------------------------------------------------------------------------------


def claim(value: JsonObject, default_chat: DefaultChat) -> JsonObject:
    """The claim of a terminal. A session's claim gets the session's default chat."""
    if value.get("kind") != "session" or "chat" in value:
        return value
    return {**value, "chat": default_chat(value["session"]) or ""}


def terminal(value: JsonObject, default_chat: DefaultChat) -> JsonObject:
    """A terminal: its state, or its entry in the host's list."""
    after = {**value, "claim": claim(value["claim"], default_chat)}
    if "lifecycle" not in value:
        code = value.get("exitCode")
        after["lifecycle"] = {"status": "running"} if code is None else {"status": "exited", "exitCode": code}
    return without(after, "exitCode")


def root_state(state: JsonObject, default_chat: DefaultChat) -> JsonObject:
    """The state of the host."""
    agents: Sequence[JsonObject] = state["agents"]
    after = {**state, "agents": [with_customizations(agent) for agent in agents]}
    terminals: Sequence[JsonObject] | None = state.get("terminals")
    if terminals:
        after["terminals"] = [terminal(one, default_chat) for one in terminals]
    return after


def annotation(value: JsonObject, session: str, known: JsonObject | None = None) -> JsonObject:
    """An annotation, or changes of it. Its turn becomes its origin. `known` is the annotation before the change."""
    if "turnId" not in value or "origin" in value:
        return without(value, "turnId")
    origin: JsonObject = {**((known or {}).get("origin") or {"session": session})}
    return {**without(value, "turnId"), "origin": put(origin, "turnId", value["turnId"] or None)}


def annotations_state(state: JsonObject, session: str) -> JsonObject:
    """The annotations of a session."""
    remarks: Sequence[JsonObject] = state["annotations"]
    return {**state, "annotations": [annotation({"turnId": "", **one}, session) for one in remarks]}


def state_of_kind(kind: str, state: JsonObject, *, session: str, default_chat: DefaultChat) -> JsonObject:
    """The state of a channel of any kind; `session` is the session that annotations belong to."""
    match kind:
        case "root":
            return root_state(state, default_chat)
        case "session":
            return session_state(state)
        case "chat":
            return chat_state(state)
        case "terminal":
            return terminal(state, default_chat)
        case "annotations":
            return annotations_state(state, session)
        case _:
            return state


class Migrated(NamedTuple):
    """One channel in its new form."""

    state: JsonObject
    listed: JsonObject | None
    """For a session: its entry in lists, which has the times that a 1.0.0 state does not contain."""


def migrate_channels(
    states: Mapping[str, JsonObject], kind_of: Callable[[str], str | None], session_of: Callable[[str], str | None]
) -> Mapping[str, Migrated]:
    """Convert the states of all channels of a 0.4.0 log, by URI. A state that is 1.0.0 already does not change.

    A channel of unknown kind is kept as it is.
    """
    return {uri: migrate_channel(uri, state, states, kind_of, session_of) for uri, state in states.items()}


def migrate_channel(
    uri: str,
    state: JsonObject,
    states: Mapping[str, JsonObject],
    kind_of: Callable[[str], str | None],
    session_of: Callable[[str], str | None],
) -> Migrated:
    """Convert the state of one channel. `states` are the states of all channels, converted or not."""

    def default_chat(session: str) -> str | None:
        return states.get(session, {}).get("defaultChat")

    kind = kind_of(uri) or ""
    migrated = state_of_kind(kind, state, session=session_of(uri) or "", default_chat=default_chat)
    return Migrated(migrated, listed(state) if kind == "session" else None)


def migrate_turns(turns: Sequence[JsonObject]) -> list[JsonObject]:
    """Convert finished turns. Those that are 1.0.0 already do not change."""
    return [turn(one) for one in turns]


__all__ = [
    "DefaultChat",
    "Migrated",
    "annotation",
    "chat_state",
    "chat_summary",
    "claim",
    "customization",
    "listed",
    "marked_primary",
    "migrate_channels",
    "migrate_turns",
    "session_state",
    "session_summary",
    "state_of_kind",
    "terminal",
    "turn",
    "with_customizations",
    "with_note",
    "with_selection",
    "working_directories",
]
