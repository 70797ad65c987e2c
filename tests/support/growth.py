"""A host to which one more session, chat, turn, client … can be added, for `bench/growth.py` and tests.

The host has all parts that could become slow: a log, customizations on disk, an agent whose sessions rest.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, cast

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import AgentChat, Chat
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.log.storage import Storage
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.terminal import TerminalState, terminal_title_changed
from ahpkit.transports.memory import memory_pair
from support.bench import ScriptedAgent, ScriptedChat
from support.raw_client import RawClient

_numbers = itertools.count(1)

_OF_A_CONNECTION = 100
"""Subscriptions that one connection takes before the next one is opened."""

_OF_A_FOLDER = 10
"""Customizations of one directory."""


class Idle(ScriptedAgent):
    """Loses nothing when a session rests."""

    async def open(self, chat: Chat) -> AgentChat:
        return IdleChat(self, chat)


class IdleChat(ScriptedChat):
    @property
    def can_rest(self) -> bool:
        return True


class Bed:
    """A host with one client that makes things."""

    def __init__(self, host: Host, directory: Path, client: RawClient) -> None:
        self.host = host
        self.directory = directory
        self.client = client
        self.session = ""
        self.chat = ""
        self.others: list[RawClient] = []
        self.subscriptions = 0
        self.folders: list[tuple[Path, str]] = []
        self.rules = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def connect(self, name: str, *versions: str) -> RawClient:
        ours, theirs = memory_pair()
        self._serving.add(asyncio.create_task(self.host.serve(theirs)))
        client = RawClient(ours, name)
        await client.initialize(**({"protocolVersions": [*versions]} if versions else {}))
        self.others.append(client)
        return client

    async def new_session(self, directory: Path | None = None) -> tuple[str, str]:
        uri = f"ahp-session:/g{next(_numbers)}"
        client = self.client
        client.received.clear()
        await client.ask("createSession", uri, workingDirectory=(directory or self.directory).as_uri())
        state = (await client.ask("subscribe", uri))["snapshot"]["state"]
        if state["lifecycle"] == "creating":
            await client.action(lambda said: said["channel"] == uri and said["action"]["type"] == "session/ready")
        client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}})
        return uri, state["defaultChat"]

    async def aclose(self) -> None:
        for client in (self.client, *self.others):
            await client.aclose()
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)


@asynccontextmanager
async def bed(home: Path, storage: Storage | None = None) -> AsyncGenerator[Bed]:
    """A host with one session, which has five rules."""
    directory = home / "work"
    for _ in range(5):
        write_rule(directory)
    features = [Customizations(CustomizationSettings(default_directory=directory, home=None))]
    storage = storage or SqliteStorage(home / "log.db", durability="normal")
    config = HostConfig(default_directory=directory, message_rate=1e9, message_burst=1e9)
    async with Host(storage, agents=[Idle()], features=features, config=config) as host:
        ours, theirs = memory_pair()
        serving = asyncio.create_task(host.serve(theirs))
        client = RawClient(ours, "grower")
        await client.initialize("ahp-root://")
        made = Bed(host, directory, client)
        made.session, made.chat = await made.new_session()
        await client.ask("subscribe", made.session)
        await client.ask("subscribe", made.chat)
        yield made
        await made.aclose()
        await asyncio.wait([serving], timeout=5)


def write_rule(directory: Path) -> str:
    """One more customization in a directory; its name."""
    name = f"r{next(_numbers)}"
    file = rule_file(directory, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'---\napplyTo: "**/*.{name}"\n---\nRule {name}\n')
    return name


def rule_file(directory: Path, name: str) -> Path:
    return directory / ".github" / "instructions" / f"{name}.instructions.md"


# -- what one more of each is --------------------------------------------------------------------------------------


async def one_session(bed: Bed) -> None:
    await bed.new_session()


async def disposed_session(bed: Bed) -> None:
    uri, _ = await bed.new_session()
    await bed.client.ask("disposeSession", uri)


async def toggled(bed: Bed) -> None:
    """Switches one customization of one session, among all that share the folder."""
    state = cast("JsonObject", bed.host.services.state(bed.session) or {})
    child: JsonObject = next(one for entry in state["customizations"] for one in entry.get("children") or ())
    bed.client.received.clear()
    action = {"type": "session/customizationToggled", "id": child["id"], "enabled": next(_numbers) % 2 == 0}
    await bed.client.accepted(bed.session, action)
    await bed.new_session()


async def rule_of_ten(bed: Bed) -> None:
    """A rule that is there: each tenth one begins a directory with ten of them, and a session that works in it.

    A folder is one container, and the protocol tells a container as a whole. So rules are spread over folders.
    """
    if bed.rules % _OF_A_FOLDER == 0:
        directory = bed.directory.parent / f"work{len(bed.folders)}"
        for _ in range(_OF_A_FOLDER):
            write_rule(directory)
        bed.folders.append((directory, (await bed.new_session(directory))[0]))
    bed.rules += 1


async def one_rule(bed: Bed) -> None:
    """One more file in a directory with ten, among many such directories. Its session shows the file.

    Then the file is deleted: a directory with more of them costs more, so each has ten whenever one is added.
    """
    directory, session = bed.folders[-1]
    bed.client.received.clear()
    await bed.client.ask("subscribe", session)
    name = write_rule(directory)
    await bed.client.action(lambda said: said["channel"] == session and name in str(said["action"]))
    seen = len(bed.client.received)
    rule_file(directory, name).unlink()
    await bed.client.action(lambda said: said["channel"] == session and name not in str(said["action"]), since=seen)
    bed.client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": session}})


async def one_channel(bed: Bed) -> None:
    """One more channel with a state."""
    _open_channel(bed)
    await bed.host.services.durable()


def _open_channel(bed: Bed) -> str:
    uri = f"ahp-terminal:/g{next(_numbers)}"
    state = cast("TerminalState", {"title": "", "content": [], "claim": {"kind": "client", "clientId": "grower"}})
    bed.host.services.open_channel(uri, state)
    return uri


async def one_chat(bed: Bed) -> None:
    bed.client.received.clear()
    await bed.client.ask("createChat", bed.session, chat=f"ahp-chat:/g{next(_numbers)}")


async def one_turn(bed: Bed) -> None:
    bed.client.received.clear()
    turn = f"t{next(_numbers)}"
    message = {"text": "hello", "origin": {"kind": "user"}}
    await bed.client.accepted(bed.chat, {"type": "chat/turnStarted", "turnId": turn, "message": message})
    await bed.client.action(lambda said: said["action"]["type"] == "chat/turnComplete")


async def one_client(bed: Bed) -> None:
    await bed.connect(f"c{next(_numbers)}")


async def one_subscription(bed: Bed) -> None:
    """One more channel that somebody follows, and one action in it. Each connection takes a hundred channels."""
    if bed.subscriptions % _OF_A_CONNECTION == 0:
        await one_client(bed)
    uri, follower = _open_channel(bed), bed.others[-1]
    bed.subscriptions += 1
    await bed.host.services.durable()
    follower.received.clear()
    await follower.ask("subscribe", uri)
    bed.host.services.dispatch(uri, terminal_title_changed(title="news"))
    await follower.action("terminal/titleChanged")


class Kind(NamedTuple):
    """Something that grows."""

    grow: Callable[[Bed], Awaitable[None]]
    """Makes one more."""
    most: int = 10_000
    """How many there may be: some things have a limit."""
    fill: Callable[[Bed], Awaitable[None]] | None = None
    """Makes one of those that have to be there, where that is something else."""


KINDS = {
    "sessions": Kind(one_session),
    "disposing a session": Kind(disposed_session, fill=one_session),
    "toggling and a session": Kind(toggled, fill=one_session),
    "chats of a session": Kind(one_chat, most=850),
    "turns of a chat": Kind(one_turn),
    "customizations": Kind(one_rule, fill=rule_of_ten),
    "clients": Kind(one_client),
    "subscriptions": Kind(one_subscription),
    "channels": Kind(one_channel),
}


# -- counting --------------------------------------------------------------------------------------------------------


class Lines:
    """`with Lines() as lines`: counts the lines of Python that run in this thread. Says how much work something is,
    on a busy machine as on an idle one. `below`: only those of files there."""

    count = 0

    def __init__(self, *, below: Path | None = None) -> None:
        self._below = "" if below is None else str(below)

    def __enter__(self) -> Lines:
        below = self._below

        def call(frame: FrameType, event: str, argument: object) -> Callable[[FrameType, str, Any], Any] | None:
            return line if not below or frame.f_code.co_filename.startswith(below) else None

        def line(frame: FrameType, event: str, argument: object) -> Callable[[FrameType, str, Any], Any]:
            if event == "line":
                self.count += 1
            return line

        self._before = sys.gettrace()
        sys.settrace(call)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self._before)


__all__ = ["KINDS", "Bed", "Kind", "Lines", "bed", "write_rule"]
