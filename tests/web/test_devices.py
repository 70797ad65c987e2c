"""Devices: codes that work once and not for long, cookies that are kept as hashes, revocation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ahpkit.transports.memory import memory_pair
from ahpkit.web.devices import (
    KEPT_DAYS,
    LINK_SECONDS,
    MAX_DEVICES,
    DeviceError,
    Devices,
    Right,
    RightsTransport,
    refusal,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def devices(tmp_path: Path, clock: Clock) -> Devices:
    return Devices(tmp_path / "devices.json", clock=clock)


def let_in(devices: Devices, name: str = "Laptop") -> str:
    secret = devices.redeem(devices.new_code(right="everything", name=name), name="")
    assert secret is not None
    return secret


def test_a_code_lets_one_browser_in_and_no_second_one(devices: Devices) -> None:
    code = devices.new_code(right="watch", name="Phone")
    secret = devices.redeem(code, name="Firefox")
    assert secret is not None
    device = devices.known(secret)
    assert device is not None
    assert (device.name, device.right) == ("Phone", "watch")
    with pytest.raises(DeviceError, match="used already"):
        devices.redeem(code, name="Firefox")


def test_a_code_expires(devices: Devices, clock: Clock) -> None:
    code = devices.new_code(right="watch", name="")
    clock.now += LINK_SECONDS
    with pytest.raises(DeviceError, match="expired"):
        devices.redeem(code, name="")


def test_codes_that_people_type_may_be_spaced_and_cannot_be_guessed_for_long(devices: Devices, clock: Clock) -> None:
    code = devices.new_code(right="answer", name="Phone", typed=True)
    for guess in range(10):
        with pytest.raises(DeviceError):
            devices.redeem(f"GUESS{guess}", name="")
    with pytest.raises(DeviceError, match="Too many"):
        devices.redeem(code, name="")
    clock.now += 61
    assert devices.redeem(f"{code[:5]}-{code[5:]}", name="") is not None


def test_a_browser_that_is_known_spends_a_code_without_becoming_a_second_device(devices: Devices) -> None:
    known = devices.known(let_in(devices))
    assert devices.redeem(devices.new_code(right="everything", name=""), name="", existing=known) is None
    assert len(devices.all()) == 1


def test_a_code_for_more_makes_a_device_that_may_more(devices: Devices) -> None:
    secret = devices.redeem(devices.new_code(right="watch", name=""), name="")
    assert secret is not None
    more = devices.redeem(devices.new_code(right="everything", name=""), name="", existing=devices.known(secret))
    assert more is not None
    device = devices.known(more)
    assert device is not None
    assert device.right == "everything"


def test_devices_survive_a_restart_and_their_secrets_are_not_in_the_file(
    devices: Devices, tmp_path: Path, clock: Clock
) -> None:
    secret = let_in(devices)
    path = tmp_path / "devices.json"
    assert secret not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert Devices(path, clock=clock).known(secret) is not None


def test_a_revoked_device_is_not_known_any_more_and_listeners_hear_of_it(devices: Devices) -> None:
    secret = let_in(devices)
    device = devices.known(secret)
    assert device is not None
    heard: list[str] = []
    devices.on_revoked.append(heard.append)
    devices.revoke(device.id)
    assert devices.known(secret) is None
    assert heard == [device.id]
    with pytest.raises(DeviceError, match="no such device"):
        devices.revoke(device.id)


def test_who_stays_away_for_long_is_let_in_anew(devices: Devices, clock: Clock) -> None:
    secret = let_in(devices)
    clock.now += (KEPT_DAYS + 1) * 86_400
    assert devices.known(secret) is None


def test_a_visit_is_remembered(devices: Devices, clock: Clock) -> None:
    secret = let_in(devices)
    clock.now += 7200
    device = devices.known(secret)
    assert device is not None
    devices.seen(device)
    assert devices.all()[0].last_seen_at == int(clock.now * 1000)


def test_there_are_never_more_than_so_many(devices: Devices, clock: Clock) -> None:
    for number in range(MAX_DEVICES + 5):
        clock.now += 1
        let_in(devices, f"Browser {number}")
    assert len(devices.all()) == MAX_DEVICES


@pytest.mark.parametrize("content", ["", "[]", '{"devices": [{"id": 1}]}', "\x00"])
def test_a_file_that_makes_no_sense_lets_nobody_in(tmp_path: Path, clock: Clock, content: str) -> None:
    path = tmp_path / "devices.json"
    path.write_text(content)
    assert Devices(path, clock=clock).all() == []


CONFIRM = {"action": {"type": "chat/toolCallConfirmed", "approved": True}}


@pytest.mark.parametrize(
    ("right", "method", "params", "allowed"),
    [
        ("watch", "initialize", {}, True),
        ("watch", "subscribe", {}, True),
        ("watch", "resourceRead", {}, True),
        ("watch", "_ahpkit/turns/times", {}, True),
        ("watch", "_ahpkit/sessions/search", {}, True),
        ("watch", "_ahpkit/rules/list", {}, True),
        ("watch", "_ahpkit/approvals/list", {}, True),
        ("answer", "_ahpkit/rules/remove", {}, False),
        ("watch", "_ahpkit/mcp/log", {}, False),
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
