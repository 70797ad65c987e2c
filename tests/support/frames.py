"""Checks what a client was sent against the types of the version that it speaks."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ahpkit.dialects.generations import generation_of
from ahpkit.protocol.version import Version
from support.raw_client import CLIENTS, Json, RawClient
from support.schemas import is_later, wrong, wrong_action

_STATES = {
    "agents": "RootState",
    "turns": "ChatState",
    "chats": "SessionState",
    "annotations": "AnnotationsState",
    "files": "ChangesetState",
    "claim": "TerminalState",
    "instanceId": "CanvasState",
}
"""A member that only states of one kind have → the name of the kind. URIs do not show the kind: clients choose them."""

_NOTIFICATIONS = {
    "auth/required": "AuthRequiredParams",
    "otlp/exportLogs": "OtlpExportLogsParams",
    "otlp/exportMetrics": "OtlpExportMetricsParams",
    "otlp/exportTraces": "OtlpExportTracesParams",
    "root/progress": "ProgressParams",
    "root/sessionAdded": "SessionAddedParams",
    "root/sessionRemoved": "SessionRemovedParams",
    "root/sessionSummaryChanged": "SessionSummaryChangedParams",
}

_ERRORS = {
    -32005: "UnsupportedProtocolVersionErrorData",
    -32007: "AuthRequiredErrorData",
    -32009: "PermissionDeniedErrorData",
}
"""The code of an error → the type of its data."""


@contextmanager
def all_frames_fit() -> Generator[None]:
    """Every frame that a client of a test was sent fits the schema of its connection's version."""
    CLIENTS.clear()
    yield
    found = wrong_frames(CLIENTS)
    CLIENTS.clear()
    assert found[:5] == []


def wrong_frames(clients: Sequence[RawClient], *, strictly: bool = False) -> list[str]:
    """Everything that does not fit, for all connections of a test; `strictly` also members that nobody specified.

    A connection that began with `reconnect` speaks the version that its client agreed on before; 0.4.0 when nobody
    heard of one.
    """
    agreed = {client.client_id: client.version for client in clients if client.version is not None}
    found: list[str] = []
    for client in clients:
        release = _release(client.version or agreed.get(client.client_id, "0.4.0"))
        for message in client.received:
            asked = client.asked.get(str(message.get("id")), "")
            found += _wrong(release, message, asked, strictly)
    return found


def _release(version: str) -> str:
    """The release whose schema a version has: patches and later 1.x add nothing that is required."""
    generation = generation_of(Version.parse(version))
    return version if generation is None else generation.release


def _wrong(release: str, message: Json, asked: str, strictly: bool) -> Iterator[str]:
    method = message.get("method")
    if method == "action":
        yield from _wrong_envelope(release, message["params"], strictly)
    elif method is not None:
        name = _NOTIFICATIONS.get(method) or f"{method[:1].upper()}{method[1:]}Params"
        if is_later(release, name):
            yield f"{release} has no {method}"
        yield from wrong(release, name, message["params"], strictly=strictly)
    elif (error := message.get("error", {})).get("code") in _ERRORS and "data" in error:
        yield from wrong(release, _ERRORS[error["code"]], error["data"], strictly=strictly)
    elif isinstance(message.get("result"), dict):
        yield from _wrong_result(release, asked, message["result"], strictly)


def _wrong_result(release: str, asked: str, result: Json, strictly: bool) -> Iterator[str]:
    for envelope in result.get("actions", ()):
        if "action" in envelope:
            yield from _wrong_envelope(release, envelope, strictly)
    snapshots: list[Json] = [*result.get("snapshots", ()), *([result["snapshot"]] if "snapshot" in result else ())]
    for snapshot in snapshots:
        yield from _wrong_state(release, snapshot, strictly)
    if asked and asked != "reconnect":
        shown: Json = {**result, "snapshots": []} if "snapshots" in result else result
        shown = {key: value for key, value in shown.items() if key != "snapshot"}
        yield from wrong(release, f"{asked[:1].upper()}{asked[1:]}Result", shown, strictly=strictly)


def _wrong_envelope(release: str, envelope: Json, strictly: bool) -> Iterator[str]:
    shown: Json = {**envelope, "action": {"type": "session/ready"}}
    if "rejectionReason" in envelope:  # A refused action and its number come back as they were sent, right or wrong.
        shown["origin"] = {**envelope.get("origin", {}), "clientSeq": 0}
    else:
        yield from wrong_action(release, envelope["action"], strictly=strictly)
    yield from wrong(release, "ActionEnvelope", shown, strictly=strictly)


def _wrong_state(release: str, snapshot: Json, strictly: bool) -> Iterator[str]:
    state: dict[str, Any] = snapshot["state"]
    name = next((name for member, name in _STATES.items() if member in state), None)
    if name == "AnnotationsState" and not isinstance(state["annotations"], list):
        return
    yield from wrong(release, name, state, strictly=strictly) if name else ()


__all__ = ["all_frames_fit", "wrong_frames"]
