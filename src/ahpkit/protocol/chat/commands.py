"""Commands on chats."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.chat.state import Message, MessageAttachment, SideChatSelection
from ahpkit.protocol.common.state import URI, BaseParams

CompletionItemKind = Literal["userMessage"] | str


class ForkChatSource(TypedDict):
    """The chat to copy, up to and including the response of `turnId`."""

    kind: Literal["fork"]
    chat: URI
    turnId: str


class SideChatSource(TypedDict):
    """The chat to speak about: the agent gets its turns up to `turnId`; the new chat shows none of them."""

    kind: Literal["sideChat"]
    chat: URI
    turnId: str
    selection: NotRequired[SideChatSelection]


ChatSource = ForkChatSource | SideChatSource


class CreateChatParams(BaseParams):
    """`createChat`: `channel` is the session, `chat` the URI that the client chooses. Answered with null."""

    chat: URI
    initialMessage: NotRequired[Message]
    source: NotRequired[ChatSource]
    workingDirectories: NotRequired[list[URI]]


class DisposeChatParams(BaseParams):
    """`disposeChat`. Answered with null."""


class FetchTurnsParams(BaseParams):
    """`fetchTurns`: the page of older turns at `cursor`, or the next one."""

    cursor: NotRequired[str]


class FetchTurnsResult(TypedDict):
    """Empty: the turns were sent before the answer, as `chat/turnsLoaded`."""


class ChatMoveToSessionDestination(TypedDict):
    """Move the chat into a session: to the place after the chat `after`, or to the front if `after` is absent."""

    kind: Literal["session"]
    session: URI
    after: NotRequired[URI]


class ChatMoveToNewSessionDestination(TypedDict):
    """Move the chat into a new session."""

    kind: Literal["newSession"]


ChatMoveDestination = ChatMoveToSessionDestination | ChatMoveToNewSessionDestination


class MoveChatParams(BaseParams):
    """`moveChat`: `channel` is the chat."""

    destination: ChatMoveDestination


class MoveChatResult(TypedDict):
    """The session that the chat belongs to now."""

    session: URI


class CompletionsParams(BaseParams):
    """`completions` at `offset` of `text`, counted in UTF-16 code units."""

    kind: CompletionItemKind
    text: str
    offset: int


class CompletionItem(TypedDict):
    """One completion. Choosing it replaces the range by `insertText` and adds `attachment` to the message."""

    insertText: str
    rangeStart: NotRequired[int]
    rangeEnd: NotRequired[int]
    attachment: MessageAttachment


class CompletionsResult(TypedDict):
    """The items, in the order in which to show them."""

    items: list[CompletionItem]


__all__ = [
    "ChatMoveDestination",
    "ChatMoveToNewSessionDestination",
    "ChatMoveToSessionDestination",
    "ChatSource",
    "CompletionItem",
    "CompletionItemKind",
    "CompletionsParams",
    "CompletionsResult",
    "CreateChatParams",
    "DisposeChatParams",
    "FetchTurnsParams",
    "FetchTurnsResult",
    "ForkChatSource",
    "MoveChatParams",
    "MoveChatResult",
    "SideChatSource",
]
