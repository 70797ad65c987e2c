"""Typed functions as tools: definitions and results."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Annotated, Any, Literal, TypedDict

import pytest

from ahpkit.client import Client, InMemoryPlugin, Session
from ahpkit.client.tools import Tool, ToolContext, ToolResult
from ahpkit.protocol.errors import NotFound
from ahpkit.protocol.meta_keys import AUTOMATIC
from ahpkit.testing.fake_host import FakeHost
from support import requirement
from support.clients import CHAT, SESSION, eventually, lose_connection, settled
from support.oldest import check_action

CONTEXT = ToolContext(session="s", chat="c", turn_id="t", tool_call_id="id", meta={}, _show=lambda content: None)


class Point(TypedDict):
    x: int
    y: int


@dataclasses.dataclass
class Box:
    corner: Point
    colour: Literal["red", "blue"] = "red"


def draw(box: Box, times: Annotated[int, "how often"] = 1, note: str | None = None) -> str:
    """Draw a box."""
    return f"{box.colour} at {box.corner['x']}, {times} times"


def test_a_definition_is_made_from_hints_and_docstring():
    definition = Tool(draw).definition
    schema: Any = definition.get("inputSchema")

    assert definition["name"] == "draw"
    assert definition.get("description") == "Draw a box."
    assert schema["type"] == "object"
    assert schema["required"] == ["box"]
    assert schema["properties"]["times"]["description"] == "how often"


def test_name_title_and_annotations_can_be_given():
    tool = Tool(draw, name="paint", title="Paint", annotations={"readOnlyHint": True})

    assert tool.name == "paint"
    assert tool.definition.get("title") == "Paint"
    assert tool.definition.get("annotations") == {"readOnlyHint": True}


async def test_arguments_are_converted_and_text_becomes_content():
    result = await Tool(draw).run('{"box": {"corner": {"x": 1, "y": 2}}, "times": 3}', CONTEXT)

    assert result == {
        "success": True,
        "pastTenseMessage": "Ran draw",
        "content": [{"type": "text", "text": "red at 1, 3 times"}],
    }


@pytest.mark.parametrize(
    ("tool_input", "said"),
    [("{", "input of draw"), ('{"box": 1}', "$.box"), ("{}", "box"), ('{"box": {}, "nonsense": 1}', "nonsense")],
)
async def test_bad_input_is_a_failed_result_that_says_where(tool_input: str, said: str):
    result = await Tool(draw).run(tool_input, CONTEXT)

    assert result["success"] is False
    assert said in result.get("error", {})["message"] or "$.box" in result.get("error", {})["message"]


async def test_a_tool_that_raises_is_a_failed_result():
    def explode() -> None:
        raise ValueError("boom")

    result = await Tool(explode).run("", CONTEXT)

    assert result["success"] is False
    assert result.get("error") == {"message": "ValueError: boom"}


@pytest.mark.parametrize(
    ("returned", "content", "structured"),
    [
        (None, None, None),
        ("", None, None),
        ({"a": 1}, [{"type": "text", "text": '{"a":1}'}], {"a": 1}),
        ([1, 2], [{"type": "text", "text": "[1,2]"}], None),
        ({"type": "text", "text": "hi"}, [{"type": "text", "text": "hi"}], None),
        ([{"type": "resource", "uri": "file:///x"}], [{"type": "resource", "uri": "file:///x"}], None),
        (ToolResult("done", structured={"n": 1}), [{"type": "text", "text": "done"}], {"n": 1}),
    ],
)
async def test_what_is_returned_becomes_content(returned: Any, content: Any, structured: Any):
    async def tool() -> Any:
        return returned

    result = await Tool(tool).run("", CONTEXT)

    assert result.get("content") == content
    assert result.get("structuredContent") == structured


async def test_a_result_can_say_that_it_failed_and_what_was_done():
    def tool() -> ToolResult:
        return ToolResult("no such file", success=False, message="Looked for the file")

    result = await Tool(tool).run("", CONTEXT)

    assert (result["success"], result["pastTenseMessage"]) == (False, "Looked for the file")


async def test_a_context_parameter_is_filled_and_not_part_of_the_schema():
    shown: list[Any] = []

    def tool(text: str, context: ToolContext) -> str:
        context.show(text)
        return context.tool_call_id

    context = dataclasses.replace(CONTEXT, _show=shown.append)
    result = await Tool(tool).run('{"text": "half"}', context)

    assert list(Tool(tool).definition.get("inputSchema", {})["properties"]) == ["text"]
    assert shown == [[{"type": "text", "text": "half"}]]
    assert result.get("content") == [{"type": "text", "text": "id"}]


class _AtOnce(ThreadPoolExecutor):
    """Every call is over before anybody can wait for it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        wait([future])
        return future


