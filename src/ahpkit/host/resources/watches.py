"""Resource watches: each a channel that lives as long as somebody is subscribed. Knows no access rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType]  # names trio's Event

from ahpkit.host.feature import Services
from ahpkit.protocol.errors import NotFound
from ahpkit.protocol_next.common.state import JsonObject
from ahpkit.protocol_next.resource_watch.constructors import resource_watch_changed
from ahpkit.protocol_next.resource_watch.state import ResourceChange, ResourceChangeType

_UNCLAIMED = 30.0
"""Seconds after which a watch that nobody subscribed to is given up."""

_STEP = 50
"""Milliseconds: changes this close together are told together."""

_CHANGES: dict[Change, ResourceChangeType] = {
    Change.added: "added",
    Change.modified: "updated",
    Change.deleted: "deleted",
}


class Watches:
    """All watches of a host."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stops: dict[str, asyncio.Event] = {}

    def recover(self) -> None:
        """Nothing of an earlier run is watched any more."""
        for uri in self._services.channels("resourceWatch"):
            self._services.close_channel(uri)

    def create(self, path: Path, params: JsonObject) -> str:
        """Begin to watch; returns the channel."""
        if not path.exists():
            raise NotFound(f"{path} does not exist")
        uri = f"ahp-resource-watch:/{self._services.new_id()}"
        state = {key: params[key] for key in ("excludes", "includes") if key in params}
        self._services.open_channel(uri, {"root": params["uri"], "recursive": params.get("recursive", False), **state})
        self._stops[uri] = stop = asyncio.Event()
        self._services.spawn(self._watch(uri, path, params, stop), name=f"watch {path}")
        asyncio.get_running_loop().call_later(_UNCLAIMED, self._give_up, uri)
        return uri

    def release(self, uri: str) -> None:
        """The last subscriber left."""
        stop = self._stops.pop(uri, None)
        if stop is not None:
            stop.set()
            self._services.close_channel(uri)

    def close(self) -> None:
        for uri in list(self._stops):
            self.release(uri)

    def _give_up(self, uri: str) -> None:
        if uri in self._stops and not self._services.subscribers(uri):
            self.release(uri)

    async def _watch(self, uri: str, path: Path, params: JsonObject, stop: asyncio.Event) -> None:
        recursive = params.get("recursive", False)
        async for changes in awatch(path, stop_event=stop, step=_STEP, recursive=recursive, watch_filter=None):
            items: list[ResourceChange] = [
                {"uri": Path(changed).as_uri(), "type": _CHANGES[change]}
                for change, changed in sorted(changes)
                if _wanted(Path(changed), path, params)
            ]
            if items and not stop.is_set():
                self._services.dispatch(uri, resource_watch_changed(changes={"items": items}))


def _wanted(changed: Path, root: Path, params: JsonObject) -> bool:
    name = changed.relative_to(root).as_posix() if changed.is_relative_to(root) else changed.name
    includes = params.get("includes", {}).get("items")
    return (includes is None or _matches(name, includes)) and not _matches(
        name, params.get("excludes", {}).get("items", ())
    )


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """A pattern is a glob for the whole relative path, or a path whose descendants it covers."""
    return any(fnmatch(name, pattern) or name.startswith(f"{pattern.rstrip('/')}/") for pattern in patterns)


__all__ = ["Watches"]
