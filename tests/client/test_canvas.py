"""Client canvases: declared with the active role, answered once, errors with a code."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.client import CanvasError, Client, Session, canvas_action
from ahpkit.client.canvas import Canvas
from ahpkit.testing.fake_host import FakeHost
from support import requirement
from support.clients import SESSION, eventually, lose_connection, settled
from support.oldest import check_action

SCHEMA = {"type": "object", "x-anything": [1, None]}


class Board:
    """A canvas that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def open(self, request: Any) -> dict[str, str]:
        self.asked.append(request)
        return {"url": "https://board.example", "title": request["input"]["title"]}

    @canvas_action(description="Add a card", input_schema=SCHEMA)
    def add(self, request: Any) -> int:
        self.asked.append(request)
        return 7

    @canvas_action("clear-all")
    def clear(self, request: Any) -> None:
        raise CanvasError("the board is locked", code="locked")

    def close(self, request: Any) -> None:
        self.asked.append(request)


@pytest.fixture
def board(client: Client) -> Board:
    board = Board()
    client.canvas("board", display_name="Board", description="A shared board", input_schema=SCHEMA)(board)
    return board


@pytest.fixture
async def session(client: Client, board: Board) -> Session:
    session = await client.session(SESSION)
    await session.claim().accepted()
    return session


def ask(host: FakeHost, kind: str, *, client_id: str = "me", canvas: str = "board", **fields: Any) -> str:
    request_id = f"r{host.seq}"
    request = {
        "requestId": request_id,
        "kind": kind,
        "instanceId": "i",
        "canvasId": canvas,
        "extensionId": "client:me",
        "target": {"kind": "activeClient", "clientId": client_id},
        **fields,
    }
    host.emit(SESSION, {"type": "session/canvasRequestCreated", "request": request})
    return request_id


async def answer(host: FakeHost, request_id: str) -> dict[str, Any]:
    def found() -> list[dict[str, Any]]:
        actions = [params["action"] for params in host.sent("dispatchAction")]
        return [action for action in actions if action.get("requestId") == request_id]

    await eventually(found)
    await eventually(lambda: not host.states[SESSION]["canvasRequests"])
    (completed,) = found()
    check_action(completed)
    assert completed.pop("type") == "session/canvasRequestCompleted"
    assert completed.pop("requestId") == request_id
    return completed


@requirement(
    "canvas:client:one-entry-per-canvas",
    "canvas:client:declaration-shape",
    "canvas:client:not-tools",
    "canvas:state:schemas-opaque",
)
async def test_each_canvas_is_declared_with_the_role(host: FakeHost, client: Client, session: Session):
    client.canvas("plan", display_name="Plan", description="A plan")(object())
    await eventually(lambda: len(host.states[SESSION]["activeClient"]["canvasProviders"]) == 2)

    board, plan = host.states[SESSION]["activeClient"]["canvasProviders"]
    assert board == {
        "canvasId": "board",
        "displayName": "Board",
        "description": "A shared board",
        "inputSchema": SCHEMA,
        "actions": [{"name": "add", "description": "Add a card", "inputSchema": SCHEMA}, {"name": "clear-all"}],
    }
    assert plan == {"canvasId": "plan", "displayName": "Plan", "description": "A plan"}
    assert host.states[SESSION]["activeClient"]["tools"] == []


@requirement("canvas:client:published-with-active-client")
async def test_a_later_canvas_is_published_by_claiming_anew_with_the_full_list(
    host: FakeHost, client: Client, session: Session
):
    client.canvas("plan", display_name="Plan", description="A plan")(object())
    await eventually(lambda: len(host.sent("dispatchAction")) == 2)

    action = host.sent("dispatchAction")[-1]["action"]
    assert action["type"] == "session/activeClientChanged"
    assert [canvas["canvasId"] for canvas in action["activeClient"]["canvasProviders"]] == ["board", "plan"]


@requirement("canvas:action:result-shapes", "canvas:client:render-hint-means-accepts")
async def test_open_action_and_close_are_answered_in_kind(host: FakeHost, session: Session, board: Board):
    opened = await answer(host, ask(host, "open", input={"title": "T"}))
    acted = await answer(host, ask(host, "action", actionName="add", input={"card": 1}))
    closed = await answer(host, ask(host, "close"))

    assert opened == {"result": {"kind": "open", "url": "https://board.example", "title": "T"}}
    assert acted == {"result": {"kind": "action", "value": 7}}
    assert closed == {"result": {"kind": "close"}}
    assert [request["kind"] for request in board.asked] == ["open", "action", "close"]


