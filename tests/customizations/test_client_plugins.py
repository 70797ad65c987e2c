from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters

from ahpkit.client import InMemoryPlugin
from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import Turn
from ahpkit.mcp.feature import McpServers
from ahpkit.protocol.common.reducing import without
from ahpkit.testing.memory_host import memory_host
from customizations.builders import skill, write
from customizations.desk import Desk, Publisher, manifest, seen, updates
from support import requirement
from support.bench import ScriptedAgent
from support.raw_client import Json, RawClient
from support.waiting import BOUND

FILES = {".plugin/plugin.json": manifest(), "skills/tidy/SKILL.md": skill("tidy"), "docs/readme.md": "x"}


@pytest.fixture
async def watcher(desk: Desk) -> RawClient:
    """A second client, which only looks."""
    return await desk.start(client_timeout=BOUND)


@pytest.fixture
async def publisher(desk: Desk, watcher: RawClient) -> AsyncGenerator[Publisher]:
    publisher = Publisher(await desk.bench.client(client_id="me"), FILES)
    yield publisher
    await publisher.aclose()


@pytest.fixture
async def session(desk: Desk, watcher: RawClient, publisher: Publisher) -> str:
    uri, _ = await desk.session(watcher)
    await publisher.client.ask("subscribe", uri)
    return uri


def loaded(entry: Json) -> bool:
    return entry["id"] == "mine" and entry["load"]["kind"] == "loaded"


def kinds(client: RawClient, session: str) -> list[str]:
    """What happened to the plugin, in order."""
    return [
        action["type"].removeprefix("session/customization").lower()
        if "customization" not in action
        else action["customization"]["load"]["kind"]
        for action in updates(client, session, "mine")
    ]


@requirement("customizations:publish:surfaced-by-host")
@requirement("customizations:publish:each-plugin-updated")
@requirement("customizations:publish:echo-comes-first")
@requirement("customizations:sources:virtual-plugin")
@requirement("customizations:container:client-id-marks-provenance")
@requirement("customizations:children:no-client-id")
@requirement("customizations:identity:minted-by-publisher")
@requirement("customizations:tree:host-is-authoritative", "customizations:load:kinds")
@requirement("session:state:client-plugins-propagated")
@requirement("session:customization:host-fills-children")
@requirement("core:wire:host-reads-virtual-plugin")
async def test_a_plugin_that_is_on_no_disk_is_read_from_its_client(
    desk: Desk, watcher: RawClient, publisher: Publisher, session: str
) -> None:
    ours: Json = {"load": {"kind": "error", "message": "not ours to say"}, "children": [], "clientId": "somebody"}
    await publisher.claim(session, publisher.plugin(nonce="1", **ours))
    entry = await seen(watcher, loaded)
    assert entry == {
        "type": "plugin",
        "id": "mine",
        "uri": "virtual://me/plugin",
        "name": "mine",
        "enabled": True,
        "clientId": "me",
        "load": {"kind": "loaded"},
        "children": [
            {
                "type": "skill",
                "id": entry["children"][0]["id"],
                "uri": "virtual://me/plugin/skills/tidy/SKILL.md",
                "name": "mine:tidy",
                "description": "Does a thing.",
            }
        ],
    }
    assert kinds(watcher, session) == ["loading", "loaded"]
    types = [envelope["action"]["type"] for envelope in watcher.actions(session)]
    actions = [envelope["action"] for envelope in watcher.actions(session)]
    claimed = types.index("session/activeClientChanged")
    assert "session/customizationUpdated" in types[claimed + 1 :]
    assert not any(one.get("customization", {}).get("id") == "mine" for one in actions[:claimed])
    first = updates(watcher, session, "mine")[0]["customization"]
    assert "children" not in first
    assert "resourceRead /docs/readme.md" not in publisher.asked


