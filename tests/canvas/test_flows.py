"""The four flows of canvases, end to end over real sockets: an agent, a provider of each kind, two clients.

The same `Board` serves in the host, in a process over stdio, in a process over the socket, and in a client.
"""

from __future__ import annotations

import abc
import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from ahpkit.canvas import Canvases, ExtensionProcess, ExtensionSocket, PythonProvider
from ahpkit.client import Client, Session, connect
from ahpkit.host.agent import CanvasRuntime, Turn
from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from support import board_extension, requirement
from support.bench import Bench
from support.canvases import Board as Second
from support.canvases import board_provider, failure
from support.raw_client import Json
from support.waiting import until

CANVAS_FIELDS = ("canvasRegistry", "openCanvases", "canvasRequests")


class World:
    """A host on a real port, an agent in a turn, and two clients that follow the session."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bench = Bench(directory)
        self.canvases = Canvases()
        self.stack = AsyncExitStack()
        self.heard: list[tuple[str, Json]] = []
        self.envelopes: list[Json] = []
        self.url: str
        self.agent: CanvasRuntime
        self.alice: Session
        self.bob: Session

    async def start(self) -> None:
        self.bench.features = [self.canvases]
        await self.bench.start()
        self.stack.push_async_callback(self.bench.stop)
        serving = serve_http(self.bench.host.serve, auth=Authenticator(None))
        self.url = (await self.stack.enter_async_context(serving)).url
        alice = await self.client("alice")
        self.alice = await alice.create_session()
        self.bob = await (await self.client("bob")).session(self.alice.uri)
        following = await self.stack.enter_async_context((await self.client("scribe")).subscribe(self.alice.uri))
        writing = asyncio.create_task(self._write(following))
        self.stack.callback(writing.cancel)
        self.agent = await self._agent()
        self.agent.subscribe(lambda event, data: self.heard.append((event, data)))

    async def client(self, client_id: str) -> Client:
        return await self.stack.enter_async_context(connect(self.url, client_id=client_id))

    async def _write(self, following: Any) -> None:
        async for envelope in following:
            self.envelopes.append(envelope)

    async def _agent(self) -> CanvasRuntime:
        got: asyncio.Future[CanvasRuntime | None] = asyncio.get_running_loop().create_future()

        async def script(turn: Turn) -> None:
            got.set_result(turn.canvas)
            await asyncio.Event().wait()

        self.bench.agent.script = script
        turn = asyncio.create_task((await self.alice.chat()).ask("go"))
        self.stack.callback(turn.cancel)
        canvas = await got
        assert canvas is not None
        return canvas

    async def agreed(self) -> Json:
        """Wait until both clients have the host's canvases; what they have."""

        def views() -> list[Any]:
            host: Any = self.bench.host.services.state(self.alice.uri)
            states: list[Any] = [host, self.alice.confirmed, self.bob.confirmed]
            return [{key: state.get(key, []) for key in CANVAS_FIELDS} for state in states]

        await until(lambda: all(view == views()[0] for view in views()))
        return views()[0]

    def told(self) -> list[str]:
        """The canvas actions so far, by name."""
        types = [envelope["action"]["type"] for envelope in self.envelopes]
        return [type.removeprefix("session/canvas") for type in types if "/canvas" in type]


class Provider(abc.ABC):
    """A provider of one kind, that comes, drops and comes back."""

    extension_id = board_extension.EXTENSION

    def __init__(self, world: World) -> None:
        self.world = world

    @abc.abstractmethod
    async def join(self) -> None: ...

    @abc.abstractmethod
    async def drop(self) -> None: ...

    @abc.abstractmethod
    async def come_back(self) -> None: ...


class InTheHost(Provider):
    async def join(self) -> None:
        self.provider = PythonProvider(self.extension_id, [board_extension.Board])
        self.world.canvases.add_provider(self.provider)

    async def drop(self) -> None:
        self.world.canvases.remove_provider(self.provider)

    async def come_back(self) -> None:
        self.world.canvases.add_provider(self.provider)


class OverStdio(Provider):
    """Started by the host, and started again by it."""

    async def join(self) -> None:
        command = [sys.executable, board_extension.__file__]
        source = ExtensionProcess(command, longest_pause=0.05)
        self.world.bench.host.services.spawn(source.run(self.world.canvases), name="extension")

    async def drop(self) -> None:
        pid, child = await self.world.agent.invoke("b1", "pid")
        os.kill(child, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)

    async def come_back(self) -> None:
        """By itself."""


