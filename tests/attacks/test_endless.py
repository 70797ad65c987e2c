"""Endless sessions, chats, names and plugins are refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpkit.host.config import HostConfig
from support.bench import running_bench
from support.flow import open_session, say
from support.process import host_process
from support.raw_client import Json


async def test_a_session_more_than_the_host_takes(tmp_path: Path) -> None:
    async with running_bench(tmp_path, config=HostConfig(default_directory=tmp_path, max_sessions=3)) as bench:
        client = await bench.client()
        made = [await bench.session(client) for _ in range(3)]
        refused = await client.refused("createSession", "ahp-session:/more")
        assert "this host has 3 sessions" in refused["message"]
        await client.ask("disposeSession", made[0][0])
        await client.ask("createSession", "ahp-session:/more")


async def test_a_chat_more_than_a_session_takes(tmp_path: Path) -> None:
    async with running_bench(tmp_path, config=HostConfig(default_directory=tmp_path, max_chats=3)) as bench:
        client = await bench.client()
        session, _chat = await bench.session(client)
        for number in range(2):
            await client.ask("createChat", session, chat=f"ahp-chat:/{number}")
        refused = await client.refused("createChat", session, chat="ahp-chat:/more")
        assert "may have 3 chats" in refused["message"]
        await client.ask("disposeChat", "ahp-chat:/1")
        await client.ask("createChat", session, chat="ahp-chat:/more")


@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", "1.0.0"])
async def test_an_id_that_comes_back_in_many_actions_is_not_long(tmp_path: Path, version: str) -> None:
    long = "x" * 1_001
    async with host_process(tmp_path) as host:
        client = await host.connect()
        await client.initialize(protocolVersions=[version])
        session, chat = await open_session(client)
        message = say("hi")["message"]
        entry = {"id": "e", "text": "t"}
        annotation = {"turnId": "t", "resource": "file:///f", "resolved": False, "origin": {"session": session}}
        started = {"startedAt": "2026-11-15T00:00:00.000Z"}
        attempts: list[tuple[str, Json]] = [
            (chat, {**say("hi", long), **started}),
            (chat, {"type": "chat/pendingMessageSet", "kind": "queued", "id": long, "message": message}),
            (chat, {"type": "chat/turnCancelled", "turnId": long, "duration": 1}),
            (f"{session}/annotations", {"type": "annotations/set", "annotation": _annotation(annotation, long, entry)}),
            (
                f"{session}/annotations",
                {"type": "annotations/set", "annotation": _annotation(annotation, "a", {**entry, "id": long})},
            ),
        ]
        for channel, action in attempts:
            assert "at most 1000 characters" in await client.rejected(channel, action), action["type"]
        await client.accepted(chat, {**say("hi", "x" * 1_000), **started})
        await client.aclose()


def _annotation(rest: Json, id: str, entry: Json) -> Json:
    return {**rest, "id": id, "entries": [entry]}


async def test_what_a_client_brings_into_a_session_is_bounded(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--terminals") as host:
        client = await host.connect()
        await client.initialize(protocolVersions=["1.0.0"])
        session, _ = await open_session(client)
        plugins = [
            {"type": "plugin", "id": f"p{number}", "uri": f"virtual:/{number}", "name": "P"} for number in range(7_000)
        ]
        claim: Json = {"clientId": "tester", "tools": []}
        for more, reason in (
            ({"customizations": plugins}, "100 plugins"),
            ({"displayName": "x" * 2_000_000}, "1048576 bytes together"),
            ({"_meta": {"x": "x" * 2_000_000}}, "1048576 bytes together"),
            ({"tools": [{"name": "x" * 1_001}]}, "at most 1000 characters"),
        ):
            action = {"type": "session/activeClientSet", "activeClient": {**claim, **more}}
            assert reason in await client.rejected(session, action)
        holder = {"kind": "client", "clientId": "tester"}
        refused = await client.refused("createTerminal", "ahp-terminal:/t", claim=holder, name="x" * 1_001)
        assert "at most 1000 characters" in refused["message"]
        await client.aclose()
        await host.stop()
    assert "Traceback" not in host.errors, host.errors


@pytest.mark.slow
async def test_what_is_added_to_a_message_or_a_session_is_bounded(tmp_path: Path) -> None:
    """Eleven thousand times the same chat, attached to one message, took five gigabytes."""
    async with host_process(tmp_path, "--durability", "memory") as host:
        client = await host.connect()
        await client.initialize(protocolVersions=["1.0.0"])
        session, chat = await open_session(client)
        await client.ask("subscribe", f"{session}/annotations")
        started = {"startedAt": "2026-11-15T00:00:00.000Z"}
        simple, attached = {"type": "simple", "label": "l"}, {"type": "chat", "label": "l", "resource": chat}
        for attachments, reason in (([simple] * 1_001, "may have 1000"), ([attached] * 21, "20 chats attached")):
            message = {**say("hi")["message"], "attachments": attachments}
            queued = {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message}
            assert reason in await client.rejected(chat, {**say("hi"), **started, "message": message})
            assert reason in await client.rejected(chat, queued)
            refused = await client.refused("createChat", session, chat="ahp-chat:/n", initialMessage=message)
            assert reason in refused["message"]
        origin = {"session": session}
        remark = {"id": "a", "resource": "file:///f", "resolved": False, "origin": origin}
        entries = [{"id": str(number), "text": "x"} for number in range(10_001)]
        remarks = f"{session}/annotations"
        action: Json = {"type": "annotations/set", "annotation": {**remark, "entries": entries}}
        assert "10000 entries" in await client.rejected(remarks, action)
        await client.accepted(remarks, {"type": "annotations/set", "annotation": {**remark, "entries": entries[1:]}})
        action = {"type": "annotations/entrySet", "annotationId": "a", "entry": {"id": "more", "text": "x"}}
        assert "10000 entries" in await client.rejected(remarks, action)
        for number in range(4_999):
            one = {**remark, "id": str(number), "entries": entries[:1]}
            client.post(remarks, {"type": "annotations/set", "annotation": one})
        action = {"type": "annotations/set", "annotation": {**remark, "id": "more", "entries": entries[:1]}}
        assert "5000 annotations" in await client.rejected(remarks, action)
        await client.aclose()
        await host.stop()
    assert "Traceback" not in host.errors, host.errors


@pytest.mark.slow
async def test_rules_and_imports_are_bounded(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--durability", "memory") as host:
        client = await host.client()
        rule = {"decision": "allow", "kind": "command", "owner": "agent:demo", "scope": "everywhere"}
        long = await client.refused("_ahpkit/rules/add", **rule, tool="run", pattern="a " * 3_000)
        assert "4096 characters" in long["message"]
        for tool in range(10):
            for number in range(100):
                await client.ask("_ahpkit/rules/add", **rule, tool=f"run{tool}", pattern=f"run {number}")
            if not tool:
                full = await client.refused("_ahpkit/rules/add", **rule, tool="run0", pattern="one more")
                assert "100 rules" in full["message"]
        full = await client.refused("_ahpkit/rules/add", **rule, tool="another", pattern="one more")
        assert "1000 rules" in full["message"]
        again = await client.ask("_ahpkit/rules/add", **rule, tool="run3", pattern="run 3")
        rules = (await client.ask("_ahpkit/rules/list"))["rules"]
        assert (len(rules), rules[-1]["id"]) == (1000, again["id"]), "one that replaces another needs no room"
        turns: list[Json] = [{**TURN, "id": str(number)} for number in range(20_001)]
        for start in range(0, 20_000, 4_000):
            await client.ask("_ahpkit/sessions/stage", chat=0, turns=turns[start : start + 4_000])
        refused = await client.refused("_ahpkit/sessions/stage", chat=0, turns=turns[-1:])
        assert "20000 turns" in refused["message"]
        chats: list[Json] = [{"title": "c", "turns": []}] * 1_001
        document: Json = {"format": 1, "title": "x", "provider": "demo", "chats": chats}
        assert "1000 chats" in (await client.refused("_ahpkit/sessions/import", document=document))["message"]
        await client.aclose()


TURN: Json = {"message": say("x")["message"], "responseParts": [], "state": "complete"}