@requirement("customizations:publish:removed-on-disconnect")
@requirement("customizations:flow:disconnect-order")
async def test_it_goes_with_its_client_after_the_role_is_free(
    desk: Desk, watcher: RawClient, publisher: Publisher, session: str
) -> None:
    await publisher.claim(session, publisher.plugin())
    await seen(watcher, loaded)
    await publisher.client.aclose()
    await watcher.action("session/customizationRemoved")
    types = [envelope["action"]["type"] for envelope in watcher.actions(session)][-2:]
    assert types == ["session/activeClientChanged", "session/customizationRemoved"]
    assert "mine" not in [entry["id"] for entry in (await desk.containers(watcher, session)).values()]


@requirement("gen:active-clients:plugins-go", "gen:active-clients:grace")
async def test_of_a_newer_client_it_stays_for_the_grace_period(desk: Desk) -> None:
    desk.bench.config = replace(desk.bench.config, client_grace=0.3)
    await desk.start(client_timeout=BOUND)
    watcher = await desk.bench.client(offer=["1.0.0"])
    publisher = Publisher(await desk.bench.client(client_id="me", offer=["1.0.0"]), FILES)
    uri, _ = await desk.bench.session(watcher, workingDirectories=[desk.workspace.as_uri()])
    await publisher.client.ask("subscribe", uri)
    plugin = without(publisher.plugin(), "enabled")
    active = {"clientId": "me", "tools": [], "customizations": [plugin]}
    await publisher.client.accepted(uri, {"type": "session/activeClientSet", "activeClient": active})
    await seen(watcher, loaded)
    await publisher.aclose()
    head = desk.bench.host.spine.store.committed_head
    back = await desk.bench.connect("me")
    await back.ask("reconnect", clientId="me", lastSeenServerSeq=head, subscriptions=[uri])
    assert "mine" in [entry["id"] for entry in (await desk.containers(watcher, uri)).values()]
    await back.aclose()
    await watcher.action("session/customizationRemoved")
    types = [envelope["action"]["type"] for envelope in watcher.actions(uri)][-2:]
    assert types == ["session/activeClientRemoved", "session/customizationRemoved"]