class OverTheSocket(Provider):
    """Started by somebody else; it connects."""

    async def join(self) -> None:
        self.path = self.world.directory / "extensions.sock"
        self.world.bench.host.services.spawn(ExtensionSocket(self.path).run(self.world.canvases), name="socket")
        await self.come_back()
        self.world.stack.push_async_callback(self.drop)

    async def drop(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def come_back(self) -> None:
        command = [sys.executable, board_extension.__file__, str(self.path)]
        self.process = await asyncio.create_subprocess_exec(*command)


class InAClient(Provider):
    """The active client: provider and renderer in one."""

    extension_id = "client:desk"

    async def join(self) -> None:
        self.stack = AsyncExitStack()
        client = await self.stack.enter_async_context(connect(self.world.url, client_id="desk"))
        client.add_canvas(board_extension.Board)
        await (await client.session(self.world.alice.uri)).claim().accepted()
        self.world.stack.push_async_callback(self.drop)

    async def drop(self) -> None:
        stack, self.stack = self.stack, AsyncExitStack()
        await stack.aclose()

    come_back = join


KINDS = [InTheHost, OverStdio, OverTheSocket, InAClient]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    made = World(tmp_path)
    async with made.stack:
        await made.start()
        yield made


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
async def provider(world: World, request: pytest.FixtureRequest) -> Provider:
    provider: Provider = request.param(world)
    await provider.join()
    await until(lambda: world.agent.list())
    return provider


@requirement("canvas:registry:on-join-and-leave", "canvas:agent:list", "canvas:state:registry-is-aggregate")
@requirement("canvas:provider:many-per-session", "canvas:agent:events")
async def test_declare_and_discover(world: World, provider: Provider) -> None:
    [found] = world.agent.list()
    assert (found["extensionId"], found["canvasId"], found["displayName"]) == (provider.extension_id, "board", "Board")
    assert {"name": "add", "description": "Add a card", "inputSchema": {"type": "object", "required": ["card"]}} in (
        found["actions"]
    )
    world.canvases.add_provider(board_provider(Second(), "example.second"))
    view = await world.agreed()
    assert {one["extensionId"] for one in view["canvasRegistry"]} == {provider.extension_id, "example.second"}
    lists = [data["canvases"] for event, data in world.heard if event == "session.canvas.registry_changed"]
    assert [len(canvases) for canvases in lists] == [1, 2]


@requirement("canvas:bridge:open-success", "canvas:agent:events", "canvas:state:requests-visible-to-all")
@requirement("canvas:bridge:remote-agent-reaches-renderer")
async def test_an_agent_opens_a_canvas_that_a_client_provides(world: World, provider: Provider) -> None:
    opened = await world.agent.open("board", "b1", input={"title": "Plan"})
    assert (opened["availability"], opened["url"], opened["status"]) == ("ready", "https://board.example/b1", "new")
    view = await world.agreed()
    [instance] = view["openCanvases"]
    assert (instance["extensionId"], instance["input"]) == (provider.extension_id, {"title": "Plan"})
    assert view["canvasRequests"] == []
    await until(lambda: world.told()[-1:] == ["InstanceOpened"])
    assert world.told()[-3:] == ["RequestCreated", "RequestCompleted", "InstanceOpened"]
    assert world.heard[-1] == ("session.canvas.opened", opened)
    error = await failure(world.agent.open("board", "b2", extension_id="example.nobody"))
    assert error.code == "canvas_not_found"


@requirement("canvas:bridge:action-success", "canvas:bridge:action-failure")
async def test_an_agent_invokes_actions_and_is_told_why_one_failed(world: World, provider: Provider) -> None:
    await world.agent.open("board", "b1", input={"title": "Plan"})
    told: Any = await world.agent.invoke("b1", "told")
    assert (told["instanceId"], told["input"]) == ("b1", {"title": "Plan"})
    assert told["sessionId"] == world.alice.uri.partition(":/")[2]
    assert (await failure(world.agent.invoke("b1", "fail"))).code == "locked"
    assert (await failure(world.agent.invoke("b1", "fly"))).code == "canvas_action_no_handler"
    crashed = await failure(world.agent.invoke("b1", "crash"))
    assert crashed.code == "canvas_provider_error"
    assert "secret" not in crashed.message
    assert (await world.agreed())["canvasRequests"] == []
    await until(lambda: "InstanceOpened" in (told := world.told()) and told[-1] == "RequestCompleted")
    assert world.told().count("InstanceOpened") == 1


@requirement("canvas:provider:drop-makes-stale", "canvas:provider:stale-invoke-fails", "canvas:provider:reopen")
@requirement("canvas:bridge:close-success")
async def test_close_and_stale_recovery(world: World, provider: Provider) -> None:
    await world.agent.open("board", "b1", input={"title": "Plan"})
    await provider.drop()
    await until(
        lambda: any(e["action"].get("changes") == {"availability": "stale", "url": None} for e in world.envelopes),
    )
    if not isinstance(provider, OverStdio):  # It may be back already.
        assert (await failure(world.agent.invoke("b1", "told"))).code == "canvas_provider_unavailable"
    await provider.come_back()
    await until(lambda: world.agent.list_open()[0]["availability"] == "ready")
    told: Any = await world.agent.invoke("b1", "told")
    assert (told["reopen"], told["input"]) == (True, {"title": "Plan"})
    assert (await world.agreed())["openCanvases"][0]["status"] == "again"
    await world.agent.close("b1")
    view = await world.agreed()
    assert (view["openCanvases"], view["canvasRequests"]) == ([], [])
    assert (await failure(world.agent.invoke("b1", "told"))).code == "canvas_instance_not_found"
