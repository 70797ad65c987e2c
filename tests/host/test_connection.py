"""Handshake, subscriptions, dispatch, reconnect: what a connection may do and what it gets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ahpkit.dialects.negotiation import supported_versions
from ahpkit.log.entry import Entry
from ahpkit.log.memory import MemoryStorage
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json

ROOT = "ahp-root://"


@requirement("core:connection:initialize-result")
@requirement("core:connection:snapshot-shape")
async def test_initialize_answers_with_version_sequence_and_snapshots(bench: Bench) -> None:
    client = await bench.connect()
    result = await client.initialize(ROOT, "ahp-session:/nowhere")
    assert result["protocolVersion"] == "0.4.0"
    assert isinstance(result["serverSeq"], int)
    [snapshot] = result["snapshots"]
    assert set(snapshot) == {"resource", "state", "fromSeq"}
    assert snapshot["resource"] == ROOT
    assert snapshot["state"]["agents"][0]["provider"] == "scripted"
    assert result["defaultDirectory"].startswith("file:///")
    assert "/" in result["completionTriggerCharacters"]


@requirement("core:connection:version-choice")
@requirement("core:connection:version-compatibility")
async def test_the_first_version_we_speak_is_chosen_whatever_its_patch(bench: Bench) -> None:
    client = await bench.connect()
    result = await client.initialize(protocolVersions=["9.0.0", "0.4.7", "0.4.0"])
    assert result["protocolVersion"].startswith("0.4.")


@requirement("core:connection:version-none")
@requirement("core:wire:version-error-data")
async def test_without_a_common_version_the_connection_is_closed_after_the_error(bench: Bench) -> None:
    client = await bench.connect()
    error = await client.refused("initialize", protocolVersions=["9.0.0"], clientId="a")
    assert error["code"] == -32005
    assert error["data"]["supportedVersions"] == supported_versions()
    await client.wait_closed()


@requirement("core:connection:before-initialize")
async def test_before_the_handshake_only_ping_is_served(bench: Bench) -> None:
    client = await bench.connect()
    assert await client.ask("ping") is None
    error = await client.refused("listSessions")
    assert error["code"] == -32600
    assert "initialize" in error["message"]


async def test_a_second_initialize_is_refused(bench: Bench) -> None:
    client = await bench.client()
    error = await client.refused("initialize", protocolVersions=["0.4.0"], clientId="b")
    assert "already" in error["message"]


@requirement("core:wire:ids")
async def test_a_string_id_is_answered_with_the_same_string(bench: Bench) -> None:
    client = await bench.connect()
    client.send({"jsonrpc": "2.0", "id": "seven", "method": "ping", "params": {"channel": ROOT}})
    assert (await client.wait(lambda message: message.get("id") == "seven"))["result"] is None


@requirement("core:wire:no-batches")
async def test_a_batch_is_refused_and_nothing_in_it_runs(bench: Bench) -> None:
    client = await bench.client()
    create = {"jsonrpc": "2.0", "id": 1, "method": "createSession", "params": {"channel": "ahp-session:/batch"}}
    client.send_bytes(b"[" + __import__("json").dumps(create).encode() + b"]")
    answer = await client.wait(lambda message: "error" in message)
    assert answer["error"]["code"] == -32600
    assert (await client.ask("listSessions"))["items"] == []


@requirement("core:wire:channel-in-params")
async def test_a_request_without_channel_is_refused(bench: Bench) -> None:
    client = await bench.client()
    client.send({"jsonrpc": "2.0", "id": 99, "method": "listSessions", "params": {}})
    answer = await client.wait(lambda message: message.get("id") == 99)
    assert answer["error"]["code"] == -32602
    assert "channel" in answer["error"]["message"]


async def test_unknown_methods_and_garbage_get_errors_and_the_connection_lives(bench: Bench) -> None:
    client = await bench.client()
    assert (await client.refused("makeCoffee"))["code"] == -32601
    client.send_bytes(b"{not json")
    assert (await client.wait(lambda message: message.get("error", {}).get("code") == -32700))["id"] is None
    assert await client.ask("ping") is None


@requirement("core:connection:accepted-broadcast")
@requirement("core:connection:envelope-shape")
async def test_an_accepted_action_reaches_every_subscriber_with_its_origin(bench: Bench) -> None:
    alice, bob = await bench.client(), await bench.client()
    session, _ = await bench.session(alice)
    await bob.ask("subscribe", session)
    echo = await alice.accepted(session, {"type": "session/titleChanged", "title": "Plan"})
    seen = await bob.action("session/titleChanged")
    assert seen == echo
    assert set(seen) == {"channel", "action", "serverSeq", "origin"}
    assert seen["origin"]["clientId"] == alice.client_id


@requirement("core:connection:rejected-echo")
async def test_a_rejected_action_comes_back_to_its_dispatcher_only(bench: Bench) -> None:
    alice, bob = await bench.client(), await bench.client()
    session, chat = await bench.session(alice)
    await bob.ask("subscribe", chat)
    before = await bench.state(alice, chat)
    reason = await alice.rejected(chat, {"type": "chat/turnCancelled", "turnId": "none"})
    assert reason
    assert await bench.state(alice, chat) == before
    await bob.ask("ping")
    assert bob.actions(chat) == []
    assert session


@requirement("core:connection:unknown-channel-told")
async def test_an_action_for_an_unknown_channel_is_answered_with_a_reason(bench: Bench) -> None:
    client = await bench.client()
    reason = await client.rejected("ahp-session:/none", {"type": "session/titleChanged", "title": "x"})
    assert "ahp-session:/none" in reason
    policy = Path(__file__).parents[2] / "docs/reference/policy.md"
    assert "Protocol version 0.4.0 itself would stay silent" in " ".join(policy.read_text().split())


@requirement("core:chat:reject-malformed")
async def test_a_malformed_action_is_rejected_with_the_path_that_is_wrong(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    reason = await client.rejected(session, {"type": "session/titleChanged", "title": 7})
    assert "action.title" in reason


@requirement("core:chat:reject-not-dispatchable")
@requirement("client-tools:actions:start-is-host-only")
@pytest.mark.parametrize(
    "action",
    [
        {"type": "chat/toolCallStart", "turnId": "t", "toolCallId": "c", "toolName": "x", "displayName": "X"},
        {"type": "chat/turnComplete", "turnId": "t"},
    ],
)
async def test_actions_of_the_host_are_rejected_from_clients(bench: Bench, action: Json) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    before = await bench.state(client, chat)
    assert "host" in await client.rejected(chat, action)
    assert await bench.state(client, chat) == before


@requirement("core:chat:only-new-names")
async def test_the_old_session_tool_call_names_are_not_accepted(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    action = {"type": "session/toolCallConfirmed", "turnId": "t", "toolCallId": "c", "approved": True}
    assert "unknown" in await client.rejected(session, action)


@requirement("core:connection:server-seq-monotonic")
@requirement("core:connection:snapshot-then-actions")
async def test_a_subscriber_gets_a_snapshot_and_then_each_later_action_once(bench: Bench) -> None:
    writer = await bench.client()
    session, _ = await bench.session(writer)
    for number in range(20):
        writer.post(session, {"type": "session/titleChanged", "title": f"before {number}"})
    reader = await bench.client()
    snapshot = (await reader.ask("subscribe", session))["snapshot"]
    for number in range(20):
        writer.post(session, {"type": "session/titleChanged", "title": f"after {number}"})
    await reader.action(lambda envelope: envelope["action"].get("title") == "after 19")
    seqs = [envelope["serverSeq"] for envelope in reader.actions(session)]
    assert seqs == sorted(set(seqs))
    assert seqs[0] > snapshot["fromSeq"]
    everything = [envelope["serverSeq"] for envelope in writer.actions(session)]
    assert [seq for seq in everything if seq > snapshot["fromSeq"]] == seqs


async def test_subscribing_again_returns_a_fresh_snapshot_and_no_doubles(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    await client.accepted(session, {"type": "session/titleChanged", "title": "one"})
    assert (await bench.state(client, session))["summary"]["title"] == "one"
    await client.accepted(session, {"type": "session/titleChanged", "title": "two"})
    assert len([e for e in client.actions(session) if e["action"].get("title") == "two"]) == 1


@requirement("core:wire:client-notifications")
async def test_after_unsubscribe_nothing_more_arrives(bench: Bench) -> None:
    alice, bob = await bench.client(), await bench.client()
    session, _ = await bench.session(alice)
    await bob.ask("subscribe", session)
    bob.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": session}})
    await bob.ask("ping")
    await alice.accepted(session, {"type": "session/titleChanged", "title": "quiet"})
    await bob.ask("ping")
    assert bob.actions(session) == []
    answered = [message["id"] for message in bob.received if "method" not in message]
    assert answered == [1, 2, 3, 4]  # initialize, subscribe and two pings; no answer to what is no request.
    answered = [message.get("id") for message in alice.received if "method" not in message]
    assert answered == list(range(1, len(answered) + 1))


async def test_subscribing_to_what_does_not_exist_names_it(bench: Bench) -> None:
    client = await bench.client()
    assert (await client.refused("subscribe", "ahp-session:/none"))["code"] == -32001
    assert (await client.refused("subscribe", "ahp-chat:/none"))["code"] == -32008


async def test_a_repeated_dispatch_is_applied_once(bench: Bench) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    queued = {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": say("x")["message"]}
    bench.agent.script = _forever
    await client.accepted(chat, say("work"))
    seq = client.post(chat, queued)
    client.post(chat, queued, client_seq=seq)
    await client.ask("ping")
    await client.action(lambda envelope: envelope.get("origin", {}).get("clientSeq") == seq)
    same = [e for e in client.actions(chat) if e.get("origin", {}).get("clientSeq") == seq]
    assert len({envelope["serverSeq"] for envelope in same}) == 1
    assert len((await bench.state(client, chat))["queuedMessages"]) == 1


async def test_a_client_that_counts_anew_after_a_reconnect_is_not_ignored(bench: Bench) -> None:
    client = await bench.client(client_id="c")
    session, _ = await bench.session(client)
    last = (await client.accepted(session, {"type": "session/titleChanged", "title": "one"}))["serverSeq"]
    await client.aclose()
    back = await bench.connect("c")
    await back.ask("reconnect", clientId="c", lastSeenServerSeq=last, subscriptions=[session])
    back.post(session, {"type": "session/titleChanged", "title": "two"}, client_seq=1)
    await back.action(lambda envelope: envelope["action"].get("title") == "two")


async def test_a_repeated_dispatch_after_a_restart_is_applied_once_and_echoed(bench: Bench) -> None:
    client = await bench.client(client_id="c")
    session, _ = await bench.session(client)
    rename = {"type": "session/titleChanged", "title": "one"}
    echo = await client.accepted(session, rename)
    await bench.stop()
    await bench.start()
    back = await bench.connect("c")
    await back.ask("reconnect", clientId="c", lastSeenServerSeq=echo["serverSeq"] - 1, subscriptions=[])
    back.post(session, rename, client_seq=echo["origin"]["clientSeq"])
    assert await back.action("session/titleChanged") == echo


@requirement("core:connection:reconnect-replay")
@requirement("core:connection:reconnect-complete-response")
@requirement("core:connection:notifications-not-replayed")
async def test_reconnect_replays_what_was_missed_inside_the_response(bench: Bench) -> None:
    alice, bob = await bench.client(ROOT), await bench.client(ROOT, client_id="bob")
    session, _ = await bench.session(alice)
    await bob.ask("subscribe", session)
    last = (await alice.accepted(session, {"type": "session/titleChanged", "title": "seen"}))["serverSeq"]
    await bob.action("session/titleChanged")
    await bob.aclose()
    missed = [await alice.accepted(session, {"type": "session/titleChanged", "title": f"m{n}"}) for n in range(3)]
    await alice.wait(
        lambda message: (
            message.get("method") == "root/sessionSummaryChanged" and message["params"]["changes"].get("title") == "m2"
        )
    )
    back = await bench.connect("bob")
    result = await back.ask("reconnect", clientId="bob", lastSeenServerSeq=last, subscriptions=[session, ROOT])
    assert result["type"] == "replay"
    renamed = [e for e in result["actions"] if e["action"]["type"] == "session/titleChanged"]
    assert renamed == missed
    assert result["missing"] == []
    assert [m for m in back.received if m.get("method", "").startswith("root/")] == []
    live = await alice.accepted(session, {"type": "session/titleChanged", "title": "live"})
    assert await back.action("session/titleChanged") == live


class Counted(MemoryStorage):
    """Counts how many entries were read of it."""

    found = 0

    def read(self, after: int, **options: Any) -> list[Entry]:
        entries = super().read(after, **options)
        self.found += len(entries)
        return entries


async def test_what_was_missed_is_read_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.storage = log = Counted()
    await bench.start()
    alice = await bench.client()
    session, _ = await bench.session(alice)
    last = (await alice.accepted(session, {"type": "session/titleChanged", "title": "seen"}))["serverSeq"]
    for number in range(5000):
        bench.host.services.dispatch(session, {"type": "session/titleChanged", "title": f"title {number}"})
    await bench.host.services.durable()
    back, wish = await bench.connect("bob"), {"ahpkit/missed": "actions"}
    log.found = 0
    params: Json = {"clientId": "bob", "subscriptions": [session], "_meta": wish}
    result = await back.ask("reconnect", lastSeenServerSeq=last, **params)
    titles = [one["action"]["title"] for one in result["actions"] if "title" in one["action"]]
    assert titles == [f"title {number}" for number in range(5000)]
    assert log.found < 1.1 * len(result["actions"])
    await bench.stop()


@requirement("core:connection:reconnect-missing")
async def test_reconnect_lists_channels_that_are_gone(bench: Bench) -> None:
    client = await bench.client(client_id="c")
    session, chat = await bench.session(client)
    last = (await client.accepted(session, {"type": "session/titleChanged", "title": "t"}))["serverSeq"]
    await client.aclose()
    other = await bench.client()
    await other.ask("disposeSession", session)
    back = await bench.connect("c")
    result = await back.ask("reconnect", clientId="c", lastSeenServerSeq=last, subscriptions=[session, chat])
    assert sorted(result["missing"]) == sorted([session, chat])


@requirement("core:connection:reconnect-snapshot")
async def test_reconnect_answers_with_snapshots_when_the_log_cannot_bridge_the_gap(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    back = await bench.connect("late")
    result = await back.ask("reconnect", clientId="late", lastSeenServerSeq=10_000, subscriptions=[session])
    assert result["type"] == "snapshot"
    assert [snapshot["resource"] for snapshot in result["snapshots"]] == [session]


async def test_the_same_client_connecting_again_takes_over_and_closes_the_old_connection(bench: Bench) -> None:
    old = await bench.client(client_id="twin")
    new = await bench.client(client_id="twin")
    assert "again" in (await old.wait_closed()).reason
    assert await new.ask("ping") is None


async def test_who_subscribes_again_and_again_is_subscribed_once(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    for _ in range(500):
        client.send({"jsonrpc": "2.0", "id": "again", "method": "subscribe", "params": {"channel": session}})
        await asyncio.sleep(0)
    assert await client.ask("ping") is None
    assert len(bench.host.spine.fanout.subscribers(session)) == 1


async def test_a_flood_closes_the_connection_with_the_reason(bench: Bench) -> None:
    await bench.stop()
    bench.config = replace(bench.config, message_rate=10, message_burst=500)
    await bench.start()
    client = await bench.client()
    nothing = b'{"jsonrpc":"2.0","method":"unsubscribe","params":{"channel":"ahp-chat:/x"}}'
    client.transport.write(client.transport.frame(nothing) * 2_000)
    assert "too many messages" in (await client.wait_closed()).reason
    other = await bench.client()
    assert await other.ask("ping") is None


async def _forever(turn: object) -> None:
    await asyncio.Event().wait()
