from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import URI, AgentSelection, JsonObject, ModelSelection
from ahpkit.protocol.session.state import SessionActiveClient

CompletionItemKind = Literal["userMessage"]


class SessionForkSource(TypedDict):
    session: URI
    turnId: str


class CreateSessionParams(BaseParams):
    provider: NotRequired[str]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    workingDirectory: NotRequired[URI]
    fork: NotRequired[SessionForkSource]
    config: NotRequired[JsonObject]
    activeClient: NotRequired[SessionActiveClient]


class DisposeSessionParams(BaseParams):
    pass
