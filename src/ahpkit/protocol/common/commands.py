"""Commands of a connection and of resources, the notification that a login is needed, and the `data` of errors.

Resource commands go in both directions: a client asks the host for files, the host asks a client for what it publishes.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from ahpkit.protocol.automation.state import AutomationCapabilities
from ahpkit.protocol.common.actions import ActionEnvelope
from ahpkit.protocol.common.state import (
    URI,
    BaseParams,
    Implementation,
    JsonObject,
    ProtectedResourceMetadata,
    RootParams,
    Snapshot,
)
from ahpkit.protocol.telemetry import TelemetryCapabilities
from ahpkit.protocol.type_schemas import CLOSED

ContentEncoding = Literal["base64", "utf-8"]

ResourceType = Literal["file", "directory", "symlink"] | str

ResourceWriteMode = Literal["truncate", "append", "insert"]

ReconnectResultType = Literal["replay", "snapshot"]


class ClientCapabilities(TypedDict):
    """What a client can do: a key that is present means yes."""

    mcpApps: NotRequired[JsonObject]
    _meta: NotRequired[JsonObject]


class InitializeParams(RootParams):
    """`initialize`: the first request of a connection. The order of the versions does not matter."""

    protocolVersions: list[str]
    clientId: str
    clientInfo: NotRequired[Implementation]
    initialSubscriptions: NotRequired[list[URI]]
    locale: NotRequired[str]
    capabilities: NotRequired[ClientCapabilities]


class InitializeResult(TypedDict):
    """The version both speak from now on, and the states asked for."""

    protocolVersion: str
    serverSeq: int
    serverInfo: NotRequired[Implementation]
    snapshots: list[Snapshot]
    defaultDirectory: NotRequired[URI]
    completionTriggerCharacters: NotRequired[list[str]]
    terminalCommandPrefix: NotRequired[str]
    telemetry: NotRequired[TelemetryCapabilities]
    automations: NotRequired[AutomationCapabilities]
    _meta: NotRequired[JsonObject]


class PingParams(RootParams):
    """`ping`: allowed at any time. Answered with null."""


class ReconnectParams(RootParams):
    """`reconnect`: the first request instead of `initialize`, to go on after `lastSeenServerSeq`."""

    clientId: str
    lastSeenServerSeq: int
    subscriptions: list[URI]


class ReconnectReplayResult(TypedDict):
    """All actions that the client missed. `missing` names channels that are gone."""

    type: Literal["replay"]
    actions: list[ActionEnvelope]
    missing: list[URI]


class ReconnectSnapshotResult(TypedDict):
    """The present states, because too many actions were missed."""

    type: Literal["snapshot"]
    snapshots: list[Snapshot]


ReconnectResult = Annotated[ReconnectReplayResult | ReconnectSnapshotResult, CLOSED]


class SubscriptionDeliveryOptions(TypedDict):
    """How long the host may hold actions back on purpose, in milliseconds."""

    maxLatencyMs: NotRequired[int | float]


class SubscribeView(TypedDict):
    """How many of a chat's newest turns the snapshot should have; absent: all."""

    turns: NotRequired[int]


class SubscribeParams(BaseParams):
    """`subscribe` to a channel."""

    delivery: NotRequired[SubscriptionDeliveryOptions]
    view: NotRequired[SubscribeView]


class SubscribeResult(TypedDict):
    """The state; channels without state have none."""

    snapshot: NotRequired[Snapshot]


class UnsubscribeParams(BaseParams):
    """`unsubscribe` from a channel; a notification."""


class DispatchActionParams(BaseParams):
    """`dispatchAction`: a client wants a `StateAction` applied; a notification. The answer is an envelope."""

    clientSeq: int
    action: JsonObject


class ResourceReadParams(RootParams):
    """`resourceRead`."""

    uri: URI
    encoding: NotRequired[ContentEncoding]


class ResourceReadResult(TypedDict):
    """The content."""

    data: str
    encoding: ContentEncoding
    contentType: NotRequired[str]


class ResourceWriteParams(RootParams):
    """`resourceWrite`: `position` counts bytes, for mode insert; `ifMatch` is the etag it must still have."""

    uri: URI
    data: str
    encoding: ContentEncoding
    contentType: NotRequired[str]
    createOnly: NotRequired[bool]
    mode: NotRequired[ResourceWriteMode]
    position: NotRequired[int]
    ifMatch: NotRequired[str]


class ResourceWriteResult(TypedDict):
    """The answer to `resourceWrite`."""


class ResourceListParams(RootParams):
    """`resourceList`: what is in a directory."""

    uri: URI


class DirectoryEntry(TypedDict):
    """One entry of a directory."""

    name: str
    type: Literal["file", "directory"] | str