async def test_what_a_quick_tool_shows_comes_before_its_result():
    loop, order = asyncio.get_running_loop(), list[str]()

    def quick(context: ToolContext) -> str:
        context.show("half")
        return "done"

    loop.set_default_executor(_AtOnce())

    def show(content: list[Any]) -> None:
        loop.call_soon_threadsafe(order.append, "shown")

    context = dataclasses.replace(CONTEXT, _show=show)
    await Tool(quick).run("{}", context)
    order.append("result")
    assert order == ["shown", "result"]


@pytest.fixture
async def session(client: Client) -> Session:
    return await client.session(SESSION)


def say_it_again(text: str) -> str:
    return text


def begin(host: FakeHost, *, owner: str = "me", tool: str = "echo") -> None:
    """A turn with a call of `tool`, its input still being written."""
    host.emit(CHAT, {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "", "origin": {"kind": "user"}}})
    contributor = {"kind": "client", "clientId": owner}
    call(host, "Start", toolName=tool, displayName=tool, contributor=contributor)


def call(host: FakeHost, kind: str, **fields: Any) -> None:
    host.emit(CHAT, {"type": f"chat/toolCall{kind}", "turnId": "t", "toolCallId": "id", **fields})


def ready(host: FakeHost, tool_input: str = '{"text": "hi"}', **fields: Any) -> None:
    call(host, "Ready", invocationMessage="…", toolInput=tool_input, **fields)


def the_call(host: FakeHost) -> dict[str, Any]:
    return host.states[CHAT]["activeTurn"]["responseParts"][0]["toolCall"]


def dispatched(host: FakeHost, kind: str) -> list[dict[str, Any]]:
    actions = [params["action"] for params in host.sent("dispatchAction")]
    for action in actions:
        check_action(action)
    return [action for action in actions if action["type"] == f"chat/toolCall{kind}"]


@requirement("gen:tool:input-ref-edited")
async def test_an_input_that_is_a_reference_is_read_when_the_tool_runs(
    host: FakeHost, client: Client, session: Session
):
    texts = {"ahp-content:/x": '{"text": "as it was"}'}

    def read(params: dict[str, Any]) -> dict[str, Any]:
        if params["uri"] not in texts:
            raise NotFound("gone")
        return {"data": texts[params["uri"]], "encoding": "utf-8"}

    host.handlers["resourceRead"] = read
    client.tool(name="echo")(say_it_again)
    await session.claim().accepted()
    await session.chat()
    reference: Any = {"uri": "ahp-content:/x", "sizeHint": 10}
    begin(host)
    ready(host, reference, editable=True)
    await settled()
    assert host.sent("resourceRead") == []
    texts["ahp-content:/x"] = '{"text": "as somebody edited it"}'
    call(host, "Confirmed", approved=True, confirmed="user-action", editedToolInput=texts["ahp-content:/x"])
    await eventually(lambda: the_call(host)["status"] == "completed")
    assert the_call(host)["content"] == [{"type": "text", "text": "as somebody edited it"}]


async def test_an_input_that_cannot_be_read_is_a_failed_result(host: FakeHost, client: Client, session: Session):
    client.tool(name="echo")(say_it_again)
    await session.claim().accepted()
    await session.chat()
    gone: Any = {"uri": "ahp-content:/gone"}
    begin(host)
    ready(host, gone, confirmed="not-needed")
    await eventually(lambda: the_call(host)["status"] == "completed")
    assert the_call(host)["success"] is False
    assert "its input cannot be read" in the_call(host)["error"]["message"]


@requirement("client-tools:register:with-active-role", "client-tools:actions:claim-and-release")
async def test_tools_come_with_the_active_role_and_go_with_it(host: FakeHost, client: Client, session: Session):
    @client.tool
    def echo(text: str) -> str:
        "Say it again."
        return text

    await session.claim(display_name="Tests").accepted()
    assert session.is_active
    active = host.states[SESSION]["activeClient"]
    assert (active["clientId"], active["displayName"]) == ("me", "Tests")
    assert [(tool["name"], tool["description"]) for tool in active["tools"]] == [("echo", "Say it again.")]

    release = session.release()
    assert release is not None
    await release.accepted()
    assert release.action == {"type": "session/activeClientRemoved", "clientId": "me"}
    assert not session.is_active


@requirement("client-tools:actions:tools-changed-by-client", "client-tools:state:visible-to-all")
async def test_a_tool_that_comes_or_goes_later_is_published_without_claiming_again(
    host: FakeHost, client: Client, session: Session
):
    await session.claim().accepted()
    async with client.subscribe(SESSION) as everyone:
        client.tool(name="late")(lambda: None)
        await everyone.wait_for(lambda state: [tool["name"] for tool in state["activeClients"][0]["tools"]] == ["late"])
        client.remove_tool("late")
        await everyone.wait_for(lambda state: state["activeClients"][0]["tools"] == [])

    kinds = [params["action"]["type"] for params in host.sent("dispatchAction")]
    assert kinds == ["session/activeClientChanged"] * 3


