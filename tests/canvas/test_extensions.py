from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.canvas import Canvases, ExtensionProcess, ExtensionSocket, canvas
from ahpkit.canvas.author import Extension, connect_socket
from ahpkit.canvas.extension_protocol import ExtensionRefused
from ahpkit.canvas.extensions import serve_extension
from ahpkit.canvas.provider import ProviderSource
from ahpkit.host.agent import CanvasRuntime
from ahpkit.transports.memory import MemoryTransport, memory_pair
from ahpkit.wire.errors import RpcError
from support import board_extension, requirement
from support.bench import Bench
from support.canvases import CHART, EXTENSION, Board, board_provider, canvas_actions, failure, runtime, session_id
from support.raw_client import Json, RawClient
from support.waiting import BOUND, is_alive, until


class Line:
    """The extension's end of a connection, message by message."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport

    async def receive(self) -> Json:
        async with asyncio.timeout(BOUND):
            return json.loads(await self.transport.receive())

    def send(self, **message: Any) -> None:
        self.transport.write(self.transport.frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def hello(self, *canvases: Json, **extra: Any) -> Json:
        request = await self.receive()
        result = {"extensionId": "example.raw", "canvases": list(canvases), **extra}
        self.send(id=request["id"], result=result)
        return request


@pytest.fixture
def canvases() -> Canvases:
    return Canvases(timeout=BOUND)


@pytest.fixture
async def line(bench: Bench, canvases: Canvases) -> AsyncGenerator[Line]:
    ours, theirs = memory_pair()
    serving = asyncio.create_task(serve_extension(theirs, canvases))
    yield Line(ours)
    await ours.aclose()
    await asyncio.wait([serving], timeout=BOUND)
    if serving.done() and not serving.cancelled():
        serving.exception()


async def test_the_host_says_hello_first(line: Line, canvases: Canvases) -> None:
    request = await line.hello(CHART, extensionName="Raw")
    assert request["method"] == "initialize"
    assert request["params"]["host"] == {"capabilities": {"canvases": True}}
    assert request["params"]["hostInfo"]["name"] == "ahpkit"
    await until(lambda: canvases._providers)  # pyright: ignore[reportPrivateUsage]  # Who provides is not public.


async def test_calls_carry_what_the_proposal_says_and_answers_come_back(bench: Bench, line: Line) -> None:
    await line.hello(CHART, extensionName="Raw")
    client = await bench.client()
    directory = bench.config.default_directory.as_uri()
    session, chat = await bench.session(client, workingDirectory=directory)
    agent = await runtime(bench, client, chat)
    opening = asyncio.create_task(agent.open("chart", "c1", input={"rows": 2}))
    request = await line.receive()
    assert request["method"] == "canvas.open"
    context = {
        "sessionId": session_id(session),
        "extensionId": "example.raw",
        "canvasId": "chart",
        "instanceId": "c1",
        "host": {"capabilities": {"canvases": False}},
        "session": {"workingDirectory": directory},
    }
    assert request["params"] == {**context, "input": {"rows": 2}}
    line.send(id=request["id"], result={"url": "https://c.example", "extra": "ignored"})
    assert (await opening)["url"] == "https://c.example"
    invoking = asyncio.create_task(agent.invoke("c1", "draw", [1]))
    request = await line.receive()
    assert (request["method"], request["params"]) == (
        "canvas.action.invoke",
        {**context, "actionName": "draw", "input": [1]},
    )
    line.send(id=request["id"], result={"drawn": 1})
    assert await invoking == {"drawn": 1}
    closing = asyncio.create_task(agent.close("c1"))
    request = await line.receive()
    assert (request["method"], request["params"]) == ("canvas.close", context)
    line.send(id=request["id"], result=None)
    await closing


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"error": {"code": -32050, "message": "locked", "data": {"code": "locked"}}}, "locked"),
        ({"error": {"code": -32601, "message": "what?"}}, "canvas_action_no_handler"),
        ({"error": {"code": -32000, "message": "no"}}, "canvas_provider_error"),
        ({"error": {"code": -32000, "message": "no", "data": {"code": 7}}}, "canvas_provider_error"),
        ({"error": {"code": -32000, "message": "no", "data": "x"}}, "canvas_provider_error"),
        ({"result": ["no object"]}, "canvas_provider_error"),
        ({"result": {"url": ["https://x.example"]}}, "canvas_provider_error"),
        ({"result": {"title": "x" * 600}}, "canvas_provider_error"),
        ({"result": None}, "canvas_provider_error"),
    ],
)
async def test_errors_have_codes_and_what_is_no_answer_is_an_error(
    bench: Bench, line: Line, answer: Json, code: str
) -> None:
    await line.hello(CHART)
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    opening = asyncio.create_task(agent.open("chart", "c1"))
    line.send(id=(await line.receive())["id"], **answer)
    assert (await failure(opening)).code == code
    await bench.host.services.durable()
    assert (await bench.state(client, session))["canvasRequests"] == []


async def test_the_code_of_an_extension_is_not_read_as_one_of_ahp(line: Line, canvases: Canvases) -> None:
    """Extensions choose their own codes: -32002 would be an unknown provider in AHP."""
    await line.hello(CHART)
    providers = canvases._providers  # pyright: ignore[reportPrivateUsage]  # Who provides is not public.
    await until(lambda: providers)
    [provider] = providers.values()
    opening = asyncio.create_task(provider.open({"canvasId": "chart", "instanceId": "c1"}))
    line.send(id=(await line.receive())["id"], error={"code": -32002, "message": "no such board"})
    error = await failure(opening)
    assert (error.code, error.message) == ("canvas_provider_error", "no such board")
    assert type(error.__cause__) is RpcError


async def test_a_second_answer_changes_nothing(bench: Bench, line: Line) -> None:
    await line.hello(CHART)
    client = await bench.client()
    _, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    opening = asyncio.create_task(agent.open("chart", "c1"))
    request = await line.receive()
    line.send(id=request["id"], result={"title": "first"})
    line.send(id=request["id"], result={"title": "second"})
    assert (await opening)["title"] == "first"
    assert agent.list_open()[0]["title"] == "first"


async def test_an_answer_with_both_result_and_error_fails_the_request_at_once(bench: Bench, line: Line) -> None:
    await line.hello(CHART)
    client = await bench.client()
    _, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    opening = asyncio.create_task(agent.open("chart", "c1"))
    line.send(id=(await line.receive())["id"], result={"title": "no"}, error={"code": 1, "message": "no"})
    assert "cannot be read" in str(await failure(opening))
    assert agent.list_open() == []


@requirement("canvas:provider:drop-cancels-requests", "canvas:provider:drop-makes-stale")
@requirement("canvas:registry:on-join-and-leave")
async def test_a_connection_that_ends_takes_its_declarations_and_requests_along(bench: Bench, line: Line) -> None:
    await line.hello(CHART)
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    opening = asyncio.create_task(agent.open("chart", "c1"))
    line.send(id=(await line.receive())["id"], result={})
    await opening
    waiting = asyncio.create_task(agent.invoke("c1", "draw"))
    await line.receive()
    line.transport.abort()
    assert (await failure(waiting)).code == "canvas_provider_unavailable"
    await client.action("session/canvasInstanceUpdated")
    reasons = [action["reason"] for action in canvas_actions(client, session) if "reason" in action]
    assert reasons == ["providerDisconnected"]
    await bench.host.services.durable()
    state = await bench.state(client, session)
    assert (state["canvasRegistry"], state["canvasRequests"]) == ([], [])
    assert [one["availability"] for one in state["openCanvases"]] == ["stale"]


async def test_news_of_an_extension(bench: Bench, line: Line) -> None:
    await line.hello(CHART)
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    opening = asyncio.create_task(agent.open("chart", "c1"))
    line.send(id=(await line.receive())["id"], result={"title": "A"})
    await opening
    ids = {"sessionId": session_id(session), "instanceId": "c1"}
    line.send(method="canvas.updated", params={**ids, "title": "B", "status": None, "renderer": {"clientId": "x"}})
    line.send(method="canvas.updated", params={**ids, "instanceId": 7, "title": "C"})
    line.send(method="canvas.updated", params={"title": "C"})
    line.send(method="canvas.registry_changed", params={"canvases": "nonsense"})
    line.send(method="canvas.registry_changed", params={})
    line.send(method="something.else", params={})
    line.send(id=1, method="session.canvas.open", params={})
    assert (await line.receive())["error"]["code"] == -32601
    line.send(method="canvas.registry_changed", params={"canvases": [CHART, {**CHART, "canvasId": "second"}]})
    await client.action(lambda envelope: len(envelope["action"].get("canvases", ())) == 2)
    changes = [one["changes"] for one in canvas_actions(client, session) if "changes" in one]
    assert changes == [{"title": "B"}]


async def test_an_extension_that_never_stops_talking_is_dropped(
    line: Line, canvases: Canvases, caplog: pytest.LogCaptureFixture
) -> None:
    await line.hello(CHART)
    for _ in range(1_200):
        line.send(method="canvas.updated", params={"sessionId": "s", "instanceId": "i", "title": "x"})
    await until(lambda: "pushes more than" in caplog.text)
    await until(lambda: not canvases._providers)  # pyright: ignore[reportPrivateUsage]  # Who provides is not public.


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ({"result": 7}, "not an object"),
        ({"result": {"canvases": []}}, "extensionId: missing"),
        ({"result": {"extensionId": "", "canvases": []}}, "extensionId: expected"),
        ({"result": {"extensionId": "x" * 201}}, "extensionId: expected"),
        ({"result": {"extensionId": "client:me"}}, "that of a client"),
        ({"result": {"extensionId": "x", "extensionName": 7}}, "extensionName: expected"),
        ({"result": {"extensionId": "x", "canvases": [{"x": 1}]}}, "canvasId: missing"),
        ({"result": {"extensionId": "taken"}}, "'taken' already"),
        ({"error": {"code": -32601, "message": "what?"}}, "does not answer initialize: what?"),
    ],
)
async def test_an_extension_that_introduces_itself_badly_is_refused_and_told(
    bench: Bench, canvases: Canvases, answer: Json, word: str
) -> None:
    canvases.add_provider(board_provider(Board(), "taken"))
    ours, theirs = memory_pair()
    serving = asyncio.create_task(serve_extension(theirs, canvases))
    line = Line(ours)
    line.send(id=(await line.receive())["id"], **answer)
    refusal = await line.receive()
    assert refusal["method"] == "canvas.refused"
    assert word in refusal["params"]["message"]
    with pytest.raises(ExtensionRefused, match=word):
        await serving
    await ours.aclose()


async def test_an_extension_that_says_nothing_is_not_waited_for(canvases: Canvases) -> None:
    ours, theirs = memory_pair()
    with pytest.raises(ExtensionRefused, match="within"):
        await serve_extension(theirs, canvases, hello_timeout=0.01)
    await ours.aclose()
    ours, theirs = memory_pair()
    await ours.aclose()
    with pytest.raises(ExtensionRefused, match="left before"):
        await serve_extension(theirs, canvases)


async def test_a_default_id_is_for_those_that_name_none(bench: Bench, canvases: Canvases) -> None:
    ours, theirs = memory_pair()
    serving = asyncio.create_task(serve_extension(theirs, canvases, default_id="given"))
    line = Line(ours)
    await line.hello(extensionId=None)
    await until(lambda: "given" in canvases._providers)  # pyright: ignore[reportPrivateUsage]  # Who provides is not public.
    await ours.aclose()
    await serving
    assert not canvases._providers  # pyright: ignore[reportPrivateUsage]  # Who provides is not public.


# -- the author's side --------------------------------------------------------------------------------------------


async def test_both_sides_understand_each_other(bench: Bench, canvases: Canvases) -> None:
    board = Board()
    made = canvas("board", display_name="Board", description="A board")(board)
    ours, theirs = memory_pair()
    extension = Extension("example.boards", [made], name="Boards")
    sides = [asyncio.create_task(serve_extension(theirs, canvases)), asyncio.create_task(extension.serve(ours))]
    client = await bench.client()
    session, chat = await bench.session(client)
    agent = await runtime(bench, client, chat)
    await until(lambda: agent.list())
    assert agent.list()[0]["extensionName"] == "Boards"
    assert (await agent.open("board", "b1", input={"title": "A"}))["title"] == "A"
    assert await agent.invoke("b1", "add", {"card": 1}) == {"cards": [1]}
    assert (await failure(agent.invoke("b1", "fail"))).code == "locked"
    crashed = await failure(agent.invoke("b1", "crash"))
    assert crashed.code == "canvas_provider_error"
    assert "secret" not in crashed.message
    made.push(session_id(session), "b1", status="pushed")
    await client.action(lambda envelope: envelope["action"].get("changes") == {"status": "pushed"})
    made.action("later")(board.echo)
    await until(lambda: "later" in str(agent.list()))
    assert await agent.invoke("b1", "later", "x") == "x"
    await agent.close("b1")
    assert board.verbs() == ["open b1", "add b1", "close b1"]
    await ours.aclose()
    await asyncio.gather(*sides)
    made.push(session_id(session), "b1", status="nobody listens")


async def test_a_refused_extension_learns_why(bench: Bench, canvases: Canvases) -> None:
    canvases.add_provider(board_provider(Board(), "taken"))
    ours, theirs = memory_pair()
    serving = asyncio.create_task(serve_extension(theirs, canvases))
    with pytest.raises(ExtensionRefused, match="'taken' already"):
        await Extension("taken", []).serve(ours)
    with pytest.raises(ExtensionRefused):
        await serving


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("canvas.open", {"canvasId": "unknown"}, -32050),
        ("canvas.open", {}, -32050),
        ("session.canvas.list", {}, -32601),
    ],
)
async def test_an_extension_answers_what_it_cannot_serve(method: str, params: Json, code: int) -> None:
    ours, theirs = memory_pair()
    serving = asyncio.create_task(Extension("example", []).serve(theirs))
    line = Line(ours)
    line.send(id=1, method=method, params=params)
    assert (await line.receive())["error"]["code"] == code
    await ours.aclose()
    await serving


PROGRAM = [sys.executable, "-W", "error", str(Path(board_extension.__file__))]


@asynccontextmanager
async def host(directory: Path, *sources: ProviderSource) -> AsyncGenerator[tuple[Bench, RawClient, CanvasRuntime]]:
    bench = Bench(directory)
    bench.features = [Canvases(sources=sources)]
    await bench.start()
    try:
        client = await bench.client()
        session, chat = await bench.session(client)
        await client.ask("subscribe", session)
        yield bench, client, await runtime(bench, client, chat)
    finally:
        await bench.stop()


def process(*command: str, env: Mapping[str, str] | None = None) -> ExtensionProcess:
    return ExtensionProcess(command or PROGRAM, longest_pause=0.05, env=env)


async def declared(agent: CanvasRuntime) -> None:
    await until(agent.list)


async def test_a_process_serves_and_ends_with_everything_it_started(tmp_path: Path) -> None:
    async with host(tmp_path, process()) as (_, client, agent):
        await declared(agent)
        assert agent.list()[0]["extensionId"] == EXTENSION
        opened = await agent.open("board", "b1", input={"title": "A"})
        assert opened["url"] == "https://board.example/b1"
        assert await agent.invoke("b1", "add", {"card": "x"}) == {"cards": ["x"]}
        await client.action(lambda envelope: envelope["action"].get("changes") == {"status": "has x"})
        assert (await failure(agent.invoke("b1", "fail"))).code == "locked"
        assert "secret" not in (await failure(agent.invoke("b1", "crash"))).message
        await agent.invoke("b1", "grow")
        await until(lambda: "grown1" in str(agent.list()))
        pids: list[int] = await agent.invoke("b1", "pid")
        assert all(map(is_alive, pids))
    await until(lambda: not any(map(is_alive, pids)))


async def test_a_process_that_dies_is_started_again_and_its_instances_come_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with host(tmp_path, process()) as (_, client, agent):
        await declared(agent)
        await agent.open("board", "b1", input={"title": "kept"})
        assert (await failure(agent.invoke("b1", "die"))).code == "canvas_provider_unavailable"
        cancelled = await client.action("session/canvasRequestCancelled")
        assert cancelled["action"]["reason"] == "providerDisconnected"
        await client.action(
            lambda envelope: envelope["action"].get("changes") == {"availability": "stale", "url": None}
        )
        await client.action(lambda envelope: envelope["action"].get("instance", {}).get("status") == "again")
        told: Any = await agent.invoke("b1", "told")
        assert (told["reopen"], told["input"]) == (True, {"title": "kept"})
    assert "out of cards" in caplog.text


async def test_a_process_that_dies_while_opening_leaves_no_request(tmp_path: Path) -> None:
    async with host(tmp_path, process()) as (_, client, agent):
        await declared(agent)
        error = await failure(agent.open("board", "b1", input={"die": True}))
        assert error.code == "canvas_provider_unavailable"
        assert agent.list_open() == []
        cancelled = await client.action("session/canvasRequestCancelled")
        assert cancelled["action"]["reason"] == "providerDisconnected"
        await declared(agent)
        await agent.open("board", "b1")


async def test_thirty_megabytes_of_a_process_are_no_answer(tmp_path: Path) -> None:
    async with host(tmp_path, process()) as (_, client, agent):
        await declared(agent)
        await agent.open("board", "b1")
        async with asyncio.timeout(BOUND):
            error = await failure(agent.invoke("b1", "huge", 30_000_000))
        assert error.code == "canvas_provider_error"
        assert "at most" in error.message
        assert await agent.invoke("b1", "add", {"card": 1}) == {"cards": [1]}
        assert sum(len(str(message)) for message in client.received) < 100_000


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/program"], "cannot be started: No such file"),
        ([sys.executable, "-c", "import sys; sys.exit('no cards left')"], "no cards left"),
        ([sys.executable, "-c", 'print(\'{"jsonrpc": "2.0", "id": 1, "result": 7}\'); input()'], "not an object"),
    ],
)
async def test_a_process_that_is_no_extension_is_tried_again_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, command: list[str], why: str
) -> None:
    async with host(tmp_path, process(*command)) as (_, _, agent):
        await until(lambda: caplog.text.count("starting again") >= 2)
        assert agent.list() == []
    assert why in caplog.text


async def test_of_two_processes_with_one_id_one_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with host(tmp_path, process(), process()) as (_, _, agent):
        await declared(agent)
        await until(lambda: "there is a canvas provider 'example.boards' already" in caplog.text)
        assert len(agent.list()) == 1
        await agent.open("board", "b1")


def test_a_command_is_split_like_in_a_shell_and_gives_a_lasting_id() -> None:
    one = ExtensionProcess("'/opt/my canvas/run' --flag 'a b'")
    assert one.command == ["/opt/my canvas/run", "--flag", "a b"]
    assert one.default_id == ExtensionProcess("'/opt/my canvas/run' --flag 'a b'").default_id
    assert one.default_id.startswith("run-")
    assert one.default_id != ExtensionProcess("run --flag").default_id
    with pytest.raises(ValueError, match="needs a command"):
        ExtensionProcess("  ")


async def test_a_process_over_the_socket_serves_until_it_goes_and_again_when_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "extensions.sock"
    async with host(tmp_path, ExtensionSocket(path)) as (_, client, agent):
        await until(path.exists)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for round in (1, 2):
            program = await asyncio.create_subprocess_exec(*PROGRAM, str(path))
            try:
                await declared(agent)
                await agent.open("board", f"b{round}")
            finally:
                program.kill()
                await program.wait()
            await until(lambda: not agent.list())
        assert [one["availability"] for one in agent.list_open()] == ["stale", "stale"]
        await client.action(lambda envelope: envelope["action"].get("instance", {}).get("status") == "again")
    assert not path.exists()


async def test_two_extensions_on_the_socket_with_one_id(tmp_path: Path) -> None:
    path = tmp_path / "extensions.sock"
    async with host(tmp_path, ExtensionSocket(path)) as (_, _, agent):
        await until(path.exists)
        async with connect_socket(path) as first, connect_socket(path) as second:
            serving = asyncio.create_task(Extension("same", [board_extension.Board]).serve(first))
            await declared(agent)
            with pytest.raises(ExtensionRefused, match="'same' already"):
                await Extension("same", []).serve(second)
            assert not serving.done()
        await serving


async def test_too_many_connections_are_turned_away(tmp_path: Path) -> None:
    path = tmp_path / "extensions.sock"
    async with host(tmp_path, ExtensionSocket(path, max_connections=1)):
        await until(path.exists)
        async with connect_socket(path) as first, connect_socket(path) as second:
            await first.receive()
            async with asyncio.timeout(BOUND):
                await Extension("late", []).serve(second)


async def test_a_socket_that_cannot_be_is_no_reason_not_to_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with host(tmp_path, ExtensionSocket(tmp_path / "nowhere" / "extensions.sock")) as (_, _, agent):
        await until(lambda: "canvas extensions cannot connect" in caplog.text)
        assert agent.list() == []


async def test_a_data_directory_with_a_long_name_has_a_socket_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / ("x" * 120) / "extensions.sock"
    path.parent.mkdir()
    async with host(tmp_path, ExtensionSocket(path)) as (_, _, agent):
        await until(path.exists)
        async with connect_socket(path) as transport:
            serving = asyncio.create_task(Extension("far", [board_extension.Board]).serve(transport))
            await declared(agent)
        await serving
    assert "cannot connect" not in caplog.text


async def test_an_extension_waits_for_its_host_to_come_back(tmp_path: Path) -> None:
    path = tmp_path / "extensions.sock"
    program = await asyncio.create_subprocess_exec(*PROGRAM, str(path), env=dict(os.environ))
    try:
        async with host(tmp_path, ExtensionSocket(path)) as (_, _, agent):
            await declared(agent)
        async with host(tmp_path, ExtensionSocket(path)) as (_, _, agent):
            await declared(agent)
    finally:
        program.kill()
        await program.wait()
