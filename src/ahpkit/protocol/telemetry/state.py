"""Where a host's telemetry can be subscribed to."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.state import URI


class TelemetryCapabilities(TypedDict):
    """Channels, or RFC 6570 templates of channels, by signal."""

    logs: NotRequired[URI]
    traces: NotRequired[URI]
    metrics: NotRequired[URI]


__all__ = [
    "TelemetryCapabilities",
]