class ResourceListResult(TypedDict):
    """The entries of the directory."""

    entries: list[DirectoryEntry]


class ResourceCopyParams(RootParams):
    """`resourceCopy`."""

    source: URI
    destination: URI
    failIfExists: NotRequired[bool]


class ResourceCopyResult(TypedDict):
    """The answer to `resourceCopy`."""


class ResourceMoveParams(RootParams):
    """`resourceMove`."""

    source: URI
    destination: URI
    failIfExists: NotRequired[bool]


class ResourceMoveResult(TypedDict):
    """The answer to `resourceMove`."""


class ResourceDeleteParams(RootParams):
    """`resourceDelete`: a directory that is not empty needs `recursive`."""

    uri: URI
    recursive: NotRequired[bool]


class ResourceDeleteResult(TypedDict):
    """The answer to `resourceDelete`."""


class ResourceResolveParams(RootParams):
    """`resourceResolve`: what kind of resource a URI is, and its real location."""

    uri: URI
    followSymlinks: NotRequired[bool]


class ResourceResolveResult(TypedDict):
    """Times are ISO 8601; `etag` changes when the content does."""

    uri: URI
    type: ResourceType
    size: NotRequired[int]
    mtime: NotRequired[str]
    ctime: NotRequired[str]
    contentType: NotRequired[str]
    etag: NotRequired[str]


class ResourceMkdirParams(RootParams):
    """`resourceMkdir`, parents included."""

    uri: URI


class ResourceMkdirResult(TypedDict):
    """The answer to `resourceMkdir`: the directory is there."""


class ResourceRequestParams(RootParams):
    """`resourceRequest`: ask for access to a resource outside the allowed roots."""

    uri: URI
    read: NotRequired[bool]
    write: NotRequired[bool]


class ResourceRequestResult(TypedDict):
    """The answer to `resourceRequest`: access is granted."""


class AuthenticateParams(RootParams):
    """`authenticate`: a token for a protected resource; it lives `expiresIn` seconds and grants `scopes`."""

    resource: str
    token: str
    expiresIn: NotRequired[int | float]
    scopes: NotRequired[list[str]]


class AuthenticateResult(TypedDict):
    """The answer to `authenticate`: the token was accepted."""


AuthRequiredReason = Literal["required", "expired"] | str


class AuthRequiredParams(BaseParams):
    """`auth/required`: `resource` needs a token, for what `channel` says."""

    resource: ProtectedResourceMetadata
    reason: NotRequired[AuthRequiredReason]


JsonRpcErrorCode = Literal[-32700, -32600, -32601, -32602, -32603]

AhpErrorCode = Literal[-32001, -32002, -32003, -32004, -32005, -32007, -32008, -32009, -32010, -32011]


class UnsupportedProtocolVersionErrorData(TypedDict):
    """`data` of -32005: the versions that the host speaks."""

    supportedVersions: list[str]


class AuthRequiredErrorData(TypedDict):
    """`data` of -32007: what to authenticate for."""

    resources: list[ProtectedResourceMetadata]


class PermissionDeniedErrorData(TypedDict):
    """`data` of -32009: the `resourceRequest` that asks for access, if there is one."""

    request: NotRequired[ResourceRequestParams]


__all__ = [
    "AhpErrorCode",
    "AuthRequiredErrorData",
    "AuthRequiredParams",
    "AuthRequiredReason",
    "AuthenticateParams",
    "AuthenticateResult",
    "ClientCapabilities",
    "ContentEncoding",
    "DirectoryEntry",
    "DispatchActionParams",
    "InitializeParams",
    "InitializeResult",
    "JsonRpcErrorCode",
    "PermissionDeniedErrorData",
    "PingParams",
    "ReconnectParams",
    "ReconnectReplayResult",
    "ReconnectResult",
    "ReconnectResultType",
    "ReconnectSnapshotResult",
    "ResourceCopyParams",
    "ResourceCopyResult",
    "ResourceDeleteParams",
    "ResourceDeleteResult",
    "ResourceListParams",
    "ResourceListResult",
    "ResourceMkdirParams",
    "ResourceMkdirResult",
    "ResourceMoveParams",
    "ResourceMoveResult",
    "ResourceReadParams",
    "ResourceReadResult",
    "ResourceRequestParams",
    "ResourceRequestResult",
    "ResourceResolveParams",
    "ResourceResolveResult",
    "ResourceType",
    "ResourceWriteMode",
    "ResourceWriteParams",
    "ResourceWriteResult",
    "SubscribeParams",
    "SubscribeResult",
    "SubscribeView",
    "SubscriptionDeliveryOptions",
    "UnsubscribeParams",
    "UnsupportedProtocolVersionErrorData",
]
