"""Reads plugins that active clients publish, over their connections, and lets models read their files.

Every plugin is read by its own task, and nobody waits for it. If a plugin is replaced or withdrawn meanwhile, the
result is dropped. Every answer is checked: a client may be slow, answer nonsense or return endless folders, so the
limits and the deadline of `source.load` hold for clients, too. When a client leaves, its plugins are removed.

Skills of such a plugin are offered by URIs that only the host can read, by asking that client: models use the tool
`read_plugin_file`, or MCP resources. Only files of the session's plugins can be read, and only those of plugins that
are switched on.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast
from urllib.parse import quote
from weakref import WeakKeyDictionary

from ahpkit.customizations.details import Container, Parsed
from ahpkit.customizations.diagnostics import Diagnostic, load_state
from ahpkit.customizations.plugin import parse_plugin
from ahpkit.customizations.session_tree import ClientPlugin, SessionTree
from ahpkit.customizations.source import Listing, load
from ahpkit.customizations.tree import Content, File, Limits, Unreadable, join
from ahpkit.host.agent import ToolCall, ToolOutcome, Turn
from ahpkit.host.feature import ConnectedClient, Services
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import NotFound, RpcError
from ahpkit.protocol.session.enablement import PlacedCustomization, is_enabled, walk
from ahpkit.protocol.session.state import SessionState, ToolDefinition
from ahpkit.tools.registry import Owner, Tool, input_object

CLIENT_LIMITS = Limits(entries=10_000, files=2_000, file_bytes=1024 * 1024, total_bytes=16 * 1024 * 1024, depth=10)
"""Limits for a client's plugin. They are lower than for a folder on disk, because the plugin is sent over the client's
connection."""

_AT_ONCE = 8
"""Requests for one plugin that a client gets at the same time."""

ALL_AT_ONCE = 256
"""Requests for all plugins of one client that it gets at the same time."""


class ClientSource:
    """The files below `uri`, read from the client `client`."""

    def __init__(
        self, client: ConnectedClient, *, uri: str, name: str, timeout: float, shared: asyncio.Semaphore | None = None
    ) -> None:
        """`shared` limits the requests of all plugins of this client together."""
        self.uri = uri.rstrip("/")
        self.name = name
        self._client = client
        self._timeout = timeout
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._shared = shared or asyncio.Semaphore(ALL_AT_ONCE)

    async def list(self, folders: Sequence[str], *, limit: int) -> Sequence[Listing]:
        return await asyncio.gather(*(self._list(folder, limit) for folder in folders))

    async def read(self, files: Sequence[File], *, limit: int) -> Sequence[Content | Unreadable]:
        return await asyncio.gather(*(self._read(file, limit) for file in files))

    async def _list(self, folder: str, limit: int) -> Listing:
        try:
            answer = await self._ask("resourceList", self._uri_of(folder))
        except NotFound:
            return Listing(missing=True)
        except RpcError as error:
            level = "error" if folder == "" else "warning"
            return Listing(findings=[Diagnostic(level, "unreadable", f"cannot be listed ({error.message})", folder)])
        entries = answer.get("entries")
        if not isinstance(entries, list):
            return Listing(findings=[_nonsense(folder)])
        listing = Listing()
        for entry in cast("list[Any]", entries)[:limit]:
            self._entry(listing, folder, entry)
        return listing

    def _entry(self, listing: Listing, folder: str, entry: Any) -> None:
        fields = cast("JsonObject", entry) if isinstance(entry, dict) else {}
        name = fields.get("name")
        if not isinstance(name, str) or not name or "/" in name or "\\" in name or name in (".", ".."):
            listing.findings.append(_nonsense(folder))
        elif fields.get("type") == "directory":
            listing.folders.append(name)
        else:
            path = join(folder, name)
            listing.files.append(File(path, self._uri_of(path)))

    async def _read(self, file: File, limit: int) -> Content | Unreadable:
        try:
            answer = await self._ask("resourceRead", file.real)
        except RpcError as error:
            return Unreadable(f"cannot be read ({error.message})")
        data = answer.get("data")
        if not isinstance(data, str):
            return Unreadable("the client answered without data")
        try:
            content = base64.b64decode(data, validate=True) if answer.get("encoding") == "base64" else data.encode()
        except (binascii.Error, UnicodeEncodeError, ValueError):
            return Unreadable("the client answered with data that cannot be decoded")
        if len(content) > limit:
            return Content(content[:limit], f"longer than {limit} bytes; the rest was not read")
        return Content(content)

    async def _ask(self, method: str, uri: str) -> JsonObject:
        async with self._slots, self._shared:
            params = {"channel": ROOT_URI, "uri": uri}
            answer = await self._client.request(method, params, timeout=self._timeout)
        return cast("JsonObject", answer) if isinstance(answer, dict) else {}

    def _uri_of(self, path: str) -> str:
        return f"{self.uri}/{quote(path.encode('utf-8', 'replace'))}" if path else self.uri


def _nonsense(folder: str) -> Diagnostic:
    level = "error" if folder == "" else "warning"
    return Diagnostic(level, "bad-answer", "the client's list of files is not one", folder)


_FETCHED = frozenset({"http", "https", "git", "ssh", "github", "npm", "pypi", "marketplace"})
"""Schemes of packages and marketplaces. The host fetches nothing."""


class ClientPlugins:
    """Follows the active clients of each session. `publish` updates a session's state."""

    def __init__(
        self,
        services: Services,
        publish: Callable[[SessionTree], None],
        *,
        judge: Callable[[SessionTree, ClientPlugin], Parsed | None],
        timeout: float,
    ) -> None:
        """`judge` decides which parts of a plugin may run. It blocks."""
        self._services = services
        self._publish = publish
        self._judge = judge
        self._timeout = timeout
        self._slots: WeakKeyDictionary[ConnectedClient, asyncio.Semaphore] = WeakKeyDictionary()

    def active_clients_changed(self, tree: SessionTree, state: SessionState) -> None:
        """Take over the plugins that the active clients publish now, and remove all others."""
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
        """Read the plugins again that could not be read because the client left."""
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


