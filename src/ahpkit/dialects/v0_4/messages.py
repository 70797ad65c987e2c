"""What 0.4.0 sends over a connection: envelopes of actions, commands, notifications, telemetry, the data of errors."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.annotations import AnnotationsAction
from ahpkit.dialects.v0_4.changeset import ChangesetAction
from ahpkit.dialects.v0_4.chat.actions import ChatAction
from ahpkit.dialects.v0_4.common import URI, BaseParams, JsonObject, ProtectedResourceMetadata, RootParams, Snapshot
from ahpkit.dialects.v0_4.resource_watch import ResourceWatchAction
from ahpkit.dialects.v0_4.root import RootAction
from ahpkit.dialects.v0_4.session.actions import SessionAction
from ahpkit.dialects.v0_4.terminal import TerminalAction

StateAction = (
    RootAction | SessionAction | ChatAction | TerminalAction | ChangesetAction | AnnotationsAction | ResourceWatchAction
)
"""Any action. `type` tells which; a type nobody here knows is passed on and changes nothing."""


class ActionOrigin(TypedDict):
    """The client that dispatched an action, and its number there."""

    clientId: str
    clientSeq: int


class ActionEnvelope(TypedDict):
    """An action in its order. With `rejectionReason` it was refused and changed nothing."""

    channel: URI
    action: StateAction
    serverSeq: int
    origin: NotRequired[ActionOrigin]
    rejectionReason: NotRequired[str]


ContentEncoding = Literal["base64", "utf-8"]

ResourceType = Literal["file", "directory", "symlink"]

ResourceWriteMode = Literal["truncate", "append", "insert"]

ReconnectResultType = Literal["replay", "snapshot"]


class ClientCapabilities(TypedDict):
    """What a client can do: a key that is there means yes."""

    mcpApps: NotRequired[JsonObject]
    _meta: NotRequired[JsonObject]


class InitializeParams(RootParams):
    """`initialize`: the first request of a connection. Most preferred version first."""

    protocolVersions: list[str]
    clientId: str
    initialSubscriptions: NotRequired[list[URI]]
    locale: NotRequired[str]
    capabilities: NotRequired[ClientCapabilities]


class InitializeResult(TypedDict):
    """The version both speak from now on, and the states asked for."""

    protocolVersion: str
    serverSeq: int
    snapshots: list[Snapshot]
    defaultDirectory: NotRequired[URI]
    completionTriggerCharacters: NotRequired[list[str]]
    telemetry: NotRequired[TelemetryCapabilities]
    _meta: NotRequired[JsonObject]


class PingParams(RootParams):
    """`ping`: allowed at any time. Answered with null."""


class ReconnectParams(RootParams):
    """`reconnect`: the first request instead of `initialize`, to go on after `lastSeenServerSeq`."""

    clientId: str
    lastSeenServerSeq: int
    subscriptions: list[URI]


class ReconnectReplayResult(TypedDict):
    """Everything missed; `missing` are channels that are gone."""

    type: Literal["replay"]
    actions: list[ActionEnvelope]
    missing: list[URI]


class ReconnectSnapshotResult(TypedDict):
    """Too much was missed: states anew."""

    type: Literal["snapshot"]
    snapshots: list[Snapshot]


ReconnectResult = ReconnectReplayResult | ReconnectSnapshotResult


class SubscribeParams(BaseParams):
    """`subscribe` to a channel."""


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
    """Written."""


class ResourceListParams(RootParams):
    """`resourceList`: what is in a directory."""

    uri: URI


class DirectoryEntry(TypedDict):
    """A name in a directory."""

    name: str
    type: Literal["file", "directory"]


class ResourceListResult(TypedDict):
    """The entries of the directory."""

    entries: list[DirectoryEntry]


class ResourceCopyParams(RootParams):
    """`resourceCopy`."""

    source: URI
    destination: URI
    failIfExists: NotRequired[bool]


class ResourceCopyResult(TypedDict):
    """Copied."""


class ResourceMoveParams(RootParams):
    """`resourceMove`."""

    source: URI
    destination: URI
    failIfExists: NotRequired[bool]


class ResourceMoveResult(TypedDict):
    """Moved."""


class ResourceDeleteParams(RootParams):
    """`resourceDelete`: a directory that is not empty needs `recursive`."""

    uri: URI
    recursive: NotRequired[bool]


class ResourceDeleteResult(TypedDict):
    """Deleted."""


class ResourceResolveParams(RootParams):
    """`resourceResolve`: what is there, and where really."""

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
    """It is there."""


class ResourceRequestParams(RootParams):
    """`resourceRequest`: ask for access to a resource outside the allowed roots."""

    uri: URI
    read: NotRequired[bool]
    write: NotRequired[bool]


class ResourceRequestResult(TypedDict):
    """Granted."""


class AuthenticateParams(RootParams):
    """`authenticate`: a token for a protected resource."""

    resource: str
    token: str


class AuthenticateResult(TypedDict):
    """Accepted."""


AuthRequiredReason = Literal["required", "expired"]


class AuthRequiredParams(BaseParams):
    """`auth/required`: `resource` needs a token, for what `channel` says."""

    resource: str
    reason: NotRequired[AuthRequiredReason]


JsonRpcErrorCode = Literal[-32700, -32600, -32601, -32602, -32603]

AhpErrorCode = Literal[-32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008, -32009, -32010, -32011]


class UnsupportedProtocolVersionErrorData(TypedDict):
    """`data` of -32005: what the host speaks."""

    supportedVersions: list[str]


class AuthRequiredErrorData(TypedDict):
    """`data` of -32007: what to authenticate for."""

    resources: list[ProtectedResourceMetadata]


class PermissionDeniedErrorData(TypedDict):
    """`data` of -32009: the `resourceRequest` that would unlock it, if any would."""

    request: NotRequired[ResourceRequestParams]


class TelemetryCapabilities(TypedDict):
    """Channels, or RFC 6570 templates of channels, by signal."""

    logs: NotRequired[URI]
    traces: NotRequired[URI]
    metrics: NotRequired[URI]


class OtlpExportLogsParams(BaseParams):
    """`otlp/exportLogs`."""

    payload: JsonObject


class OtlpExportTracesParams(BaseParams):
    """`otlp/exportTraces`."""

    payload: JsonObject


class OtlpExportMetricsParams(BaseParams):
    """`otlp/exportMetrics`."""

    payload: JsonObject


__all__ = [
    "ActionEnvelope",
    "ActionOrigin",
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
    "OtlpExportLogsParams",
    "OtlpExportMetricsParams",
    "OtlpExportTracesParams",
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
    "StateAction",
    "SubscribeParams",
    "SubscribeResult",
    "TelemetryCapabilities",
    "UnsubscribeParams",
    "UnsupportedProtocolVersionErrorData",
]
