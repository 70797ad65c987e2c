"""Sessions and chats: life cycle, forks, summaries, selections, commands."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ahpkit.host.agent import AgentError, Turn
from ahpkit.host.states import NO_CHAT
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient

ROOT = "ahp-root://"


async def summary_of(client: RawClient, session: str) -> Json:
    items = (await client.ask("listSessions"))["items"]
    return next(item for item in items if item["resource"] == session)


async def hold(turn: Turn) -> None:
    await asyncio.Event().wait()


def finish_with(text: str) -> Any:
    async def script(turn: Turn) -> None:
        turn.text(text)

    return script


async def turn_done(client: RawClient, chat: str, turn_id: str = "t1") -> Json:
    ends = ("chat/turnComplete", "chat/error", "chat/turnCancelled")
    return await client.action(
        lambda e: e["channel"] == chat and e["action"]["type"] in ends and e["action"]["turnId"] == turn_id
    )


@requirement("core:session:create-returns-at-once", "core:session:ready-or-failed")
@requirement("commands:create-session:request")
@requirement("commands:create-session:client-chooses-uri")
@requirement("commands:create-session:only-channel-required")
async def test_create_session_answers_null_at_once_and_becomes_ready(bench: Bench) -> None:
    gate = asyncio.Event()
    original = bench.agent.open

    async def slow_open(chat: Any) -> Any:
        await gate.wait()
        return await original(chat)

    bench.agent.open = slow_open
    client = await bench.client()
    assert await client.ask("createSession", "ahp-session:/mine") is None
    state = await bench.state(client, "ahp-session:/mine")
    assert state["lifecycle"] == "creating"
    await client.ask("subscribe", state["defaultChat"])
    await client.accepted(state["defaultChat"], say("early"))
    assert bench.agent.turns == []
    gate.set()
    await client.action("session/ready")
    await turn_done(client, state["defaultChat"])
    assert (await bench.state(client, "ahp-session:/mine"))["lifecycle"] == "ready"
    told = [envelope["action"]["type"] for envelope in client.actions("ahp-session:/mine")]
    assert [type for type in told if type in ("session/ready", "session/creationFailed")] == ["session/ready"]


@requirement("core:session:ready-or-failed")
async def test_a_backend_that_cannot_start_fails_the_creation_with_its_reason(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.agent.fail_open = AgentError("no key", error_type="auth")
    client = await bench.client()
    await client.ask("createSession", "ahp-session:/bad")
    state = await bench.state(client, "ahp-session:/bad")
    if state["lifecycle"] == "creating":
        await client.action("session/creationFailed")
        state = await bench.state(client, "ahp-session:/bad")
    assert state["lifecycle"] == "creationFailed"
    assert state["creationError"] == {"errorType": "auth", "message": "no key"}
    await client.ask("ping")
    told = [envelope["action"]["type"] for envelope in client.actions("ahp-session:/bad")]
    assert "session/ready" not in told
    assert told.count("session/creationFailed") <= 1
    assert "ahp-session:/bad with the agent scripted was not created: no key" in caplog.text


async def test_a_working_directory_that_does_not_exist_fails_the_creation(bench: Bench, tmp_path: Path) -> None:
    client = await bench.client()
    await client.ask("createSession", "ahp-session:/w", workingDirectory=(tmp_path / "none").as_uri())
    if (await bench.state(client, "ahp-session:/w"))["lifecycle"] == "creating":
        await client.action("session/creationFailed")
    assert "does not exist" in (await bench.state(client, "ahp-session:/w"))["creationError"]["message"]


@requirement("session:state:chats-catalogue")
async def test_the_catalogue_has_an_entry_for_every_chat_and_for_no_other(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    more = ["ahp-chat:/second", "ahp-chat:/third"]
    for uri in more:
        await client.ask("createChat", session, chat=uri)
    await client.ask("disposeChat", more[0])
    state = await bench.state(client, session)
    assert [entry["resource"] for entry in state["chats"]] == [chat, more[1]]
    for entry in state["chats"]:
        own = await bench.state(client, entry["resource"])
        assert {key: own[key] for key in entry} == entry


@requirement("core:session:default-chat-exists")
@requirement("session:state:loaded-on-subscribe")
async def test_a_session_has_a_default_chat_listed_in_its_catalogue(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    state = await bench.state(client, session)
    assert [entry["resource"] for entry in state["chats"]] == [chat]
    assert state["defaultChat"] == chat
    assert (await bench.state(client, chat))["turns"] == []


@requirement("commands:create-session:provider")
@requirement("commands:create-session:model")
@requirement("commands:create-session:working-directory")
async def test_the_choices_of_create_session_show_in_the_summary(bench: Bench, tmp_path: Path) -> None:
    client = await bench.client()
    directory = tmp_path.as_uri()
    session, _ = await bench.session(client, provider="scripted", model={"id": "large"}, workingDirectory=directory)
    summary = await summary_of(client, session)
    assert summary["provider"] == "scripted"
    assert summary["model"] == {"id": "large"}
    assert summary["workingDirectory"] == directory
    assert summary["project"] == {"uri": directory, "displayName": tmp_path.name}
    assert "agent" not in summary


async def test_wrong_params_of_create_session_are_named(bench: Bench) -> None:
    client = await bench.client()
    await client.ask("createSession", "ahp-session:/one")
    assert (await client.refused("createSession", "ahp-session:/one"))["code"] == -32003
    assert (await client.refused("createSession", "ahp-session:/two", provider="nobody"))["code"] == -32002
    assert (await client.refused("createSession", "ahp-chat:/three"))["code"] == -32602
    assert (await client.refused("createSession", "ahp-session:/four", model={"id": "huge"}))["code"] == -32602


@requirement("commands:create-session:active-client-id")
async def test_the_active_client_of_a_new_session_must_be_the_caller(bench: Bench) -> None:
    client = await bench.client()
    error = await client.refused("createSession", "ahp-session:/x", activeClient={"clientId": "other", "tools": []})
    assert error["code"] == -32602


@requirement("commands:create-session:eager-active-client")
async def test_a_session_can_start_with_its_creator_active(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client, activeClient={"clientId": client.client_id, "tools": []})
    assert (await bench.state(client, session))["activeClient"] == {"clientId": client.client_id, "tools": []}


@requirement("commands:dispose-session:request")
@requirement("commands:dispose-session:cleans-up")
@requirement("commands:dispose-session:broadcast")
async def test_dispose_session_removes_everything_and_tells_all_clients(bench: Bench) -> None:
    client, other = await bench.client(), await bench.client()
    session, chat = await bench.session(client)
    assert await client.ask("disposeSession", session) is None
    assert (await other.notification("root/sessionRemoved"))["session"] == session
    for uri in (session, chat, f"{session}/annotations"):
        assert (await client.call("subscribe", uri))["error"]["code"] in (-32001, -32008)
    assert (await client.ask("listSessions"))["items"] == []
    assert bench.agent.chats[0].closed
    assert (await client.refused("disposeSession", session))["code"] == -32001


@requirement("session:summary:surfaces")
async def test_a_new_session_is_announced_with_the_summary_that_listing_gives(bench: Bench) -> None:
    client, other = await bench.client(), await bench.client(ROOT)
    session, _ = await bench.session(client)
    added = await other.notification("root/sessionAdded")
    assert added["channel"] == ROOT
    listed = await summary_of(client, session)
    assert {k: v for k, v in added["summary"].items() if k != "modifiedAt"} == {
        k: v for k, v in listed.items() if k != "modifiedAt"
    }
    await client.accepted(session, {"type": "session/titleChanged", "title": "Told"})
    await other.wait(lambda message: message.get("params", {}).get("changes", {}).get("title") == "Told")
    told = [m["params"]["changes"] for m in other.received if m.get("method") == "root/sessionSummaryChanged"]
    listed = await summary_of(client, session)
    for changes in told:
        added["summary"].update(changes)
    assert added["summary"] == listed


@requirement("core:session:summary-broadcast")
@requirement("core:session:summary-debounced")
@requirement("session:status:in-progress")
async def test_summary_changes_reach_root_subscribers_and_the_last_value_arrives(bench: Bench) -> None:
    client, watcher = await bench.client(), await bench.client(ROOT)
    session, chat = await bench.session(client)
    bench.agent.script = hold
    await client.accepted(chat, say("go"))
    changed = await watcher.wait(
        lambda m: m.get("method") == "root/sessionSummaryChanged" and m["params"]["changes"].get("status") == 8
    )
    assert changed["params"]["session"] == session
    assert "resource" not in changed["params"]["changes"]
    for number in range(30):
        client.post(session, {"type": "session/titleChanged", "title": f"title {number}"})
    await watcher.wait(
        lambda m: m.get("method") == "root/sessionSummaryChanged" and m["params"]["changes"].get("title") == "title 29"
    )
    titles = [m for m in watcher.received if "title" in m.get("params", {}).get("changes", {})]
    assert len(titles) < 30


@requirement("core:chat:summary-kept-in-step")
@requirement("session:action:chat-updated-no-identity-sent")
async def test_a_chat_that_changes_updates_its_entry_in_the_session(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    bench.agent.script = hold
    await client.accepted(chat, say("go"))
    updated = await client.action("session/chatUpdated")
    assert updated["channel"] == session
    assert updated["action"]["chat"] == chat
    assert updated["action"]["changes"]["status"] == 8
    assert "resource" not in updated["action"]["changes"]
    assert (await bench.state(client, session))["chats"][0]["status"] == 8


@requirement("core:session:create-chat")
async def test_create_chat_adds_a_chat_and_runs_its_first_message(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    message = say("hello")["message"]
    await client.ask("createChat", session, chat="ahp-chat:/second", initialMessage=message, model={"id": "small"})
    state = await bench.state(client, "ahp-chat:/second")
    assert state["model"] == {"id": "small"}
    turn_id = (state.get("activeTurn") or state["turns"][0])["id"]
    if "activeTurn" in state:
        await turn_done(client, "ahp-chat:/second", turn_id)
    [turn] = (await bench.state(client, "ahp-chat:/second"))["turns"]
    assert turn["responseParts"][0]["content"] == "You said: hello"
    assert len((await bench.state(client, session))["chats"]) == 2
    assert (await client.refused("createChat", session, chat="ahp-chat:/second"))["code"] == -32010
    assert (await client.refused("createChat", "ahp-session:/none", chat="ahp-chat:/x"))["code"] == -32001


async def test_disposing_a_chat_removes_it_but_never_the_last_one(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    assert (await client.refused("disposeChat", chat))["code"] == -32602
    await client.ask("createChat", session, chat="ahp-chat:/other")
    assert await client.ask("disposeChat", chat) is None
    state = await bench.state(client, session)
    assert [entry["resource"] for entry in state["chats"]] == ["ahp-chat:/other"]
    assert "defaultChat" not in state
    assert (await client.refused("disposeChat", chat))["code"] == -32008


async def three_turns(bench: Bench, client: RawClient, chat: str) -> None:
    for number in (1, 2, 3):
        await client.accepted(chat, say(f"m{number}", f"t{number}"))
        await turn_done(client, chat, f"t{number}")


@requirement("core:chat:forks")
@requirement("commands:create-session:fork")
async def test_a_fork_has_everything_up_to_the_named_turn_and_nothing_after(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await three_turns(bench, client, chat)
    fork, fork_chat = await bench.session(client, fork={"session": session, "turnId": "t2"})
    state = await bench.state(client, fork_chat)
    assert [turn["id"] for turn in state["turns"]] == ["t1", "t2"]
    assert state["origin"] == {"kind": "fork", "chat": chat, "turnId": "t2"}
    await client.ask("createChat", session, chat="ahp-chat:/fork", source={"chat": chat, "turnId": "t1"})
    assert [turn["id"] for turn in (await bench.state(client, "ahp-chat:/fork"))["turns"]] == ["t1"]
    assert fork != session
    bad = {"session": session, "turnId": "t9"}
    assert (await client.refused("createSession", "ahp-session:/f", fork=bad))["code"] == -32008


@requirement("commands:fetch-turns:request")
@requirement("commands:fetch-turns:before-exclusive")
@requirement("commands:fetch-turns:from-most-recent")
@requirement("commands:fetch-turns:limit")
@requirement("commands:fetch-turns:oldest-first")
@requirement("commands:fetch-turns:has-more")
async def test_turns_are_fetched_in_pages_from_the_end(bench: Bench) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    await three_turns(bench, client, chat)

    async def page(**params: Any) -> tuple[list[str], bool]:
        result = await client.ask("fetchTurns", chat, **params)
        return [turn["id"] for turn in result["turns"]], result["hasMore"]

    assert await page() == (["t1", "t2", "t3"], False)
    assert await page(limit=2) == (["t2", "t3"], True)
    assert await page(before="t2", limit=2) == (["t1"], False)
    assert await page(before="t1") == ([], False)
    assert (await client.refused("fetchTurns", chat, before="t9"))["code"] == -32008
    assert (await client.refused("fetchTurns", chat, limit=0))["code"] == -32602


@requirement("commands:fetch-turns:host-bound")
async def test_the_hosts_own_page_bound_keeps_has_more_right(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    turn: Json = {"message": say("x")["message"], "responseParts": [], "state": "complete"}
    turns: list[Any] = [{**turn, "id": f"t{n}"} for n in range(500)]
    bench.host.services.open_channel(chat, {**(bench.host.services.chat(chat) or NO_CHAT), "turns": turns})
    await bench.host.services.durable()
    result = await client.ask("fetchTurns", chat, limit=400)
    assert len(result["turns"]) < 400
    assert result["turns"][-1]["id"] == "t499"
    assert result["hasMore"] is True
    assert session


@requirement("core:chat:model-agent-deferred")
@requirement("session:action:model-change-deferred")
async def test_a_model_change_waits_for_the_end_of_the_turn(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    release = asyncio.Event()

    async def wait(turn: Turn) -> None:
        await release.wait()

    bench.agent.script = wait
    await client.ask("createChat", session, chat="ahp-chat:/second")  # A turn of any chat counts.
    chat = "ahp-chat:/second"
    await client.ask("subscribe", chat)
    await client.accepted(chat, say("go"))
    seq = client.post(session, {"type": "session/modelChanged", "model": {"id": "large"}})
    await client.ask("ping")
    assert "model" not in (await bench.state(client, session))["summary"]
    release.set()
    done = await turn_done(client, chat)
    changed = await client.action("session/modelChanged")
    assert changed["origin"]["clientSeq"] == seq
    assert changed["serverSeq"] > done["serverSeq"]
    assert (await bench.state(client, session))["summary"]["model"] == {"id": "large"}


@requirement("session:status:is-read")
async def test_an_answer_makes_a_session_unread(bench: Bench) -> None:
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.accepted(session, {"type": "session/isReadChanged", "isRead": True})
    assert (await summary_of(client, session))["status"] & 32 == 32
    await client.accepted(chat, say("news?"))
    await turn_done(client, chat)
    await client.action(lambda e: e["action"].get("isRead") is False)
    assert (await summary_of(client, session))["status"] & 32 == 0


@requirement("session:action:title-from-both-sides")
async def test_the_agent_names_the_session_until_a_person_does(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.chat.title(f"About {turn.prompt}")

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    for number, expected in ((1, "About m1"), (2, "About m2")):
        await client.accepted(chat, say(f"m{number}", f"t{number}"))
        await turn_done(client, chat, f"t{number}")
        assert (await bench.state(client, session))["summary"]["title"] == expected
    await client.accepted(session, {"type": "session/titleChanged", "title": "Mine"})
    await client.accepted(chat, say("m3", "t3"))
    await turn_done(client, chat, "t3")
    assert (await bench.state(client, session))["summary"]["title"] == "Mine"


async def test_read_archive_and_title_are_the_clients_to_change(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    await client.accepted(session, {"type": "session/isReadChanged", "isRead": True})
    await client.accepted(session, {"type": "session/isArchivedChanged", "isArchived": True})
    await client.accepted(session, {"type": "session/titleChanged", "title": "Mine"})
    summary = await summary_of(client, session)
    assert summary["status"] == 1 | 32 | 64
    assert summary["title"] == "Mine"


@requirement("session:summary:annotations")
async def test_annotations_of_a_session_are_counted_in_its_summary(bench: Bench) -> None:
    client = await bench.client()
    session, _ = await bench.session(client)
    channel = f"{session}/annotations"
    none = {"resource": channel, "annotationCount": 0, "entryCount": 0}
    assert (await summary_of(client, session))["annotations"] == none, "every session of this host has the channel"
    await client.ask("subscribe", channel)
    annotation = {
        "id": "a1",
        "turnId": "t1",
        "resource": "file:///x.py",
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}},
        "resolved": False,
        "entries": [{"id": "e1", "text": "why?"}],
    }
    await client.accepted(channel, {"type": "annotations/set", "annotation": annotation})
    assert (await summary_of(client, session))["annotations"] == {
        "resource": channel,
        "annotationCount": 1,
        "entryCount": 1,
    }


@requirement("commands:completions:request")
@requirement("commands:completions:offset-range")
@requirement("commands:completions:offset-utf16")
async def test_completions_check_the_offset_in_utf16_units(bench: Bench) -> None:
    async def offer(chat: Any, text: str, offset: int) -> Any:
        return [{"insertText": f"{text} at {offset}", "attachment": {"type": "simple", "label": "x"}}]

    bench.agent.completions = offer
    client = await bench.client()
    _, chat = await bench.session(client)
    text = "\N{GRINNING FACE}"
    for offset in (0, 2):
        good = await client.ask("completions", chat, kind="userMessage", text=text, offset=offset)
        assert [item["insertText"] for item in good["items"]] == [f"{text} at {offset}"]
    for offset in (-1, 3):
        assert (await client.refused("completions", chat, kind="userMessage", text=text, offset=offset))[
            "code"
        ] == -32602


async def test_config_is_resolved_with_defaults_and_completed_by_the_agent(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"mode": {"type": "string", "title": "Mode", "default": "ask"}}}

    async def session_config(directory: Any, values: Any) -> Any:
        return schema

    async def config_completions(directory: Any, property: str, query: str) -> Any:
        return [{"value": f"{property}-{query}", "label": "One"}]

    bench.agent.session_config = session_config  # type: ignore[method-assign]  # The test replaces a method.
    bench.agent.config_completions = config_completions  # type: ignore[method-assign]  # The test replaces a method.
    client = await bench.client()
    assert await client.ask("resolveSessionConfig") == {"schema": schema, "values": {"mode": "ask"}}
    found = await client.ask("sessionConfigCompletions", property="mode", query="a")
    assert found == {"items": [{"value": "mode-a", "label": "One"}]}
    assert (await client.refused("resolveSessionConfig", provider="nobody"))["code"] == -32002


async def test_authenticate_takes_only_resources_that_were_asked_for(bench: Bench) -> None:
    taken: list[tuple[str, str]] = []

    async def authenticate(resource: str, token: str) -> None:
        taken.append((resource, token))

    bench.agent.protected_resources = [{"resource": "https://api.example.com"}]
    bench.agent.authenticate = authenticate
    client = await bench.client()
    await client.ask("authenticate", resource="https://api.example.com", token="secret")
    assert taken == [("https://api.example.com", "secret")]
    assert (await client.refused("authenticate", resource="https://evil.example", token="x"))["code"] == -32602
