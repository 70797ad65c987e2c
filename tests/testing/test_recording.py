"""The recording stand-ins write down what an agent says and answer from their script."""

from __future__ import annotations

import asyncio

from ahpkit.host.agent import Chat, Command, Confirmation, InputAnswers, SubChat, ToolCall, ToolOutcome, Turn
from ahpkit.testing.recording import RecordingChat, RecordingTurn, user_message
from support.waiting import BOUND


async def test_the_stand_ins_fit_the_interfaces_that_agents_are_written_against() -> None:
    recording = RecordingTurn("hello")
    turn: Turn = recording
    chat: Chat = recording.chat
    call: ToolCall = recording.tool_call("look")
    subchat: SubChat = await recording.subchat("Helper", "help")
    assert (turn.prompt, chat.uri, call.id, subchat.uri) == (
        "hello",
        "ahp-chat:/recorded",
        "turn-tool-1",
        "ahp-chat:/turn-sub-1",
    )


def test_what_is_said_is_one_tuple_each_in_order() -> None:
    turn = RecordingTurn()
    turn.think("hm")
    turn.text("a")
    turn.text("b")
    turn.notice("careful", meta={"k": 1})
    turn.activity("waiting")
    turn.usage({"inputTokens": 1})
    assert turn.said == [
        ("think", "hm"),
        ("text", "a"),
        ("text", "b"),
        ("notice", "careful", {"meta": {"k": 1}}),
        ("activity", "waiting"),
        ("usage", {"inputTokens": 1}),
    ]
    assert turn.answer == "ab"
    assert turn.verbs() == ["think", "text", "text", "notice", "activity", "usage"]


async def test_a_tool_call_tells_what_it_was_asked_and_how_it_ended() -> None:
    turn = RecordingTurn(confirmations=[True])
    call = turn.tool_call("write", display_name="Write")
    call.input('{"a"')
    call.input(":1}")
    answer = await call.confirm(title="Write?", options=[{"id": "y", "label": "Yes", "kind": "approve"}], editable=True)
    call.complete(content=[{"type": "text", "text": "done"}])
    call.complete(success=False)
    assert answer == Confirmation(approved=True, tool_input='{"a":1}')
    assert turn.said == [
        ("tool_call", "turn-tool-1", "write", {"display_name": "Write"}),
        ("input", "turn-tool-1", '{"a"'),
        ("input", "turn-tool-1", ":1}"),
        ("confirm", "turn-tool-1", '{"a":1}', {"title": "Write?", "options": ["y"], "editable": True}),
        ("complete", "turn-tool-1", True, {"content": [{"type": "text", "text": "done"}]}),
    ]
    assert turn.tool_calls["turn-tool-1"].over


async def test_a_denied_call_is_over_and_ignores_what_follows() -> None:
    turn = RecordingTurn(confirmations=[False])
    call = turn.tool_call("write")
    assert not (await call.confirm(tool_input="{}")).approved
    call.running()
    call.complete()
    assert turn.verbs() == ["tool_call", "confirm"]


async def test_running_twice_is_said_once() -> None:
    turn = RecordingTurn()
    call = turn.tool_call("look")
    call.running(tool_input="{}")
    call.running()
    assert turn.said[1:] == [("running", "turn-tool-1", "{}")]


async def test_without_a_script_people_approve_clients_succeed_and_questions_are_cancelled() -> None:
    turn = RecordingTurn()
    assert (await turn.tool_call("a").confirm(tool_input="x")).approved
    assert (await turn.tool_call("b").run_by_client(tool_input="x")).success
    assert await turn.ask([{"id": "q", "kind": "text", "message": "?"}]) == InputAnswers("cancel")


async def test_scripted_answers_come_in_order() -> None:
    failed = ToolOutcome(success=False, error="no")
    turn = RecordingTurn(outcomes=[failed], answers=[InputAnswers("decline"), InputAnswers("accept")])
    assert await turn.tool_call("b").run_by_client(tool_input="") is failed
    assert [(await turn.ask([])).response for _ in range(2)] == ["decline", "accept"]


async def test_an_awaitable_answer_holds_the_agent() -> None:
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    turn = RecordingTurn(confirmations=[answer])
    asking = asyncio.ensure_future(turn.tool_call("a").confirm(tool_input=""))
    await asyncio.sleep(0)
    assert not asking.done()
    answer.set_result(False)
    async with asyncio.timeout(BOUND):
        assert not (await asking).approved


async def test_steering_is_taken_once() -> None:
    turn = RecordingTurn()
    turn.steer("left")
    turn.steer("right")
    assert turn.steering() == user_message("left")
    async with asyncio.timeout(BOUND):
        assert await turn.wait_steering() == user_message("right")
    assert turn.steering() is None


async def test_a_sub_chat_has_its_own_record_and_tells_how_it_was_left() -> None:
    turn = RecordingTurn()
    async with await turn.subchat("Helper", "help") as helper:
        helper.text("yes")
    assert turn.said == [("subchat", "Helper", "help")]
    assert turn.subchats[0].record.answer == "yes"
    assert (turn.subchats[0].ended, turn.subchats[0].error) == (True, None)


async def test_a_chat_writes_down_what_is_said_outside_turns() -> None:
    chat = RecordingChat(extension_results={"_x/ask": 42})
    chat.title("T")
    chat.commands([Command("help", "Help")])
    chat.remember({"k": 1})
    chat.meta("x", None)
    chat.extension_notification("_x/tell", {})
    assert await chat.extension_request("_x/ask", {"a": 1}) == 42
    assert chat.memory == {"k": 1}
    assert chat.said == [
        ("title", "T"),
        ("commands", ["help"]),
        ("remember", {"k": 1}),
        ("meta", "x", None),
        ("extension_notification", "_x/tell", {}),
        ("extension_request", "_x/ask", {"a": 1}),
    ]


def test_stored_and_attached_data_is_kept() -> None:
    turn = RecordingTurn()
    turn.attach(b"p", content_type="image/png")
    assert turn.store(b"x", content_type="text/plain") == "recorded:/1"
    assert turn.said == [("attach", b"p", "image/png"), ("store", b"x", "text/plain")]
