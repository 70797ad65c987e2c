"""Shapes that several channels of 0.4.0 share."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import (
    URI,
    AgentSelection,
    ErrorInfo,
    FileEditStats,
    JsonObject,
    JsonValue,
    Markdown,
    Snapshot,
    StringOrMarkdown,
    TextPosition,
    TextRange,
    TextSelection,
)

ROOT_URI = "ahp-root://"
"""The channel of the host itself; connection-level methods name it too."""


class Icon(TypedDict):
    """A picture for something in a list."""

    src: URI
    contentType: NotRequired[str]
    sizes: NotRequired[list[str]]
    theme: NotRequired[Literal["light", "dark"]]


class ProtectedResourceMetadata(TypedDict):
    """What a client needs to get a token for a resource (RFC 9728)."""

    resource: str
    resource_name: NotRequired[str]
    authorization_servers: NotRequired[list[str]]
    jwks_uri: NotRequired[str]
    scopes_supported: NotRequired[list[str]]
    bearer_methods_supported: NotRequired[list[str]]
    resource_signing_alg_values_supported: NotRequired[list[str]]
    resource_encryption_alg_values_supported: NotRequired[list[str]]
    resource_encryption_enc_values_supported: NotRequired[list[str]]
    resource_documentation: NotRequired[str]
    resource_policy_uri: NotRequired[str]
    resource_tos_uri: NotRequired[str]
    required: NotRequired[bool]


class ConfigPropertySchema(TypedDict):
    """One setting: JSON Schema with what a form needs."""

    type: Literal["string", "number", "boolean", "array", "object"]
    title: str
    description: NotRequired[str]
    default: NotRequired[JsonValue]
    enum: NotRequired[list[str]]
    enumLabels: NotRequired[list[str]]
    enumDescriptions: NotRequired[list[str]]
    readOnly: NotRequired[bool]
    items: NotRequired[ConfigPropertySchema]
    properties: NotRequired[dict[str, ConfigPropertySchema]]
    required: NotRequired[list[str]]
    additionalProperties: NotRequired[ConfigPropertySchema]


class ConfigSchema(TypedDict):
    """The settings of something."""

    type: Literal["object"]
    properties: dict[str, ConfigPropertySchema]
    required: NotRequired[list[str]]


class ContentRef(TypedDict):
    """Content to be fetched with `resourceRead`."""

    uri: URI
    sizeHint: NotRequired[int]
    contentType: NotRequired[str]


class FileEditSide(TypedDict):
    """A file before or after an edit."""

    uri: URI
    content: ContentRef


class FileEdit(TypedDict):
    """A changed file: without `before` it is new, without `after` it is gone."""

    before: NotRequired[FileEditSide]
    after: NotRequired[FileEditSide]
    diff: NotRequired[FileEditStats]


class ModelSelection(TypedDict):
    """A model and its settings."""

    id: str
    config: NotRequired[dict[str, str]]


class BaseParams(TypedDict):
    """Parameters of every method: the channel it is about."""

    channel: URI


class RootParams(TypedDict):
    """Parameters of methods that are about the connection or the host."""

    channel: Literal["ahp-root://"]


__all__ = [
    "ROOT_URI",
    "URI",
    "AgentSelection",
    "BaseParams",
    "ConfigPropertySchema",
    "ConfigSchema",
    "ContentRef",
    "ErrorInfo",
    "FileEdit",
    "FileEditSide",
    "FileEditStats",
    "Icon",
    "JsonObject",
    "JsonValue",
    "Markdown",
    "ModelSelection",
    "ProtectedResourceMetadata",
    "RootParams",
    "Snapshot",
    "StringOrMarkdown",
    "TextPosition",
    "TextRange",
    "TextSelection",
]