@requirement("customizations:publish:interrupted")
async def test_a_client_that_leaves_while_its_plugin_is_read_is_named_and_asked_again_when_it_is_back(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.bench.config = replace(desk.bench.config, client_grace=BOUND)
    await desk.start(client_timeout=BOUND)
    watcher = await desk.bench.client(offer=["1.0.0"])
    publisher = Publisher(await desk.bench.client(client_id="me", offer=["1.0.0"]), FILES)
    publisher.silent = True
    uri, _ = await desk.bench.session(watcher, workingDirectories=[desk.workspace.as_uri()])
    await publisher.client.ask("subscribe", uri)
    active = {"clientId": "me", "tools": [], "customizations": [without(publisher.plugin(nonce="1"), "enabled")]}
    await publisher.client.accepted(uri, {"type": "session/activeClientSet", "activeClient": active})
    await publisher.client.wait(lambda message: message.get("method") == "resourceList")
    await publisher.client.aclose()
    await publisher.aclose()
    entry = await seen(watcher, lambda entry: entry["id"] == "mine" and entry["load"]["kind"] == "error")
    assert "left before it was read" in entry["load"]["message"]
    assert [record for record in caplog.records if record.exc_info] == []
    back = Publisher(await desk.bench.connect("me"), FILES)
    await back.client.ask("reconnect", clientId="me", lastSeenServerSeq=0, subscriptions=[uri])
    await seen(watcher, loaded)
    await back.aclose()


@requirement("customizations:identity:id-opaque", "customizations:toggle:any-client")
@requirement("customizations:flow:disconnect-order")
async def test_plugins_with_any_text_as_their_id_are_switched_by_others_and_go_one_by_one_with_their_client(
    desk: Desk, watcher: RawClient, publisher: Publisher, session: str
) -> None:
    odd = ["ü /§#%20?", " ", "session/customizationToggled"]
    places = [f"{publisher.uri}/{number}" for number in range(len(odd))]
    publisher.files = {f"{number}/.plugin/plugin.json": manifest(name=f"mine-{number}") for number in range(len(odd))}
    plugins = [publisher.plugin(id=id, uri=uri, nonce="1") for id, uri in zip(odd, places, strict=True)]
    await publisher.claim(session, *plugins)
    for id in odd:
        await seen(watcher, lambda entry, id=id: entry["id"] == id and entry["load"]["kind"] == "loaded")
    await watcher.accepted(session, {"type": "session/customizationToggled", "id": odd[0], "enabled": False})
    listed = (await desk.bench.state(watcher, session))["customizations"]
    enabled = {entry["id"]: entry["enabled"] for entry in listed}
    assert [enabled[id] for id in odd] == [False, True, True]
    before = len(watcher.actions(session))
    await publisher.client.aclose()
    for id in odd:
        await watcher.action(lambda one, id=id: one["action"] == {"type": "session/customizationRemoved", "id": id})
    told = [envelope["action"] for envelope in watcher.actions(session)[before:]]
    assert told[0] == {"type": "session/activeClientChanged", "activeClient": None}
    assert sorted(one["id"] for one in told[1:] if one["type"] == "session/customizationRemoved") == sorted(odd)


@requirement("customizations:publish:removed-on-replacement")
async def test_it_goes_when_another_client_becomes_active(
    desk: Desk, watcher: RawClient, publisher: Publisher, session: str
) -> None:
    await publisher.claim(session, publisher.plugin())
    await seen(watcher, loaded)
    active: Json = {"clientId": watcher.client_id, "tools": []}
    take = {"type": "session/activeClientChanged", "activeClient": active}
    assert "is active in this session" in await watcher.rejected(session, take)
    assert kinds(watcher, session)[-1] == "loaded"
    await publisher.client.accepted(session, {"type": "session/activeClientChanged", "activeClient": None})
    await watcher.accepted(session, take)
    assert kinds(watcher, session)[-1] == "removed"
    state = await desk.bench.state(watcher, session)
    assert (state["activeClient"]["clientId"], "mine" in str(state["customizations"])) == (watcher.client_id, False)


@requirement("customizations:publish:nonce-detects-change")
@requirement("customizations:publish:nonce-optional")
@requirement("session:customization:nonce-saves-parsing")
async def test_it_is_read_again_only_when_its_nonce_changes(
    watcher: RawClient, publisher: Publisher, session: str
) -> None:
    await publisher.claim(session, publisher.plugin(nonce="1"))
    await seen(watcher, loaded)
    asked = len(publisher.asked)
    await publisher.claim(session, publisher.plugin(nonce="1"))
    assert (len(publisher.asked), kinds(watcher, session)) == (asked, ["loading", "loaded"])
    publisher.files = {**FILES, "agents/new.md": "New."}
    await publisher.claim(session, publisher.plugin(nonce="2"))
    entry = await seen(watcher, lambda entry: loaded(entry) and len(entry["children"]) == 2)
    assert entry["children"][0]["name"] == "mine:new"
    assert kinds(watcher, session) == ["loading", "loaded", "loading", "loaded"]


@requirement("customizations:toggle:any-client")
async def test_toggles_of_its_children_survive_a_new_publication(
    watcher: RawClient, publisher: Publisher, session: str
) -> None:
    await publisher.claim(session, publisher.plugin())
    child = (await seen(watcher, loaded))["children"][0]
    await watcher.accepted(session, {"type": "session/customizationToggled", "id": child["id"], "enabled": False})
    await publisher.claim(session, publisher.plugin())
    entry = await seen(watcher, lambda entry: loaded(entry) and entry["children"][0].get("enabled") is False)
    assert entry["children"][0]["id"] == child["id"]


async def test_its_skills_reach_the_agent(desk: Desk, watcher: RawClient, publisher: Publisher, session: str) -> None:
    await publisher.claim(session, publisher.plugin())
    await seen(watcher, loaded)
    chat = (await desk.bench.state(watcher, session))["defaultChat"]
    await watcher.ask("subscribe", chat)
    turn = await desk.turn(watcher, chat, "/tidy now")
    assert [offer.name for offer in turn.context.skills] == ["mine:tidy"]
    assert "# tidy" in turn.prompt


async def test_a_client_that_never_answers_gets_an_error_and_nobody_waits(desk: Desk) -> None:
    watcher = await desk.start(client_timeout=0.3)
    publisher = Publisher(await desk.bench.client(client_id="me"), FILES)
    publisher.silent = True
    session, chat = await desk.session(watcher)
    await publisher.client.ask("subscribe", session)
    await publisher.claim(session, publisher.plugin())
    turn = await desk.turn(watcher, chat, "hi")
    assert turn.prompt == "hi"
    entry = await seen(watcher, lambda entry: entry["id"] == "mine" and entry["load"]["kind"] == "error")
    assert entry["load"]["message"] == "the client did not show the plugin within 0.3 s"
    assert "children" not in entry
    await publisher.aclose()


ERROR: Json = {"error": {"code": -32009, "message": "no"}}


def only(method: str, part: str, answer: Json) -> Callable[[Json], Json | None]:
    """Answer requests for something with `part` in its URI this way, the others properly."""

    def answered(request: Json) -> Json | None:
        return answer if request["method"] == method and part in request["params"]["uri"] else None

    return answered


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (only("resourceList", "", ERROR), "error"),
        (only("resourceList", "", {"result": {"entries": "many"}}), "error"),
        (only("resourceList", "", {"result": None}), "error"),
        (only("resourceList", "", {"result": {"entries": [{"name": "../out", "type": "file"}, 7]}}), "error"),
        (only("resourceRead", "", ERROR), "error"),
        (only("resourceRead", "SKILL.md", ERROR), "degraded"),
        (only("resourceRead", "SKILL.md", {"result": {"data": 7}}), "degraded"),
        (only("resourceRead", "SKILL.md", {"result": {"data": "%%%", "encoding": "base64"}}), "degraded"),
        (only("resourceList", "skills", ERROR), "degraded"),
        (only("resourceList", "docs", {"result": {"entries": [{"name": "docs", "type": "directory"}]}}), "degraded"),
    ],
)
async def test_a_client_that_answers_wrongly_harms_only_its_plugin(
    watcher: RawClient, publisher: Publisher, session: str, answer: Callable[[Json], Json | None], kind: str
) -> None:
    publisher.answer = answer
    await publisher.claim(session, publisher.plugin())
    entry = await seen(watcher, lambda entry: entry["id"] == "mine" and entry["load"]["kind"] != "loading")
    assert entry["load"]["kind"] == kind


