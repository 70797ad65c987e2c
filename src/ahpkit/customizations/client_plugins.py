"""Reads plugins that active clients publish, over their connections, and removes them when the client leaves.

Every plugin is read by a task of its own, and nobody waits for it. If a plugin is replaced or withdrawn while it is
read, the result is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import cast
from weakref import WeakKeyDictionary

from ahpkit.customizations.details import Container, Parsed
from ahpkit.customizations.diagnostics import Diagnostic, load_state
from ahpkit.customizations.plugin import parse_plugin
from ahpkit.customizations.remote import ALL_AT_ONCE, CLIENT_LIMITS, ClientSource
from ahpkit.customizations.session_tree import ClientPlugin, SessionTree
from ahpkit.customizations.source import load
from ahpkit.host.feature import ConnectedClient, Services
from ahpkit.protocol.common.state import JsonObject

_FETCHED = frozenset({"http", "https", "git", "ssh", "github", "npm", "pypi", "marketplace"})
"""Schemes of packages and marketplaces. The host fetches nothing."""


class ClientPlugins:
    """Follows who is active in each session. `publish` brings a session's state up to date."""

    def __init__(
        self,
        services: Services,
        publish: Callable[[SessionTree], None],
        *,
        judge: Callable[[SessionTree, ClientPlugin], Parsed | None],
        timeout: float,
    ) -> None:
        """`judge` decides which parts of a plugin may run; it blocks."""
        self._services = services
        self._publish = publish
        self._judge = judge
        self._timeout = timeout
        self._slots: WeakKeyDictionary[ConnectedClient, asyncio.Semaphore] = WeakKeyDictionary()

    def active_clients_changed(self, tree: SessionTree, state: JsonObject) -> None:
        """Take over what the active clients publish now, and remove what they no longer publish."""
        before, tree.plugins = tree.plugins, {}
        fresh: list[ClientPlugin] = []
        for client_id, published in _published(state):
            plugin = before.get(published["id"])
            if plugin is None or not _unchanged(plugin, published, client_id):
                plugin = ClientPlugin(published, client_id)
                fresh.append(plugin)
            tree.plugins[published["id"]] = plugin
        self._publish(tree)
        for plugin in fresh:
            self._services.spawn(self._read(tree, plugin), name=f"read {plugin.published['uri']}")

    def client_back(self, trees: Iterable[SessionTree], client_id: str) -> None:
        """Read again what could not be read because the client left."""
        for tree in trees:
            for plugin in tree.plugins.values():
                if plugin.client_id == client_id and plugin.interrupted:
                    self._services.spawn(self._read(tree, plugin), name=f"read {plugin.published['uri']}")

    async def _read(self, tree: SessionTree, plugin: ClientPlugin) -> None:
        plugin.interrupted = False
        plugin.read = await self._parsed(plugin)
        parsed = await asyncio.to_thread(self._judge, tree, plugin)
        if tree.plugins.get(plugin.published["id"]) is plugin:
            plugin.parsed = parsed
            self._publish(tree)

    async def judge_again(self, trees: Iterable[SessionTree]) -> None:
        """The owner changed a decision: judge the plugins again."""
        for tree in list(trees):
            for plugin in list(tree.plugins.values()):
                plugin.parsed = await asyncio.to_thread(self._judge, tree, plugin)
            if tree.plugins:
                self._publish(tree)

    async def _parsed(self, plugin: ClientPlugin) -> Parsed:
        client = self._services.client(plugin.client_id)
        if client is None:
            plugin.interrupted = True
            return _failed(plugin, "the client that published it is not connected")
        published = plugin.published
        slots = self._slots.setdefault(client, asyncio.Semaphore(ALL_AT_ONCE))
        source = ClientSource(client, uri=published["uri"], name=published["name"], timeout=self._timeout, shared=slots)
        try:
            async with asyncio.timeout(self._timeout):
                parsed, _ = await load(
                    source,
                    lambda tree: parse_plugin(tree, id=published["id"]),
                    limits=CLIENT_LIMITS,
                    in_thread=True,
                )
        except TimeoutError:
            return _failed(plugin, f"the client did not show the plugin within {self._timeout:g} s")
        except ConnectionError:
            plugin.interrupted = True
            return _failed(plugin, "the client that published it left before it was read")
        if _is_package(published["uri"]) and not parsed.container.get("children"):
            return _failed(plugin, "packages and marketplaces by URI are not supported; publish the plugin's files")
        return parsed


def _published(state: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Every plugin that a client publishes, with the client's id."""
    for client in state.get("activeClients", ()):
        for published in client.get("customizations", ()):
            yield client["clientId"], published


def _is_package(uri: str) -> bool:
    """Whether a URI names something that would have to be fetched, where the client shows no files for it."""
    return uri.split(":")[0].split("+")[0].lower() in _FETCHED


def _unchanged(plugin: ClientPlugin, published: JsonObject, client_id: str) -> bool:
    """Whether it is the same plugin of the same client: the nonce is the same.

    Without a nonce it may have changed, so it is read again.
    """
    same = plugin.client_id == client_id and plugin.published["uri"] == published["uri"]
    return same and "nonce" in published and plugin.published.get("nonce") == published["nonce"]


def _failed(plugin: ClientPlugin, message: str) -> Parsed:
    diagnostics = (Diagnostic("error", "client", message),)
    entry = {**plugin.entry, "load": load_state(diagnostics)}
    return Parsed(cast("Container", entry), {}, diagnostics)


__all__ = ["ClientPlugins"]
