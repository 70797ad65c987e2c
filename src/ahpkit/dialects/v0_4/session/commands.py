"""Commands on a session. Knows no handler."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.commands import BaseParams
from ahpkit.dialects.v0_4.common.state import URI, AgentSelection, JsonObject, ModelSelection
from ahpkit.dialects.v0_4.session.state import SessionActiveClient


class SessionForkSource(TypedDict):
    """The session to copy, up to and including the response of `turnId`."""

    session: URI
    turnId: str


class CreateSessionParams(BaseParams):
    """`createSession`: `channel` is the URI that the client chooses. Answered with null, at once."""

    provider: NotRequired[str]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    workingDirectory: NotRequired[URI]
    fork: NotRequired[SessionForkSource]
    config: NotRequired[JsonObject]
    activeClient: NotRequired[SessionActiveClient]


class DisposeSessionParams(BaseParams):
    """`disposeSession`. Answered with null."""


__all__ = [
    "CreateSessionParams",
    "DisposeSessionParams",
    "SessionForkSource",
]