async def test_binary_answers_are_read_too(watcher: RawClient, publisher: Publisher, session: str) -> None:
    def answer(request: Json) -> Json | None:
        if request["method"] != "resourceRead":
            return None
        path = request["params"]["uri"].removeprefix(publisher.uri).strip("/")
        return {"result": {"data": base64.b64encode(FILES[path].encode()).decode(), "encoding": "base64"}}

    publisher.answer = answer
    await publisher.claim(session, publisher.plugin())
    assert len((await seen(watcher, loaded))["children"]) == 1


async def test_a_plugin_published_with_the_new_session_is_there(
    desk: Desk, watcher: RawClient, publisher: Publisher
) -> None:
    active = {"clientId": "me", "tools": [], "customizations": [publisher.plugin()]}
    session, _ = await desk.session(publisher.client, activeClient=active)
    assert (await desk.read(publisher.client, session, "mine"))["children"][0]["name"] == "mine:tidy"


@requirement("customizations:identity:id-unique-in-session", "customizations:identity:minted-by-publisher")
async def test_no_client_takes_an_id_of_the_host_or_of_another_client(desk: Desk, tmp_path: Path) -> None:
    """Neither before the host lists that entry, nor when two clients ask at the same moment."""
    root = write(tmp_path / "tools", {".plugin/plugin.json": '{"name": "tools"}', "skills/a/SKILL.md": skill("a")})
    watcher = await desk.start(plugins=[root])
    [declared] = (await desk.bench.state(watcher, "ahp-root://"))["agents"][0]["customizations"]
    one, two = [await desk.bench.client(client_id=name, offer=["1.0.0"]) for name in ("one", "two")]

    def active(client: RawClient, id: str) -> Json:
        plugin = {"type": "plugin", "id": id, "uri": f"virtual://{client.client_id}/p", "name": "Theirs"}
        return {"clientId": client.client_id, "tools": [], "customizations": [plugin]}

    early: Json = {"workingDirectories": [desk.workspace.as_uri()], "activeClient": active(one, declared["id"])}
    refused = await one.refused("createSession", "ahp-session:/early", **early)
    assert "choose another one" in refused["message"]
    session, _ = await desk.session(watcher)
    for client in (one, two):
        await client.ask("subscribe", session)
        client.post(session, {"type": "session/activeClientSet", "activeClient": active(client, "same")})
    echoes = [
        await client.action(lambda one, client=client: one.get("origin", {}).get("clientId") == client.client_id)
        for client in (one, two)
    ]
    assert ["rejectionReason" in echo for echo in echoes].count(True) == 1
    entries = (await desk.bench.state(watcher, session))["customizations"]
    ids = [found["id"] for entry in entries for found in (entry, *entry.get("children", ()))]
    assert len(ids) == len(set(ids))
    assert [entry["clientId"] for entry in entries if entry["id"] == "same"] == ["one"]
    assert [entry.get("clientId") for entry in entries if entry["id"] == declared["id"]] == [None]