@requirement(
    "client-tools:call:execution-starts-when-running",
    "client-tools:call:client-completes",
    "client-tools:call:ready-not-needed-runs",
    "client-tools:call:partial-input-visible",
)
async def test_a_tool_runs_when_its_call_runs_and_not_earlier(host: FakeHost, client: Client, session: Session):
    ran: list[str] = []

    @client.tool
    def echo(text: str) -> str:
        ran.append(text)
        return text.upper()

    await session.claim().accepted()
    chat = await session.chat()
    begin(host)
    call(host, "Delta", content='{"text": "h')
    await eventually(lambda: chat.confirmed.get("activeTurn", {}).get("responseParts"))
    await settled()
    assert not ran
    part: Any = chat.confirmed.get("activeTurn", {}).get("responseParts", [{}])[0]
    assert part["toolCall"]["partialInput"] == '{"text": "h'

    ready(host, confirmed="not-needed")

    await eventually(lambda: the_call(host)["status"] == "completed")
    assert ran == ["hi"]
    assert the_call(host)["content"] == [{"type": "text", "text": "HI"}]


@requirement("client-tools:call:execution-starts-when-running", "client-tools:call:ready-without-confirmed-asks")
async def test_a_tool_waits_for_the_approval(host: FakeHost, client: Client, session: Session):
    client.tool(name="echo")(say_it_again)
    await session.claim().accepted()
    begin(host)
    ready(host)
    await settled()
    assert the_call(host)["status"] == "pending-confirmation"
    assert dispatched(host, "Complete") == []

    call(host, "Confirmed", approved=True, confirmed="user-action")

    await eventually(lambda: the_call(host)["status"] == "completed")


@requirement("client-tools:call:uses-tool-input-from-state")
async def test_the_arguments_are_those_of_the_state_also_when_a_person_edited_them(
    host: FakeHost, client: Client, session: Session
):
    client.tool(name="echo")(say_it_again)
    await session.claim().accepted()
    begin(host)
    call(host, "Delta", content='{"text": "streamed"}')
    ready(host, '{"text": "closed"}')
    call(host, "Confirmed", approved=True, confirmed="user-action", editedToolInput='{"text": "edited"}')

    await eventually(lambda: the_call(host)["status"] == "completed")
    assert the_call(host)["content"] == [{"type": "text", "text": "edited"}]


@requirement("client-tools:call:only-owner-executes", "core:chat:contributor")
async def test_a_call_of_another_client_is_not_run_though_we_have_the_tool(
    host: FakeHost, client: Client, session: Session
):
    client.tool(name="echo")(say_it_again)
    await session.claim().accepted()
    begin(host, owner="somebody else")
    ready(host, confirmed="not-needed")
    await settled()

    assert dispatched(host, "Complete") == []
    assert the_call(host)["status"] == "running"


@requirement("client-tools:call:client-may-stream-content")
async def test_progress_is_shown_while_the_tool_runs(host: FakeHost, client: Client, session: Session):
    go_on = asyncio.Event()

    @client.tool
    async def echo(text: str, context: ToolContext) -> str:
        context.show("half")
        await go_on.wait()
        return text

    await session.claim().accepted()
    async with client.subscribe(CHAT) as everyone:
        begin(host)
        ready(host, confirmed="not-needed")

        def shows_progress(state: Any) -> bool:
            parts = state.get("activeTurn", {}).get("responseParts", ())
            return bool(parts) and parts[0]["toolCall"].get("content") == [{"type": "text", "text": "half"}]

        await everyone.wait_for(shows_progress)
        go_on.set()
        await eventually(lambda: the_call(host)["status"] == "completed")


async def test_progress_from_a_thread_comes_before_the_result(host: FakeHost, client: Client, session: Session):
    @client.tool
    def echo(text: str, context: ToolContext) -> str:
        context.show("from a thread")
        return text

    await session.claim().accepted()
    begin(host)
    ready(host, confirmed="not-needed")

    await eventually(lambda: the_call(host)["status"] == "completed")
    kinds = [params["action"]["type"] for params in host.sent("dispatchAction")]
    assert kinds[-2:] == ["chat/toolCallContentChanged", "chat/toolCallComplete"]


