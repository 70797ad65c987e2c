"""A host in the test's own process: real log, real connections. Clients come over memory, or over real sockets."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from ahpkit.host.agent import Agent, AgentChat, Chat, StopReason, ToolOutcome, Turn
from ahpkit.host.config import HostConfig
from ahpkit.host.feature import Feature
from ahpkit.host.host import Host
from ahpkit.http.server import serve_http
from ahpkit.log.memory import MemoryStorage
from ahpkit.log.storage import Storage
from ahpkit.transports.auth import Authenticator
from ahpkit.transports.connect import connect_transport
from ahpkit.transports.memory import memory_pair
from support.raw_client import Json, RawClient
from support.waiting import BOUND

Script = Callable[[Turn], Any]
"""What the agent of a test does with a turn: an async function."""


class ScriptedAgent(Agent):
    """Runs whatever `script` is set to; echoes the prompt by default."""

    provider = "scripted"
    display_name = "Scripted"
    description = "For tests"

    def __init__(self) -> None:
        self.script: Script = _echo
        self.turns: list[Turn] = []
        self.chats: list[ScriptedChat] = []
        self.models = [{"id": name, "provider": "scripted", "name": name} for name in ("small", "large")]
        self.fail_open: Exception | None = None

    async def open(self, chat: Chat) -> AgentChat:
        if self.fail_open is not None:
            raise self.fail_open
        opened = ScriptedChat(self, chat)
        self.chats.append(opened)
        return opened


class ScriptedChat(AgentChat):
    def __init__(self, agent: ScriptedAgent, chat: Chat) -> None:
        self.agent = agent
        self.chat = chat
        self.configured: list[Json] = []
        self.closed = False

    async def run(self, turn: Turn) -> StopReason | None:
        self.agent.turns.append(turn)
        return await self.agent.script(turn)

    async def configure(self, **changes: Any) -> None:
        self.configured.append(changes)

    async def aclose(self) -> None:
        self.closed = True


async def _echo(turn: Turn) -> None:
    turn.text(f"You said: {turn.prompt}")


class Bench:
    """One host and as many clients as a test needs; `restart` brings up a new host on the same storage."""

    def __init__(self, directory: Path, *, sockets: bool = False) -> None:
        self.agent = ScriptedAgent()
        self.agents: Sequence[Agent] = ()
        """Further agents."""
        self._sockets = sockets
        self.url = ""
        self.storage: Storage = MemoryStorage()
        self.config = HostConfig(default_directory=directory)
        self.features: Sequence[Feature] = ()
        self.host: Host
        self._stack = AsyncExitStack()
        self._numbers = itertools.count(1)

    async def start(self, configure: Callable[[Host], None] = lambda host: None, **options: Any) -> None:
        """Bring up a host on the storage; features must not have served a host before."""
        agents = [self.agent, *self.agents]
        self.host = Host(self.storage, agents=agents, features=self.features, config=self.config, **options)
        configure(self.host)
        await self._stack.enter_async_context(self.host)
        if self._sockets:
            served = serve_http(self.host.serve, auth=Authenticator(None))
            self.url = (await self._stack.enter_async_context(served)).url

    async def stop(self) -> None:
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def connect(self, client_id: str | None = None) -> RawClient:
        """A connection that has not said anything yet."""
        if self._sockets:
            return await self._connect_socket(client_id)
        ours, theirs = memory_pair()
        serving = asyncio.create_task(self.host.serve(theirs))
        client = RawClient(ours, client_id or f"client-{next(self._numbers)}")

        async def leave() -> None:
            await client.aclose()
            await asyncio.wait([serving], timeout=BOUND)

        self._stack.push_async_callback(leave)
        return client

    async def _connect_socket(self, client_id: str | None) -> RawClient:
        transport = await connect_transport(self.url)
        client = RawClient(transport, client_id or f"client-{next(self._numbers)}")
        self._stack.push_async_callback(client.aclose)
        return client

    async def client(
        self, *subscriptions: str, client_id: str | None = None, offer: Sequence[str] = ("0.4.0",)
    ) -> RawClient:
        client = await self.connect(client_id)
        await client.initialize(*subscriptions, protocolVersions=list(offer))
        return client

    async def restart(self, **options: Any) -> None:
        """A new host on the same storage."""
        await self.stop()
        await self.start(**options)

    async def session(self, client: RawClient, **params: Any) -> tuple[str, str]:
        """A ready session, subscribed with its default chat: their URIs."""
        uri = f"ahp-session:/s{next(self._numbers)}"
        await client.ask("createSession", uri, **params)
        state = (await client.ask("subscribe", uri))["snapshot"]["state"]
        if state["lifecycle"] == "creating":
            await client.action(
                lambda envelope: envelope["channel"] == uri and envelope["action"]["type"] == "session/ready"
            )
        chat = state["defaultChat"]
        await client.ask("subscribe", chat)
        return uri, chat

    async def state(self, client: RawClient, uri: str) -> Json:
        """A channel's state with everything in it that was dispatched so far."""
        await self.host.services.durable()
        return (await client.ask("subscribe", uri))["snapshot"]["state"]


@asynccontextmanager
async def running_bench(
    directory: Path, *, sockets: bool = False, config: HostConfig | None = None
) -> AsyncGenerator[Bench]:
    bench = Bench(directory, sockets=sockets)
    bench.config = config or bench.config
    await bench.start()
    try:
        yield bench
    finally:
        await bench.stop()


def say(text: str, turn_id: str = "t1", **extra: Any) -> Json:
    """The action that starts a turn with a message."""
    return {
        "type": "chat/turnStarted",
        "turnId": turn_id,
        "message": {"text": text, "origin": {"kind": "user"}},
        **extra,
    }


def calling(outcomes: list[ToolOutcome], name: str, tool_input: Mapping[str, Any] | None = None) -> Script:
    """An agent that calls one tool of the host and keeps the outcome."""

    async def script(turn: Turn) -> None:
        outcomes.append(await turn.call_tool(name, json.dumps(tool_input or {})))

    return script


async def approve(client: RawClient, chat: str, option: str = "allow-once") -> Json:
    """Approve the next call that is ready, as a person does; returns its `chat/toolCallReady`."""
    ready = (await client.action("chat/toolCallReady"))["action"]
    about = {"turnId": ready["turnId"], "toolCallId": ready["toolCallId"]}
    decision = {"approved": True, "confirmed": "user-action", "selectedOptionId": option}
    await client.accepted(chat, {"type": "chat/toolCallConfirmed", **about, **decision})
    return ready


__all__ = ["Bench", "ScriptedAgent", "ScriptedChat", "approve", "calling", "running_bench", "say"]
