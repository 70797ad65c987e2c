"""What clients of other people send, frame by frame: oddities that a host has to live with."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ahpkit.host.agent import Turn
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient

NEWER = ("0.5.1", "0.7.0", "0.8.0", "0.9.0", "1.0.0")
ROOT = "ahp-root://"
SCHEMA: Json = {"type": "object", "properties": {"tone": {"type": "string", "sessionMutable": True, "title": "Tone"}}}

VSCODE_SETTINGS: list[Json] = [
    {"workspaceTrust": {"enabled": True, "trustedUris": ["file:///"]}},
    {"autoApprove": {"terminal": {"/.*/": True}, "tools": {"*": True}}},
    {"proxy": {"url": "http://127.0.0.1:9"}},
]
"""In the manner of VS Code: everything is trusted, every tool is approved."""


def here(bench: Bench) -> str:
    return bench.config.default_directory.as_uri()


def started(turn_id: str = "t1") -> Json:
    return say("go", turn_id, startedAt="2026-11-15T12:00:00.000Z")


def configurable(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent has one setting."""

    async def session_config(directory: Any, values: Json) -> Json:
        return SCHEMA

    monkeypatch.setattr(bench.agent, "session_config", session_config)


def notify(client: RawClient, method: str, **params: Any) -> None:
    client.send({"jsonrpc": "2.0", "method": method, "params": params})


