"""Commands on a session."""

from __future__ import annotations

from typing import NotRequired

from ahpkit.protocol.common.state import URI, BaseParams, JsonObject
from ahpkit.protocol.session.state import SessionActiveClient


class CreateSessionParams(BaseParams):
    """`createSession`: `channel` is the URI that the client chooses. Answered with null, at once."""

    provider: NotRequired[str]
    workingDirectories: NotRequired[list[URI]]
    config: NotRequired[JsonObject]
    activeClient: NotRequired[SessionActiveClient]
    progressToken: NotRequired[str]


class DisposeSessionParams(BaseParams):
    """`disposeSession`. Answered with null."""


__all__ = [
    "CreateSessionParams",
    "DisposeSessionParams",
]
