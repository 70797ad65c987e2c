"""Whatever the order of opens, actions, closes, cancellations, disconnects and restarts: the books are in order.

No request is left over or ended twice, no instance is open that nobody ever declared, an instance is ready exactly when
its provider is there, and every client has what the host has.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from ahpkit.canvas import Canvases
from ahpkit.dialects.v0_4.channels import reduce
from support.bench import Bench
from support.canvases import CHART, Board, board_provider, claim
from support.raw_client import Json, RawClient
from support.waiting import BOUND

SESSION_FIELDS = ("canvasRegistry", "openCanvases", "canvasRequests")
PROVIDERS = ("one", "two")
DESK = "desk"
MAX_INSTANCES = 2

instances = st.sampled_from(["a", "b", "c"])
owners = st.sampled_from([*PROVIDERS, DESK])
opens = st.tuples(st.just("open"), instances, owners)
steps = st.one_of(
    *[opens] * 4,  # Without open instances nothing happens.
    *[st.tuples(st.sampled_from(["invoke", "close", "close_button"]), instances)] * 3,
    *[st.tuples(st.sampled_from(["drop", "come_back", "come_back"]), owners)] * 3,
    *[st.tuples(st.sampled_from(["hold", "go_on"]), st.sampled_from(PROVIDERS))] * 2,
    *[st.tuples(st.sampled_from(["desk_answers", "give_up", "restart"]))] * 2,
)
scripts = st.lists(st.tuples(steps, st.sampled_from([0, 0, 1, 2, 5, 20])), min_size=10, max_size=40)


class World:
    """One session on a host that is restarted now and then, two providers in it, and a client that is one, too."""

    def __init__(self, directory: Path) -> None:
        self.bench = Bench(directory)
        self.boards = {name: Board() for name in PROVIDERS}
        self.present = {*PROVIDERS}
        self.calls: list[asyncio.Task[Any]] = []
        self.session = ""
        self.desk: RawClient | None = None
        self.watcher: RawClient
        self.snapshot: Json
        self.canvases: Canvases

    async def start(self) -> None:
        self.providers = {name: board_provider(board, name) for name, board in self.boards.items()}
        here = [self.providers[name] for name in PROVIDERS if name in self.present]
        self.canvases = Canvases(here, max_instances=MAX_INSTANCES)
        self.bench.features = [self.canvases]
        await self.bench.start()
        self.watcher = await self.bench.client()
        if not self.session:
            self.session, _ = await self.bench.session(self.watcher)
        self.snapshot = await self.bench.state(self.watcher, self.session)
        self.agent = self.canvases._bridge(self.session).runtime  # pyright: ignore[reportPrivateUsage]  # What the agent of a session would get.

    async def do(self, step: tuple[str, ...]) -> None:
        await getattr(self, f"_{step[0]}")(*step[1:])

    def _call(self, call: Any) -> None:
        self.calls.append(asyncio.create_task(call))

    async def _open(self, instance: str, owner: str) -> None:
        canvas_id, extension_id = ("chart", f"client:{DESK}") if owner == DESK else ("board", owner)
        self._call(self.agent.open(canvas_id, instance, extension_id=extension_id, input={"title": instance}))

    async def _invoke(self, instance: str) -> None:
        self._call(self.agent.invoke(instance, "add", {"card": 1}))

    async def _close(self, instance: str) -> None:
        self._call(self.agent.close(instance))

    async def _close_button(self, instance: str) -> None:
        self.watcher.post(self.session, {"type": "session/canvasInstanceCloseRequested", "instanceId": instance})

    async def _give_up(self) -> None:
        for call in self.calls[-2:]:
            call.cancel()

    async def _drop(self, owner: str) -> None:
        if owner == DESK and self.desk is not None:
            desk, self.desk = self.desk, None
            await desk.aclose()
        elif owner in self.present:
            self.present.discard(owner)
            self.canvases.remove_provider(self.providers[owner])

    async def _come_back(self, owner: str) -> None:
        if owner == DESK:
            if self.desk is None:
                self.desk = await self.bench.client(client_id=DESK)
                await self.desk.ask("subscribe", self.session)
                await claim(self.desk, self.session, canvasProviders=[CHART], canRenderCanvases=True)
        elif owner not in self.present:
            self.present.add(owner)
            self.canvases.add_provider(self.providers[owner])

    async def _hold(self, owner: str) -> None:
        if self.boards[owner].hold is None:
            self.boards[owner].hold = asyncio.Event()

    async def _go_on(self, owner: str) -> None:
        hold, self.boards[owner].hold = self.boards[owner].hold, None
        if hold is not None:
            hold.set()

    async def _desk_answers(self) -> None:
        """Answers whatever is asked of the client, each as it should be."""
        if self.desk is None:
            return
        for request in self._state()["canvasRequests"]:
            if request["target"].get("clientId") == DESK:
                action = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
                self.desk.post(self.session, {**action, "result": {"kind": request["kind"]}})

    async def _restart(self) -> None:
        self.desk = None
        await self.bench.stop()
        await self.start()

    async def settle(self) -> None:
        """Let everything come to its end."""
        for name in PROVIDERS:
            await self._go_on(name)
        async with asyncio.timeout(BOUND):
            while self._busy():
                await self._desk_answers()
                await asyncio.sleep(0.001)
        await asyncio.gather(*self.calls, return_exceptions=True)
        await self.bench.host.services.durable()
        await self.watcher.ask("ping")

    def _busy(self) -> bool:
        state = self._state()
        declared = {(one["extensionId"], one["canvasId"]) for one in state["canvasRegistry"]}
        stale = [one for one in state["openCanvases"] if one["availability"] == "stale"]
        returning = [one for one in stale if (one["extensionId"], one["canvasId"]) in declared]
        return bool(state["canvasRequests"] or returning or not all(call.done() for call in self.calls))

    def _state(self) -> Json:
        state = self.bench.host.services.state(self.session) or {}
        return {key: state.get(key, []) for key in SESSION_FIELDS}

    # What must be true.

    async def check(self) -> None:
        self._check_watcher()
        self._check_instances()
        await self._check_log()

    def _check_watcher(self) -> None:
        """What a client has that saw every action is what the host has."""
        state = self.snapshot
        for envelope in self.watcher.actions(self.session):
            if "rejectionReason" not in envelope:
                state = reduce(self.session, state, envelope["action"], now=0)
        committed = self.bench.host.spine.store.committed(self.session) or {}
        for key in SESSION_FIELDS:
            assert state.get(key) == committed.get(key), key

    def _check_instances(self) -> None:
        state = self._state()
        declared = {(one["extensionId"], one["canvasId"]) for one in state["canvasRegistry"]}
        desk = {(f"client:{DESK}", "chart")} if self.desk else set[tuple[str, str]]()
        expected = {(name, "board") for name in self.present} | desk
        assert declared == expected
        assert len(state["openCanvases"]) <= MAX_INSTANCES
        for instance in state["openCanvases"]:
            is_there = (instance["extensionId"], instance["canvasId"]) in declared
            assert (instance["availability"] == "ready") == is_there
        assert state["canvasRequests"] == []

    async def _check_log(self) -> None:
        created: set[str] = set()
        ended: set[str] = set()
        ever_declared: set[tuple[str, str]] = set()
        for entry in await self.bench.host.spine.log.read(0, channels=[self.session], limit=None):
            action = json.loads(entry.payload)["action"]
            match action["type"].removeprefix("session/canvas"):
                case "RegistryChanged":
                    ever_declared |= {(one["extensionId"], one["canvasId"]) for one in action["canvases"]}
                case "InstanceOpened":
                    assert (action["instance"]["extensionId"], action["instance"]["canvasId"]) in ever_declared
                case "RequestCreated":
                    assert action["request"]["requestId"] not in created
                    created.add(action["request"]["requestId"])
                case "RequestCompleted" | "RequestCancelled":
                    assert action["requestId"] in created - ended
                    ended.add(action["requestId"])
                case _:
                    pass
        assert created == ended


async def play(script: list[tuple[tuple[str, ...], int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory))
        await world.start()
        try:
            await world.do(("come_back", DESK))
            for step, pause in script:
                await world.do(step)
                for _ in range(pause):
                    await asyncio.sleep(0)
            await world.settle()
            await world.check()
        finally:
            await world.bench.stop()
            for call in world.calls:
                call.cancel()
            await asyncio.gather(*world.calls, return_exceptions=True)


LIMIT_RACE = [(("open", "a", "one"), 0)] * 6 + [(("open", "b", "one"), 1), (("open", "c", "one"), 0)]
"""An instance that was answered for and is not open yet counts."""


@given(scripts)
@example([(("open", "a", "one"), 0), (("desk_answers",), 0), *LIMIT_RACE])
def test_the_books_are_in_order_whatever_happens(script: list[tuple[tuple[str, ...], int]]) -> None:
    asyncio.run(play(script))
