"""Sends the first message of a connection: `initialize`, or `reconnect`; applies the snapshots or the replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ahpkit import __version__
from ahpkit.client.channels import Channels
from ahpkit.client.connection import DialAgain
from ahpkit.client.errors import UNREADABLE, ExtensionNotSupported
from ahpkit.dialects.generations import generation_of
from ahpkit.dialects.negotiation import OFFERED, newest_spoken, supported_versions
from ahpkit.dialects.older_host import HostDialect
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import UnsupportedProtocolVersion
from ahpkit.protocol.extensions import announces
from ahpkit.protocol.meta_keys import CAPABILITIES, HIGHEST, MISSED, OURS, SPOKEN
from ahpkit.protocol.validation import make_whole
from ahpkit.protocol.version import Version
from ahpkit.wire.errors import RemoteProtocolError, RpcError
from ahpkit.wire.rpc import RpcConnection


@dataclass(frozen=True, slots=True)
class HostInfo:
    """The host's answer to `initialize`, without the snapshots."""

    protocol_version: str
    default_directory: str | None = None
    completion_trigger_characters: tuple[str, ...] = ()
    telemetry: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_vscode(self) -> bool:
        """Whether this is the host inside VS Code. It is recognised by the private capabilities that it announces.

        It reads a session's agent from its URI, and creates a session only when the first message comes.
        """
        return any(key.startswith("vscode.") for key in self.meta)

    @property
    def is_ahpkit(self) -> bool:
        """Whether this is a host of this package. It is recognised by the extensions that it announces."""
        return any(key.startswith(OURS) for key in self.meta)

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> HostInfo:
        return cls(
            result["protocolVersion"],
            result.get("defaultDirectory"),
            tuple(result.get("completionTriggerCharacters", ())),
            result.get("telemetry", {}),
            result.get("_meta", {}),
        )


class Handshake:
    """Greets the host on every new connection."""

    def __init__(
        self,
        client_id: str,
        channels: Channels,
        *,
        locale: str | None,
        capabilities: Mapping[str, Any],
        versions: Sequence[str] = OFFERED,
    ) -> None:
        self._client_id = client_id
        self._channels = channels
        self._locale = locale
        self._capabilities = capabilities
        self._versions = versions
        self.host: HostInfo | None = None

    async def greet(self, rpc: RpcConnection) -> None:
        """Initialize the first time; afterwards continue where the last connection ended, if the host can."""
        self._channels.begin()
        try:
            if self.host is None or not await self._reconnect(rpc):
                await self._initialize(rpc)
        except UNREADABLE as error:
            self.host = None  # The next connection starts again from snapshots.
            raise RemoteProtocolError(f"the host's answer to the handshake is not valid: {error!r}") from error

    async def _initialize(self, rpc: RpcConnection) -> None:
        params: JsonObject = {
            "channel": ROOT_URI,
            "protocolVersions": list(self._versions),
            "clientId": self._client_id,
            "initialSubscriptions": self._channels.followed(),
        }
        params["clientInfo"] = {"name": "ahpkit", "version": __version__}
        if self._locale is not None:
            params["locale"] = self._locale
        if self._capabilities:
            params["capabilities"] = self._capabilities
        try:
            result = await rpc.request("initialize", params)
        except UnsupportedProtocolVersion as refused:
            if len(self._versions) == 1:
                raise  # The host proposed this version itself, or the program allows no other.
            self._versions = [_best_of(refused)]
            raise DialAgain(f"offering {self._versions[0]}") from refused
        make_whole("initialize", {}, result=result)
        self.host = HostInfo.of(result)
        self._channels.speak(_dialect_of(self.host.protocol_version))
        self._channels.take_snapshots(result["snapshots"])

    async def _reconnect(self, rpc: RpcConnection) -> bool:
        """Reconnect. Returns False if the host refuses, because it does not know this client or lost its log."""
        last_seen, subscriptions = self._channels.resumable()
        params: JsonObject = {
            "channel": ROOT_URI,
            "clientId": self._client_id,
            "lastSeenServerSeq": last_seen,
            "subscriptions": subscriptions,
        }
        meta: JsonObject = {CAPABILITIES: self._capabilities} if self._capabilities else {}
        if (highest := self._channels.highest_seen()) > last_seen:
            meta[HIGHEST] = highest
        if self.host is not None:
            meta[SPOKEN] = self.host.protocol_version
        if self._channels.wants_actions():
            meta[MISSED] = "actions"
        if meta:
            params["_meta"] = meta
        try:
            result = await rpc.request("reconnect", params)
        except RpcError:
            return False
        make_whole("reconnect", {}, result=result)
        if result["type"] == "snapshot":
            self._channels.take_snapshots(result["snapshots"])
        else:
            missing = set(result["missing"])
            self._channels.take_replay(result["actions"], [uri for uri in subscriptions if uri not in missing])
            for uri in missing:
                self._channels.gone(uri, "it was removed while the client was away")
        return True


def _dialect_of(version: str) -> HostDialect:
    generation = generation_of(Version.parse(version))
    if generation is None:
        raise RemoteProtocolError(f"the host chose version {version}, which this client did not offer")
    return HostDialect(version, generation)


def _best_of(refused: UnsupportedProtocolVersion) -> str:
    """The newest version that the host named and this client speaks.

    It is offered alone, because together with 1.0.0 hosts would treat the client as an early VS Code.
    """
    best = newest_spoken(refused.supported_versions)
    if best is None:
        theirs = ", ".join(refused.supported_versions) or "none that it names"
        newest, *_, oldest = supported_versions()
        reason = f"the host speaks AHP {theirs}; this client speaks {oldest} to {newest}"
        raise UnsupportedProtocolVersion(refused.supported_versions, reason) from refused
    return best


def check_announced(method: str, announced: Mapping[str, Any]) -> None:
    """Raise unless the extension that `method` belongs to is among the announced ones.

    The key of an announcement is the namespace (`example.com`) or namespace and feature (`example.com/analytics`).
    """
    if not announces(announced, method):
        raise ExtensionNotSupported(method, announced)


__all__ = ["Handshake", "HostInfo", "check_announced"]
