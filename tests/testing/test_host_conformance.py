"""The checks for hosts: ours passes all of them in every version, and each notices a host that breaks its sentence."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.client.connection import Dial
from ahpkit.dialects.generations import Generation
from ahpkit.dialects.negotiation import pin
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.log.memory import MemoryStorage
from ahpkit.testing.host_checks import HOST_CHECKS
from ahpkit.testing.host_conformance import check_host
from ahpkit.testing.host_probe import CheckFailed
from ahpkit.testing.host_target import Target
from ahpkit.testing.memory_host import MemoryHost, memory_host
from ahpkit.wire.transport import Transport
from support.process import HostProcess, finish_cli, host_process

Json = dict[str, Any]
Change = Callable[[Json, int], Json | None]
"""What a broken host sends instead of a message, to its first, second … connection; None: nothing."""

VERSIONS = [generation.release for generation in Generation]


@pytest.mark.parametrize("version", VERSIONS)
async def test_our_host_passes_every_check_in_every_version(version: str, tmp_path: Path) -> None:
    async with memory_host(DemoAgent(), directory=tmp_path) as host:
        report = await check_host(Target(host.dial, protocol=version, prompt="hello"))
    assert report.protocol == version
    assert report.failed == 0, str(report)
    assert report.count("passed") >= 28, str(report)


async def test_the_newest_version_is_checked_and_agents_get_no_message_unless_there_is_a_prompt(tmp_path: Path) -> None:
    async with memory_host(DemoAgent(), directory=tmp_path) as host:
        report = await check_host(Target(host.dial))
    assert (report.protocol, report.failed) == ("1.0.0", 0), str(report)
    assert {each.name for each in report.outcomes if each.result == "skipped"} == {
        name for name in HOST_CHECKS if name.startswith("turn:")
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_host_that_speaks_one_version_only_is_checked_in_that_one(version: str, tmp_path: Path) -> None:
    config = HostConfig(default_directory=tmp_path, spoken=pin(version))
    async with Host(MemoryStorage(), agents=(DemoAgent(),), config=config) as host:
        dial = MemoryHost(host).dial
        report = await check_host(Target(dial), checks={"connection:version": HOST_CHECKS["connection:version"]})
        assert (report.protocol, report.count("passed")) == (version, 1), str(report)
        other = next(one for one in VERSIONS if one != version)
        with pytest.raises(CheckFailed, match=f"{re.escape(other)} offered"):
            await check_host(Target(dial, protocol=other))


class Broken:
    """A connection to a host that is broken in one way: messages that it sends are changed, or some are not heard."""

    def __init__(self, transport: Transport, change: Change, number: int) -> None:
        self._transport = transport
        self._change = change
        self._number = number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, frames: bytes) -> None:
        if self._change is not deaf or b'"unsubscribe"' not in frames:
            self._transport.write(frames)

    async def receive(self) -> bytes:
        while True:
            changed = self._change(json.loads(await self._transport.receive()), self._number)
            if changed is not None:
                return json.dumps(changed).encode()


def broken(dial: Dial, change: Change) -> Dial:
    numbers = count()

    async def dial_broken() -> Any:
        return Broken(await dial(), change, next(numbers))

    return dial_broken


def deaf(message: Json, _number: int) -> Json:
    """The host does not hear `unsubscribe`."""
    return message


def without(method: str) -> Change:
    return lambda message, _number: None if message.get("method") == method else message


def results(change: Callable[[Json], object]) -> Change:
    """Change results that are objects."""

    def apply(message: Json, _number: int) -> Json:
        if isinstance(message.get("result"), dict):
            change(message["result"])
        return message

    return apply


def states(change: Callable[[Json], object]) -> Change:
    """Change the states of snapshots."""

    def apply(result: Json) -> None:
        for snapshot in [*result.get("snapshots", ()), *([result["snapshot"]] if "snapshot" in result else ())]:
            change(snapshot["state"])

    return results(apply)


def actions(change: Callable[[Json], object]) -> Change:
    """Change envelopes of actions."""

    def apply(message: Json, _number: int) -> Json:
        if message.get("method") == "action":
            change(message["params"])
        return message

    return apply


def code(number: int) -> Change:
    """Every error has this code."""

    def apply(message: Json, _number: int) -> Json:
        return message if "error" not in message else {**message, "error": {**message["error"], "code": number}}

    return apply


def never_refuses(message: Json, _number: int) -> Json:
    return message if "error" not in message else {"jsonrpc": "2.0", "id": message["id"], "result": {}}


def answers_initialize_only(message: Json, _number: int) -> Json | None:
    is_answer = "id" in message and "method" not in message
    return None if is_answer and "protocolVersion" not in (message.get("result") or {}) else message


def set_if(key: str, value: object) -> Callable[[Json], object]:
    """Replace a member where there is one."""
    return lambda members: members.update({key: value}) if key in members else None


def chooses_by_order(message: Json, number: int) -> Json:
    return results(set_if("protocolVersion", "0.9.0"))(message, number) or message if number == 2 else message


def answers_another_id(message: Json, _number: int) -> Json:
    return {**message, "id": 1} if message.get("id") == "one" else message


def numbers_differently_for_another(message: Json, number: int) -> Json | None:
    if number != 1:
        return message
    return actions(lambda envelope: envelope.update(serverSeq=envelope["serverSeq"] + 1000))(message, number)


def keeps_drafts_from_another(message: Json, number: int) -> Json | None:
    is_draft = message.get("method") == "action" and message["params"]["action"]["type"] == "chat/draftChanged"
    return None if number == 1 and is_draft else message


def lose_text(envelope: Json) -> None:
    if envelope["action"]["type"] == "chat/delta":
        envelope["action"]["content"] = "lost"


def unarchive(result: Json) -> None:
    for summary in result.get("items", ()):
        summary["status"] = 1


def keep_a_turn(state: Json) -> None:
    if state.get("turns") == []:
        state["turns"] = [{"id": "kept"}]


FAULTS: dict[str, Change] = {
    "connection:ping-first": answers_initialize_only,
    "connection:initialize-first": never_refuses,
    "connection:version": results(set_if("protocolVersion", "0.1.0")),
    "connection:version-order": chooses_by_order,
    "connection:unknown-version": code(-32602),
    "connection:malformed-version": never_refuses,
    "rpc:string-id": answers_another_id,
    "rpc:unknown-method": code(-32000),
    "rpc:malformed-params": code(-32000),
    "rpc:unknown-notification": answers_initialize_only,
    "rpc:not-json": code(-32000),
    "rpc:no-batches": code(-32000),
    "channel:unknown": never_refuses,
    "files:fence": never_refuses,
    "session:created": without("root/sessionAdded"),
    "session:created-once": code(-32000),
    "session:disposed": without("root/sessionRemoved"),
    "session:archived": results(unarchive),
    "action:echo": numbers_differently_for_another,
    "action:in-the-snapshot": states(set_if("title", "never changed")),
    "action:malformed": actions(lambda envelope: envelope.pop("rejectionReason", None)),
    "action:host-only": actions(lambda envelope: envelope.pop("rejectionReason", None)),
    "action:order": actions(lambda envelope: envelope.update(serverSeq=1_000_000 - envelope["serverSeq"])),
    "action:unsubscribed": deaf,
    "reconnect:missed": results(lambda result: (set_if("actions", [])(result), set_if("snapshots", [])(result))),
    "reconnect:gone": results(set_if("missing", [])),
    "chat:default": states(lambda state: state.pop("turns", None)),
    "chat:nothing-to-cancel": actions(lambda envelope: envelope.pop("rejectionReason", None)),
    "chat:draft": keeps_drafts_from_another,
    "turn:runs": actions(lose_text),
    "turn:one-at-a-time": states(lambda state: state.update(turns=2 * state["turns"]) if "turns" in state else None),
    "turn:truncated": states(keep_a_turn),
}
"""Every check, and a host that breaks its sentence."""


def test_every_check_says_what_it_proves_and_has_a_host_that_breaks_it() -> None:
    assert FAULTS.keys() == HOST_CHECKS.keys()
    assert all((check.__doc__ or "").strip().endswith((".", ")")) for check in HOST_CHECKS.values())


@pytest.mark.parametrize("name", HOST_CHECKS)
async def test_a_host_that_breaks_a_sentence_fails_its_check(name: str, tmp_path: Path) -> None:
    async with memory_host(DemoAgent(), directory=tmp_path) as host:
        target = Target(broken(host.dial, FAULTS[name]), prompt="hello", timeout=1.0)
        if name == "reconnect:missed":  # All connections need the snapshot of the root, which this fault takes away.
            target = replace(target, provider="demo", directory=tmp_path.as_uri())
        report = await check_host(target, checks={name: HOST_CHECKS[name]})
    [outcome] = report.outcomes
    assert (outcome.result, bool(outcome.detail)) == ("failed", True), str(outcome)


async def test_a_host_without_agents_is_checked_as_far_as_it_goes() -> None:
    async with memory_host() as host:
        report = await check_host(Target(host.dial))
    assert report.failed == 0, str(report)
    reasons = {each.detail for each in report.outcomes if each.name.startswith("session:")}
    assert reasons == {"the host lists no agents, so there can be no session"}


async def test_what_is_no_host_at_all_is_an_error_and_not_a_report() -> None:
    async with memory_host() as host:
        with pytest.raises(CheckFailed, match="initialize was refused"):
            await check_host(Target(host.dial, protocol="99.0.0"))


@pytest.fixture
async def host(tmp_path: Path) -> AsyncGenerator[HostProcess]:
    async with host_process(tmp_path) as process:
        yield process


async def test_the_command_checks_a_running_host(host: HostProcess) -> None:
    code, output, errors = await finish_cli(["conformance", "host", "--prompt", "hello"], host.home)
    assert (code, errors) == (0, "")
    assert output.splitlines()[0].startswith("PASSED  connection:ping-first: ")
    assert output.splitlines()[-1] == f"{len(HOST_CHECKS)} passed, 0 failed, 0 skipped"


async def test_the_command_runs_one_check_and_prints_json(host: HostProcess) -> None:
    words = ["conformance", "host", "--check", "rpc:string-id", "--protocol", "0.4.0", "--json"]
    code, output, _ = await finish_cli(words, host.home)
    report = json.loads(output)
    assert (code, report["protocol"], report["passed"], report["failed"]) == (0, "0.4.0", 1, 0)
    assert report["checks"][0]["check"] == "rpc:string-id"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--check", "nothing"], "there is no check 'nothing'"),
        (["--session-uri", "ahp-session:/one"], "it must contain {id}"),
        (["--protocol", "99.0.0"], "initialize was refused"),
        (["--url", "ws://127.0.0.1:9"], "nobody listens there"),
    ],
)
async def test_a_command_that_cannot_check_says_why_in_a_line(host: HostProcess, words: list[str], says: str) -> None:
    code, output, errors = await finish_cli(["conformance", "host", *words], host.home)
    assert (code in (1, 2), output) == (True, "")
    assert says in errors
    assert "Traceback" not in errors
