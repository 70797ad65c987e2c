"""What a client was sent, against the schema of the version that it speaks. Nothing is checked without the schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ahpkit.dialects.generations import generation_of
from ahpkit.protocol.version import Version
from support.raw_client import Json, RawClient
from support.schemas import wrong, wrong_action

_STATES = {
    "agents": "RootState",
    "turns": "ChatState",
    "chats": "SessionState",
    "annotations": "AnnotationsState",
    "files": "ChangesetState",
    "claim": "TerminalState",
    "instanceId": "CanvasState",
}
"""A member that only states of one kind have → the name of the kind. URIs do not tell it: clients choose them."""

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


def wrong_frames(clients: Sequence[RawClient]) -> list[str]:
    """Everything that does not fit, for all connections of a test.

    A connection that began with `reconnect` speaks the version that its client agreed on before; 0.4.0 when nobody
    heard of one.
    """
    agreed = {client.client_id: client.version for client in clients if client.version is not None}
    found: list[str] = []
    for client in clients:
        release = _release(client.version or agreed.get(client.client_id, "0.4.0"))
        for message in client.received:
            found += _wrong(release, message, client.asked.get(str(message.get("id")), ""))
    return found


def _release(version: str) -> str:
    """The release whose schema a version has: patches and later 1.x add nothing that is required."""
    generation = generation_of(Version.parse(version))
    return version if generation is None else generation.release


def _wrong(release: str, message: Json, asked: str) -> Iterator[str]:
    method = message.get("method")
    if method == "action":
        yield from _wrong_envelope(release, message["params"])
    elif method is not None:
        name = _NOTIFICATIONS.get(method) or f"{method[:1].upper()}{method[1:]}Params"
        yield from wrong(release, name, message["params"])
    elif isinstance(message.get("result"), dict):
        yield from _wrong_result(release, asked, message["result"])


def _wrong_result(release: str, asked: str, result: Json) -> Iterator[str]:
    for envelope in result.get("actions", ()):
        if "action" in envelope:
            yield from _wrong_envelope(release, envelope)
    snapshots: list[Json] = [*result.get("snapshots", ()), *([result["snapshot"]] if "snapshot" in result else ())]
    for snapshot in snapshots:
        yield from _wrong_state(release, snapshot)
    if asked and asked != "reconnect":
        shown: Json = {**result, "snapshots": []} if "snapshots" in result else result
        shown = {key: value for key, value in shown.items() if key != "snapshot"}
        yield from wrong(release, f"{asked[:1].upper()}{asked[1:]}Result", shown)


def _wrong_envelope(release: str, envelope: Json) -> Iterator[str]:
    if "rejectionReason" not in envelope:  # A refused action comes back as it was sent, right or wrong.
        yield from wrong_action(release, envelope["action"])


def _wrong_state(release: str, snapshot: Json) -> Iterator[str]:
    state: dict[str, Any] = snapshot["state"]
    name = next((name for member, name in _STATES.items() if member in state), None)
    if name == "AnnotationsState" and not isinstance(state["annotations"], list):
        return
    yield from wrong(release, name, state) if name else ()


__all__ = ["wrong_frames"]
