"""Rights of devices: what each lets through, and what the device is told about the rest."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ahpkit.transports.memory import memory_pair
from ahpkit.web.devices import Right
from ahpkit.web.rights import RightsTransport, refusal

CONFIRM = {"action": {"type": "chat/toolCallConfirmed", "approved": True}}


@pytest.mark.parametrize(
    ("right", "method", "params", "allowed"),
    [
        ("watch", "initialize", {}, True),
        ("watch", "subscribe", {}, True),
        ("watch", "resourceRead", {}, True),
        ("watch", "createSession", {}, False),
        ("watch", "resourceWrite", {}, False),
        ("watch", "dispatchAction", CONFIRM, False),
        ("watch", "_ahpkit/sessions/import", {}, False),
        ("watch", "dispatchAction", {}, False),
        ("watch", "dispatchAction", {"action": ["chat/toolCallConfirmed"]}, False),
        ("answer", "dispatchAction", CONFIRM, True),
        ("answer", "dispatchAction", {"action": {"type": "chat/inputCompleted"}}, True),
        ("answer", "dispatchAction", {"action": {"type": "chat/turnStarted"}}, False),
        ("answer", "dispatchAction", {"action": {**CONFIRM["action"], "editedToolInput": "rm -rf /"}}, False),
        ("answer", "createTerminal", {}, False),
        ("everything", "createTerminal", {}, True),
        ("everything", "dispatchAction", {"action": {"type": "chat/turnStarted"}}, True),
    ],
)
def test_each_right_lets_through_what_it_says(right: Right, method: str, params: dict[str, Any], allowed: bool) -> None:
    assert (refusal(right, method, params) is None) is allowed


async def told(right: Right, *messages: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """What reaches the host, and what the device is told, when it sends these messages."""
    device, ours = memory_pair()
    guarded = RightsTransport(ours, lambda: right)
    for message in messages:
        device.write(device.frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))
    device.write(device.frame(b'{"jsonrpc":"2.0","id":99,"method":"ping","params":{}}'))
    passed: list[Any] = []
    while not passed or passed[-1].get("id") != 99:
        passed.append(json.loads(await guarded.receive()))
    answers: list[Any] = []
    for _ in range(len(messages) - len(passed) + 1):
        answers.append(json.loads(await asyncio.wait_for(device.receive(), 5)))
    return passed[:-1], answers


async def test_a_refused_request_is_answered_with_an_error_and_never_reaches_the_host() -> None:
    passed, answers = await told("watch", {"id": 1, "method": "createSession", "params": {"channel": "ahp-session:/1"}})
    assert passed == []
    assert answers[0]["id"] == 1
    assert answers[0]["error"]["code"] == -32009
    assert "watch only" in answers[0]["error"]["message"]


async def test_a_refused_action_is_echoed_so_that_the_device_takes_it_back() -> None:
    hello = {"id": 1, "method": "initialize", "params": {"clientId": "phone"}}
    action = {"type": "session/titleChanged", "title": "x"}
    dispatch = {"method": "dispatchAction", "params": {"channel": "ahp-session:/1", "clientSeq": 7, "action": action}}
    passed, answers = await told("answer", hello, dispatch)
    assert [one["method"] for one in passed] == ["initialize"]
    assert answers[0]["params"]["origin"] == {"clientId": "phone", "clientSeq": 7}
    assert answers[0]["params"]["action"] == action
    assert "answer only" in answers[0]["params"]["rejectionReason"]


async def test_what_is_no_message_is_left_to_the_host() -> None:
    device, ours = memory_pair()
    device.write(device.frame(b"not json"))
    assert await RightsTransport(ours, lambda: "watch").receive() == b"not json"
