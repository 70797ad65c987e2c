from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, JsonObject

ResourceChangeType = Literal["added", "updated", "deleted"]


class ResourceWatchState(TypedDict):
    root: URI
    recursive: bool
    excludes: NotRequired[JsonObject]  # INLINE {"items": ["str", true]}
    includes: NotRequired[JsonObject]  # INLINE {"items": ["str", true]}


class ResourceChange(TypedDict):
    uri: URI
    type: ResourceChangeType