def _published(state: SessionState) -> Iterator[tuple[str, JsonObject]]:
    """Every plugin that a client publishes, with the client's id."""
    for client in state.get("activeClients", ()):
        for published in client.get("customizations", ()):
            yield client["clientId"], cast("JsonObject", published)


def _is_package(uri: str) -> bool:
    """Whether a URI names a package that would have to be fetched, because the client offers no files for it."""
    return uri.split(":")[0].split("+")[0].lower() in _FETCHED


def _unchanged(plugin: ClientPlugin, published: JsonObject, client_id: str) -> bool:
    """Whether it is the same plugin of the same client: the nonce is the same.

    Without a nonce the plugin may have changed, so it is read again.
    """
    same = plugin.client_id == client_id and plugin.published["uri"] == published["uri"]
    return same and "nonce" in published and plugin.published.get("nonce") == published["nonce"]


def _failed(plugin: ClientPlugin, message: str) -> Parsed:
    diagnostics = (Diagnostic("error", "client", message),)
    entry = {**plugin.entry, "load": load_state(diagnostics)}
    return Parsed(cast("Container", entry), {}, diagnostics)


_OWNER = Owner("host", "plugin-files")

READ_PLUGIN_FILE: ToolDefinition = {
    "name": "read_plugin_file",
    "title": "Read a plugin's file",
    "description": "Read a skill, or a file beside it, that is offered by a URI which is not a path on this machine.",
    "inputSchema": {
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "The URI of the skill, or of a file beside it."}},
        "required": ["uri"],
    },
    "annotations": {"readOnlyHint": True},
}


class VirtualFiles:
    """Implements `ahpkit.host.feature.ToolSource`. `shown(session_uri)`: the session's customizations."""

    def __init__(self, services: Services, shown: Callable[[str], Sequence[JsonObject]], *, timeout: float) -> None:
        self._services = services
        self._shown = shown
        self._timeout = timeout

    def offers(self, session_uri: str) -> Sequence[tuple[Owner, Sequence[ToolDefinition]]]:
        return [(_OWNER, [READ_PLUGIN_FILE])] if any(self._plugins(session_uri)) else []

    def asks(self, tool: Tool) -> bool:
        return False

    async def run(self, turn: Turn, call: ToolCall, tool: Tool, tool_input: str) -> ToolOutcome:
        try:
            data = await self.read(turn.chat.session_uri, str(input_object(tool_input).get("uri")))
        except KeyError as error:
            return ToolOutcome(success=False, error=str(error.args[0]))
        except ValueError as error:
            return ToolOutcome(success=False, error=str(error))
        return ToolOutcome(success=True, content=[{"type": "text", "text": data.decode("utf-8", "replace")}])

    def listed(self, session_uri: str) -> list[JsonObject]:
        """The skills of clients' plugins, as MCP resources."""
        plugins = {plugin["id"] for plugin in self._plugins(session_uri)}
        return [
            {"uri": placed.entry["uri"], "name": placed.entry["name"], **_description(placed.entry)}
            for placed in walk(self._shown(session_uri))
            if placed.container is not None and placed.container["id"] in plugins and _is_offered(placed)
        ]

    async def read(self, session_uri: str, uri: str) -> bytes:
        """The bytes of a file; raises `KeyError` with the reason if this session cannot read it."""
        plugin = next((one for one in self._plugins(session_uri) if uri.startswith(f"{one['uri'].rstrip('/')}/")), None)
        if plugin is None or "/../" in f"{uri}/":
            raise KeyError(f"no plugin of this session has a file {uri[:500]}")
        for placed in walk(self._shown(session_uri)):
            if placed.entry.get("uri") == uri and not placed.effective.enabled:
                raise KeyError(f"{placed.entry['name']} is switched off")
        client = self._services.client(plugin["clientId"])
        if client is None:
            raise KeyError("the client that brought this plugin is not connected")
        source = ClientSource(client, uri=plugin["uri"], name=plugin["name"], timeout=self._timeout)
        try:
            [found] = await source.read([File(uri, uri)], limit=CLIENT_LIMITS.file_bytes)
        except (TimeoutError, ConnectionError):
            raise KeyError("the client that brought this plugin did not answer") from None
        if isinstance(found, Unreadable):
            raise KeyError(f"{uri[:500]} {found.message}")
        return found.data

    def _plugins(self, session_uri: str) -> Iterator[JsonObject]:
        for entry in self._shown(session_uri):
            if "clientId" in entry and is_enabled(entry) and not str(entry["uri"]).startswith("file:"):
                yield entry


def _is_offered(placed: PlacedCustomization) -> bool:
    return placed.entry["type"] == "skill" and placed.effective.model_invocable


def _description(entry: JsonObject) -> JsonObject:
    return {"description": entry["description"]} if entry.get("description") else {}


__all__ = ["ClientPlugins", "ClientSource", "VirtualFiles"]
