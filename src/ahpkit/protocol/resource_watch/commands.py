"""Commands on watches."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.protocol.common.commands import RootParams
from ahpkit.protocol.common.state import URI
from ahpkit.protocol.resource_watch.state import ResourceWatchPatterns


class CreateResourceWatchParams(RootParams):
    """`createResourceWatch`, in both directions."""

    uri: URI
    recursive: NotRequired[bool]
    excludes: NotRequired[ResourceWatchPatterns]
    includes: NotRequired[ResourceWatchPatterns]


class CreateResourceWatchResult(TypedDict):
    """The channel to subscribe to; the watch ends with its last subscriber."""

    channel: URI


__all__ = [
    "CreateResourceWatchParams",
    "CreateResourceWatchResult",
]
