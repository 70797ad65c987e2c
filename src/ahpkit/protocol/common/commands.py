from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.actions import ActionEnvelope, StateAction
from ahpkit.protocol.common.state import URI, JsonObject, Snapshot
from ahpkit.protocol.telemetry.state import TelemetryCapabilities

ContentEncoding = Literal["base64", "utf-8"]


ResourceType = Literal["file", "directory", "symlink"]


ResourceWriteMode = Literal["truncate", "append", "insert"]


ReconnectResultType = Literal["replay", "snapshot"]


class BaseParams(TypedDict):
    channel: URI


class InitializeParams(TypedDict):
    channel: Literal["ahp-root://"]
    protocolVersions: list[str]
    clientId: str
    initialSubscriptions: NotRequired[list[URI]]
    locale: NotRequired[str]
    capabilities: NotRequired[ClientCapabilities]


class ClientCapabilities(TypedDict):
    mcpApps: NotRequired[JsonObject]


class InitializeResult(TypedDict):
    protocolVersion: str
    serverSeq: int | float
    snapshots: list[Snapshot]
    defaultDirectory: NotRequired[URI]
    completionTriggerCharacters: NotRequired[list[str]]
    telemetry: NotRequired[TelemetryCapabilities]


class PingParams(TypedDict):
    channel: Literal["ahp-root://"]


class ReconnectParams(TypedDict):
    channel: Literal["ahp-root://"]
    clientId: str
    lastSeenServerSeq: int | float
    subscriptions: list[URI]


class ReconnectReplayResult(TypedDict):
    type: Literal["replay"]
    actions: list[ActionEnvelope]
    missing: list[URI]


class ReconnectSnapshotResult(TypedDict):
    type: Literal["snapshot"]
    snapshots: list[Snapshot]


class SubscribeParams(BaseParams):
    pass


class SubscribeResult(TypedDict):
    snapshot: NotRequired[Snapshot]


class UnsubscribeParams(BaseParams):
    pass


class DispatchActionParams(BaseParams):
    clientSeq: int | float
    action: StateAction


class ResourceReadParams(TypedDict):
    channel: Literal["ahp-root://"]
    uri: str
    encoding: NotRequired[ContentEncoding]


class ResourceReadResult(TypedDict):
    data: str
    encoding: ContentEncoding
    contentType: NotRequired[str]


class ResourceWriteParams(TypedDict):
    channel: Literal["ahp-root://"]
    uri: URI
    data: str
    encoding: ContentEncoding
    contentType: NotRequired[str]
    createOnly: NotRequired[bool]
    mode: NotRequired[ResourceWriteMode]
    position: NotRequired[int | float]
    ifMatch: NotRequired[str]


class ResourceWriteResult(TypedDict):
    pass


class ResourceListParams(TypedDict):
    channel: Literal["ahp-root://"]
    uri: URI


class DirectoryEntry(TypedDict):
    name: str
    type: Literal["file", "directory"]


class ResourceListResult(TypedDict):
    entries: list[DirectoryEntry]


class ResourceCopyParams(TypedDict):
    channel: Literal["ahp-root://"]
    source: URI
    destination: URI
    failIfExists: NotRequired[bool]


class ResourceCopyResult(TypedDict):
    pass


class ResourceDeleteParams(TypedDict):
    channel: Literal["ahp-root://"]
    uri: URI
    recursive: NotRequired[bool]


class ResourceDeleteResult(TypedDict):
    pass


class ResourceRequestParams(TypedDict):
    channel: Literal["ahp-root://"]
    uri: URI
    read: NotRequired[bool]
    write: NotRequired[bool]


class ResourceRequestResult(TypedDict):
    pass


class ResourceMoveParams(TypedDict):
    channel: Literal["ahp-root://"]
    source: URI
    destination: URI
    failIfExists: NotRequired[bool]


class ResourceMoveResult(TypedDict):
    pass


class ResourceResolveParams(TypedDict):
    channel: Literal["ahp-root://"]
    uri: URI
    followSymlinks: NotRequired[bool]


class ResourceResolveResult(TypedDict):
    uri: URI
    type: ResourceType
    size: NotRequired[int | float]
    mtime: NotRequired[str]
    ctime: NotRequired[str]
    contentType: NotRequired[str]
    etag: NotRequired[str]


class ResourceMkdirParams(TypedDict):
    channel: Literal["ahp-root://"]
    uri: URI


class ResourceMkdirResult(TypedDict):
    pass


class AuthenticateParams(TypedDict):
    channel: Literal["ahp-root://"]
    resource: str
    token: str


class AuthenticateResult(TypedDict):
    pass
