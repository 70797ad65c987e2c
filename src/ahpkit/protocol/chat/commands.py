from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.chat.state import Message, MessageAttachment, Turn
from ahpkit.protocol.common.commands import BaseParams
from ahpkit.protocol.common.state import URI, AgentSelection, ModelSelection
from ahpkit.protocol.session.commands import CompletionItemKind


class FetchTurnsParams(BaseParams):
    before: NotRequired[str]
    limit: NotRequired[int | float]


class FetchTurnsResult(TypedDict):
    turns: list[Turn]
    hasMore: bool


class CompletionsParams(BaseParams):
    kind: CompletionItemKind
    text: str
    offset: int | float


class CompletionItem(TypedDict):
    insertText: str
    rangeStart: NotRequired[int | float]
    rangeEnd: NotRequired[int | float]
    attachment: MessageAttachment


class CompletionsResult(TypedDict):
    items: list[CompletionItem]


class ChatForkSource(TypedDict):
    chat: URI
    turnId: str


class CreateChatParams(BaseParams):
    chat: URI
    initialMessage: NotRequired[Message]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    source: NotRequired[ChatForkSource]


class DisposeChatParams(BaseParams):
    pass
