"""Publishes Open Plugins packages of this client, from memory or from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ahpkit.client.resources import FolderResources, MemoryResources, ResourceProvider, Resources, fingerprint
from ahpkit.protocol.session.state import ClientPluginCustomization


@dataclass(frozen=True, slots=True)
class InMemoryPlugin:
    """A plugin put together from texts that exist on no disk: path in the package → content.

    >>> InMemoryPlugin("notes", {"skills/tidy/SKILL.md": "---\\nname: tidy\\n---\\nTidy up."})  # doctest: +ELLIPSIS
    InMemoryPlugin(name='notes', ...)
    """

    name: str
    files: Mapping[str, str | bytes]


def publish(resources: Resources, plugin: InMemoryPlugin | Path | str, *, session: str) -> ClientPluginCustomization:
    """Show the plugin's files to the host, for a session, and describe it. The nonce changes when any file does."""
    name, provider = _open(plugin)
    uri = resources.mount(name, provider, user=session)
    return {
        "type": "plugin",
        "id": uri,
        "uri": uri,
        "name": name,
        "enablement": [{"kind": "global", "enabled": True}],
        "nonce": fingerprint(provider),
    }


def _open(plugin: InMemoryPlugin | Path | str) -> tuple[str, ResourceProvider]:
    if isinstance(plugin, InMemoryPlugin):
        return plugin.name, MemoryResources(plugin.files)
    folder = Path(plugin).resolve(strict=True)
    return folder.name, FolderResources(folder)


__all__ = ["InMemoryPlugin", "publish"]
