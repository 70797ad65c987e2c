"""Thousands of messages that are a little wrong, against a real host: nothing in it fails, and it stays friendly."""

from __future__ import annotations

import json
import random
from typing import Any, cast

import pytest

from support.flow import open_session, say, title
from support.process import HostProcess
from support.raw_client import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = "ahp-root://"
WORDS = ["", "x", "chat/delta", "session/titleChanged", ROOT, "ahp-chat:/x", "t1", "__proto__", "\u0000", "ü" * 50]
KEYS = [*WORDS, "type", "id", "uri", "title"]
SCALARS = [None, True, False, 0, -1, 1.5, 2**53, 2**64, 10**30]


def strange(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON, with a liking for what the protocol uses."""
    kind = rng.randrange(8 if depth < 3 else 5)
    if kind < 2:
        return rng.choice(WORDS)
    if kind < 5:
        return rng.choice(SCALARS)
    if kind < 6:
        return [strange(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): strange(rng, depth + 1) for _ in range(rng.randrange(5))}


def disturbed(rng: random.Random, value: Any) -> Any:
    """The value with one place in it changed."""
    if rng.random() < 0.2 or not isinstance(value, dict | list) or not value:
        return strange(rng)
    if isinstance(value, list):
        items = list(cast("list[Any]", value))
        place = rng.randrange(len(items))
        items[place] = disturbed(rng, items[place])
        return items
    members = dict(cast("Json", value))
    key = rng.choice(list(members))
    if rng.random() < 0.2:
        del members[key]
    else:
        members[key] = disturbed(rng, members[key])
    return members


def samples(session: str, chat: str) -> list[Json]:
    """One message of each kind that a client sends, all of them good."""
    message = say("x")["message"]
    annotation = {"id": "a", "resource": "file:///x", "entries": [{"id": "e", "text": "t"}]}
    actions: list[tuple[str, Json]] = [
        (session, title("x")),
        (session, {"type": "session/modelChanged", "model": {"id": "demo-small"}}),
        (session, {"type": "session/configChanged", "config": {"greeting": "Hola"}}),
        (session, {"type": "session/activeClientChanged", "activeClient": {"clientId": "fuzz", "tools": []}}),
        (session, {"type": "session/isArchivedChanged", "isArchived": True}),
        (f"{session}/annotations", {"type": "annotations/set", "annotation": annotation}),
        (chat, say("/stream 3", "t")),
        (chat, {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message}),
        (chat, {"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "c", "approved": True}),
        (chat, {"type": "chat/inputCompleted", "requestId": "r", "response": "accept", "answers": {}}),
        (chat, {"type": "chat/turnCancelled", "turnId": "t"}),
        (chat, {"type": "chat/truncated", "turnId": "t"}),
    ]
    requests: list[tuple[str, Json]] = [
        ("subscribe", {"channel": session}),
        ("listSessions", {"channel": ROOT}),
        ("fetchTurns", {"channel": chat, "limit": 5}),
        ("createChat", {"channel": session, "chat": "ahp-chat:/fuzz", "initialMessage": message}),
        ("completions", {"channel": chat, "text": "/he", "offset": 3, "kind": "userMessage"}),
        ("resolveSessionConfig", {"channel": ROOT, "provider": "demo", "config": {}}),
        ("sessionConfigCompletions", {"channel": ROOT, "provider": "demo", "property": "topic", "query": "m"}),
        ("resourceRead", {"channel": ROOT, "uri": "file:///no/such/file"}),
        ("resourceList", {"channel": ROOT, "uri": "file:///no/such/place"}),
        ("createResourceWatch", {"channel": ROOT, "uri": "file:///no/such/place", "recursive": False}),
        ("createTerminal", {"channel": "ahp-terminal:/x", "claim": {"kind": "client", "clientId": "fuzz"}}),
        ("authenticate", {"channel": ROOT, "resource": "https://example.com", "token": "t"}),
        ("_ahpkit/sessions/import", {"channel": ROOT, "document": {"format": 1, "chats": []}}),
    ]
    dispatched: list[Json] = [
        {"method": "dispatchAction", "params": {"channel": uri, "action": action}} for uri, action in actions
    ]
    asked: list[Json] = [{"id": method, "method": method, "params": params} for method, params in requests]
    return [{"jsonrpc": "2.0", **message} for message in (*dispatched, *asked)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
async def test_no_disturbed_message_disturbs_the_host(host: HostProcess, seed: int) -> None:
    rng = random.Random(seed)
    client = await host.client(ROOT, client_id="fuzz")
    session, chat = await open_session(client)
    good = samples(session, chat)
    for number in range(4000):
        message = json.loads(json.dumps(rng.choice(good)))
        if message["method"] == "dispatchAction":
            message["params"]["action"] = disturbed(rng, message["params"]["action"])
            message["params"]["clientSeq"] = 1000 + number
        else:
            message["params"] = disturbed(rng, message["params"])
        if number % 10 == 0:
            message = disturbed(rng, message)
        client.send_bytes(json.dumps(message).encode())
        if number % 100 == 0:
            await client.ask("ping")
            client.received.clear()
    assert (await client.accepted(session, title("unimpressed")))["serverSeq"] > 0
    assert "Traceback" not in host.errors, host.errors
    await client.aclose()
