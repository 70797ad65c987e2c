"""What belongs to a message and its turn: model and agent, times, drafts, activity. On a host behind real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.openai import OpenAiAgent, OpenAiConfig
from ahpkit.agents.python import agent
from ahpkit.client import connect
from ahpkit.host.agent import Turn
from ahpkit.protocol.session.actions import session_customizations_changed
from ahpkit.testing.fake_model import FakeModel
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient
from support.scripted_acp import Scripted

STARTED = "2026-11-15T12:00:00.000Z"
USER = {"origin": {"kind": "user"}}


def start(text: str, turn_id: str = "t1", **message: Any) -> Json:
    return say(text, turn_id, startedAt=STARTED) | {"message": {"text": text, **USER, **message}}


async def turn_of(bench: Bench, client: RawClient, chat: str, turn_id: str) -> Json:
    """A turn once it is over."""
    await client.action(
        lambda said: said["action"]["type"] == "chat/turnComplete" and said["action"]["turnId"] == turn_id
    )
    return next(turn for turn in (await bench.state(client, chat))["turns"] if turn["id"] == turn_id)


async def three(bench: Bench) -> tuple[RawClient, RawClient, RawClient, str, str]:
    """Clients of 0.4, 0.9 and 1.0 in one session, and its chat."""
    old = await bench.client("ahp-root://", client_id="old")
    session, chat = await bench.session(old)
    newer: list[RawClient] = []
    for name, version in (("vscode", "0.9.0"), ("new", "1.0.0")):
        client = await bench.client("ahp-root://", client_id=name, offer=[version])
        for uri in (session, chat):
            await client.ask("subscribe", uri)
        newer.append(client)
    return old, newer[0], newer[1], session, chat


REVIEWER = "file:///reviewer.md"


def with_reviewer(bench: Bench, session: str) -> None:
    """Give a session a custom agent."""
    role: Any = {"type": "agent", "id": "a", "uri": REVIEWER, "name": "Reviewer"}
    folder: Any = {"type": "directory", "id": "d", "uri": "file:///d", "name": "d", "enabled": True}
    folder |= {"contents": "agent", "writable": False, "children": [role]}
    bench.host.services.dispatch(session, session_customizations_changed(customizations=[folder]))


# -- model and agent -----------------------------------------------------------------------------------------------


@requirement("gen:message:model-per-message", "gen:message:model-recorded")
@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
async def test_each_message_has_its_model_and_the_history_shows_it(sockets: Bench, version: str) -> None:
    client = await sockets.client("ahp-root://", client_id="new", offer=[version])
    session, chat = await sockets.session(client)
    await client.accepted(chat, start("one", "t1", model={"id": "large", "config": {"effort": 3}}))
    first = await turn_of(sockets, client, chat, "t1")
    await client.accepted(chat, start("two", "t2"))
    second = await turn_of(sockets, client, chat, "t2")
    assert first["message"]["model"] == {"id": "large", "config": {"effort": 3}}
    assert second["message"]["model"] == {"id": "small"}, "without a choice the default answers, and is named"
    assert "agent" not in second["message"]
    with_reviewer(sockets, session)
    await client.accepted(chat, start("three", "t3", agent={"uri": REVIEWER}))
    assert (await turn_of(sockets, client, chat, "t3"))["message"]["agent"] == {"uri": REVIEWER}
    await client.accepted(chat, start("four", "t4"))
    assert "agent" not in (await turn_of(sockets, client, chat, "t4"))["message"]
    assert [turn.message.get("agent") for turn in sockets.agent.turns] == [None, None, {"uri": REVIEWER}, None]
    assert [turn.model["id"] for turn in sockets.agent.turns if turn.model] == [
        "large",
        "small",
        "small",
        "small",
    ]


@requirement("gen:message:primitive-config")
@pytest.mark.parametrize("version", ["0.5.0", "0.7.0", "0.9.0", "1.0.0"])
async def test_settings_of_a_model_keep_numbers_and_truth_and_null(sockets: Bench, version: str) -> None:
    settings: Json = {"effort": 3, "share": 0.5, "fast": True, "slow": False, "seed": None, "tone": "3"}
    client = await sockets.client("ahp-root://", client_id="one", offer=[version])
    session, chat = await sockets.session(client)
    await client.accepted(chat, start("one", "t1", model={"id": "large", "config": settings}))
    await turn_of(sockets, client, chat, "t1")
    [turn] = sockets.agent.turns
    assert repr(turn.model and turn.model.get("config")) == repr(settings), "the agent gets them as they are"
    await sockets.restart()
    for reader in ("0.4.0", "0.7.0", "0.9.0", "1.0.0"):
        other = await sockets.client("ahp-root://", session, chat, client_id=reader, offer=[reader])
        [seen] = (await sockets.state(other, chat))["turns"]
        assert repr(seen["message"]["model"]["config"]) == repr(settings), reader


@requirement("gen:project-command:model-up", "gen:message:model-recorded", "gen:project-action:selection-0-4")
@requirement("gen:project-state:session-0-4")
async def test_what_a_0_4_client_chose_holds_for_messages_that_name_nothing(sockets: Bench) -> None:
    old = await sockets.client("ahp-root://", client_id="old")
    session, chat = await sockets.session(old, model={"id": "large"})
    new = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    await new.ask("subscribe", chat)
    await old.accepted(chat, say("one", "t1"))
    assert (await turn_of(sockets, new, chat, "t1"))["message"]["model"] == {"id": "large"}
    await new.accepted(chat, start("two", "t2"))
    assert (await turn_of(sockets, new, chat, "t2"))["message"]["model"] == {"id": "large"}
    await new.accepted(chat, start("three", "t3", model={"id": "small"}))
    assert (await turn_of(sockets, new, chat, "t3"))["message"]["model"] == {"id": "small"}
    assert [turn.model["id"] for turn in sockets.agent.turns if turn.model] == ["large", "large", "small"]
    with_reviewer(sockets, session)
    other = await sockets.client(session, client_id="other")
    await old.accepted(session, {"type": "session/agentChanged", "agent": {"uri": REVIEWER}})
    assert (await other.action("session/agentChanged"))["action"] == {
        "type": "session/agentChanged",
        "agent": {"uri": REVIEWER},
    }
    summary = (await sockets.state(other, session))["summary"]
    assert (summary["resource"], summary["model"], summary["agent"]) == (session, {"id": "large"}, {"uri": REVIEWER})
    assert isinstance(summary["createdAt"], int)
    assert isinstance(summary["modifiedAt"], int)
    for number, client in ((4, old), (5, new)):
        await client.accepted(chat, start("x", f"t{number}"))
        assert (await turn_of(sockets, new, chat, f"t{number}"))["message"]["agent"] == {"uri": REVIEWER}
    await old.accepted(session, {"type": "session/agentChanged"})
    await old.accepted(chat, say("x", "t6"))
    assert "agent" not in (await turn_of(sockets, new, chat, "t6"))["message"]


@requirement("gen:message:model-recorded")
async def test_queued_and_first_messages_name_their_model_too(sockets: Bench) -> None:
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    session, chat = await sockets.session(client)
    queued = {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": {"text": "later", **USER}}
    await client.accepted(chat, queued)
    await client.action("chat/turnComplete")
    assert (await sockets.state(client, chat))["turns"][0]["message"]["model"] == {"id": "small"}
    first = {"text": "first", **USER, "model": {"id": "large"}}
    await client.ask("createChat", session, chat="ahp-chat:/more", initialMessage=first)
    state = (await client.ask("subscribe", "ahp-chat:/more"))["snapshot"]["state"]
    if not state["turns"]:
        await client.action(
            lambda said: said["channel"] == "ahp-chat:/more" and "turnComplete" in said["action"]["type"]
        )
    assert (await sockets.state(client, "ahp-chat:/more"))["turns"][0]["message"]["model"] == {"id": "large"}


async def recorded(bench: Bench, provider: str, **chosen: Any) -> str:
    """The model in the history after one message."""
    async with connect(bench.url) as client:
        chat = await (await client.create_session(provider=provider)).chat()
        await chat.ask("hello", **chosen)
        return chat.state["turns"][-1]["message"].get("model", {}).get("id", "")


@requirement("gen:message:model-per-message", "gen:message:model-recorded")
async def test_every_kind_of_agent_uses_the_model_of_the_message(sockets: Bench, tmp_path: Path) -> None:
    used: list[str] = []

    @agent(name="function", models=["a", "b"])
    async def function(turn: Turn) -> str:
        used.append(turn.model["id"] if turn.model else "")
        return "done"

    models = {"availableModels": [{"modelId": id, "name": id} for id in ("a", "b")], "currentModelId": "b"}
    acp = Scripted(tmp_path)
    async with FakeModel() as model:
        endpoint = OpenAiAgent(OpenAiConfig(name="endpoint", base_url=model.url, models=("a", "b")))
        sockets.agents = [function, endpoint, acp.agent(config={"name": "acp"}, session={"models": models})]
        await sockets.restart()
        for provider, default in (("function", "a"), ("endpoint", "a"), ("acp", "b")):
            other = "b" if default == "a" else "a"
            assert await recorded(sockets, provider) == default
            assert await recorded(sockets, provider, model=other) == other
        assert used == ["a", "b"]
        assert [asked.body["model"] for asked in model.requests] == ["a", "b"]
        assert [change["modelId"] for change in acp.received("session/set_model")] == ["a"]


@requirement("gen:message:user-only")
@pytest.mark.parametrize("kind", ["agent", "systemNotification", "automation"])
async def test_clients_speak_for_users_only(sockets: Bench, kind: str) -> None:
    client = await sockets.client("ahp-root://", client_id="new", offer=["1.0.0"])
    _, chat = await sockets.session(client)
    message = {"text": "hi", "origin": {"kind": kind}}
    for action in (
        {**start("hi"), "message": message},
        {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message},
        {"type": "chat/pendingMessageSet", "kind": "steering", "id": "s", "message": message},
        {"type": "chat/draftChanged", "draft": message},
    ):
        assert "kind user" in await client.rejected(chat, action)
    state = await sockets.state(client, chat)
    assert not {"activeTurn", "queuedMessages", "steeringMessage", "draft"} & state.keys()
    await client.accepted(chat, start("hi"))


# -- times ---------------------------------------------------------------------------------------------------------


@requirement("gen:turn:started-at-required", "gen:turn:duration-emitted")
@pytest.mark.parametrize("version", ["0.6.0", "0.7.0", "0.9.0", "1.0.0"])
async def test_times_that_cannot_be_read_are_refused(sockets: Bench, version: str) -> None:
    async def waits(turn: Turn) -> None:
        await turn.wait_steering()

    sockets.agent.script = waits
    client = await sockets.client("ahp-root://", client_id="new", offer=[version])
    _, chat = await sockets.session(client)
    bare = {key: value for key, value in start("hi").items() if key != "startedAt"}
    for wrong in (bare, {**bare, "startedAt": "yesterday"}, {**bare, "startedAt": 12}, {**bare, "startedAt": ""}):
        assert "startedAt" in await client.rejected(chat, wrong)
    for unreadable in ("2026-W46-2", "20261115T120000Z", "2026-11-15T12Z", "2026-11-15T12:00:00,5Z", f"{STARTED}\n"):
        refused = await client.rejected(chat, {**bare, "startedAt": unreadable})
        assert "startedAt" in refused, "JavaScript cannot read it, and reducers there would fail"
    await client.accepted(chat, start("hi"))
    assert "duration" in await client.rejected(chat, {"type": "chat/turnCancelled", "turnId": "t1"})
    await client.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 5})


@requirement("gen:turn:duration-emitted", "gen:project-action:started-at-added")
async def test_ends_say_how_long_turns_took(sockets: Bench) -> None:
    async def script(turn: Turn) -> None:
        if turn.prompt == "fail":
            raise RuntimeError
        if turn.prompt == "wait":
            await turn.wait_steering()

    sockets.agent.script = script
    old, vscode, new, _, chat = await three(sockets)
    await old.accepted(chat, say("done", "t1"))
    for client in (old, vscode, new):
        assert isinstance((await client.action("chat/turnComplete"))["action"]["duration"], int)
    await old.accepted(chat, say("fail", "t2"))
    assert isinstance((await new.action("chat/error"))["action"]["duration"], int)
    await old.accepted(chat, say("wait", "t3"))
    await old.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t3"})
    assert isinstance((await new.action("chat/turnCancelled"))["action"]["duration"], int)
    turns = (await sockets.state(new, chat))["turns"]
    assert all(turn["startedAt"] and turn["duration"] >= 0 for turn in turns)
    assert all("startedAt" not in turn for turn in (await sockets.state(old, chat))["turns"])


@requirement("gen:turn:known-id")
@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", "1.0.0"])
async def test_a_turn_that_is_there_is_not_started_again(sockets: Bench, version: str) -> None:
    client = await sockets.client("ahp-root://", client_id="x", offer=[version])
    _, chat = await sockets.session(client)
    await client.accepted(chat, start("hi"))
    await turn_of(sockets, client, chat, "t1")
    before = await sockets.state(client, chat)
    assert "already a turn" in await client.rejected(chat, start("again"))
    assert await sockets.state(client, chat) == before
    assert len(sockets.agent.turns) == 1


# -- drafts --------------------------------------------------------------------------------------------------------


@requirement("gen:draft:not-in-summary", "gen:draft:set-and-clear", "gen:draft:survives-turn-start")
async def test_a_draft_is_shared_and_is_in_no_summary(sockets: Bench) -> None:
    old, vscode, new, session, chat = await three(sockets)
    draft = {"text": "half a thou", **USER}
    await vscode.accepted(chat, {"type": "chat/draftChanged", "draft": draft})
    assert (await new.action("chat/draftChanged"))["action"]["draft"] == draft
    await new.accepted(chat, start("hi"))
    await turn_of(sockets, new, chat, "t1")
    assert (await sockets.state(new, chat))["draft"] == draft, "whoever sends it clears it"
    seen = [said["action"] for client in (old, vscode, new) for said in client.actions(session)]
    assert not any("draft" in action.get("changes", {}) for action in seen)
    assert all("draft" not in one for one in (await sockets.state(new, session))["chats"])
    assert "draft" not in await sockets.state(old, chat)
    assert not any(said["action"]["type"] == "chat/draftChanged" for said in old.actions(chat))
    await new.accepted(chat, {"type": "chat/draftChanged"})
    assert "draft" not in await sockets.state(vscode, chat)


@requirement("gen:draft:survives-restart")
async def test_a_draft_outlives_the_host(sockets: Bench) -> None:
    async with connect(sockets.url) as client:
        session = await client.create_session()
        chat = await session.chat()
        await chat.write_draft("to be continued").accepted()
        uri = chat.uri
    await sockets.restart()
    for version in ("0.9.0", "1.0.0"):
        raw = await sockets.client("ahp-root://", client_id=f"c{version}", offer=[version])
        state = (await raw.ask("subscribe", uri))["snapshot"]["state"]
        assert state["draft"]["text"] == "to be continued"
    async with connect(sockets.url) as client:
        chat = await (await client.session(session.uri)).chat()
        assert chat.state.get("draft", {})["text"] == "to be continued"
        await chat.write_draft(None).accepted()
        assert "draft" not in chat.confirmed


# -- activity ------------------------------------------------------------------------------------------------------


@requirement("gen:activity:mirrored", "gen:activity:cleared-at-end", "gen:activity:set-and-clear")
@pytest.mark.parametrize("end", ["complete", "cancel", "fail"])
async def test_what_a_chat_does_is_told_by_its_session_too(sockets: Bench, end: str) -> None:
    async def script(turn: Turn) -> None:
        turn.activity("Reading")
        turn.activity("Writing")
        if end == "cancel":
            await turn.wait_steering()
        if end == "fail":
            raise RuntimeError

    sockets.agent.script = script
    _, _, new, session, chat = await three(sockets)
    await new.accepted(chat, start("hi"))
    if end == "cancel":
        await new.action(lambda said: said["action"].get("activity") == "Writing")
        await new.accepted(chat, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})
    told = {"complete": "chat/turnComplete", "cancel": "chat/turnCancelled", "fail": "chat/error"}[end]
    await new.action(told)
    state = await sockets.state(new, chat)
    assert "activity" not in state
    said = [one["action"].get("activity") for one in new.actions(chat) if "activityChanged" in one["action"]["type"]]
    assert said == ["Reading", "Writing", None]
    entries = [one["action"]["changes"] for one in new.actions(session) if "chatUpdated" in one["action"]["type"]]
    mirrored = [changes["activity"] for changes in entries if "activity" in changes]
    assert mirrored == ["Reading", "Writing"]
    assert "activity" not in (await sockets.state(new, session))["chats"][0]
