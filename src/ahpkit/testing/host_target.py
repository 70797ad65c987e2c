"""The host that is checked: how it is reached, clients that are initialized there, and sessions made for one check."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

from ahpkit.client.connection import Dial
from ahpkit.dialects.generations import Generation, generation_of
from ahpkit.dialects.negotiation import OFFERED, newest_spoken
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.errors import UnsupportedProtocolVersion
from ahpkit.protocol.version import Version
from ahpkit.testing.host_probe import CheckFailed, Json, Probe, Refused, connect_to, object_in


class NotApplicable(Exception):
    """A check does not fit this host or this protocol version. The text says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """The host that is checked, and how."""

    dial: Dial
    """Opens a connection; `ahpkit.client.connect.dialler` makes one from a URL and a token."""
    protocol: str | None = None
    """The only version that is offered; None: the newest that both sides speak."""
    provider: str | None = None
    """The agent of the sessions; None: the first that the host lists."""
    directory: str | None = None
    """The `file:` URI of the sessions' working directory; None: the host's default."""
    prompt: str | None = None
    """What an agent is asked. Without it no agent gets a message, and checks that need a turn are left out."""
    session_uri: str = "ahp-session:/{id}"
    """The form of a new session's URI."""
    timeout: float = 10.0
    """Seconds for any single answer."""

    @property
    def offered(self) -> Sequence[str]:
        """The versions that `initialize` offers."""
        return OFFERED if self.protocol is None else (self.protocol,)

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Probe]:
        """A connection on which nothing was sent yet."""
        async with connect_to(self.dial, f"conformance-{uuid4()}", self.timeout) as probe:
            yield probe

    async def agreed(self) -> tuple[Target, str]:
        """Find the version to use, and return the target that offers it. A host that refuses an offer names its
        versions."""
        try:
            async with self.client() as client:
                return self, client.version
        except Refused as refused:
            version = None if self.protocol is not None else newest_spoken(_named(refused.error))
            if version is None:
                raise
        return await replace(self, protocol=version).agreed()

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Client]:
        """A connection that is initialized and follows the root."""
        async with self.connect() as probe:
            result = await probe.result(
                "initialize",
                protocolVersions=list(self.offered),
                clientId=probe.client_id,
                initialSubscriptions=[ROOT_URI],
            )
            yield Client(probe, result)

    @asynccontextmanager
    async def session(self, client: Client) -> AsyncGenerator[Json]:
        """A new session that is ready, with its URI as `resource` and its state; disposed of at the end."""
        uri = self.session_uri.format(id=uuid4())
        await client.probe.result("createSession", uri, **self._options(client))
        try:
            snapshot = await client.probe.snapshot(uri)
            yield {**snapshot, "resource": uri, "state": await _ready(client.probe, uri, snapshot["state"])}
        finally:
            if not client.probe.is_closed:
                await client.probe.call("disposeSession", uri)

    def _options(self, client: Client) -> Json:
        directory = self.directory or client.result.get("defaultDirectory")
        options: Json = {"provider": self.provider or client.first_agent}
        if directory is not None:
            old = client.generation < Generation.V0_7
            options |= {"workingDirectory": directory} if old else {"workingDirectories": [directory]}
        return options


def _named(error: Json) -> Sequence[object]:
    """The versions that a host names when it refuses an offer."""
    match error:
        case {"code": UnsupportedProtocolVersion.CODE, "data": {"supportedVersions": [*versions]}}:
            return versions
        case _:
            return ()


class Client:
    """An initialized connection, with what the host answered."""

    def __init__(self, probe: Probe, result: Json) -> None:
        self.probe = probe
        self.result = result

    @property
    def version(self) -> str:
        """The version that was agreed on."""
        return str(self.result.get("protocolVersion"))

    @property
    def generation(self) -> Generation:
        """The generation of that version."""
        found = generation_of(Version.parse(self.version))
        if found is None:
            raise CheckFailed(f"the host answered a version that was not offered: {self.version}")
        return found

    @property
    def root(self) -> Json:
        """The state of the root."""
        for snapshot in self.result.get("snapshots") or ():
            if snapshot.get("resource") == ROOT_URI:
                return snapshot["state"]
        raise CheckFailed(f"initialize gave no snapshot of {ROOT_URI}, which initialSubscriptions names")

    @property
    def first_agent(self) -> str:
        """The first agent that the host lists."""
        agents: list[Json] | None = self.root.get("agents")
        if not agents:
            raise NotApplicable("the host lists no agents, so there can be no session")
        return str(agents[0]["provider"])


async def _ready(probe: Probe, uri: str, state: Json) -> Json:
    """The state of a session once its agent is ready."""
    if state.get("lifecycle") == "creating":
        ends = {"session/ready", "session/creationFailed"}
        await probe.action(lambda each: each["channel"] == uri and each["action"]["type"] in ends, "session/ready")
        state = (await probe.snapshot(uri))["state"]
    if state.get("lifecycle") != "ready":
        raise NotApplicable(f"the session could not be made: {state.get('creationError')}")
    return state


def chat_of(state: Json) -> str:
    """The URI of a session's first chat."""
    chats: list[Json] = state.get("chats") or []
    found = state.get("defaultChat") or (chats[0].get("resource") if chats else None)
    if not isinstance(found, str):
        raise CheckFailed("a session that is ready has no chat")
    return found


def title_of(state: Json) -> object:
    """A session's title: 0.4 keeps it in the summary."""
    return state.get("title") or object_in(state, "summary").get("title")


__all__ = ["Client", "NotApplicable", "Target", "chat_of", "title_of"]
