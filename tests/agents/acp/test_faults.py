"""Agents that misbehave: each leaves a clear state, disturbs no other chat, and leaves nothing running."""

import asyncio
import json
import os
import signal
from typing import Any

import pytest

from ahpkit.agents.acp.connection import EXITED
from ahpkit.host.agent import AgentError
from ahpkit.testing.recording import RecordingTurn
from support.scripted_acp import Scripted
from support.waiting import until


async def works(scripted: Scripted, opened: Any, chat: Any) -> bool:
    """A further turn of the same chat."""
    turn = RecordingTurn("still there?", chat=chat)
    await opened.run(turn)
    return turn.answer == "You said: still there?"


async def test_lines_that_are_no_messages_are_skipped(scripted: Scripted) -> None:
    noise = ["Loading…", "[1, 2]", "null", '"text"', "", "\x00\x01", "{not json", '{"jsonrpc": "2.0"}', '{"id": 99}']
    turn = await scripted.run({"text": "a"}, *({"raw": line} for line in noise), {"text": "b"})

    assert turn.answer == "ab"


async def test_messages_with_the_wrong_shapes_are_survived(scripted: Scripted) -> None:
    wrong: list[Any] = [None, 7, "x", [], {"sessionUpdate": 5}, {"sessionUpdate": "agent_message_chunk", "content": 3}]
    notes = [{"notify": "session/update", "params": {"sessionId": "{session}", "update": update}} for update in wrong]
    requests = [
        {"request": "session/request_permission", "params": {"toolCall": 5, "options": "x"}},
        {"request": "elicitation/create", "params": {"requestedSchema": 5}},
        {"request": "fs/read_text_file", "params": {"path": 5}},
    ]
    turn = await scripted.run({"text": "a"}, *notes, *requests, {"text": "b"})

    assert turn.answer == "ab"
    assert len(scripted.answers()) == 3


async def test_a_flood_on_stderr_holds_nothing_up(scripted: Scripted) -> None:
    turn = await scripted.run({"text": "a"}, {"stderr": "x" * 1000 + "\n", "times": 3000}, {"text": "b"})

    assert turn.answer == "ab"


async def test_a_flood_on_stderr_before_the_first_answer_holds_nothing_up(scripted: Scripted) -> None:
    methods = {"initialize": [{"stderr": "x" * 1000 + "\n", "times": 1000}]}

    assert (await scripted.run({"text": "a"}, methods=methods)).answer == "a"


async def test_updates_and_requests_for_a_session_it_does_not_have_are_refused(scripted: Scripted) -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "EVIL"}}
    stranger = {"request": "session/request_permission", "params": {"sessionId": "other"}, "say": True}
    turn = await scripted.run({"update": chunk, "session": "other"}, stranger)

    assert "EVIL" not in turn.answer
    assert json.loads(turn.answer) == {"code": -32602, "message": "sessionId: 'other' is not a session of this process"}


async def test_unknown_variants_and_values_are_kept_and_shown(scripted: Scripted) -> None:
    turn = await scripted.run(
        {"update": {"sessionUpdate": "hologram", "shape": "cat"}},
        {"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "levitate", "status": "floating"}},
        {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "smell"}}},
        {"stop": "coffee"},
    )

    notices = [said[1] for said in turn.said if said[0] == "notice"]
    assert [word in notice for word, notice in zip(("hologram", "smell", "coffee"), notices, strict=True)] == [True] * 3
    assert turn.tool_calls["t"].name == "levitate"


async def test_a_hundred_megabytes_in_one_line_end_that_process_only(scripted: Scripted) -> None:
    agent = scripted.agent(turns=[[{"text": "a"}, {"zeros": 100_000_000}, {"text": "b"}]])
    quiet, loud = scripted.chat(uri="ahp-chat:/1"), scripted.chat(uri="ahp-chat:/2")
    other, opened = await agent.open(quiet), await agent.open(loud)
    turn = RecordingTurn("x", chat=loud)

    with pytest.raises(AgentError, match="more than 33554432 bytes") as error:
        await opened.run(turn)

    assert error.value.error_type == "acp/message-too-long"
    assert turn.answer == "a"
    assert len(scripted.running()) == 1
    assert await works(scripted, opened, loud)
    await other.aclose()