@requirement("customizations:identity:persistent-reference-is-uri")
async def test_an_agent_is_found_by_its_uri_where_all_ids_are_other_ones(
    desk: Desk, watcher: RawClient, publisher: Publisher, session: str
) -> None:
    publisher.files = {**FILES, "agents/critic.md": "You are a critic."}
    ids: list[set[str]] = []
    saved: Json = {}
    later, chat = await desk.session(watcher)
    for number, uri in enumerate([session, later]):
        await publisher.client.ask("subscribe", uri)
        await publisher.claim(uri, publisher.plugin(id=f"number {number}"))
        entry = await seen(watcher, lambda one, number=number: one["id"] == f"number {number}" and "children" in one)
        ids.append({entry["id"], *(child["id"] for child in entry["children"])})
        saved = saved or {"uri": entry["children"][0]["uri"]}
        await watcher.accepted(uri, {"type": "session/agentChanged", "agent": saved})
    assert ids[0].isdisjoint(ids[1])
    assert (await desk.turn(watcher, chat, "hi")).context.system_prompt == "You are a critic."


@requirement("customizations:sources:client-publishes-plugins-only")
@requirement("customizations:tree:host-owns-directories")
@pytest.mark.parametrize(
    "fields",
    [
        {"type": "directory", "contents": "skill", "writable": False},
        {"type": "mcpServer", "state": {"kind": "stopped"}},
        {"type": "skill"},
    ],
)
async def test_what_is_no_plugin_is_refused(
    watcher: RawClient, publisher: Publisher, session: str, fields: Json
) -> None:
    active = {"clientId": "me", "tools": [], "customizations": [{**publisher.plugin(), **fields}]}
    action = {"type": "session/activeClientChanged", "activeClient": active}
    assert await publisher.client.rejected(session, action)
    assert "mine" not in str(updates(watcher, session))


async def test_after_a_restart_plugins_of_clients_that_left_are_gone(
    desk: Desk, watcher: RawClient, publisher: Publisher, session: str
) -> None:
    await publisher.claim(session, publisher.plugin())
    await seen(watcher, loaded)
    await desk.stop()
    client = await desk.start()
    await desk.read(client, session, ".github/skills")
    assert "mine" not in [entry["id"] for entry in (await desk.containers(client, session)).values()]