@requirement("canvas:action:result-xor-error", "canvas:action:error-shape")
async def test_errors_have_a_code_and_no_result(host: FakeHost, session: Session, board: Board):
    locked = await answer(host, ask(host, "action", actionName="clear-all"))
    unknown = await answer(host, ask(host, "action", actionName="nonsense"))
    foreign = await answer(host, ask(host, "open", canvas="not ours"))
    broken = await answer(host, ask(host, "open"))  # No input: the handler raises KeyError.
    nonsense = await answer(host, ask(host, "open", input={"title": 7}))

    assert locked == {"error": {"code": "locked", "message": "the board is locked"}}
    assert unknown["error"]["code"] == "canvas_action_no_handler"
    assert foreign["error"]["code"] == "canvas_provider_unavailable"
    assert broken["error"] == {"code": "canvas_provider_error", "message": "the provider failed: KeyError"}
    assert nonsense["error"]["code"] == "canvas_provider_error"
    assert all("result" not in completed for completed in (locked, unknown, foreign, broken, nonsense))


@requirement("canvas:roles:provider-answers")
async def test_requests_for_others_are_left_alone(host: FakeHost, session: Session, board: Board):
    ask(host, "open", client_id="somebody else", input={"title": ""})
    ask(host, "open", target={"kind": "server"}, input={"title": ""})
    await settled()

    assert board.asked == []


@pytest.mark.parametrize("log_lost", [False, True])
async def test_a_request_is_answered_once_over_a_lost_connection(
    host: FakeHost, client: Client, session: Session, log_lost: bool
):
    go_on, asked = asyncio.Event(), list[Any]()

    class Slow:
        async def open(self, request: Any) -> None:
            asked.append(request)
            await go_on.wait()

    client.canvas("slow", display_name="Slow", description="Slow")(Slow())
    request_id = ask(host, "open", canvas="slow")
    await eventually(lambda: asked)
    if log_lost:
        host.forget()
    await lose_connection(host, client)
    go_on.set()

    assert await answer(host, request_id) == {"result": {"kind": "open"}}
    assert len(asked) == 1


async def test_a_canvas_of_functions_that_grows_is_published_anew(host: FakeHost, client: Client, session: Session):
    @client.canvas("plan", display_name="Plan", description="A plan")
    def plan(request: Any) -> dict[str, str]:
        return {"title": request["instanceId"]}

    @plan.action("tick")
    def tick(request: Any) -> str:
        return "ticked"

    opened = await answer(host, ask(host, "open", canvas="plan"))
    acted = await answer(host, ask(host, "action", canvas="plan", actionName="tick"))

    assert opened == {"result": {"kind": "open", "title": "i"}}
    assert acted == {"result": {"kind": "action", "value": "ticked"}}
    assert host.states[SESSION]["activeClient"]["canvasProviders"][-1]["actions"] == [{"name": "tick"}]
    assert tick({}) == "ticked"


async def test_a_canvas_made_elsewhere_can_be_offered(host: FakeHost, client: Client, session: Session):
    made = Canvas("x", object(), display_name="X", description="x")
    assert client.add_canvas(made) is made

    assert await answer(host, ask(host, "open", canvas="x")) == {"result": {"kind": "open"}}
    assert await answer(host, ask(host, "close", canvas="x")) == {"result": {"kind": "close"}}
    made.push("s", "i", title="new")  # Nobody hears of it, and nothing breaks: the same canvas works everywhere.


async def test_a_handler_is_told_what_a_provider_of_the_host_is_told(host: FakeHost, session: Session, board: Board):
    await answer(host, ask(host, "open", input={"title": "T"}))
    opened = {"instanceId": "i", "canvasId": "board", "extensionId": "client:me", "availability": "ready"}
    host.emit(SESSION, {"type": "session/canvasInstanceOpened", "instance": opened})
    await answer(host, ask(host, "open", input={"title": "T"}))
    await answer(host, ask(host, "close"))

    assert [request.get("reopen", False) for request in board.asked] == [False, True, False]
    for request in board.asked:
        assert request["sessionId"] == "s"
        assert request["host"] == {"capabilities": {"canvases": False}}
        assert set(request) >= {"instanceId", "canvasId", "extensionId", "session"}


@requirement("canvas:compat:unknown-actions-ignored")
async def test_an_action_that_nobody_knows_changes_nothing_and_the_next_one_counts(host: FakeHost, session: Session):
    before = session.state
    host.emit(SESSION, {"type": "session/canvasFutureThing", "instanceId": "a", "instance": {"instanceId": "a"}})
    await settled()
    assert session.state == before
    host.emit(SESSION, {"type": "session/titleChanged", "title": "later"})
    await eventually(lambda: session.state["title"] == "later")
    assert {key for key, value in session.state.items() if value != before.get(key)} == {"title", "chats"}


@requirement("canvas:compat:host-without-canvas")
async def test_without_canvas_state_there_is_nothing_to_answer_and_all_else_works(
    host: FakeHost, session: Session, board: Board
):
    await session.rename("works").accepted()

    assert "canvasRequests" not in session.state
    assert session.state.get("openCanvases", []) == []
    assert board.asked == []


@requirement("canvas:surface:no-initialize-flag")
async def test_canvases_change_nothing_in_the_handshake(host: FakeHost):
    async with Client(host.dial, client_id="me"):
        pass
    provider = Client(host.dial, client_id="me")
    provider.canvas("x", display_name="X", description="x")(Board())
    async with provider:
        pass
    plain, with_canvases = host.sent("initialize")
    assert with_canvases == plain
