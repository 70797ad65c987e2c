from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from ahpkit.protocol.common.state import URI, JsonObject


class CreateResourceWatchParams(TypedDict):
    channel: Literal["ahp-root://"]
    uri: URI
    recursive: NotRequired[bool]
    excludes: NotRequired[JsonObject]  # INLINE {"items": ["str", true]}
    includes: NotRequired[JsonObject]  # INLINE {"items": ["str", true]}


class CreateResourceWatchResult(TypedDict):
    channel: URI
