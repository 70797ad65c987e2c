"""Documents with pages: agent and user change the same thing, everyone sees it, and it survives the host."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ahpkit.canvas import Canvases
from ahpkit.canvas.builtin import EXTENSION_ID, builtin_provider
from ahpkit.canvas.pages import Pages
from ahpkit.host.agent import CanvasRuntime
from ahpkit.host.states import NO_SESSION
from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from support.bench import Bench
from support.canvases import failure, runtime
from support.http import get
from support.pages import as_user, routes_of, shown
from support.raw_client import RawClient
from support.waiting import until


class Stage:
    """A host with the built-in canvases and a server for their pages."""

    def __init__(self, directory: Path) -> None:
        self.bench = Bench(directory)
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        pages = Pages()
        self.bench.features = [Canvases([builtin_provider(pages)])]
        await self.bench.start()
        serving = serve_http(self.bench.host.serve, auth=Authenticator(None), routes=routes_of(pages))
        server = await self._stack.enter_async_context(serving)
        await self._stack.enter_async_context(pages.serving(server.url))

    async def stop(self) -> None:
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()
        await self.bench.stop()

    async def session(self) -> tuple[RawClient, str, CanvasRuntime]:
        client = await self.bench.client()
        session, chat = await self.bench.session(client)
        active: dict[str, object] = {"clientId": client.client_id, "tools": [], "canRenderCanvases": True}
        await client.accepted(session, {"type": "session/activeClientChanged", "activeClient": active})
        return client, session, await runtime(self.bench, client, chat)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    made = Stage(tmp_path)
    await made.start()
    yield made
    await made.stop()


async def test_both_canvases_are_declared(stage: Stage) -> None:
    _, _, agent = await stage.session()
    assert {(one["extensionId"], one["canvasId"]) for one in agent.list()} == {
        (EXTENSION_ID, "chart"),
        (EXTENSION_ID, "checklist"),
    }
    chart = next(one for one in agent.list() if one["canvasId"] == "chart")
    assert [action["name"] for action in chart["actions"]] == ["addPoints", "setTitle", "export"]


async def test_user_and_agent_change_the_same_board(stage: Stage) -> None:
    client, _, agent = await stage.session()
    opened = await agent.open("checklist", "list", input={"title": "Trip", "items": ["pack"]})
    assert opened["status"] == "0 of 1 done"
    answer = await as_user(opened["url"], "addItem", text="<b>pay</b>")
    assert answer.json() == {"value": {"id": "2", "text": "<b>pay</b>", "column": "To do"}}
    await client.action(lambda envelope: envelope["action"].get("changes") == {"status": "0 of 2 done"})
    await as_user(opened["url"], "moveItem", id="1", column="Done")
    await client.action(lambda envelope: envelope["action"].get("changes") == {"status": "1 of 2 done"})
    board = await agent.invoke("list", "read")
    assert [item["text"] for item in board["items"]] == ["<b>pay</b>", "pack"]
    await agent.invoke("list", "removeItem", {"id": "2"})
    assert [item["id"] for item in (await shown(opened["url"]))["items"]] == ["1"]


async def test_the_user_can_do_only_what_is_for_users(stage: Stage) -> None:
    _, _, agent = await stage.session()
    chart = await agent.open("chart", "c")
    board = await agent.open("checklist", "l")
    assert (await as_user(chart["url"], "setTitle", title="mine")).json()["error"]["code"] == "canvas_action_no_handler"
    assert (await as_user(board["url"], "explode")).json()["error"]["code"] == "canvas_action_no_handler"
    assert (await as_user(board["url"], "addItem", text=7)).json()["error"]["code"] == "canvas_invalid_input"
    assert (await as_user(board["url"], "moveItem", id="9", column="Done")).status == 400
    assert (await shown(board["url"]))["items"] == []


async def test_an_agent_drives_a_live_chart(stage: Stage) -> None:
    client, _, agent = await stage.session()
    opened = await agent.open("chart", "c", input={"title": "Load", "series": [{"name": "cpu", "points": [1]}]})
    await agent.invoke("c", "addPoints", {"series": "cpu", "points": [2, 3]})
    await agent.invoke("c", "setTitle", {"title": "CPU"})
    await client.action(lambda envelope: envelope["action"].get("changes") == {"title": "CPU"})
    assert (await shown(opened["url"]))["series"][0]["points"] == [[0, 1], [1, 2], [2, 3]]
    assert await agent.invoke("c", "export", {"format": "csv"}) == "series,x,y\ncpu,0,1\ncpu,1,2\ncpu,2,3\n"
    assert (await failure(agent.invoke("c", "addPoints", {"series": "cpu"}))).code == "canvas_invalid_input"


async def test_a_closed_instance_is_forgotten(stage: Stage) -> None:
    _, _, agent = await stage.session()
    opened = await agent.open("checklist", "l", input={"items": ["a"]})
    await agent.close("l")
    assert (await get(opened["url"])).status == 410
    assert stage.bench.host.services.values.items("canvas/") == []
    again = await agent.open("checklist", "l")
    assert (await shown(again["url"]))["items"] == []


async def test_a_reopened_instance_keeps_its_document_at_a_new_address(stage: Stage) -> None:
    _, _, agent = await stage.session()
    opened = await agent.open("checklist", "l", input={"items": ["a"]})
    await as_user(opened["url"], "addItem", text="b")
    again = await agent.open("checklist", "l", input={"items": ["ignored"]})
    assert again["url"] != opened["url"]
    assert (await get(opened["url"])).status == 410
    assert [item["text"] for item in (await shown(again["url"]))["items"]] == ["a", "b"]


async def test_sessions_do_not_see_each_others_documents(stage: Stage) -> None:
    _, _, one = await stage.session()
    _, _, two = await stage.session()
    await one.open("checklist", "l", input={"items": ["a"]})
    other = await two.open("checklist", "l")
    assert (await shown(other["url"]))["items"] == []


async def test_what_the_user_did_survives_a_restart(stage: Stage) -> None:
    client, session, agent = await stage.session()
    opened = await agent.open("checklist", "l", input={"items": ["a"]})
    await as_user(opened["url"], "moveItem", id="1", column="Done")
    await client.ask("ping")
    await stage.stop()
    await stage.start()
    host = stage.bench.host

    def availability() -> list[str]:
        canvases = (host.services.session(session) or NO_SESSION).get("openCanvases", [])
        return [canvas["availability"] for canvas in canvases]

    await until(lambda: availability() == ["ready"])
    await host.services.durable()
    [instance] = (await stage.bench.state(await stage.bench.client(), session))["openCanvases"]
    assert instance["url"] != opened["url"]
    assert instance["status"] == "1 of 1 done"
    assert (await shown(instance["url"]))["items"][0]["column"] == "Done"


async def test_a_disposed_session_leaves_nothing(stage: Stage) -> None:
    client, session, agent = await stage.session()
    opened = await agent.open("checklist", "l", input={"items": ["a"]})
    await client.ask("disposeSession", session)
    assert (await get(opened["url"])).status == 410
    assert stage.bench.host.services.values.items("canvas/") == []
