"""What a session handle sends and shows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.client import ChannelGone, Client, SessionFailed
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.testing.fake_host import FakeHost, session_state
from support import requirement
from support.clients import CHAT, SESSION, eventually, settled
from support.oldest import check_action, check_params


def actions_of(host: FakeHost) -> list[dict[str, Any]]:
    """What the host was told, in its own words."""
    return [params["action"] for params in host.sent("dispatchAction")]


def last_action(host: FakeHost) -> dict[str, Any]:
    action = actions_of(host)[-1]
    check_action(action)
    return action


async def test_a_created_session_is_ready_and_has_a_chat(host: FakeHost, client: Client):
    session = await client.create_session(
        provider="fake", model="m", working_directory="file:///w", config={"a": 1}, fork=("ahp-session:/x", "t")
    )

    (params,) = host.sent("createSession")
    check_params("createSession", params)
    assert params == {
        "channel": session.uri,
        "provider": "fake",
        "model": {"id": "m"},
        "workingDirectory": "file:///w",
        "config": {"a": 1},
        "fork": {"session": "ahp-session:/x", "turnId": "t"},
    }
    assert session.state["lifecycle"] == "ready"
    assert (await session.chat()).uri == session.chats[0]["resource"]


@requirement("core:reducer:no-null-on-the-wire")
async def test_what_was_not_given_is_not_sent(host: FakeHost, client: Client):
    session = await client.create_session()

    assert host.sent("createSession") == [{"channel": session.uri}]


async def test_a_session_that_cannot_be_created_says_why(host: FakeHost, client: Client):
    def create(params: dict[str, Any]) -> None:
        host.open(params["channel"], session_state(params["channel"], lifecycle="creating"))
        error = {"errorType": "agent", "message": "no such model"}
        asyncio.get_running_loop().call_soon(
            host.emit, params["channel"], {"type": "session/creationFailed", "error": error}
        )

    host.handlers["createSession"] = create

    with pytest.raises(SessionFailed, match="no such model") as caught:
        await client.create_session()
    assert caught.value.error["errorType"] == "agent"


async def test_a_host_inside_vs_code_creates_a_session_with_its_first_message(host: FakeHost):
    def create(params: dict[str, Any]) -> None:
        host.open(params["channel"], session_state(params["channel"], lifecycle="creating"))

    host.meta = {"vscode.devContainers": True}
    host.handlers["createSession"] = create
    async with Client(host.dial) as client:
        session = await client.create_session(provider="fake")
        assert session.uri.startswith("fake:/")
        assert session.state["lifecycle"] == "creating"
        assert (await client.create_session()).uri.startswith("ahp-session:/")  # This one has no agents.


async def test_a_session_that_does_not_exist_says_so(client: Client):
    with pytest.raises(ChannelGone):
        await client.session("ahp-session:/nowhere")


async def test_each_setting_is_one_action(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    expected = {
        "session/titleChanged": (session.rename("new"), {"title": "new"}),
        "session/isArchivedChanged": (session.archive(), {"isArchived": True}),
        "session/isReadChanged": (session.mark_read(False), {"isRead": False}),
        "session/modelChanged": (session.set_model("m"), {"model": {"id": "m"}}),
        "session/agentChanged": (session.set_agent("file:///a.md"), {"agent": {"uri": "file:///a.md"}}),
        "session/configChanged": (session.set_config({"a": 1}, replace=True), {"config": {"a": 1}, "replace": True}),
        "session/customizationToggled": (session.toggle_customization("x", False), {"id": "x", "enabled": False}),
    }
    for kind, (dispatch, fields) in expected.items():
        await dispatch.accepted()
        assert {"type": kind, **fields} in actions_of(host)
    for action in actions_of(host):
        check_action(action)


async def test_going_back_to_no_agent_and_a_model_with_configuration(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    await session.set_agent(None).accepted()
    assert last_action(host) == {"type": "session/agentChanged"}
    await session.set_model({"id": "m", "config": {"effort": "high"}}).accepted()
    assert last_action(host)["model"] == {"id": "m", "config": {"effort": "high"}}


@requirement("core:session:create-chat")
async def test_another_chat_is_created_under_a_uri_of_our_choice(host: FakeHost, client: Client):
    session = await client.session(SESSION)

    chat = await session.create_chat(model={"id": "m"}, fork=(CHAT, "t"))

    (params,) = host.sent("createChat")
    check_params("createChat", params)
    assert params == {
        "channel": SESSION,
        "chat": chat.uri,
        "model": {"id": "m"},
        "source": {"chat": CHAT, "turnId": "t"},
    }
    assert chat.uri in [summary["resource"] for summary in session.chats]


@requirement("session:action:chat-updated-wait")
async def test_news_of_a_chat_that_is_not_there_yet_waits_for_the_chat(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    late = {**host.states[CHAT], "resource": "ahp-chat:/late", "title": "from the start"}
    host.emit(SESSION, {"type": "session/chatUpdated", "chat": "ahp-chat:/late", "changes": {"title": "early"}})
    host.emit(SESSION, {"type": "session/titleChanged", "title": "after"})
    await eventually(lambda: session.confirmed["title"] == "after")
    assert [chat["resource"] for chat in session.chats] == [CHAT]

    host.emit(SESSION, {"type": "session/chatAdded", "summary": late})

    await eventually(lambda: len(session.chats) == 2)
    assert session.chats[1]["title"] == "from the start"


@requirement("session:state:meta-well-known-keys")
async def test_well_known_keys_of_meta_can_be_read_and_need_not_be_there(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    assert session.state.get("_meta", {}).get("git") is None

    host.emit(SESSION, {"type": "session/metaChanged", "_meta": {"git": {"branch": "main"}, "unknown": 1}})

    await eventually(lambda: session.state.get("_meta", {}).get("git") == {"branch": "main"})


async def test_the_first_chat_is_waited_for(host: FakeHost, client: Client):
    empty = "ahp-session:/empty"
    host.open(empty, session_state(empty))
    session = await client.session(empty)
    opening = asyncio.create_task(session.chat())
    await settled()
    assert not opening.done()

    host.emit(empty, {"type": "session/chatAdded", "summary": host.states[CHAT]})

    assert (await opening).uri == CHAT


async def test_a_closed_handle_is_no_longer_followed(host: FakeHost, client: Client):
    async with await client.session(SESSION):
        pass
    await eventually(lambda: host.sent("unsubscribe") == [{"channel": SESSION}])


async def test_closing_a_handle_twice_takes_nothing_from_others(host: FakeHost, client: Client):
    session, other = await client.session(SESSION), await client.session(SESSION)
    chat, other_chat = await session.chat(), await other.chat()
    for handle in (session, chat, session, chat):
        await handle.aclose()
    await settled()

    assert host.sent("unsubscribe") == []
    await other.rename("still followed").accepted()
    await other_chat.queue("still followed").accepted()


async def test_a_session_that_somebody_removes_ends_what_follows_it_and_its_chats(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    async with client.subscribe(CHAT) as chat, client.subscribe(SESSION) as same:
        host.notify("root/sessionRemoved", {"channel": ROOT_URI, "session": SESSION})
        for subscription in (chat, same):
            with pytest.raises(ChannelGone):
                await anext(subscription)
    await session.aclose()


async def test_a_chat_that_somebody_removes_ends_what_follows_it(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    async with client.subscribe(CHAT) as chat:
        host.emit(SESSION, {"type": "session/chatRemoved", "chat": CHAT})
        with pytest.raises(ChannelGone):
            await anext(chat)
    assert session.chats == []


async def test_a_disposed_session_is_gone(host: FakeHost, client: Client):
    async with await client.session(SESSION) as session:
        await session.dispose()

    assert host.sent("disposeSession") == [{"channel": SESSION}]
    assert SESSION not in host.states


def child(type: str, id: str, **fields: Any) -> dict[str, Any]:
    return {"type": type, "id": id, "uri": f"file:///{id}", "name": id, **fields}


TREE = [
    {
        "type": "plugin",
        "id": "p",
        "uri": "file:///p",
        "name": "p",
        "enabled": True,
        "children": [
            child("skill", "off", enabled=False),
            child("skill", "hidden", disableUserInvocation=True),
            child("agent", "reviewer"),
        ],
    },
    {
        "type": "directory",
        "id": "d",
        "uri": "file:///d",
        "name": "d",
        "enabled": False,
        "contents": "agent",
        "writable": True,
        "children": [child("agent", "writer")],
    },
    {"type": "plugin", "id": "unparsed", "uri": "file:///u", "name": "u", "enabled": True},
]


@requirement("customizations:children:filter-by-type", "enablement:surface:picker-knows-unselectable")
async def test_an_agent_picker_sees_every_agent_and_which_can_be_selected(host: FakeHost, client: Client):
    host.emit(SESSION, {"type": "session/customizationsChanged", "customizations": TREE})
    session = await client.session(SESSION)

    found = {placed.entry["id"]: placed.effective.user_invocable for placed in session.customizations("agent")}

    assert found == {"reviewer": True, "writer": False}


@requirement("enablement:surface:palette-knows-user-invocable")
async def test_a_palette_tells_what_the_user_may_invoke(host: FakeHost, client: Client):
    host.emit(SESSION, {"type": "session/customizationsChanged", "customizations": TREE})
    session = await client.session(SESSION)

    skills = {placed.entry["id"]: placed.effective for placed in session.customizations("skill")}

    assert not skills["hidden"].user_invocable
    assert skills["hidden"].model_invocable


@requirement("enablement:surface:re-enable-from-list")
async def test_a_settings_page_enables_a_disabled_skill_by_its_id(host: FakeHost, client: Client):
    host.emit(SESSION, {"type": "session/customizationsChanged", "customizations": TREE})
    session = await client.session(SESSION)
    disabled = [placed for placed in session.customizations("skill") if not placed.effective.enabled]
    assert [placed.entry["id"] for placed in disabled] == ["off"]

    await session.toggle_customization("off", True).accepted()

    assert all(placed.effective.enabled for placed in session.customizations("skill"))


@requirement("customizations:children:filter-tolerates-absence")
async def test_a_session_without_customizations_has_none(client: Client):
    session = await client.session(SESSION)

    assert session.customizations("agent") == []
    assert session.customizations() == []


@requirement("session:config:enum-dynamic")
async def test_configuration_is_resolved_and_completed_before_a_session_exists(host: FakeHost, client: Client):
    host.handlers["resolveSessionConfig"] = lambda params: {
        "schema": {"type": "object", "properties": {}},
        "values": {},
    }
    host.handlers["sessionConfigCompletions"] = lambda params: {"items": [{"value": "a", "label": "A"}]}

    assert (await client.resolve_config(provider="p", config={"x": 1}))["values"] == {}
    assert await client.config_completions("topic", "a", working_directory="file:///w") == [
        {"value": "a", "label": "A"}
    ]
    for method in ("resolveSessionConfig", "sessionConfigCompletions"):
        check_params(method, host.sent(method)[0])
    assert host.sent("sessionConfigCompletions")[0]["query"] == "a"


@requirement("mcp:auth:client-authenticates")
async def test_a_token_is_handed_to_the_host_for_the_resource_in_the_state(host: FakeHost, client: Client):
    host.handlers["authenticate"] = lambda params: {}
    server = {
        **child("mcpServer", "m", enabled=True),
        "state": {"kind": "authRequired", "reason": "required", "resource": {"resource": "https://mcp.example"}},
    }
    host.emit(SESSION, {"type": "session/customizationsChanged", "customizations": [server]})
    session = await client.session(SESSION)
    (asking,) = session.customizations("mcpServer")

    await client.authenticate(asking.entry["state"]["resource"]["resource"], "secret")

    (params,) = host.sent("authenticate")
    check_params("authenticate", params)
    assert (params["resource"], params["token"]) == ("https://mcp.example", "secret")
