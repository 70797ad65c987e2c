"""Commands on watches. Knows no handler."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ahpkit.dialects.v0_4.common.commands import RootParams
from ahpkit.dialects.v0_4.common.state import URI
from ahpkit.dialects.v0_4.resource_watch.state import ResourceWatchPatterns


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
