"""What a client was sent, against the schema of the version that it speaks. Nothing is checked without the schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from support.raw_client import Json, RawClient
from support.schemas import wrong, wrong_action

_STATES = {"ahp-session:": "SessionState", "ahp-chat:": "ChatState", "ahp-terminal:": "TerminalState"}


def wrong_frames(clients: Sequence[RawClient]) -> list[str]:
    """Everything that does not fit, for all connections of a test.

    A connection that began with `reconnect` speaks the version that its client agreed on before; 0.4.0 when nobody
    heard of one.
    """
    agreed = {client.client_id: client.version for client in clients if client.version is not None}
    versions = ((client, client.version or agreed.get(client.client_id, "0.4.0")) for client in clients)
    return [wrong for client, version in versions for message in client.received for wrong in _wrong(version, message)]


def _wrong(version: str, message: Json) -> Iterator[str]:
    if message.get("method") == "action":
        yield from _wrong_envelope(version, message["params"])
        return
    if not isinstance(message.get("result"), dict):
        return
    result: Json = message["result"]
    for envelope in result.get("actions", ()):
        if "action" in envelope:
            yield from _wrong_envelope(version, envelope)
    for snapshot in (*result.get("snapshots", ()), *([result["snapshot"]] if "snapshot" in result else ())):
        yield from _wrong_state(version, snapshot)


def _wrong_envelope(version: str, envelope: Json) -> Iterator[str]:
    if "rejectionReason" not in envelope:  # A refused action comes back as it was sent, right or wrong.
        yield from wrong_action(version, envelope["action"])


def _wrong_state(version: str, snapshot: Json) -> Iterator[str]:
    uri: str = snapshot["resource"]
    if uri == "ahp-root://":
        yield from wrong(version, "RootState", snapshot["state"])
    elif not uri.endswith("/annotations"):
        name = next((name for prefix, name in _STATES.items() if uri.startswith(prefix)), None)
        yield from wrong(version, name, snapshot["state"]) if name else ()


__all__ = ["wrong_frames"]
