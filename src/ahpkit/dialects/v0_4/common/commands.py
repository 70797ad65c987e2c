"""Commands of a connection and of resources. Knows no handler.

Resource commands go in both directions: a client asks the host for files, the host asks a client for what it publishes.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.actions import ActionEnvelope
from ahpkit.dialects.v0_4.common.state import URI, JsonObject, Snapshot
from ahpkit.dialects.v0_4.telemetry.state import TelemetryCapabilities

ContentEncoding = Literal["base64", "utf-8"]

ResourceType = Literal["file", "directory", "symlink"]

ResourceWriteMode = Literal["truncate", "append", "insert"]

ReconnectResultType = Literal["replay", "snapshot"]


class BaseParams(TypedDict):
    """Parameters of every method: the channel it is about."""

    channel: URI


class RootParams(TypedDict):
    """Parameters of methods that are about the connection or the host."""

    channel: Literal["ahp-root://"]


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


__all__ = [
    "AuthenticateParams",
    "AuthenticateResult",
    "BaseParams",
    "ClientCapabilities",
    "ContentEncoding",
    "DirectoryEntry",
    "DispatchActionParams",
    "InitializeParams",
    "InitializeResult",
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
    "RootParams",
    "SubscribeParams",
    "SubscribeResult",
    "UnsubscribeParams",
]
