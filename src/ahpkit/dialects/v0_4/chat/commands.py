"""Commands on chats. Knows no handler."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.chat.state import Message, MessageAttachment, Turn
from ahpkit.dialects.v0_4.common.commands import BaseParams
from ahpkit.dialects.v0_4.common.state import URI, AgentSelection, ModelSelection

CompletionItemKind = Literal["userMessage"]


class ChatForkSource(TypedDict):
    """The chat to copy, up to and including the response of `turnId`."""

    chat: URI
    turnId: str


class CreateChatParams(BaseParams):
    """`createChat`: `channel` is the session, `chat` the URI that the client chooses. Answered with null."""

    chat: URI
    initialMessage: NotRequired[Message]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    source: NotRequired[ChatForkSource]


class DisposeChatParams(BaseParams):
    """`disposeChat`. Answered with null."""


class FetchTurnsParams(BaseParams):
    """`fetchTurns`: at most `limit` turns before the turn `before`, or the last ones."""

    before: NotRequired[str]
    limit: NotRequired[int]


class FetchTurnsResult(TypedDict):
    """Oldest first."""

    turns: list[Turn]
    hasMore: bool


class CompletionsParams(BaseParams):
    """`completions` at `offset` of `text`, counted in UTF-16 code units."""

    kind: CompletionItemKind
    text: str
    offset: int


class CompletionItem(TypedDict):
    """Puts `insertText` in place of the range, and `attachment` on the message."""

    insertText: str
    rangeStart: NotRequired[int]
    rangeEnd: NotRequired[int]
    attachment: MessageAttachment


class CompletionsResult(TypedDict):
    """In the order to show them."""

    items: list[CompletionItem]


__all__ = [
    "ChatForkSource",
    "CompletionItem",
    "CompletionItemKind",
    "CompletionsParams",
    "CompletionsResult",
    "CreateChatParams",
    "DisposeChatParams",
    "FetchTurnsParams",
    "FetchTurnsResult",
]
