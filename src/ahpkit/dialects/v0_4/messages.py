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
from ahpkit.protocol.common.actions import ActionOrigin
from ahpkit.protocol.common.commands import (
    AuthenticateResult,
    ClientCapabilities,
    ContentEncoding,
    JsonRpcErrorCode,
    ReconnectResultType,
    ReconnectSnapshotResult,
    ResourceCopyResult,
    ResourceDeleteResult,
    ResourceMkdirResult,
    ResourceMoveResult,
    ResourceReadResult,
    ResourceRequestResult,
    ResourceWriteMode,
    ResourceWriteResult,
    SubscribeResult,
    UnsupportedProtocolVersionErrorData,
)
from ahpkit.protocol.telemetry import TelemetryCapabilities

StateAction = (
    RootAction | SessionAction | ChatAction | TerminalAction | ChangesetAction | AnnotationsAction | ResourceWatchAction
)
"""Any action. `type` tells which; an unknown type is passed on and changes nothing."""


class ActionEnvelope(TypedDict):
    """An action in its order. With `rejectionReason` it was refused and changed nothing."""

    channel: URI
    action: StateAction
    serverSeq: int
    origin: NotRequired[ActionOrigin]
    rejectionReason: NotRequired[str]


ResourceType = Literal["file", "directory", "symlink"]


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
    """All actions that the client missed. `missing` names channels that are gone."""

    type: Literal["replay"]
    actions: list[ActionEnvelope]
    missing: list[URI]


ReconnectResult = ReconnectReplayResult | ReconnectSnapshotResult


class SubscribeParams(BaseParams):
    """`subscribe` to a channel."""


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


class ResourceMoveParams(RootParams):
    """`resourceMove`."""

    source: URI
    destination: URI
    failIfExists: NotRequired[bool]


class ResourceDeleteParams(RootParams):
    """`resourceDelete`: a directory that is not empty needs `recursive`."""

    uri: URI
    recursive: NotRequired[bool]


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


class ResourceRequestParams(RootParams):
    """`resourceRequest`: ask for access to a resource outside the allowed roots."""

    uri: URI
    read: NotRequired[bool]
    write: NotRequired[bool]


class AuthenticateParams(RootParams):
    """`authenticate`: a token for a protected resource."""

    resource: str
    token: str


AuthRequiredReason = Literal["required", "expired"]


class AuthRequiredParams(BaseParams):
    """`auth/required`: `resource` needs a token, for what `channel` says."""

    resource: str
    reason: NotRequired[AuthRequiredReason]


AhpErrorCode = Literal[-32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008, -32009, -32010, -32011]


class AuthRequiredErrorData(TypedDict):
    """`data` of -32007: what to authenticate for."""

    resources: list[ProtectedResourceMetadata]


class PermissionDeniedErrorData(TypedDict):
    """`data` of -32009: the `resourceRequest` that asks for access, if there is one."""

    request: NotRequired[ResourceRequestParams]


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
