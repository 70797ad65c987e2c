"""The commuting square: reducing and then projecting gives the same as projecting and then
reducing. This module lists the exceptions.

`reduce_old(project(state), project(action)) == project(reduce_new(state, action))`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ahpkit.dialects import Generation, Stream, payload, routes, with_hints
from ahpkit.dialects import states_down as down
from ahpkit.dialects.actions_up import ClientContext
from ahpkit.dialects.actions_up import action as read_action
from ahpkit.protocol.chat.turns import find_tool_call
from ahpkit.protocol.session.summary import current_session
from ahpkit.wire.codec import decode_json, encode
from support.histories import SAID_BY_0_4, SESSION

Json = dict[str, Any]

LISTED = {"createdAt": "2026-11-15T08:00:00.000Z", "modifiedAt": "2026-11-15T08:00:00.000Z"}
"""The times of the session in the catalogue."""

EVERYWHERE: Mapping[str, str] = {
    r".*modifiedAt": "reducers of 0.4 to 0.8 read the reader's own clock",
}
"""Places where no action needs to agree, with the reason."""

ACCEPTED: Mapping[str, tuple[Generation, str, str]] = {
    "changeset/filesReviewChanged": (Generation.V0_6, r"\.files.*\.reviewed", "reviews came with 0.6"),
    "chat/activityChanged": (Generation.V0_5_0, r"\.activity", "a snapshot shows it; the chat's entry tells it"),
    "chat/isArchivedChanged": (Generation.V1_0, r"\.status", "flags of single chats came with 1.0"),
    "chat/isReadChanged": (Generation.V1_0, r"\.status", "flags of single chats came with 1.0"),
    "chat/responsePart": (Generation.V0_9, r"\..*", "a tool call is started, never given as a part"),
    "chat/toolCallAuthRequired": (Generation.V0_6, r".*\._meta.*", "what is unknown changes no `_meta`"),
    "chat/toolCallAuthResolved": (Generation.V0_6, r".*\._meta.*", "what is unknown changes no `_meta`"),
    "chat/toolCallComplete": (
        Generation.V0_6,
        r"(.*\.toolCall\.(content|status|confirmed)|\.status).*",
        "a call that waits for a sign-in looks as if it ran, so its end looks like that of a running one",
    ),
    "chat/toolCallConfirmed": (
        Generation.V0_7,
        r".*\.toolInput",
        "an edited input that is a reference has another text",
    ),
    "chat/toolCallDelta": (Generation.V0_7, r".*\.partialInput", "a delta without text is an empty text"),
    "chat/toolCallReady": (Generation.V0_6, r"(.*\.toolCall\..*|\.status)", "a call gets ready once before 0.6"),
    "chat/turnsLoaded": (Generation.V0_5_1, r"\.turns.*", "0.4 and 0.5.0 always have the whole history"),
    "chat/workingDirectoryRemoved": (
        Generation.V0_7,
        r"\.workingDirector.*",
        "the chat's entry in the session tells it",
    ),
    "chat/workingDirectorySet": (Generation.V0_7, r"\.workingDirector.*", "the chat's entry in the session tells it"),
    "session/chatsReordered": (Generation.V1_0, r"\.chats.*", "the order of chats came with 1.0"),
    "session/mcpServerBackgroundRequested": (Generation.V1_0, r".*\.state.*", "the host tells the outcome"),
    "session/mcpServerStartRequested": (Generation.V0_5_2, r".*\.(state|channel).*", "the host tells the outcome"),
    "session/mcpServerStopRequested": (Generation.V0_5_2, r".*\.(state|channel).*", "the host tells the outcome"),
    "session/workingDirectoryRemoved": (Generation.V0_7, r".*\.workingDirector.*", "told by a summary notification"),
    "session/workingDirectoryReplaced": (Generation.V0_8, r".*\.workingDirector.*", "told by a summary notification"),
    "session/workingDirectorySet": (Generation.V0_7, r".*\.workingDirector.*", "told by a summary notification"),
}
"""Accepted losses: for readers below a generation an action may leave these places different, with the reason."""


DERIVED = r"(\.summary)?\.(status|activity|annotations)|\.chats\[0\]\.title"
"""What snapshots of sessions derive when they are sent: no action carries it."""


def listed(state: Json) -> Json:
    """The entry of a session in the catalogue."""
    now = current_session(state)
    return {**LISTED, **{key: now[key] for key in ("status", "activity", "annotations") if key in now}}


def project(kind: str, state: Json, to: Generation) -> Json:
    """The state of a channel for a reader."""
    if kind == "session":
        return down.session_state(state, to, SESSION, listed(state), ours=True)
    return down.state_of_kind(kind, state, to)


def told(action: Json, to: Generation) -> Json | None:
    """The action that a reader receives, through the bytes of its stream; None when there is none."""
    logged = encode({"channel": SESSION, "action": action, "serverSeq": 1})
    stream = routes(action["type"], logged, ours=True)[to]
    return None if stream in (Stream.OMIT, Stream.RESYNC) else decode_json(payload(logged, stream))["action"]


def resyncs(action: Json, to: Generation) -> bool:
    """Whether a reader gets a snapshot instead of this action."""
    return routes(action["type"], encode(action), ours=True)[to] is Stream.RESYNC


def refused(kind: str, action: Json, state: Json) -> bool:
    """Whether a host never applies this action to this state, so that readers may do anything with it."""
    if action["type"] == "terminal/commandExecuted":
        return any(part.get("commandId") == action["commandId"] for part in state["content"])
    if kind != "chat":
        return False
    active: Json | None = state.get("activeTurn")
    if action["type"] == "chat/turnStarted":
        return active is not None or any(turn["id"] == action["turnId"] for turn in state["turns"])
    if action["type"] in ("chat/truncated", "chat/turnResume"):
        return False
    if action["type"] == "chat/toolCallComplete" and action["result"].get("success"):
        call: Json | None = find_tool_call(active, action["toolCallId"])
        if call is not None and call["status"] == "auth-required":
            return True
    return (action["type"] == "chat/inputRequested" or "turnId" in action) and (
        active is None or action.get("turnId", active["id"]) != active["id"]
    )


def hinted(kind: str, action: Json, state: Json) -> Json:
    """The action as the host logs it."""
    if kind != "session":
        return action
    if action["type"] not in SAID_BY_0_4:
        return with_hints(action, state, by=None)
    context = ClientContext(SESSION, "old", lambda: 0, state_of={SESSION: state}.get, session_of={SESSION: SESSION}.get)
    return with_hints(read_action(action, context, by=Generation.V0_4), state, by=Generation.V0_4)


def unexplained(action: Json, to: Generation, reduced: Any, projected: Any) -> list[str]:
    """The places where the two ways differ and no written reason says why."""
    reasons = [*EVERYWHERE, *([DERIVED] if action["type"].startswith("session/") else ())]
    if (loss := ACCEPTED.get(action["type"])) is not None and to < loss[0]:
        reasons.append(loss[1])
    places = differences(plain(reduced), plain(projected))
    return [place for place in places if not any(re.fullmatch(reason, place[0]) for reason in reasons)]  # type: ignore[misc]  # A place begins with its key.


def plain(value: Any) -> Any:
    """A value as it looks on the wire."""
    return decode_json(encode(value))


def differences(one: Any, other: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places where two JSON values differ. A null member counts as a missing one."""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("Json", one), cast("Json", other)
        for key in sorted({*left, *right}):
            yield from differences(left.get(key), right.get(key), f"{at}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(cast("Sequence[Any]", one)) == len(other):  # type: ignore[arg-type]  # Any JSON.
        for index, (left, right) in enumerate(
            zip(cast("Sequence[Any]", one), cast("Sequence[Any]", other), strict=True)
        ):
            yield from differences(left, right, f"{at}[{index}]")
    elif one != other:
        yield at, one, other


__all__ = [
    "ACCEPTED",
    "DERIVED",
    "EVERYWHERE",
    "LISTED",
    "differences",
    "hinted",
    "plain",
    "project",
    "refused",
    "resyncs",
    "told",
    "unexplained",
]
