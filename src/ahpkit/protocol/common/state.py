"""Shapes that several channels share.

State is plain JSON: these `TypedDict`s say which keys a value has, they convert nothing. Every object may carry
`_meta` and unknown keys; both are kept. A `NotRequired` key without a value is absent, never null.

An enumeration that later versions may extend is written `Literal[…] | str`: its known values help readers and type
checkers, others pass. A bare `Literal` is closed. So is a union marked with `CLOSED`: a discriminator that is not
listed is an error there; in other unions it passes.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

URI = str
"""A URI in text form."""

JsonValue = Any
"""Any JSON value."""

JsonObject = dict[str, Any]
"""Any JSON object."""

JsonPrimitive = str | int | float | bool | None
"""A JSON value that holds no others."""

ROOT_URI = "ahp-root://"
"""The channel of the host itself; connection-level methods name it too."""


class BaseParams(TypedDict):
    """Parameters of every method: the channel it is about."""

    channel: URI
    _meta: NotRequired[JsonObject]


class RootParams(TypedDict):
    """Parameters of methods that are about the connection or the host."""

    channel: Literal["ahp-root://"]
    _meta: NotRequired[JsonObject]


class PaginatedParams(TypedDict):
    """Asks for one page: at most `limit` entries, from `cursor` on."""

    limit: NotRequired[int]
    cursor: NotRequired[str]


class PaginatedResult(TypedDict):
    """One page; without `nextCursor` the last."""

    nextCursor: NotRequired[str]


class Markdown(TypedDict):
    """Text to be rendered as Markdown."""

    markdown: str


StringOrMarkdown = str | Markdown
"""Text to be shown as it is, or rendered."""


class Icon(TypedDict):
    """A picture for something in a list."""

    src: URI
    contentType: NotRequired[str]
    sizes: NotRequired[list[str]]
    theme: NotRequired[Literal["light", "dark"] | str]


class ProtectedResourceMetadata(TypedDict):
    """What a client needs to get a token for a resource (RFC 9728)."""

    resource: str
    resource_name: NotRequired[str]
    authorization_servers: NotRequired[list[str]]
    jwks_uri: NotRequired[str]
    scopes_supported: NotRequired[list[str]]
    bearer_methods_supported: NotRequired[list[str]]
    resource_signing_alg_values_supported: NotRequired[list[str]]
    resource_documentation: NotRequired[str]
    resource_policy_uri: NotRequired[str]
    resource_tos_uri: NotRequired[str]
    required: NotRequired[bool]


class Implementation(TypedDict):
    """A program and its version, for people and logs, not for guessing its features."""

    name: str
    version: NotRequired[str]
    title: NotRequired[str]


class ConfigPropertySchema(TypedDict):
    """One setting: JSON Schema with what a form needs."""

    type: Literal["string", "number", "boolean", "array", "object"] | str
    title: str
    description: NotRequired[str]
    default: NotRequired[JsonValue]
    enum: NotRequired[list[JsonPrimitive]]
    enumLabels: NotRequired[list[str]]
    enumDescriptions: NotRequired[list[str]]
    readOnly: NotRequired[bool]
    items: NotRequired[ConfigPropertySchema]
    properties: NotRequired[dict[str, ConfigPropertySchema]]
    required: NotRequired[list[str]]
    additionalProperties: NotRequired[ConfigPropertySchema]
    minItems: NotRequired[int]
    maxItems: NotRequired[int]


class ConfigSchema(TypedDict):
    """The settings of something."""

    type: Literal["object"]
    properties: dict[str, ConfigPropertySchema]
    required: NotRequired[list[str]]


class TextPosition(TypedDict):
    """A place in a text: both count from zero."""

    line: int
    character: int


class TextRange(TypedDict):
    """From `start` up to, not including, `end`."""

    start: TextPosition
    end: TextPosition


class TextSelection(TypedDict):
    """What a user selected in a text."""

    range: TextRange


class ContentRef(TypedDict):
    """Content to be fetched with `resourceRead`; another `nonce` says that it changed."""

    uri: URI
    sizeHint: NotRequired[int]
    contentType: NotRequired[str]
    nonce: NotRequired[str]


class FileEditSide(TypedDict):
    """A file before or after an edit."""

    uri: URI
    content: ContentRef


class FileEditStats(TypedDict):
    """How many lines an edit adds and removes."""

    added: NotRequired[int]
    removed: NotRequired[int]


class FileEdit(TypedDict):
    """A changed file: without `before` it is new, without `after` it is gone."""

    before: NotRequired[FileEditSide]
    after: NotRequired[FileEditSide]
    diff: NotRequired[FileEditStats]


class ChangesSummary(TypedDict):
    """How much a session or a chat changed."""

    additions: NotRequired[int]
    deletions: NotRequired[int]
    files: NotRequired[int]


class ErrorInfo(TypedDict):
    """An error that is part of a state."""

    errorType: str
    message: str
    stack: NotRequired[str]
    _meta: NotRequired[JsonObject]


class Snapshot(TypedDict):
    """A channel's state after every action up to and including `fromSeq`."""

    resource: URI
    state: JsonObject
    fromSeq: int


class ModelSelection(TypedDict):
    """A model and its settings."""

    id: str
    config: NotRequired[dict[str, JsonPrimitive]]


class AgentSelection(TypedDict):
    """A custom agent, by the URI of its customization."""

    uri: URI


class UsageInfo(TypedDict):
    """Tokens of a turn."""

    inputTokens: NotRequired[int]
    outputTokens: NotRequired[int]
    model: NotRequired[str]
    cacheReadTokens: NotRequired[int]
    _meta: NotRequired[JsonObject]


__all__ = [
    "ROOT_URI",
    "URI",
    "AgentSelection",
    "BaseParams",
    "ChangesSummary",
    "ConfigPropertySchema",
    "ConfigSchema",
    "ContentRef",
    "ErrorInfo",
    "FileEdit",
    "FileEditSide",
    "FileEditStats",
    "Icon",
    "Implementation",
    "JsonObject",
    "JsonPrimitive",
    "JsonValue",
    "Markdown",
    "ModelSelection",
    "PaginatedParams",
    "PaginatedResult",
    "ProtectedResourceMetadata",
    "RootParams",
    "Snapshot",
    "StringOrMarkdown",
    "TextPosition",
    "TextRange",
    "TextSelection",
    "UsageInfo",
]
