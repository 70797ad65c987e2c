"""What a tool call says before it runs: the intention behind it, how safe it is, its input by reference."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.host.agent import Turn
from ahpkit.host.resources.feature import Resources
from ahpkit.protocol.chat.actions import chat_tool_call_delta, chat_tool_call_ready
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient

STARTED = "2026-11-15T12:00:00.000Z"


def start(text: str = "hi") -> Json:
    return say(text, "t1", startedAt=STARTED)


async def clients_of(bench: Bench, *versions: str) -> tuple[list[RawClient], str, str]:
    """A client of each version in one session, and its chat."""
    clients = [await bench.client("ahp-root://", client_id=version, offer=[version]) for version in versions]
    session, chat = await bench.session(clients[0])
    for client in clients[1:]:
        for uri in (session, chat):
            await client.ask("subscribe", uri)
    return clients, session, chat


def call_of(state: Json) -> Json:
    turn = state.get("activeTurn") or state["turns"][-1]
    return next(part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall")


@requirement("gen:tool:risk-no-decision", "gen:tool:ready-while-pending", "gen:tool:ready-intention")
@requirement("gen:input-needed:tool-confirmation-set")
@pytest.mark.parametrize("approved", [True, False])
async def test_an_assessment_informs_and_decides_nothing(sockets: Bench, approved: bool) -> None:
    ran: list[str] = []

    async def script(turn: Turn) -> None:
        call = turn.tool_call("remove", intention="Make room on the disk")
        call.assess()
        options: Any = [{"id": "go", "label": "Go", "kind": "approve"}]
        asking = sockets.host.services.spawn(_judged(call, turn), name="judge")
        answer = await call.confirm(tool_input="rm -r /tmp/x", title="Remove?", options=options)
        await asking
        if answer.approved:
            ran.append(answer.tool_input)
            call.complete()

    async def _judged(call: Any, turn: Turn) -> None:
        await turn.wait_steering()
        call.assess("Only a temporary folder", safety=0.95)

    sockets.agent.script = script
    [old, vscode, new], session, chat = await clients_of(sockets, "0.4.0", "0.9.0", "1.0.0")
    await new.accepted(chat, start())
    await new.action("chat/toolCallReady")
    pending = call_of(await sockets.state(new, chat))
    assert pending["riskAssessment"] == {"kind": "judge", "status": "loading"}
    assert pending["intention"] == "Make room on the disk"
    steer = {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": start()["message"]}
    await new.accepted(chat, steer)
    await new.action(lambda said: said["action"].get("riskAssessment", {}).get("status") == "complete")
    pending = call_of(await sockets.state(new, chat))
    verdict = {"kind": "judge", "status": "complete", "reason": "Only a temporary folder", "safety": 0.95}
    assert pending["riskAssessment"] == verdict
    assert pending["status"] == "pending-confirmation", "a good verdict is no approval"
    assert (pending["confirmationTitle"], pending["toolInput"]) == ("Remove?", "rm -r /tmp/x")
    assert any(option["id"] == "go" for option in pending["options"])
    assert call_of(await sockets.state(vscode, chat)) == pending
    assert ran == []
    entry = (await sockets.state(new, session))["inputNeeded"][0]
    assert entry["toolCall"]["riskAssessment"] == verdict
    about = {"turnId": "t1", "toolCallId": pending["toolCallId"]}
    decided: Json = {"type": "chat/toolCallConfirmed", **about, "approved": approved}
    decided |= {"confirmed": "user-action"} if approved else {"reason": "denied"}
    await old.accepted(chat, decided)
    await new.action("chat/turnComplete")
    assert ran == (["rm -r /tmp/x"] if approved else [])
    assert "riskAssessment" not in call_of(await sockets.state(new, chat))


@pytest.mark.parametrize("length", [5000, 1_048_576])
@requirement("gen:tool:input-ref-read", "gen:project-state:tool-input-ref")
async def test_an_input_by_reference_can_be_read_by_everyone(sockets: Bench, length: int) -> None:
    """Before 0.7 an input is a text: what is too long for one stays a reference, which they read too."""
    text = '{"patch": "' + "x" * length + '"}'
    sockets.features = [Resources()]
    await sockets.restart()

    async def script(turn: Turn) -> None:
        call = turn.tool_call("patch")
        uri = turn.store(text.encode(), content_type="application/json")
        ref: Any = {"uri": uri, "sizeHint": len(text), "contentType": "application/json"}
        ref["_meta"] = {"ahpkit.dev/text": text}
        ready = chat_tool_call_ready(
            turn_id=turn.id, tool_call_id=call.id, invocation_message="Patch", tool_input=ref, confirmed="not-needed"
        )
        sockets.host.services.dispatch(turn.chat.uri, ready)
        await turn.wait_steering()

    sockets.agent.script = script
    versions = ("1.0.0", "0.9.0", "0.7.0", "0.6.0", "0.4.0")
    clients, _, chat = await clients_of(sockets, *versions)
    await clients[0].accepted(chat, start())
    for version, client in zip(versions, clients, strict=True):
        await client.action("chat/toolCallReady")
        given = call_of(await sockets.state(client, chat))["toolInput"]
        if version in ("0.6.0", "0.4.0"):
            assert isinstance(given, str)
            if length == 5000:
                assert given == text
                continue
            given = {"uri": given}
        read = await client.ask("resourceRead", uri=given["uri"])
        assert read["data"] == text


@requirement("gen:project-action:delta-content")
async def test_a_delta_without_text_has_an_empty_one_for_older_readers(sockets: Bench) -> None:
    async def script(turn: Turn) -> None:
        call = turn.tool_call("look")
        delta = chat_tool_call_delta(turn_id=turn.id, tool_call_id=call.id, invocation_message="Looking")
        sockets.host.services.dispatch(turn.chat.uri, delta)

    sockets.agent.script = script
    versions = ("1.0.0", "0.9.0", "0.7.0", "0.6.0", "0.5.0", "0.4.0")
    clients, _, chat = await clients_of(sockets, *versions)
    await clients[0].accepted(chat, start())
    for version, client in zip(versions, clients, strict=True):
        said = (await client.action("chat/toolCallDelta"))["action"]
        assert said.get("content") == (None if version in ("1.0.0", "0.9.0", "0.7.0") else "")


@requirement("gen:tool:input-ref-edited")
async def test_an_input_that_is_a_reference_is_approved_and_not_edited(sockets: Bench) -> None:
    """What is accepted has to be readable right after it: nobody could write the edited text there."""

    async def script(turn: Turn) -> None:
        call = turn.tool_call("look")
        reference: Any = {"uri": "ahp-content:/input"}
        ready = chat_tool_call_ready(
            turn_id=turn.id, tool_call_id=call.id, invocation_message="Look", tool_input=reference, editable=True
        )
        sockets.host.services.dispatch(turn.chat.uri, ready)
        await turn.wait_steering()

    sockets.agent.script = script
    clients, _, chat = await clients_of(sockets, "1.0.0", "0.7.0")
    await clients[0].accepted(chat, start())
    call = (await clients[0].action("chat/toolCallReady"))["action"]
    approved = {
        "turnId": call["turnId"],
        "toolCallId": call["toolCallId"],
        "approved": True,
        "confirmed": "user-action",
    }
    answer = {"type": "chat/toolCallConfirmed", **approved}
    for client in clients:
        assert "reference" in await client.rejected(chat, {**answer, "editedToolInput": "{}"})
    await clients[1].accepted(chat, answer)