@requirement("client-tools:deny:unrecognized-tool", "client-tools:deny:reason-denied")
async def test_a_pending_call_of_a_tool_we_do_not_know_is_denied(host: FakeHost, client: Client, session: Session):
    await session.claim().accepted()
    begin(host, tool="gone")
    ready(host)

    await eventually(lambda: the_call(host)["status"] == "cancelled")
    decision = {"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "id", "approved": False}
    why = {"reason": "denied", "reasonMessage": "this client has no tool 'gone'", "_meta": {AUTOMATIC: True}}
    assert dispatched(host, "Confirmed") == [decision | why]


@requirement("client-tools:deny:unrecognized-tool")
async def test_a_running_call_of_a_tool_we_do_not_know_fails(host: FakeHost, client: Client, session: Session):
    await session.claim().accepted()
    begin(host, tool="gone")
    ready(host, confirmed="not-needed")

    await eventually(lambda: the_call(host)["status"] == "completed")
    assert the_call(host)["success"] is False
    assert "gone" in the_call(host)["error"]["message"]


async def test_a_cancelled_turn_stops_the_tool(host: FakeHost, client: Client, session: Session):
    stopped = asyncio.Event()
    started = asyncio.Event()

    @client.tool
    async def echo(text: str) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    await session.claim().accepted()
    begin(host)
    ready(host, confirmed="not-needed")
    await started.wait()
    host.emit(CHAT, {"type": "chat/turnCancelled", "turnId": "t"})

    await stopped.wait()
    assert dispatched(host, "Complete") == []


@pytest.mark.parametrize("log_lost", [False, True])
async def test_a_lost_connection_neither_stops_nor_repeats_a_tool(
    host: FakeHost, client: Client, session: Session, log_lost: bool
):
    ran: list[str] = []
    go_on = asyncio.Event()

    @client.tool
    async def echo(text: str) -> str:
        ran.append(text)
        await go_on.wait()
        return text

    await session.claim().accepted()
    begin(host)
    ready(host, confirmed="not-needed")
    await eventually(lambda: ran)
    if log_lost:
        host.forget()
    await lose_connection(host, client)
    go_on.set()

    await eventually(lambda: the_call(host)["status"] == "completed")
    assert ran == ["hi"]
    assert len(dispatched(host, "Complete")) == 1


async def test_calls_in_chats_that_appear_later_are_run(host: FakeHost, client: Client, session: Session):
    client.tool(name="echo")(say_it_again)
    await session.claim().accepted()
    host.states["ahp-chat:/sub"] = host.states[CHAT]
    host.emit(SESSION, {"type": "session/chatAdded", "summary": {**host.states[CHAT], "resource": "ahp-chat:/sub"}})
    await eventually(lambda: {"channel": "ahp-chat:/sub"} in host.sent("subscribe"))
    turn = {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "", "origin": {"kind": "user"}}}
    ids = {"turnId": "t", "toolCallId": "id"}
    contributor = {"kind": "client", "clientId": "me"}
    host.emit("ahp-chat:/sub", turn)
    host.emit(
        "ahp-chat:/sub",
        {"type": "chat/toolCallStart", **ids, "toolName": "echo", "displayName": "e", "contributor": contributor},
    )
    host.emit(
        "ahp-chat:/sub",
        {
            "type": "chat/toolCallReady",
            **ids,
            "invocationMessage": "",
            "toolInput": '{"text":"x"}',
            "confirmed": "setting",
        },
    )

    await eventually(lambda: dispatched(host, "Complete"))
    host.emit(SESSION, {"type": "session/chatRemoved", "chat": "ahp-chat:/sub"})
    await eventually(lambda: {"channel": "ahp-chat:/sub"} in host.sent("unsubscribe"))


async def test_two_handles_of_a_session_are_one_active_client(host: FakeHost, client: Client, session: Session):
    runs: list[str] = []

    @client.tool
    def echo(text: str) -> None:
        runs.append(text)

    other = await client.session(SESSION)
    await session.claim(display_name="Tests").accepted()
    await other.publish_plugin(InMemoryPlugin("notes", {"rules/a.md": "A."})).accepted()
    assert host.states[SESSION]["activeClient"]["displayName"] == "Tests"

    begin(host)
    ready(host, confirmed="not-needed")
    await eventually(lambda: dispatched(host, "Complete"))
    await settled()
    assert runs == ["hi"]

    await other.aclose()
    host.emit(
        CHAT,
        {
            "type": "chat/toolCallStart",
            "turnId": "t",
            "toolCallId": "2",
            "toolName": "echo",
            "displayName": "echo",
            "contributor": {"kind": "client", "clientId": "me"},
        },
    )
    host.emit(
        CHAT,
        {
            "type": "chat/toolCallReady",
            "turnId": "t",
            "toolCallId": "2",
            "invocationMessage": "…",
            "toolInput": '{"text": "again"}',
            "confirmed": "not-needed",
        },
    )
    await eventually(lambda: runs == ["hi", "again"])