async def request(client: RawClient, method: str, **params: Any) -> Any:
    """A request with exactly these params: no channel is added."""
    client.send({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
    return (await client.wait(lambda message: message.get("id") == method))["result"]


@pytest.mark.parametrize("version", NEWER)
async def test_sessions_and_chats_may_have_any_uri_and_the_kind_is_the_one_they_were_made_as(
    bench: Bench, version: str
) -> None:
    client = await bench.client(offer=[version])
    uri, chat = "scripted:/4b1c0de0-0000-4000-8000-000000000001", "ahp-chat://side/with/a-path"
    await client.ask("createSession", uri)
    default = (await client.ask("subscribe", uri))["snapshot"]["state"]["defaultChat"]
    assert default.startswith("ahp-chat://default/")
    await client.ask("createChat", uri, chat=chat)
    for one in (default, chat):
        await client.ask("subscribe", one)
        await client.accepted(one, started(f"in-{one}"))
        await client.action(lambda said, one=one: said["channel"] == one and "Complete" in said["action"]["type"])
    assert "session channels" in await client.rejected(chat, {"type": "session/titleChanged", "title": "x"})


@pytest.mark.parametrize("version", NEWER)
async def test_actions_that_a_client_does_not_count_are_all_taken(bench: Bench, version: str) -> None:
    client = await bench.client(offer=[version])
    session, _ = await bench.session(client)
    for title in ("one", "two", "one"):
        client.post(session, {"type": "session/titleChanged", "title": title}, client_seq=0)
    await client.accepted(session, {"type": "session/titleChanged", "title": "last"})
    titles = [said["action"]["title"] for said in client.actions(session) if "title" in said["action"]]
    assert titles == ["one", "two", "one", "last"]
    assert all("rejectionReason" not in said for said in client.actions(session))


@requirement("gen:errors:unknown-notification")
@pytest.mark.parametrize("version", ["0.4.0", *NEWER])
async def test_notifications_that_nobody_knows_are_ignored(bench: Bench, version: str) -> None:
    client = await bench.client(offer=[version])
    notify(client, "setClientManagedSettingsPermissions", permissions={"a": ["b"]})
    notify(client, "x-example/anything")
    notify(client, "subscribe", channel=ROOT)  # A request, sent as if it were a notification.
    client.send({"jsonrpc": "2.0", "method": "noParams"})
    assert "items" in await client.ask("listSessions")


@requirement("gen:create:config-singular")
@pytest.mark.parametrize("version", NEWER)
async def test_a_configuration_is_asked_for_with_one_directory_or_with_a_list(
    bench: Bench, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configurable(bench, monkeypatch)
    client = await bench.client(offer=[version])
    ways: list[Json] = [{"workingDirectory": here(bench)}, {"workingDirectories": [here(bench)]}]
    for directory in ways:
        found = await client.ask("resolveSessionConfig", provider="scripted", config={}, **directory)
        assert list(found["schema"]["properties"]) == ["tone"]


@pytest.mark.parametrize("version", NEWER)
async def test_folders_of_a_vscode_server_beside_the_host_are_folders_of_this_machine(
    bench: Bench, version: str
) -> None:
    client = await bench.client(offer=[version])
    remote = here(bench).replace("file://", "vscode-remote://127.0.0.1:8000")
    directories: Json = {"workingDirectory": remote} if version < "0.7" else {"workingDirectories": [remote]}
    session, _ = await bench.session(client, **directories)
    assert (await bench.state(client, session))["workingDirectories"] == [here(bench)]


@pytest.mark.parametrize(("kind", "is_told"), [("remote_extension_host", False), ("local", True), (None, True)])
async def test_a_window_behind_a_bridge_is_told_no_default_directory_so_that_it_names_its_own_folder(
    bench: Bench, kind: str | None, is_told: bool
) -> None:
    client = await bench.connect()
    meta: Json = {} if kind is None else {"vscode.clientConnectionKind": kind}
    result = await client.initialize(protocolVersions=["0.9.0"], _meta=meta)
    assert ("defaultDirectory" in result) is is_told


@pytest.mark.parametrize("version", NEWER)
async def test_vscode_sees_a_model_for_agents_without_models_because_it_cannot_choose_them_otherwise(
    bench: Bench, version: str
) -> None:
    bench.agent.models = []
    await bench.restart()
    vscode, other = await bench.connect("a-window"), await bench.client(ROOT, offer=[version])
    named: Json = {"clientInfo": {"name": "vscode-editor-window", "title": "VS Code"}}
    result = await vscode.initialize(ROOT, protocolVersions=[version], **named)
    (agent,) = result["snapshots"][0]["state"]["agents"]
    assert len(agent["models"]) == 1
    assert (await bench.state(other, ROOT))["agents"][0]["models"] == []
    _, chat = await bench.session(vscode)
    message: Json = {**started()["message"], "model": {"id": agent["models"][0]["id"]}}
    seq = vscode.post(chat, {**started(), "message": message})
    await vscode.action("chat/turnComplete")
    (turn,) = (await bench.state(vscode, chat))["turns"]
    assert "model" not in turn["message"]
    vscode.post(chat, {**started(), "message": message}, client_seq=seq)  # Once more, as after a lost connection.
    await vscode.accepted(chat, {**started("t2"), "message": message})
    assert not [said for said in vscode.actions(chat) if "rejectionReason" in said]
    bench.agent.changed()
    bench.agent.models = [{"id": "late", "provider": "scripted", "name": "Late"}]
    bench.agent.changed()
    told = await vscode.action(lambda said: said["action"].get("agents", [{}])[0].get("models") == bench.agent.models)
    assert told["action"]["type"] == "root/agentsChanged"


async def test_vscode_that_comes_back_sees_the_same_agents(bench: Bench) -> None:
    bench.agent.models = []
    await bench.restart()
    client = await bench.connect("a-window")
    named: Json = {"clientInfo": {"name": "vscode-editor-window", "title": "VS Code"}}
    await client.initialize(ROOT, protocolVersions=["0.9.0"], **named)
    await bench.restart()
    again = await bench.connect("a-window")
    back: Json = {"clientId": "a-window", "lastSeenServerSeq": 1_000_000, "subscriptions": [ROOT]}
    (root,) = (await again.ask("reconnect", **back))["snapshots"]
    assert len(root["state"]["agents"][0]["models"]) == 1


@pytest.mark.parametrize("version", ["0.4.0", *NEWER])
async def test_settings_that_the_agent_lacks_are_left_out_of_a_new_session_and_named_in_a_warning(
    bench: Bench, version: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configurable(bench, monkeypatch)
    client = await bench.client(offer=[version])
    session, _ = await bench.session(client, config={"isolation": "folder", "tone": "dry"})
    assert (await bench.state(client, session))["config"]["values"] == {"tone": "dry"}
    assert any("isolation" in line.message for line in caplog.records if line.levelno == logging.WARNING)


@pytest.mark.parametrize("version", NEWER)
async def test_settings_that_a_session_lacks_are_left_out_of_a_change_and_named_in_a_warning(
    bench: Bench, version: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configurable(bench, monkeypatch)
    client = await bench.client(offer=[version])
    session, _ = await bench.session(client)
    await client.accepted(session, {"type": "session/configChanged", "config": {"tone": "dry", "branch": "main"}})
    await client.accepted(session, {"type": "session/configChanged", "config": {"branch": "main"}})
    assert (await bench.state(client, session))["config"]["values"] == {"tone": "dry"}
    assert any("branch" in line.message for line in caplog.records if line.levelno == logging.WARNING)


@requirement("gen:create:array-bounds")
@pytest.mark.parametrize("version", NEWER)
async def test_a_list_that_is_too_long_or_too_short_is_refused(
    bench: Bench, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = {"type": "string", "title": "Tag"}
    tags = {"type": "array", "items": tag, "minItems": 1, "maxItems": 2, "sessionMutable": True}

    async def session_config(directory: Any, values: Json) -> Json:
        return {"type": "object", "properties": {"tags": {"title": "Tags", **tags}}}

    monkeypatch.setattr(bench.agent, "session_config", session_config)
    client = await bench.client(offer=[version])
    for bad in ([], ["a", "b", "c"]):
        assert (await client.refused("createSession", "ahp-session:/no", config={"tags": bad}))["code"] == -32602
    session, _ = await bench.session(client, config={"tags": ["a"]})
    for bad in ([], ["a", "b", "c"]):
        assert await client.rejected(session, {"type": "session/configChanged", "config": {"tags": bad}})
    await client.accepted(session, {"type": "session/configChanged", "config": {"tags": ["a", "b"]}})


@requirement("gen:create:active-client-id")
@pytest.mark.parametrize("version", ["0.4.0", *NEWER])
async def test_a_session_is_not_made_with_somebody_elses_entry(bench: Bench, version: str) -> None:
    client = await bench.client(offer=[version])
    entry: Json = {"clientId": "somebody-else", "tools": []}
    error = await client.refused("createSession", "ahp-session:/no", activeClient=entry)
    assert error["code"] == -32602
    assert (await client.ask("listSessions"))["items"] == []


@pytest.mark.parametrize("version", ["0.4.0", *NEWER])
async def test_a_reconnect_needs_no_channel(bench: Bench, version: str) -> None:
    client = await bench.client(client_id="me", offer=[version])
    session, chat = await bench.session(client)
    await client.aclose()
    back = await bench.connect("me")
    found = await request(back, "reconnect", clientId="me", lastSeenServerSeq=0, subscriptions=[session, chat])
    assert found["type"] in ("replay", "snapshot")
    assert "items" in await back.ask("listSessions")


@requirement("gen:reconnect:duplicate-uris")
@pytest.mark.parametrize("version", ["0.4.0", *NEWER])
async def test_a_channel_that_is_named_twice_is_replayed_once(bench: Bench, version: str) -> None:
    client = await bench.client(client_id="me", offer=[version])
    session, _ = await bench.session(client)
    last = (await client.accepted(session, {"type": "session/titleChanged", "title": "one"}))["serverSeq"]
    await client.accepted(session, {"type": "session/titleChanged", "title": "two"})
    back = await bench.connect("me")
    found = await back.ask("reconnect", clientId="me", lastSeenServerSeq=last, subscriptions=[session, session])
    assert [said["action"]["title"] for said in found["actions"] if "title" in said["action"]] == ["two"]
    assert found["missing"] == []


async def test_settings_of_one_connection_are_kept_for_it_and_approve_nothing(bench: Bench) -> None:
    asked: list[bool] = []

    async def script(turn: Turn) -> None:
        call = turn.tool_call("delete")
        asked.append((await call.confirm(tool_input="{}")).approved)

    bench.agent.script = script
    client, other = await bench.client(ROOT, offer=["0.9.0"]), await bench.client(ROOT, offer=["0.9.0"])
    for settings in VSCODE_SETTINGS:
        client.post(ROOT, {"type": "root/configChanged", "config": settings}, client_seq=0)
        await client.action(lambda said, settings=settings: said["action"].get("config") == settings)
    connection: Any = bench.host.services.client(client.client_id)
    assert connection.settings.keys() == {"workspaceTrust", "autoApprove", "proxy"}
    assert bench.host.services.client(other.client_id).settings == {}  # type: ignore[union-attr]  # It is connected.
    session, chat = await bench.session(client)
    await client.accepted(chat, started())
    ready = (await client.action("chat/toolCallReady"))["action"]
    assert "confirmed" not in ready
    ids = {"turnId": "t1", "toolCallId": ready["toolCallId"]}
    await client.accepted(
        chat, {"type": "chat/toolCallConfirmed", **ids, "approved": False, "reason": "denied", "reasonMessage": "No"}
    )
    await client.action("chat/turnComplete")
    assert asked == [False]
    assert [one["action"]["type"] for one in other.actions(ROOT)] == ["root/activeSessionsChanged"]
    assert "config" not in (await bench.state(other, ROOT))
    assert "trustedUris" not in str(await bench.state(other, session))


async def test_settings_without_end_are_not_kept(bench: Bench) -> None:
    client = await bench.client(ROOT, offer=["1.0.0"])
    for number in range(3):
        settings = {f"large-{number}": "x" * 100_000}
        await client.accepted(ROOT, {"type": "root/configChanged", "config": settings})
    connection: Any = bench.host.services.client(client.client_id)
    assert connection.settings.keys() == {"large-0", "large-1"}
