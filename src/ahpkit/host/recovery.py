"""What a crash left behind, put right at the next start. Knows no storage.

A turn that was running ends with an error that says so. Ending it cancels its open tool calls, so that a call that
waited for approval is shown as not run. Terminals and watches of the old process are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ahpkit.protocol.channels import channel_of

if TYPE_CHECKING:
    from ahpkit.host.host import Host

INTERRUPTED = "The host stopped while this turn was running. What was not finished was not done."


def end_interrupted_turns(host: Host) -> None:
    """Close what cannot go on."""
    for uri in host.store.channels():
        channel = channel_of(uri)
        kind = channel.name if channel else None
        if kind in ("terminal", "resourceWatch"):
            host.close_channel(uri)
        elif kind == "chat" and (turn := (host.state(uri) or {}).get("activeTurn")):
            error = {"errorType": "host/interrupted", "message": INTERRUPTED}
            host.dispatch(uri, {"type": "chat/error", "turnId": turn["id"], "error": error})


__all__ = ["INTERRUPTED", "end_interrupted_turns"]
