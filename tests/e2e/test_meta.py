"""`_meta` on its way through a real host and a real agent process: clients, log, replay, crash, fork, export."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ahpkit.protocol.meta_keys import MISSED
from support import requirement
from support.process import HostProcess, finish_cli, start_host
from support.raw_client import Json, RawClient
from support.scripted_acp import scripted_command

NAME = "example.com/analytics"
SESSION = "ahp-session:/meta"
OWN: Json = {"example.com/x": {"deep": [1, None, "ü"]}, "requestId": "r-1", "turn": 1, "self": 2, "session_id": "evil"}
TRACE: Json = {"traceparent": "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01", "baggage": "user=ada"}
ATTACHMENTS = [
    {"type": "simple", "label": "l", "modelRepresentation": "words", "_meta": {"a/1": 1}},
    {"type": "resource", "uri": "file:///x", "label": "r", "_meta": {"a/2": 2}},
]
STEPS: list[Json] = [
    {
        "update": {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "hi", "_meta": {"block": 1}},
            "_meta": {"chunk": 2},
        },
        "fields": {"_meta": {"notification": 3}},
    },
    {
        "update": {
            "sessionUpdate": "tool_call",
            "toolCallId": "read",
            "title": "Read",
            "kind": "read",
            "status": "completed",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "c", "_meta": {"b": 1}}, "_meta": {"i": 2}}
            ],
            "_meta": {"call": 1},
        }
    },
    {
        "update": {
            "sessionUpdate": "plan",
            "entries": [{"content": "p", "priority": "high", "status": "pending", "_meta": {"entry": 1}}],
            "_meta": {"plan": 1},
        }
    },
    {
        "request": "session/request_permission",
        "params": {
            "toolCall": {"toolCallId": "write", "title": "Write", "kind": "edit", "_meta": {"asked": 1}},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once", "_meta": {"option": 1}}],
            "_meta": {"permission": 1},
        },
    },
    {
        "request": "elicitation/create",
        "params": {"mode": "form", "message": "Sure?", "requestedSchema": {}, "_meta": {"question": 1}},
    },
    {"request": f"_{NAME}/buffers", "params": {"channel": "mine", "_meta": {"ext": 1}}},
    {"stop": "end_turn", "_meta": {"result": 1}},
]


class Stage:
    """A host with a scripted agent, killed and started again at will."""

    def __init__(self, directory: Path) -> None:
        self._record = directory / "record.jsonl"
        self.home = directory / "home"
        self.home.mkdir()
        capabilities = {"loadSession": True, "promptCapabilities": {}, "_meta": {NAME: {"version": "1.0"}}}
        command = scripted_command(
            directory / "script.json",
            turns=[STEPS],
            record=str(self._record),
            store=str(directory / "store"),
            initialize={"agentCapabilities": capabilities},
        )
        self._agent = f"scripted={' '.join(command)}"
        self.host: HostProcess

    async def start(self) -> None:
        self.host = await start_host(self.home, "--agent", self._agent)

    async def crash(self) -> None:
        self.host.kill()
        await self.host.ended()

    def agent_got(self, method: str | None) -> list[Json]:
        """Messages the agent received: those of a method, or answers."""
        messages = [json.loads(line) for line in self._record.read_text().splitlines()]
        return [message for message in messages if message.get("method") == method]


@asynccontextmanager
async def staged(directory: Path) -> AsyncGenerator[Stage]:
    stage = Stage(directory)
    await stage.start()
    try:
        yield stage
    finally:
        await stage.crash()


async def begin(stage: Stage) -> tuple[RawClient, str]:
    """A client that shares an extension with the agent, in a session of it."""
    client = await stage.host.connect("first")
    await client.initialize("ahp-root://", capabilities={"_meta": {NAME: {"version": "1.0"}, "terminal_output": True}})
    await client.ask("createSession", SESSION, provider="scripted")
    chat = (await state(client, SESSION))["chats"][0]["resource"]
    await state(client, chat)
    return client, chat


async def play(client: RawClient, chat: str) -> Json:
    """The whole scripted turn; the extension request as the client got it."""
    message = {"text": "go", "origin": {"kind": "user"}, "_meta": OWN | TRACE, "attachments": ATTACHMENTS}
    await client.accepted(chat, {"type": "chat/turnStarted", "turnId": "t", "message": message, "_meta": {"x/y": 1}})
    ready = {"type": "chat/toolCallReady", "toolCallId": "write"}
    await client.action(lambda e: ready.items() <= e["action"].items())
    confirmed = {"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "write", "approved": True}
    await client.accepted(chat, {**confirmed, "confirmed": "user-action", "_meta": {"client.dev/why": "sure"}})
    question = (await client.action("chat/inputRequested"))["action"]["request"]
    assert question["_meta"] == {"ahpkit/acp": {"meta": {"question": 1}}}
    declined = {"type": "chat/inputCompleted", "requestId": question["id"], "response": "decline"}
    await client.accepted(chat, {**declined, "_meta": {"client.dev/why": "busy"}})
    asked = await client.wait(lambda m: m.get("method") == f"_{NAME}/buffers")
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"buffers": [], "_meta": {"back": 1}}})
    await client.action("chat/turnComplete")
    return asked["params"]


async def state(client: RawClient, uri: str) -> Json:
    return (await client.ask("subscribe", uri))["snapshot"]["state"]


@requirement(
    "extensibility:capabilities:advertised",
    "extensibility:capabilities:in-capability-meta",
    "extensibility:meta:on-every-type",
    "extensibility:meta:correlation-fields",
    "extensibility:meta:preserved-when-forwarding",
)
async def test_meta_of_clients_reaches_the_agent_and_meta_of_the_agent_reaches_clients(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client, chat = await begin(stage)
        asked = await play(client, chat)
        [turn], session = (await state(client, chat))["turns"], await state(client, SESSION)
        [hello], [prompt] = stage.agent_got("initialize"), stage.agent_got("session/prompt")
        agents = (await state(client, "ahp-root://"))["agents"]

    # At the agent's start: what it can ask for, and no bare name of a client that would switch something on in it.
    announced = hello["params"]["clientCapabilities"]["_meta"]
    ours = {"ahpkit/permission-answer": {"version": "1"}, "terminal_output": True, "terminal_output_delta": True}
    assert announced == {NAME: {"version": "1.0"}} | ours
    # Down: the message, its attachments, the answer to the permission, the answer of the extension.
    assert prompt["params"]["_meta"] == OWN | TRACE
    assert [block.get("_meta") for block in prompt["params"]["prompt"]] == [None, {"a/1": 1}, {"a/2": 2}]
    permitted, answered, extension = [answer["result"] for answer in stage.agent_got(None)]
    assert permitted["_meta"] == {"client.dev/why": "sure"}
    assert answered == {"action": "decline", "_meta": {"client.dev/why": "busy"}}
    assert extension == {"buffers": [], "_meta": {"back": 1}}
    assert asked == {
        "channel": chat,
        "sessionId": prompt["params"]["sessionId"],
        "_meta": {"ext": 1, "ahpkit/agent-channel": "mine"},
    }
    # Up: calls, their content and options, the message, the result, the plan, the agent's own announcement.
    read, write = [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]
    assert read["_meta"]["ahpkit/acp"] == {"kind": "read", "meta": {"call": 1}}
    assert read["content"][0]["_meta"]["ahpkit/acp"] == {"meta": {"i": 2}, "block": {"b": 1}}
    assert write["_meta"]["client.dev/why"] == "sure"
    assert write["_meta"]["ahpkit/acp"] == {"kind": "edit", "meta": {"asked": 1, "permission": 1}}
    [offered] = [e["action"]["options"] for e in client.actions(chat) if "options" in e["action"]]
    assert offered[0]["_meta"]["ahpkit/acp"] == {"meta": {"option": 1}}
    facts = turn["usage"]["_meta"]["ahpkit/acp"]
    assert facts["message"] == {"block": 1, "chunk": 2, "notification": 3}
    assert facts["result"] == {"result": 1}
    assert session["_meta"]["ahpkit/acp"][chat]["session"] == {"plan": 1}
    assert session["_meta"]["ahpkit/plan"][chat][0]["entries"][0]["_meta"] == {"entry": 1}
    [scripted] = [agent for agent in agents if agent["provider"] == "scripted"]
    assert scripted["_meta"]["ahpkit/agent"]["capabilities"]["_meta"] == {NAME: {"version": "1.0"}}


@requirement("extensibility:meta:preserved-when-forwarding")
async def test_meta_is_the_same_for_a_second_client_in_a_replay_and_after_a_crash(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client, chat = await begin(stage)
        second = await stage.host.client(chat, client_id="second")
        await play(client, chat)
        await second.action("chat/turnComplete")
        seen, before, session = second.actions(chat), await state(client, chat), await state(client, SESSION)
        assert seen == [e for e in client.actions(chat) if e["serverSeq"] >= seen[0]["serverSeq"]]
        await stage.crash()

        await stage.start()
        back = await stage.host.connect("second")
        since: Json = {"lastSeenServerSeq": seen[0]["serverSeq"] - 1, "subscriptions": [chat]}
        replayed = await back.ask("reconnect", clientId="second", **since, _meta={MISSED: "actions"})
        assert replayed["actions"][: len(seen)] == seen
        after = await state(back, chat)
        assert (after["turns"], (await state(back, SESSION))["_meta"]) == (before["turns"], session["_meta"])


@requirement("extensibility:meta:preserved-when-forwarding")
async def test_meta_goes_along_with_a_fork_an_export_and_an_import(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client, chat = await begin(stage)
        await play(client, chat)
        turns = (await state(client, chat))["turns"]
        fork = {"session": SESSION, "turnId": "t"}
        await client.ask("createSession", "ahp-session:/fork", provider="scripted", fork=fork)
        assert await turns_of(client, "ahp-session:/fork") == turns

        where: list[str] = ["--url", stage.host.url, "--token", stage.host.token or ""]
        code, document, errors = await finish_cli(["sessions", "export", SESSION, *where], stage.home)
        assert code == 0, errors
        exported = json.loads(document)["chats"][0]["turns"]  # In the form of 1.0, which says more of a turn than 0.4.
        for turn in exported:
            turn["responseParts"] = [part for part in turn["responseParts"] if part["kind"] != "inputRequest"]
        assert [{key: turn[key] for key in known} for turn, known in zip(exported, turns, strict=True)] == turns
        file = tmp_path / "exported.json"
        file.write_text(document)
        code, _, errors = await finish_cli(["sessions", "import", str(file), *where], stage.home)
        assert code == 0, errors
        known = {SESSION, "ahp-session:/fork"}
        items: list[Any] = (await client.ask("listSessions"))["items"]
        [imported] = [item["resource"] for item in items if item["resource"] not in known]
        assert await turns_of(client, imported) == turns


async def turns_of(client: RawClient, session: str) -> list[Json]:
    chats = (await state(client, session))["chats"]
    return (await state(client, chats[0]["resource"]))["turns"]


@requirement("extensibility:meta:on-every-type", "extensibility:meta:attach-own-data")
async def test_meta_of_whatever_else_a_client_puts_into_states_stays(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = await stage.host.client(client_id="first")
        await client.ask("createSession", SESSION, provider="demo")
        chat = (await state(client, SESSION))["chats"][0]["resource"]
        await state(client, chat)
        tool = {"name": "pick", "description": "d", "inputSchema": {"type": "object"}, "_meta": OWN}
        claim = {"clientId": "first", "tools": [tool], "_meta": OWN}
        await client.accepted(SESSION, {"type": "session/activeClientChanged", "activeClient": claim})
        queued = {"text": "/slow", "origin": {"kind": "user"}, "_meta": OWN, "attachments": ATTACHMENTS}
        await client.accepted(chat, {"type": "chat/turnStarted", "turnId": "a", "message": {**queued, "text": "hello"}})
        pending = {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": queued}
        await client.accepted(chat, pending)
        await client.action(lambda e: e["action"].get("queuedMessageId") == "q")
        await client.wait(lambda m: sum(e["action"]["type"] == "chat/turnComplete" for e in client.actions(chat)) == 2)
        remark = {"id": "e", "text": "hm", "_meta": OWN}
        thread = {
            "id": "n",
            "turnId": "a",
            "resource": "file:///x",
            "resolved": False,
            "entries": [remark],
            "_meta": OWN,
        }
        await state(client, f"{SESSION}/annotations")
        await client.accepted(f"{SESSION}/annotations", {"type": "annotations/set", "annotation": thread})
        session, kept = await state(client, SESSION), await state(client, chat)
        await stage.crash()

        await stage.start()
        again = await stage.host.client(client_id="other")
        turns = (await state(again, chat))["turns"]
        assert (await state(again, f"{SESSION}/annotations"))["annotations"] == [thread]
    assert session["activeClient"] == claim
    assert turns == kept["turns"]
    assert [turn["message"]["_meta"] for turn in turns] == [OWN, OWN]
    assert [turn["message"]["attachments"] for turn in turns] == [ATTACHMENTS, ATTACHMENTS]
