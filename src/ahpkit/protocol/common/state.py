from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

URI = str

JsonValue = Any

JsonObject = dict[str, Any]


class Icon(TypedDict):
    src: URI
    contentType: NotRequired[str]
    sizes: NotRequired[list[str]]
    theme: NotRequired[Literal["light", "dark"]]


class ProtectedResourceMetadata(TypedDict):
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
    type: Literal["object"]
    properties: dict[str, ConfigPropertySchema]
    required: NotRequired[list[str]]


class TextPosition(TypedDict):
    line: int | float
    character: int | float


class TextRange(TypedDict):
    start: TextPosition
    end: TextPosition


class TextSelection(TypedDict):
    range: TextRange


class ContentRef(TypedDict):
    uri: URI
    sizeHint: NotRequired[int | float]
    contentType: NotRequired[str]


class FileEdit(TypedDict):
    before: NotRequired[JsonObject]  # INLINE {"uri": ["str", true], "content": ["str", true]}
    after: NotRequired[JsonObject]  # INLINE {"uri": ["str", true], "content": ["str", true]}
    diff: NotRequired[JsonObject]  # INLINE {"added": ["int | float", false], "removed": ["int | float", false]}


class ErrorInfo(TypedDict):
    errorType: str
    message: str
    stack: NotRequired[str]
    _meta: NotRequired[JsonObject]


class Snapshot(TypedDict):
    resource: URI
    state: JsonObject
    fromSeq: int | float


class ModelSelection(TypedDict):
    id: str
    config: NotRequired[dict[str, str]]


class AgentSelection(TypedDict):
    uri: URI


StringOrMarkdown = str | JsonObject
