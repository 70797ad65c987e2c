from __future__ import annotations

from typing import Any

from ahpkit.protocol.chat.turns import STREAMING_ACTIONS, find_tool_call, find_turn, tool_calls
from ahpkit.protocol.registry import ACTIONS

TEXT = {"kind": "markdown", "id": "p", "content": "hello"}


def call(id: str) -> dict[str, object]:
    return {"kind": "toolCall", "toolCall": {"toolCallId": id}}


TURN: dict[str, Any] = {"id": "t2", "responseParts": [call("a"), TEXT, call("b")]}
CHAT: dict[str, Any] = {"turns": [{"id": "t1", "responseParts": []}], "activeTurn": TURN}


def test_a_turn_is_found_running_or_over() -> None:
    assert find_turn(CHAT, "t2") is TURN
    assert find_turn(CHAT, "t1") is CHAT["turns"][0]
    assert find_turn(CHAT, "t3") is None
    assert find_turn({"turns": []}, "t1") is None


def test_tool_calls_are_found_among_other_parts() -> None:
    assert [found["toolCallId"] for found in tool_calls(TURN)] == ["a", "b"]
    assert find_tool_call(TURN, "a") == {"toolCallId": "a"}
    assert find_tool_call(TURN, "c") is None
    assert find_tool_call(None, "a") is None
    assert list(tool_calls(None)) == []


def test_the_streaming_actions_are_actions() -> None:
    assert set(ACTIONS) >= STREAMING_ACTIONS
