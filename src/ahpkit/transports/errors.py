"""The exceptions of a connection that could not be opened.

AhpError
├── BindError        this side cannot listen there
└── ConnectError     the other side cannot be reached, or does not let us in: url, status, transient
"""

from __future__ import annotations

from ahpkit.wire.errors import AhpError


class BindError(AhpError):
    """The address cannot be listened on; the text says why and what to do."""


class ConnectError(AhpError):
    """No connection came about. `url` has no query, so that it can be shown and logged."""

    def __init__(self, url: str, reason: str, *, status: int | None = None, transient: bool = False) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason
        self.status = status
        """The HTTP status when there was an HTTP answer."""
        self.transient = transient
        """Trying again later may work: nobody listens yet, a timeout, a server error."""


__all__ = ["BindError", "ConnectError"]
