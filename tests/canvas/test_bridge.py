"""The bridge of a session: open, invoke, close, and what providers and renderers bring when they come and go."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from ahpkit.canvas import CanvasError, Canvases, PythonProvider, canvas
from ahpkit.dialects.v0_4.channels import reduce
from ahpkit.host.agent import CanvasRuntime, Turn
from ahpkit.protocol.session.actions import session_canvas_request_completed
from support import requirement
from support.bench import Bench, say
from support.canvases import (
    CHART,
    EXTENSION,
    TITLED,
    Board,
    board_provider,
    canvas_actions,
    claim,
    complete,
    failure,
    kinds,
    release,
    request_for,
    runtime,
    session_id,
)
from support.raw_client import Json, RawClient
from support.waiting import BOUND, until


@dataclass
class Scene:
    """A session with a turn running, the client that began it and one that watches."""

    bench: Bench
    client: RawClient
    watcher: RawClient
    session: str
    chat: str
    agent: CanvasRuntime

    async def state(self) -> Json:
        await self.bench.host.services.durable()  # What subscribers are shown is what is on disk.
        return await self.bench.state(self.watcher, self.session)


@pytest.fixture
async def scene(bench: Bench) -> Scene:
    client, watcher = await bench.client(), await bench.client()
    session, chat = await bench.session(client)
    await watcher.ask("subscribe", session)
    return Scene(bench, client, watcher, session, chat, await runtime(bench, client, chat))


# -- open, invoke, close ------------------------------------------------------------------------------------------


@requirement("canvas:bridge:open-success", "canvas:bridge:action-success", "canvas:bridge:close-success")
@requirement("canvas:surface:one-request-triple", "canvas:request:server-target-completed-by-host")
@requirement("canvas:agent:open", "canvas:agent:invoke", "canvas:agent:close", "canvas:agent:open-instance-shape")
@requirement("canvas:action:opened-after-finalised", "canvas:state:instance-id-from-caller")
async def test_open_invoke_and_close_run_as_requests_that_everyone_sees(scene: Scene, board: Board) -> None:
    opened = await scene.agent.open("board", "b 1/ü", extension_id=EXTENSION, input={"title": "Plan"})
    assert opened == {
        "instanceId": "b 1/ü",
        "canvasId": "board",
        "extensionId": EXTENSION,
        "extensionName": "Boards",
        "availability": "ready",
        "input": {"title": "Plan"},
        "url": "https://board.example/b 1/ü",
        "title": "Plan",
        "reopen": False,
    }
    assert await scene.agent.invoke("b 1/ü", "add", {"card": "x"}) == {"cards": ["x"]}
    assert await scene.agent.invoke("b 1/ü", "echo") is None
    await scene.agent.close("b 1/ü")
    await scene.watcher.action("session/canvasInstanceClosed")
    actions = canvas_actions(scene.watcher, scene.session)
    assert kinds(actions) == [
        *("RequestCreated", "RequestCompleted", "InstanceOpened"),
        *("RequestCreated", "RequestCompleted"),
        *("RequestCreated", "RequestCompleted"),
        *("RequestCreated", "RequestCompleted", "InstanceClosed"),
    ]
    requests = [action["request"] for action in actions if "request" in action]
    assert [request["kind"] for request in requests] == ["open", "action", "action", "close"]
    assert all(request["target"] == {"kind": "server"} for request in requests)
    state = await scene.state()
    assert (state["openCanvases"], state["canvasRequests"]) == ([], [])


@requirement("canvas:state:request-name-and-input", "canvas:state:request-id-minted-by-host")
@requirement("canvas:state:request-deadline")
async def test_requests_say_what_is_asked_and_until_when(scene: Scene) -> None:
    before = scene.bench.host.services.now()
    await scene.agent.open("board", "b1", input={"title": "Plan"})
    await scene.agent.invoke("b1", "add", {"card": 1})
    await scene.agent.close("b1")
    await scene.watcher.action("session/canvasInstanceClosed")
    actions = canvas_actions(scene.watcher, scene.session)
    opening, adding, closing = (action["request"] for action in actions if "request" in action)
    assert (opening["input"], "actionName" in opening) == ({"title": "Plan"}, False)
    assert (adding["input"], adding["actionName"]) == ({"card": 1}, "add")
    assert "input" not in closing
    assert "actionName" not in closing
    assert before <= opening["deadlineMs"] - BOUND * 1000 <= scene.bench.host.services.now()
    completed = [action["requestId"] for action in actions if action["type"] == "session/canvasRequestCompleted"]
    assert completed == [request["requestId"] for request in (opening, adding, closing)]
    assert len(set(completed)) == 3


@requirement("canvas:provider-api:open", "canvas:provider-api:invoke", "canvas:provider-api:close")
@requirement("canvas:provider-api:session-context")
async def test_a_provider_is_told_who_asks_for_what(bench: Bench, board: Board) -> None:
    client = await bench.client()
    directory = bench.config.default_directory.as_uri()
    session, chat = await bench.session(client, workingDirectory=directory)
    agent = await runtime(bench, client, chat)
    await agent.open("board", "b1", input={"title": "Plan"})
    await agent.invoke("b1", "add", {"card": 1})
    await agent.close("b1")
    identity = {
        "sessionId": session_id(session),
        "extensionId": EXTENSION,
        "canvasId": "board",
        "instanceId": "b1",
        "host": {"capabilities": {"canvases": False}},
        "session": {"workingDirectory": directory},
    }
    assert board.calls == [
        ("open", {**identity, "input": {"title": "Plan"}}),
        ("add", {**identity, "actionName": "add", "input": {"card": 1}}),
        ("close", identity),
    ]


@requirement("canvas:state:many-instances", "canvas:agent:list-open", "canvas:state:extension-id-stable")
async def test_one_canvas_may_be_open_many_times(scene: Scene) -> None:
    for number in range(3):
        await scene.agent.open("board", f"b{number}", input={"title": f"{number}"})
    assert [one["title"] for one in scene.agent.list_open()] == ["0", "1", "2"]
    assert all(one["reopen"] is False for one in scene.agent.list_open())
    state = await scene.state()
    owners = {one["extensionId"] for one in [*state["openCanvases"], *state["canvasRegistry"]]}
    assert owners == {EXTENSION}


@requirement("canvas:agent:no-wire-format")
async def test_what_an_agent_sees_holds_nothing_of_the_wire(scene: Scene) -> None:
    heard: list[Any] = []
    scene.agent.subscribe(lambda event, data: heard.append(data))
    await claim(scene.client, scene.session, canvasProviders=[CHART], canRenderCanvases=True)
    opened = await scene.agent.open("board", "b1")
    seen = str([opened, *scene.agent.list(), *scene.agent.list_open(), *heard])
    for word in ("requestId", "serverSeq", "clientSeq", "session/canvas", "target", "renderer", "source", "clientId'"):
        assert word not in seen


@requirement("canvas:provider:reopen")
async def test_opening_an_open_instance_reopens_it(scene: Scene, board: Board) -> None:
    await scene.agent.open("board", "b1", input={"title": "A"})
    again = await scene.agent.open("board", "b1", input={"title": "B"})
    assert again["reopen"] is True
    assert "reopen" not in board.calls[0][1]
    assert board.calls[1][1]["reopen"] is True
    await scene.watcher.action(lambda envelope: envelope["action"].get("instance", {}).get("title") == "B")
    assert [one["title"] for one in (await scene.state())["openCanvases"]] == ["B"]


async def test_a_reopen_without_input_has_the_input_of_the_last_time(scene: Scene, board: Board) -> None:
    await scene.agent.open("board", "b1", input={"title": "A"})
    again = await scene.agent.open("board", "b1")
    assert (again["input"], board.calls[1][1]["input"]) == ({"title": "A"}, {"title": "A"})


async def test_an_id_that_another_canvas_has_is_refused(scene: Scene, canvases: Canvases) -> None:
    canvases.add_provider(board_provider(Board(), "example.other"))
    await scene.agent.open("board", "b1", extension_id=EXTENSION)
    error = await failure(scene.agent.open("board", "b1", extension_id="example.other"))
    assert error.code == "canvas_instance_taken"
    assert EXTENSION in error.message


@requirement("canvas:state:declaration-identity", "canvas:state:action-name-unique")
async def test_names_in_what_a_client_declares_are_unique_and_an_action_goes_with_its_declaration(scene: Scene) -> None:
    def claimed(*declared: Json) -> Json:
        active = {"clientId": scene.client.client_id, "tools": [], "canvasProviders": list(declared)}
        return {"type": "session/activeClientChanged", "activeClient": active}

    async def draw() -> CanvasError | None:
        calling = asyncio.create_task(scene.agent.invoke("c1", "draw"))
        seen = len(canvas_actions(scene.client, scene.session))
        await until(lambda: calling.done() or len(canvas_actions(scene.client, scene.session)) > seen)
        if calling.done():
            return await failure(calling)
        await complete(scene.client, scene.session, canvas_actions(scene.client, scene.session)[-1]["request"])
        await calling
        return None

    twice = {**CHART, "actions": [{"name": "draw"}, {"name": "draw"}]}
    assert "canvas id 'chart' is given twice" in await scene.client.rejected(scene.session, claimed(CHART, CHART))
    assert "action name 'draw' is given twice" in await scene.client.rejected(scene.session, claimed(twice))
    assert [one["canvasId"] for one in (await scene.state())["canvasRegistry"]] == ["board"]
    await scene.client.accepted(scene.session, claimed(CHART))
    opening = asyncio.create_task(scene.agent.open("chart", "c1"))
    await complete(scene.client, scene.session, await request_for(scene.client, "c1"))
    await opening
    assert await draw() is None
    await scene.client.accepted(scene.session, claimed({**CHART, "actions": []}))
    gone = await draw()
    assert gone is not None
    assert gone.code == "canvas_action_no_handler"
    await scene.client.accepted(scene.session, claimed(CHART))
    assert await draw() is None


@requirement("canvas:agent:open-extension-id", "canvas:state:declaration-identity", "canvas:provider:many-per-session")
async def test_an_ambiguous_canvas_needs_its_extension(scene: Scene, canvases: Canvases, board: Board) -> None:
    other = Board()
    await scene.agent.open("board", "alone")
    canvases.add_provider(board_provider(other, "example.other"))
    error = await failure(scene.agent.open("board", "b1"))
    assert error.code == "canvas_ambiguous"
    assert EXTENSION in error.message
    assert "example.other" in error.message
    await scene.agent.open("board", "b1", extension_id="example.other")
    await scene.agent.open("board", "b2", extension_id=EXTENSION)
    assert other.verbs() == ["open b1"]
    assert board.verbs() == ["open alone", "open b2"]


@requirement("canvas:state:action-name-unique")
async def test_an_action_exists_as_long_as_its_declaration(scene: Scene, provider: PythonProvider) -> None:
    extra = canvas("extra", display_name="Extra", description="More")(_titled)
    provider.add(extra)
    await scene.agent.open("extra", "e1")
    assert (await failure(scene.agent.invoke("e1", "later"))).code == "canvas_action_no_handler"
    extra.action("later")(_now)
    assert await scene.agent.invoke("e1", "later") == "now"
    with pytest.raises(ValueError, match="two actions named 'later'"):
        extra.action("later")(_now)
    actions = [one.get("actions") for one in (await scene.state())["canvasRegistry"] if one["canvasId"] == "extra"]
    assert actions == [[{"name": "later"}]]


def _titled(request: Any) -> Json:
    return {"title": "extra"}


def _now(request: Any) -> str:
    return "now"


async def test_what_the_agent_sent_cannot_be_changed_afterwards(scene: Scene) -> None:
    given: Json = {"title": "A", "tags": ["x"]}
    await scene.agent.open("board", "b1", input=given)
    given["tags"].append("y")
    assert (await scene.state())["openCanvases"][0]["input"] == {"title": "A", "tags": ["x"]}


# -- what goes wrong ----------------------------------------------------------------------------------------------


@requirement("canvas:bridge:open-failure", "canvas:bridge:action-failure")
async def test_what_goes_wrong_has_a_code_and_leaves_no_request(scene: Scene, board: Board) -> None:
    agent = scene.agent
    assert (await failure(agent.open("none", "x"))).code == "canvas_not_found"
    assert (await failure(agent.invoke("x", "add"))).code == "canvas_instance_not_found"
    assert (await failure(agent.close("x"))).code == "canvas_instance_not_found"
    assert (await failure(agent.open("board", ""))).code == "canvas_invalid_input"
    await agent.open("board", "b1")
    assert (await failure(agent.invoke("b1", "fly"))).code == "canvas_action_no_handler"
    assert (await failure(agent.invoke("b1", "add", {}))).code == "canvas_invalid_input"
    assert (await failure(agent.invoke("b1", "add", object()))).code == "canvas_invalid_input"
    crashed = await failure(agent.invoke("b1", "crash"))
    assert (crashed.code, crashed.message) == ("canvas_provider_error", "the provider failed: RuntimeError")
    failed = await failure(agent.invoke("b1", "fail"))
    assert (failed.code, failed.message) == ("locked", "the board is locked")
    board.opening = ["no object"]
    assert (await failure(agent.open("board", "b2"))).code == "canvas_provider_error"
    board.opening = {"url": 7}
    assert (await failure(agent.open("board", "b2"))).code == "canvas_provider_error"
    state = await scene.state()
    assert [one["instanceId"] for one in state["openCanvases"]] == ["b1"]
    assert state["canvasRequests"] == []
    assert "secret" not in str(scene.watcher.received)


async def test_the_input_of_an_open_is_checked_against_the_schema(scene: Scene, canvases: Canvases) -> None:
    strict = Board()
    canvases.add_provider(board_provider(strict, "example.strict", schema=TITLED))
    error = await failure(scene.agent.open("board", "b1", extension_id="example.strict", input={"title": 7}))
    assert error.code == "canvas_invalid_input"
    assert "title" in error.message
    error = await failure(scene.agent.open("board", "b1", extension_id="example.strict"))
    assert error.code == "canvas_invalid_input"
    assert strict.calls == []


@requirement("canvas:bridge:close-failure")
async def test_a_close_that_fails_leaves_the_instance_open(scene: Scene, board: Board) -> None:
    await scene.agent.open("board", "b1")
    board.closing = RuntimeError("jammed")
    assert (await failure(scene.agent.close("b1"))).code == "canvas_provider_error"
    assert [one["instanceId"] for one in (await scene.state())["openCanvases"]] == ["b1"]
    assert "InstanceClosed" not in kinds(canvas_actions(scene.watcher, scene.session))
    board.closing = None
    await scene.agent.close("b1")
    assert scene.agent.list_open() == []


@requirement("canvas:state:outlives-turns")
async def test_a_cancelled_turn_takes_neither_instances_nor_requests_along(scene: Scene, board: Board) -> None:
    await scene.agent.open("board", "b1")
    board.hold = asyncio.Event()
    opening = asyncio.create_task(scene.agent.open("board", "b2"))
    await request_for(scene.watcher, "b2")
    opening.cancel()  # What the host does to a turn's agent; it stops to wait, and the call goes on.
    await scene.client.accepted(scene.chat, {"type": "chat/turnCancelled", "turnId": "t1"})
    state = await scene.state()
    assert [one["instanceId"] for one in state["canvasRequests"]] == ["b2"]
    assert [one["instanceId"] for one in state["openCanvases"]] == ["b1"]
    board.hold.set()
    await scene.watcher.action(lambda envelope: envelope["action"].get("instance", {}).get("instanceId") == "b2")
    state = await scene.state()
    assert [one["instanceId"] for one in state["openCanvases"]] == ["b1", "b2"]
    assert state["canvasRequests"] == []
    with pytest.raises(asyncio.CancelledError):
        await opening


async def test_too_many_instances_are_refused_also_when_they_open_at_once(scene: Scene, board: Board) -> None:
    board.hold = asyncio.Event()
    opening = [asyncio.create_task(scene.agent.open("board", f"b{number}")) for number in range(10_000)]
    await request_for(scene.watcher, "b3")
    board.hold.set()
    async with asyncio.timeout(BOUND):
        outcomes = await asyncio.gather(*opening, return_exceptions=True)
    refused = [outcome for outcome in outcomes if not isinstance(outcome, dict)]
    assert len(refused) == 9_996
    assert {getattr(outcome, "code", outcome) for outcome in refused} == {"canvas_limit"}
    assert len(board.calls) == len(scene.agent.list_open()) == 4
    await scene.agent.close("b0")
    await scene.agent.open("board", "again")


async def test_too_many_calls_at_once_are_refused(scene: Scene, board: Board) -> None:
    await scene.agent.open("board", "b1")
    board.hold = asyncio.Event()
    calls = [asyncio.create_task(scene.agent.invoke("b1", "add", {"card": 1})) for _ in range(200)]
    await until(lambda: sum(call.done() for call in calls) == 72)
    assert len((await scene.state())["canvasRequests"]) == 128
    board.hold.set()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {getattr(outcome, "code", "fine") for outcome in outcomes} == {"fine", "canvas_limit"}
    assert (await scene.state())["canvasRequests"] == []


@requirement("canvas:action:cancel-reasons")
async def test_closing_an_instance_ends_the_calls_that_wait_for_it(scene: Scene, board: Board) -> None:
    await scene.agent.open("board", "b1")
    board.hold = asyncio.Event()
    waiting = asyncio.create_task(scene.agent.invoke("b1", "add", {"card": 1}))
    await request_for(scene.watcher, "b1", "action")
    board.hold = None
    await scene.agent.close("b1")
    assert (await failure(waiting)).code == "canvas_instance_closed"
    cancelled = await scene.watcher.action("session/canvasRequestCancelled")
    assert cancelled["action"]["reason"] == "instanceClosed"
    assert board.cancelled == ["b1"]


async def test_locks_do_not_pile_up(scene: Scene, canvases: Canvases) -> None:
    for number in range(50):
        await failure(scene.agent.open("none", f"b{number}"))
    bridge = canvases._bridge(scene.session)  # pyright: ignore[reportPrivateUsage]  # The bridge is not public.
    assert len(bridge._locks) == 0  # pyright: ignore[reportPrivateUsage]  # Locks are not public.


# -- what everyone sees -------------------------------------------------------------------------------------------


@requirement("canvas:state:snapshot-shows-all", "canvas:state:schemas-opaque")
@pytest.mark.parametrize("known", [True, False], ids=["replayed", "snapshot"])
async def test_who_reconnects_has_the_same_view_as_who_stayed(scene: Scene, board: Board, known: bool) -> None:
    await scene.agent.open("board", "b1", input={"note": "x" * 5_000})  # What was missed is shorter than the state.
    late = await scene.bench.client()
    state = await scene.bench.state(late, scene.session)
    seen = (await late.ask("subscribe", scene.session))["snapshot"]["fromSeq"]
    await late.aclose()
    odd: Json = {
        **CHART,
        "inputSchema": {"x-odd": [None, 1.5, "é"]},
        "actions": [{"name": "draw", "inputSchema": True}],
    }
    await claim(scene.client, scene.session, canvasProviders=[odd])
    board.hold = asyncio.Event()
    opening = asyncio.create_task(scene.agent.open("board", "b2"))
    await request_for(scene.watcher, "b2")
    back = await scene.bench.connect(late.client_id)
    since = seen if known else seen + 1_000_000
    again: Json = {"clientId": back.client_id, "lastSeenServerSeq": since, "subscriptions": [scene.session]}
    told = await back.ask("reconnect", **again)
    assert told["type"] == ("replay" if known else "snapshot")
    if known:
        for envelope in told["actions"]:
            state = reduce(scene.session, state, envelope["action"], now=0)
    else:
        [snapshot] = told["snapshots"]
        state = snapshot["state"]
    now = await scene.state()
    parts = ("canvasRegistry", "openCanvases", "canvasRequests")
    assert [state[key] for key in parts] == [now[key] for key in parts]
    shown = next(one for one in state["canvasRegistry"] if one["canvasId"] == "chart")
    assert (shown["inputSchema"], shown["actions"]) == (odd["inputSchema"], odd["actions"])
    assert [one["instanceId"] for one in (*state["openCanvases"], *state["canvasRequests"])] == ["b1", "b2"]
    board.hold.set()
    await opening


@requirement("canvas:state:requests-separate-slice")
async def test_a_question_to_the_user_is_no_canvas_request_and_a_canvas_request_no_question(
    bench: Bench, board: Board
) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)

    async def script(turn: Turn) -> None:
        assert turn.canvas is not None
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(turn.canvas.open("board", "b1"))
            tasks.create_task(turn.ask([{"id": "q", "kind": "text", "message": "?"}]))

    bench.agent.script = script
    board.hold = asyncio.Event()
    await client.accepted(chat, say("go", "t1"))
    asked = (await client.action("chat/inputRequested"))["action"]["request"]
    await request_for(client, "b1")
    state, talk = await bench.state(client, session), await bench.state(client, chat)
    assert [request["instanceId"] for request in state["canvasRequests"]] == ["b1"]
    assert [request["id"] for request in talk["inputRequests"]] == [asked["id"]]
    board.hold.set()
    await client.action("session/canvasInstanceOpened")
    state, talk = await bench.state(client, session), await bench.state(client, chat)
    assert (state["canvasRequests"], len(talk["inputRequests"])) == ([], 1)


@requirement("canvas:state:requests-visible-to-all", "canvas:state:snapshot-shows-all")
@requirement("canvas:state:requests-separate-slice")
async def test_who_joins_late_finds_everything_in_the_snapshot(scene: Scene, board: Board) -> None:
    await scene.agent.open("board", "b1", input={"title": "A"})
    board.hold = asyncio.Event()
    opening = asyncio.create_task(scene.agent.open("board", "b2"))
    await request_for(scene.client, "b2")
    late = await scene.bench.client()
    state = await scene.bench.state(late, scene.session)
    assert [one["canvasId"] for one in state["canvasRegistry"]] == ["board"]
    assert [one["url"] for one in state["openCanvases"]] == ["https://board.example/b1"]
    assert [one["instanceId"] for one in state["canvasRequests"]] == ["b2"]
    assert not (await scene.bench.state(late, scene.chat)).get("inputRequests")
    assert state["summary"]["status"] & 31 != 24  # InputNeeded: a canvas request is no question to the user.
    board.hold.set()
    await opening
    await late.action(lambda envelope: envelope["action"].get("instance", {}).get("instanceId") == "b2")
    for envelope in late.actions(scene.session):
        state = reduce(scene.session, state, envelope["action"], now=0)
    now = await scene.state()
    assert [state[key] for key in ("openCanvases", "canvasRequests")] == [
        now[key] for key in ("openCanvases", "canvasRequests")
    ]


@requirement("canvas:surface:rides-action-stream", "canvas:surface:typed-not-meta")
@requirement("canvas:action:payload-fields", "canvas:action:instance-updated-payload")
@requirement("canvas:action:result-xor-error", "canvas:action:result-shapes", "canvas:action:error-shape")
async def test_a_whole_run_is_actions_on_the_sessions_channel_and_nothing_else(
    scene: Scene, provider: PythonProvider
) -> None:
    await claim(scene.client, scene.session, canvasProviders=[CHART], canRenderCanvases=True)
    await scene.agent.open("board", "b1", input={"title": "A"})
    await scene.agent.invoke("b1", "add", {"card": 1})
    await failure(scene.agent.invoke("b1", "fail"))
    changes = {"title": None, "status": "s", "url": "u", "renderer": {"clientId": "x"}, "input": 1}
    provider.canvas_pushed(None, session_id(scene.session), "b1", changes)  # type: ignore[arg-type]  # Nobody in particular pushes.
    await scene.agent.close("b1")
    await scene.watcher.action("session/canvasInstanceClosed")
    for message in scene.watcher.received:
        if "canvas" in str(message).lower():
            assert message["method"] == "action" if "method" in message else "snapshot" in message["result"]
    actions = canvas_actions(scene.watcher, scene.session)
    assert kinds(actions) == [
        "RegistryChanged",
        *("RequestCreated", "RequestCompleted", "InstanceOpened"),
        *("RequestCreated", "RequestCompleted"),
        *("RequestCreated", "RequestCompleted"),
        "InstanceUpdated",
        *("RequestCreated", "RequestCompleted", "InstanceClosed"),
    ]
    carried = {kind: action.keys() - {"type"} for kind, action in zip(kinds(actions), actions, strict=True)}
    carried.pop("RequestCompleted")
    assert carried == {
        "RegistryChanged": {"canvases"},
        "InstanceOpened": {"instance"},
        "InstanceUpdated": {"instanceId", "changes"},
        "InstanceClosed": {"instanceId"},
        "RequestCreated": {"request"},
    }
    [updated] = [action["changes"] for action in actions if "changes" in action]
    assert updated == {"title": None, "status": "s", "url": "u"}
    outcomes = [action for action in actions if action["type"].endswith("RequestCompleted")]
    assert [one.keys() - {"type", "requestId"} for one in outcomes] == [{"result"}, {"result"}, {"error"}, {"result"}]
    results = [one.get("result") or one["error"] for one in outcomes]
    assert results == [
        {"kind": "open", "url": "https://board.example/b1", "title": "A"},
        {"kind": "action", "value": {"cards": [1]}},
        {"code": "locked", "message": "the board is locked"},
        {"kind": "close"},
    ]
    assert "_meta" not in str(actions)
    assert all(e["channel"] == scene.session for e in scene.watcher.actions() if "canvas" in e["action"]["type"])


@requirement("canvas:agent:events", "canvas:state:registry-republished-whole", "canvas:registry:on-join-and-leave")
async def test_agents_and_clients_hear_of_providers_that_join_and_leave(scene: Scene, canvases: Canvases) -> None:
    heard: list[tuple[str, Json]] = []
    second: list[tuple[str, Json]] = []
    stop = scene.agent.subscribe(lambda event, data: heard.append((event, data)))
    stop_second = scene.agent.subscribe(lambda event, data: second.append((event, data)))
    other = board_provider(Board(), "example.other")
    canvases.add_provider(other)
    await scene.agent.open("board", "b1", extension_id="example.other")
    canvases.remove_provider(other)
    assert second == heard, "every consumer hears the same"
    stop_second()
    stop()
    stop()
    canvases.add_provider(other)
    names = [event for event, _ in heard]
    assert names == ["session.canvas.registry_changed", "session.canvas.opened", "session.canvas.registry_changed"]
    extensions = [[one["extensionId"] for one in data["canvases"]] for _, data in heard if "canvases" in data]
    assert extensions == [[EXTENSION, "example.other"], [EXTENSION]]
    assert heard[1][1] == {**heard[1][1], "instanceId": "b1", "reopen": False}
    await scene.bench.host.services.durable()
    await scene.watcher.ask("ping")
    told = [one for one in canvas_actions(scene.watcher, scene.session) if "canvases" in one]
    lists = [[one["extensionId"] for one in action["canvases"]] for action in told]
    assert lists == [[EXTENSION, "example.other"], [EXTENSION], [EXTENSION, "example.other"]]


async def test_a_listener_that_fails_harms_nobody(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    async def slow(event: str, data: Json) -> None:
        heard.append(event)

    def broken(event: str, data: Json) -> None:
        raise RuntimeError("broken")

    scene.agent.subscribe(broken)
    scene.agent.subscribe(slow)
    await scene.agent.open("board", "b1")
    await until(lambda: heard == ["session.canvas.opened"])
    assert "listener" in caplog.text


@requirement("canvas:registry:only-if-changed")
async def test_a_registry_that_did_not_change_is_not_told(scene: Scene, canvases: Canvases) -> None:
    canvases.registry_changed()
    await claim(scene.client, scene.session)
    await scene.state()
    assert kinds(canvas_actions(scene.watcher, scene.session)) == []  # The watcher subscribed after the first registry.


@requirement("canvas:action:updated-on-provider-push", "canvas:bridge:opened-event-on-existing")
@requirement("canvas:provider:unknown-availability-is-stale")
async def test_a_push_reaches_everyone_as_just_what_changed(scene: Scene, provider: PythonProvider) -> None:
    heard: list[tuple[str, Json]] = []
    await scene.agent.open("board", "b1", input={"title": "A"})
    scene.agent.subscribe(lambda event, data: heard.append((event, data)))

    def push(**changes: Any) -> None:
        provider.canvas_pushed(None, session_id(scene.session), "b1", changes)  # type: ignore[arg-type]  # Nobody in particular pushes.

    push(title="B", url="https://board.example/b1", other="ignored")
    push(title="B")
    push(status="2 cards", availability="ready")
    push(status=None)
    push(availability="somewhere else")
    await scene.watcher.action(lambda envelope: "availability" in envelope["action"].get("changes", {}))
    changes = [one["changes"] for one in canvas_actions(scene.watcher, scene.session) if "changes" in one]
    assert changes == [{"title": "B"}, {"status": "2 cards"}, {"status": None}, {"availability": "stale"}]
    assert [(event, data["title"]) for event, data in heard] == [("session.canvas.opened", "B")] * 4


async def test_hostile_pushes_change_nothing(scene: Scene, provider: PythonProvider, canvases: Canvases) -> None:
    await scene.agent.open("board", "b1", input={"title": "A"})
    before = await scene.state()
    session = session_id(scene.session)
    hostile: Json = {
        "title": "x" * 501,
        "status": 7,
        "url": "https://" + "x" * 70_000,
        "instanceId": "b2",
        "renderer": {},
    }
    canvases.instance_changed(provider, session, "b1", hostile)
    canvases.instance_changed(provider, session, "unknown", {"title": "B"})
    canvases.instance_changed(provider, "unknown", "b1", {"title": "B"})
    canvases.instance_changed(board_provider(Board(), "example.thief"), session, "b1", {"title": "stolen"})
    assert (await scene.state())["openCanvases"] == before["openCanvases"]


@requirement("canvas:bridge:list-open-from-runtime")
async def test_what_a_provider_changed_silently_is_noticed_when_the_agent_looks(
    scene: Scene, provider: PythonProvider
) -> None:
    await scene.agent.open("board", "b1")
    provider._canvases.clear()  # pyright: ignore[reportPrivateUsage]  # A provider cannot take back a canvas.
    assert [one["availability"] for one in scene.agent.list_open()] == ["stale"]
    state = await scene.state()
    assert state["canvasRegistry"] == []
    assert [one["availability"] for one in state["openCanvases"]] == ["stale"]
    changes = {"availability": "ready", "url": "https://board.example/again"}
    provider.canvas_pushed(None, session_id(scene.session), "b1", changes)  # type: ignore[arg-type]  # Nobody in particular pushes.
    [left] = (await scene.state())["openCanvases"]
    assert (left["availability"], "url" in left) == ("stale", False), "a canvas that is not declared has no push"


# -- clients as providers -----------------------------------------------------------------------------------------


@requirement("canvas:client:extension-id-derived", "canvas:registry:two-steps", "canvas:client:host-registers")
@requirement("canvas:request:completed-by-target-only", "canvas:roles:client-canvas-renders-itself")
@requirement("canvas:state:declaration-source", "canvas:state:registry-is-aggregate", "canvas:provider:client-push")
@requirement("canvas:registry:after-runtime-ack", "canvas:registry:client-provider-connection")
async def test_a_client_provides_a_canvas_and_answers_for_it(scene: Scene) -> None:
    listed_when_told: list[int] = []
    scene.agent.subscribe(lambda event, data: listed_when_told.append(len(scene.agent.list())))
    await claim(scene.client, scene.session, displayName="Desk", canvasProviders=[CHART])
    changed = await scene.client.action(lambda envelope: len(envelope["action"].get("canvases", ())) == 2)
    claimed = await scene.client.action("session/activeClientChanged")
    assert claimed["serverSeq"] < changed["serverSeq"]
    assert "canvases" not in claimed["action"]
    assert listed_when_told == [2]  # What clients are told about can be routed already.
    ours, theirs = changed["action"]["canvases"]
    assert (ours["source"], "clientId" in ours) == ("server", False)
    owner = {"extensionId": f"client:{scene.client.client_id}", "extensionName": "Desk"}
    assert theirs == {**CHART, **owner, "source": "activeClient", "clientId": scene.client.client_id}
    opening = asyncio.create_task(scene.agent.open("chart", "c1"))
    request = await request_for(scene.watcher, "c1")
    assert request["target"] == {"kind": "activeClient", "clientId": scene.client.client_id}
    answer = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"]}
    answer |= {"result": {"kind": "open", "url": "https://c.example"}}
    assert "another client" in await scene.watcher.rejected(scene.session, answer)
    await scene.client.accepted(scene.session, answer)
    async with asyncio.timeout(BOUND):
        assert (await opening)["url"] == "https://c.example"
    [instance] = (await scene.state())["openCanvases"]
    assert instance["renderer"] == {"clientId": scene.client.client_id}
    push = {"type": "session/canvasInstanceUpdated", "instanceId": "c1", "changes": {"url": "https://d.example"}}
    await scene.client.accepted(scene.session, push)
    await release(scene.client, scene.session)
    assert "does not declare the canvas 'chart' any more" in await scene.client.rejected(scene.session, push)
    [left] = (await scene.state())["openCanvases"]
    assert (left["availability"], "url" in left) == ("stale", False)
    assert [one["canvasId"] for one in scene.agent.list()] == ["board"]
    assert (await failure(scene.agent.open("chart", "c2"))).code == "canvas_not_found"


@requirement("canvas:bridge:caller-waits")
async def test_a_call_waits_for_its_own_answer_only(scene: Scene) -> None:
    await claim(scene.client, scene.session, canvasProviders=[CHART])
    first = asyncio.create_task(scene.agent.open("chart", "c1"))
    second = asyncio.create_task(scene.agent.open("chart", "c2"))
    one, two = await request_for(scene.client, "c1"), await request_for(scene.client, "c2")
    await complete(scene.client, scene.session, two, result={"kind": "open", "title": "two"})
    assert (await second)["title"] == "two"
    assert not first.done()
    await complete(scene.client, scene.session, one, error={"code": "busy", "message": "not now"})
    assert (await failure(first)).code == "busy"


@requirement("canvas:provider:client-gone", "canvas:provider:drop-makes-stale", "canvas:provider:drop-cancels-requests")
@requirement("canvas:provider:stale-invoke-fails")
async def test_when_the_client_leaves_its_canvases_go_stale_and_its_requests_end(scene: Scene) -> None:
    await claim(scene.client, scene.session, canvasProviders=[CHART])
    await scene.agent.open("board", "b1")
    opening = asyncio.create_task(scene.agent.open("chart", "c1"))
    await complete(scene.client, scene.session, await request_for(scene.client, "c1"))
    await opening
    invoking = asyncio.create_task(scene.agent.invoke("c1", "draw"))
    reopening = asyncio.create_task(scene.agent.open("chart", "c2"))
    await request_for(scene.watcher, "c1", "action")
    await request_for(scene.watcher, "c2")
    await scene.client.aclose()
    assert (await failure(invoking)).code == "canvas_provider_unavailable"
    assert (await failure(reopening)).code == "canvas_provider_unavailable"
    await scene.watcher.action("session/canvasInstanceUpdated")
    actions = canvas_actions(scene.watcher, scene.session)
    reasons = [action["reason"] for action in actions if "reason" in action]
    assert reasons == ["providerDisconnected"] * 2
    state = await scene.state()
    assert {one["instanceId"]: one["availability"] for one in state["openCanvases"]} == {"b1": "ready", "c1": "stale"}
    assert [one["canvasId"] for one in state["canvasRegistry"]] == ["board"]
    assert state["canvasRequests"] == []
    assert (await failure(scene.agent.invoke("c1", "draw"))).code == "canvas_provider_unavailable"
    await scene.agent.close("c1")
    assert [one["instanceId"] for one in scene.agent.list_open()] == ["b1"]


@requirement("canvas:provider:stale-until-republished", "canvas:state:input-kept")
async def test_a_client_that_is_back_gets_its_instances_again(scene: Scene) -> None:
    await claim(scene.client, scene.session, canvasProviders=[CHART])
    opening = asyncio.create_task(scene.agent.open("chart", "c1", input={"rows": 3}))
    await complete(scene.client, scene.session, await request_for(scene.client, "c1"))
    await opening
    await scene.client.aclose()
    await scene.watcher.action(lambda envelope: envelope["action"].get("changes") == {"availability": "stale"})
    back = await scene.bench.client(client_id=scene.client.client_id)
    await back.ask("subscribe", scene.session)
    await claim(back, scene.session)
    [instance] = (await scene.state())["openCanvases"]
    assert (instance["availability"], instance["input"]) == ("stale", {"rows": 3})
    await claim(back, scene.session, canvasProviders=[CHART])
    request = await request_for(back, "c1")
    assert request["input"] == {"rows": 3}
    assert (await scene.state())["openCanvases"][0]["availability"] == "stale"
    await complete(back, scene.session, request)
    await back.action("session/canvasInstanceOpened")
    assert (await scene.state())["openCanvases"][0]["availability"] == "ready"


@requirement("canvas:provider:stale-until-republished")
@pytest.mark.parametrize("answers", [True, False])
async def test_a_new_active_client_takes_over_what_a_client_that_left_had_open(scene: Scene, answers: bool) -> None:
    """The host asks it, and when that fails the agent can still try."""
    await claim(scene.client, scene.session, canvasProviders=[CHART])
    opening = asyncio.create_task(scene.agent.open("chart", "c1", input={"rows": 3}))
    await complete(scene.client, scene.session, await request_for(scene.client, "c1"))
    await opening
    await scene.client.aclose()
    await scene.watcher.action(lambda envelope: envelope["action"].get("changes") == {"availability": "stale"})
    new = await scene.bench.client(client_id="another")
    await new.ask("subscribe", scene.session)
    await claim(new, scene.session, canvasProviders=[CHART])
    request = await request_for(new, "c1")
    assert (request["input"], request["reopen"]) == ({"rows": 3}, True)
    assert request["target"] == {"kind": "activeClient", "clientId": "another"}
    if not answers:
        error = {"code": "not_mine", "message": "I know nothing of it."}
        refused = {"type": "session/canvasRequestCompleted", "requestId": request["requestId"], "error": error}
        await new.accepted(scene.session, refused)
        assert [one["availability"] for one in (await scene.state())["openCanvases"]] == ["stale"]
        before = len(new.received)
        opening = asyncio.create_task(scene.agent.open("chart", "c1"))
        created = await new.action("session/canvasRequestCreated", since=before)
        request = created["action"]["request"]
    await complete(new, scene.session, request)
    await new.action("session/canvasInstanceOpened")
    [instance] = (await scene.state())["openCanvases"]
    assert (instance["availability"], instance["extensionId"]) == ("ready", "client:another")
    assert (instance["renderer"], instance["input"]) == ({"clientId": "another"}, {"rows": 3})


async def test_a_client_that_takes_a_canvas_back_ends_its_requests(scene: Scene) -> None:
    await claim(scene.client, scene.session, canvasProviders=[CHART])
    opening = asyncio.create_task(scene.agent.open("chart", "c1"))
    await request_for(scene.client, "c1")
    await claim(scene.client, scene.session)
    assert (await failure(opening)).code == "canvas_provider_unavailable"
    assert (await scene.state())["canvasRequests"] == []


async def test_a_provider_that_leaves_right_after_its_answer_leaves_a_stale_instance(
    scene: Scene, canvases: Canvases, provider: PythonProvider, board: Board
) -> None:
    board.hold = asyncio.Event()
    opening = asyncio.create_task(scene.agent.open("board", "b1"))
    request = await request_for(scene.watcher, "b1")
    done = session_canvas_request_completed(request_id=request["requestId"], result={"kind": "open"})
    scene.bench.host.services.dispatch(scene.session, done)
    canvases.remove_provider(provider)
    assert (await opening)["availability"] == "stale"


async def test_a_provider_that_leaves_right_after_its_answer_and_returns_is_asked_again(
    scene: Scene, canvases: Canvases, provider: PythonProvider, board: Board
) -> None:
    board.hold = asyncio.Event()
    opening = asyncio.create_task(scene.agent.open("board", "b1"))
    request = await request_for(scene.watcher, "b1")
    done = session_canvas_request_completed(request_id=request["requestId"], result={"kind": "open"})
    scene.bench.host.services.dispatch(scene.session, done)
    board.hold = None
    canvases.remove_provider(provider)
    canvases.add_provider(provider)
    assert (await opening)["availability"] == "stale"
    await until(lambda: scene.agent.list_open()[0]["availability"] == "ready")
    assert board.calls[-1][1]["reopen"] is True


# -- renderers ----------------------------------------------------------------------------------------------------


@requirement("canvas:bridge:host-capability-flag", "canvas:agent:capabilities-changed")
async def test_providers_and_agents_know_whether_somebody_can_show_canvases(scene: Scene, board: Board) -> None:
    heard: list[tuple[str, Json]] = []
    scene.agent.subscribe(lambda event, data: heard.append((event, data)))
    flags: list[bool] = []

    async def flag() -> None:
        await scene.agent.open("board", "b1")
        flags.append(board.calls[-1][1]["host"]["capabilities"]["canvases"])

    await flag()
    await claim(scene.client, scene.session, canvasProviders=[CHART])
    await flag()
    await claim(scene.client, scene.session, canRenderCanvases=True)
    await flag()
    await release(scene.client, scene.session)
    await flag()
    assert flags == [False, False, True, False]
    changes = [data for event, data in heard if event == "capabilities.changed"]
    assert changes == [{"ui": {"canvases": True}}, {"ui": {"canvases": False}}]


@requirement("canvas:state:renderer-optional", "canvas:roles:host-may-pin", "canvas:client:render-hint-routing")
@requirement("canvas:roles:server-canvas-any-capable-client")
async def test_the_active_client_is_pinned_only_while_it_can_render(scene: Scene) -> None:
    await claim(scene.client, scene.session, canvasProviders=[CHART])
    await scene.agent.open("board", "b1")
    await claim(scene.client, scene.session, canvasProviders=[CHART], canRenderCanvases=True)
    await scene.agent.open("board", "b2")
    instances = {one["instanceId"]: one for one in (await scene.state())["openCanvases"]}
    assert "renderer" not in instances["b1"]
    assert instances["b2"]["renderer"] == {"clientId": scene.client.client_id}
    close = {"type": "session/canvasInstanceCloseRequested"}
    await scene.watcher.accepted(scene.session, {**close, "instanceId": "b1"})
    assert await scene.watcher.rejected(scene.session, {**close, "instanceId": "b2"})


@requirement("canvas:action:close-requested-starts-close", "canvas:validate:close-by-other-than-renderer")
@requirement("canvas:validate:close-unknown-instance")
async def test_the_renderers_close_button_closes_the_instance(scene: Scene, board: Board) -> None:
    await claim(scene.client, scene.session, canRenderCanvases=True)
    await scene.agent.open("board", "b1")
    close = {"type": "session/canvasInstanceCloseRequested", "instanceId": "b1"}
    assert await scene.watcher.rejected(scene.session, close)
    before = await scene.state()
    await scene.watcher.accepted(scene.session, {**close, "instanceId": "unknown"})
    assert (await scene.state())["openCanvases"] == before["openCanvases"]
    await scene.client.accepted(scene.session, close)
    await scene.client.action("session/canvasInstanceClosed")
    assert board.verbs() == ["open b1", "close b1"]


async def test_a_close_button_that_the_provider_ignores_leaves_the_instance(scene: Scene, board: Board) -> None:
    await scene.agent.open("board", "b1")
    board.closing = RuntimeError("jammed")
    await scene.client.accepted(scene.session, {"type": "session/canvasInstanceCloseRequested", "instanceId": "b1"})
    await scene.watcher.action(lambda envelope: "error" in envelope["action"])
    assert [one["instanceId"] for one in (await scene.state())["openCanvases"]] == ["b1"]


async def test_when_the_renderer_vanishes_others_may_show_and_close_what_it_showed(scene: Scene, board: Board) -> None:
    await claim(scene.client, scene.session, canRenderCanvases=True, canvasProviders=[CHART])
    await scene.agent.open("board", "b1")
    opening = asyncio.create_task(scene.agent.open("chart", "c1"))
    await complete(scene.client, scene.session, await request_for(scene.client, "c1"))
    await opening
    await scene.client.aclose()
    await scene.watcher.action(lambda envelope: _is_unpinned(envelope["action"], "b1"))
    instances = {one["instanceId"]: one for one in (await scene.state())["openCanvases"]}
    assert (instances["b1"]["availability"], "renderer" in instances["b1"]) == ("ready", False)
    assert instances["c1"]["renderer"] == {"clientId": scene.client.client_id}  # Its own: still its own.
    await scene.watcher.accepted(scene.session, {"type": "session/canvasInstanceCloseRequested", "instanceId": "b1"})
    await scene.watcher.action("session/canvasInstanceClosed")
    assert board.verbs() == ["open b1", "close b1"]


def _is_unpinned(action: Json, instance_id: str) -> bool:
    instance = action.get("instance", {})
    return instance.get("instanceId") == instance_id and "renderer" not in instance