@requirement("gen:active-clients:grace")
async def test_of_a_newer_client_that_comes_back_after_a_restart_it_is_read_again(desk: Desk) -> None:
    await desk.start(client_timeout=BOUND)
    publisher = Publisher(await desk.bench.client(client_id="me", offer=["1.0.0"]), FILES)
    uri, _ = await desk.bench.session(publisher.client, workingDirectories=[desk.workspace.as_uri()])
    active = {"clientId": "me", "tools": [], "customizations": [without(publisher.plugin(), "enabled")]}
    await publisher.client.accepted(uri, {"type": "session/activeClientSet", "activeClient": active})
    await seen(publisher.client, loaded)
    await publisher.aclose()
    await desk.stop()
    await desk.start(client_timeout=BOUND)
    watcher = await desk.bench.client(uri, client_id="watcher", offer=["1.0.0"])
    back = Publisher(await desk.bench.connect("me"), FILES)
    head = desk.bench.host.spine.store.committed_head
    await back.client.ask("reconnect", clientId="me", lastSeenServerSeq=head, subscriptions=[uri])
    await seen(watcher, loaded)
    assert "resourceRead /.plugin/plugin.json" in back.asked
    await back.aclose()


@requirement("customizations:found:broken-said")
@pytest.mark.parametrize("uri", ["https://example.org/p.zip", "npm:tidy", "git+ssh://h/p", "marketplace:tidy"])
async def test_a_package_or_a_marketplace_by_uri_is_named_as_not_supported(
    watcher: RawClient, publisher: Publisher, session: str, uri: str
) -> None:
    await publisher.claim(session, {**publisher.plugin(nonce="1"), "uri": uri})
    entry = await seen(watcher, lambda entry: entry["id"] == "mine" and entry["load"]["kind"] == "error")
    assert "packages and marketplaces by URI are not supported" in entry["load"]["message"]
    assert "children" not in entry


SKILL = "---\nname: review\ndescription: Reviews code\n---\nRead beside.md first.\n"


async def test_a_skill_of_a_client_is_read_by_tool_and_as_a_resource_until_it_is_switched_off(tmp_path: Path) -> None:
    customizations = Customizations(CustomizationSettings(default_directory=tmp_path))
    servers = McpServers(customizations.servers, directory=tmp_path, files=lambda: customizations.virtual_files)
    agent, seen = ScriptedAgent(), dict[str, Any]()

    async def script(turn: Turn) -> None:
        async def read(uri: str) -> Any:
            return await turn.call_tool("read_plugin_file", json.dumps({"uri": uri}))

        [skill] = turn.context.skills
        folder = skill.uri.rpartition("/")[0]
        seen["tools"] = [tool["name"] for tool in turn.context.tools]
        seen["skill"] = (await read(skill.uri)).content[0]["text"]
        seen["beside"] = (await read(f"{folder}/beside.md")).content[0]["text"]
        seen["outside"] = [await read(uri) for uri in ("file:///etc/passwd", f"{folder}/../../../x", "virtual://x/y")]
        offers = await turn.chat.mcp_servers()
        config = dict(offers[0].config)
        way = StdioServerParameters(command=config["command"], args=config["args"], env=config["env"])
        async with McpClient(way, cache=None) as client:
            listed = (await client.list_resources()).resources
            seen["listed"] = [resource.name for resource in listed]
            seen["read"] = (await client.read_resource(str(listed[0].uri))).contents[0].text  # type: ignore[union-attr]  # It is text.

    agent.script = script
    async with (
        memory_host(agent, directory=tmp_path, features=[customizations, servers]) as host,
        host.client() as client,
    ):
        session = await client.create_session()
        files = {"skills/review/SKILL.md": SKILL, "skills/review/beside.md": "the second file"}
        await session.publish_plugin(InMemoryPlugin("mine", files)).accepted()
        await session.wait(lambda _: bool(session.customizations("skill")))
        chat = await session.chat()
        await chat.ask("go")
        assert "read_plugin_file" in seen["tools"]
        assert "Read beside.md first." in seen["skill"]
        assert seen["beside"] == "the second file"
        assert not any(outcome.success for outcome in seen["outside"])
        assert seen["listed"] == ["mine:review"]
        assert seen["read"] == seen["skill"]

        [skill] = session.customizations("skill")
        await session.toggle_customization(skill.entry["id"], False).accepted()
        uri = skill.entry["uri"]

        async def again(turn: Turn) -> None:
            seen["off"] = await turn.call_tool("read_plugin_file", json.dumps({"uri": uri}))

        agent.script = again
        await chat.ask("again")
        assert "switched off" in seen["off"].error