async def test_an_agent_that_never_answers_initialize_fails_the_start_and_is_ended(scripted: Scripted) -> None:
    with pytest.raises(AgentError, match="did not answer initialize"):
        await scripted.open(config={"start_timeout": 0.3}, methods={"initialize": [{"sleep": None}]})

    assert scripted.running() == []


@pytest.mark.parametrize("way", [{"exit": 3}, {"kill": 9}, {"kill": 15}])
async def test_dying_in_mid_turn_ends_the_turn_with_its_last_words(scripted: Scripted, way: dict[str, int]) -> None:
    opened, chat = await scripted.open(turns=[[{"text": "half"}, {"stderr": "panic: disk\n"}, way]])
    turn = RecordingTurn("x", chat=chat)

    with pytest.raises(AgentError, match="panic: disk") as error:
        await opened.run(turn)

    assert error.value.error_type == EXITED
    assert turn.answer == "half"
    assert scripted.running() == []
    assert await works(scripted, opened, chat)


async def test_dying_while_a_person_decides_ends_the_turn_and_the_question(scripted: Scripted) -> None:
    never: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    asked: dict[str, Any] = {"toolCall": {"toolCallId": "t"}, "options": []}
    ask = {"request": "session/request_permission", "params": asked}
    opened, chat = await scripted.open(turns=[[ask]])
    turn = RecordingTurn("x", chat=chat, confirmations=[never])
    running = asyncio.create_task(opened.run(turn))
    await until(lambda: "confirm" in turn.verbs())

    [pid] = scripted.running()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(AgentError) as error:
        await running

    assert error.value.error_type == EXITED
    assert never.cancelled()
    assert await works(scripted, opened, chat)


@pytest.mark.parametrize("kind", ["child", "daemon"])
async def test_children_that_outlive_the_agent_end_with_it(scripted: Scripted, kind: str) -> None:
    opened, chat = await scripted.open(turns=[[{"spawn": kind}, {"kill": 9}]])
    with pytest.raises(AgentError):
        await opened.run(RecordingTurn("x", chat=chat))

    await until(lambda: scripted.running() == [])
    assert await works(scripted, opened, chat)


@pytest.mark.parametrize("path", ["/etc/hostname", "{cwd}/../outside", "relative", "{cwd}/link"])
async def test_files_outside_the_workspace_are_refused(scripted: Scripted, path: str) -> None:
    (scripted.directory / "outside").write_text("secret")
    workspace = scripted.chat().working_directory
    (workspace / "link").symlink_to(scripted.directory / "outside")
    asked = {"path": path.replace("{cwd}", str(workspace))}

    turn = await scripted.run({"request": "fs/read_text_file", "params": asked, "say": True})

    assert json.loads(turn.answer)["code"] in (-32602, -32009)
    assert "secret" not in turn.answer


async def test_files_inside_the_workspace_are_served_in_the_lines_asked_for(scripted: Scripted) -> None:
    path = str(scripted.chat().working_directory / "a.txt")
    turn = await scripted.run(
        {"request": "fs/write_text_file", "params": {"path": path, "content": "1\n2\n3\n4\n"}},
        {"request": "fs/read_text_file", "params": {"path": path, "line": 2, "limit": 2}, "say": True},
    )

    assert json.loads(turn.answer) == {"content": "2\n3\n"}


async def test_a_model_that_fails_shows_as_an_error_whatever_its_code(scripted: Scripted) -> None:
    opened, chat = await scripted.open(turns=[[{"error": {"code": 400, "message": "bad request"}}], []])

    with pytest.raises(AgentError, match="bad request") as error:
        await opened.run(RecordingTurn("x", chat=chat))
    assert error.value.error_type == "acp/400"
    silent = RecordingTurn("y", chat=chat)
    await opened.run(silent)

    assert silent.said == [("notice", "The agent ended its turn without an answer.")]
    assert len(scripted.received("initialize")) == 1
