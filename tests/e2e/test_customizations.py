"""Every kind of customization on a real host: what clients are told, what stays on the host, how each is switched."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from customizations.builders import skill, text, write
from support import requirement
from support.flow import say, state_of
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient

SESSION = "ahp-session:/all-kinds"
SECRET = "only-the-host-knows"

EVERYTHING: dict[str, Any] = {
    ".plugin/plugin.json": {
        "name": "all",
        "icon": "./logo.png",
        "mcpServers": {"inline": {"command": SECRET, "args": [SECRET], "env": {"KEY": SECRET}}},
    },
    "logo.png": b"\x89PNG",
    "agents/writer.md": text("I write.", description="Writes", color="green", disable_model_invocation="true"),
    "skills/tidy/SKILL.md": skill("tidy", disable_model_invocation="true", user_invocable="false"),
    "prompts/plan.md": text("Plan it.", description="Plans"),
    "rules/style.mdc": text("Be brief.", description="Style", globs="**/*.py, src/{a,b}/**", alwaysApply="false"),
    "hooks/hooks.json": {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": SECRET}]}]}
    },
    ".mcp.json": {"mcpServers": {"far": {"type": "http", "url": "http://127.0.0.1:9/", "headers": {"K": SECRET}}}},
}
GEMINI: dict[str, Any] = {
    "gemini-extension.json": {"name": "gem", "mcpServers": {"g": {"command": SECRET}}},
    "GEMINI.md": "Be kind.",
    "commands/go.toml": 'prompt = "It is !{date}."\n',
}
PACK: dict[str, Any] = {
    "one/.claude-plugin/plugin.json": {"name": "one"},
    "one/commands/c.md": "Do c.",
    "two/.claude-plugin/plugin.json": {"name": "two", "icon": "https://example.org/logo.png"},
    "two/commands/d.md": "Do d.",
}
SHAPED: dict[str, Any] = {
    ".claude/skills/s/SKILL.md": skill("s"),
    ".cursor/rules/r.mdc": "Be brief.",
    ".github/hooks/h.json": {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": SECRET}]}]}},
}
PLUGINS = {"all": EVERYTHING, "gem": GEMINI, "pack": PACK, "shaped": SHAPED}


class Shown:
    """A host with these plugins, a client, and the containers that its session lists."""

    def __init__(self, host: HostProcess, client: RawClient, state: Json, version: str) -> None:
        self.host, self.client, self.state, self.version = host, client, state, version
        self.containers: dict[str, Json] = {one["name"]: one for one in state["customizations"]}

    def child(self, container: str, type: str) -> Json:
        return next(one for one in self.containers[container]["children"] if one["type"] == type)


@pytest.fixture(params=["0.4.0", "1.0.0"])
async def shown(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Shown]:
    options: list[str] = []
    for name, files in PLUGINS.items():
        write(tmp_path / "plugins" / name, files)
        options += ["--plugin", str(tmp_path / "plugins" / name)]
    async with host_process(tmp_path, *options) as host:
        client = await host.connect("looker")
        await client.ask("initialize", clientId="looker", protocolVersions=[request.param])
        await client.ask("createSession", SESSION, provider="demo")
        state = await state_of(client, SESSION)
        while state["lifecycle"] == "creating" or not _all_read(state) or not _all_tried(state):
            state = await state_of(client, SESSION)
        yield Shown(host, client, state, request.param)
        await client.aclose()


def _all_read(state: Json) -> bool:
    names = {one["name"] for one in state.get("customizations", ()) if "children" in one}
    return names >= {"all", "gem", "one", "two", "shaped"}


def _all_tried(state: Json) -> bool:
    """Whether the servers whose program does not exist have failed: their errors say why."""
    children = [child for one in state["customizations"] for child in one.get("children", ())]
    kinds = {child["name"]: child["state"]["kind"] for child in children if child["type"] == "mcpServer"}
    return kinds["inline"] == kinds["g"] == "error" and all(
        one["load"]["kind"] == "degraded" for one in state["customizations"] if one["name"] in ("all", "gem")
    )


@requirement("customizations:children:no-execution-details")
@requirement("customizations:children:metadata-from-definition", "customizations:children:agent-and-prompt-fields")
@requirement("customizations:children:skill-fields", "customizations:children:rule-fields")
@requirement("customizations:children:hook-fields", "customizations:tree:type-discriminates")
@requirement(
    "enablement:child:shared-base", "enablement:fields:first-class", "enablement:fields:meta-for-provider-data"
)
@requirement("mcp:server:shape", "mcp:server:inline-range", "customizations:found:icons")
@requirement("customizations:found:gemini", "customizations:found:pack", "customizations:found:workspace-shape")
@requirement("customizations:load:kinds", "session:customization:type-values")
async def test_each_kind_has_its_own_fields_and_nothing_of_what_runs(shown: Shown) -> None:
    fields = {
        type: {key: value for key, value in shown.child("all", type).items() if key not in ("id", "uri", "icons")}
        for type in ("agent", "skill", "prompt", "rule", "hook")
    }
    agent = fields.pop("agent")
    gates = {"disableModelInvocation": True}
    assert "green" in str(agent.pop("_meta"))
    assert agent == {"type": "agent", "name": "all:writer", "description": "Writes", **gates}
    assert fields == {
        "skill": {
            "type": "skill",
            "name": "all:tidy",
            "description": "Does a thing.",
            "disableUserInvocation": True,
            **gates,
        },
        "prompt": {"type": "prompt", "name": "all:plan", "description": "Plans"},
        "rule": {
            "type": "rule",
            "name": "style",
            "description": "Style",
            "alwaysApply": False,
            "globs": ["**/*.py", "src/{a,b}/**"],
        },
        "hook": {**fields["hook"], "event": "PreToolUse", "matcher": "Bash"},
    }
    servers = {one["name"]: one for one in shown.containers["all"]["children"] if one["type"] == "mcpServer"}
    assert servers.keys() == {"inline", "far"}
    assert all("kind" in server["state"] for server in servers.values())
    assert servers["inline"]["uri"].endswith("/.plugin/plugin.json")
    assert servers["inline"]["range"]["start"]["line"] > 0
    [icon] = shown.containers["all"]["icons"]
    assert icon["src"].endswith("/logo.png")
    assert (await shown.client.ask("resourceRead", "ahp-root://", uri=icon["src"]))["data"]
    beside = icon["src"].replace("logo.png", ".plugin/plugin.json")
    assert (await shown.client.refused("resourceRead", "ahp-root://", uri=beside))["code"] == -32009, "it has secrets"
    assert "icons" not in shown.containers["two"], "nothing is fetched from elsewhere"
    _extensions_packs_and_folders_like_a_workspace_are_plugins(shown)
    assert SECRET not in json.dumps(shown.client.received)


def _extensions_packs_and_folders_like_a_workspace_are_plugins(shown: Shown) -> None:
    kinds = {
        name: sorted(f"{one['type']} {one['name']}" for one in shown.containers[name]["children"])
        for name in ("gem", "one", "two", "shaped")
    }
    assert kinds == {
        "gem": ["mcpServer g", "rule GEMINI", "skill gem:go"],
        "one": ["skill one:c"],
        "two": ["skill two:d"],
        "shaped": ["rule r", "skill shaped:s"],
    }
    go = next(one for one in shown.containers["gem"]["children"] if one["type"] == "skill")
    assert go["description"] == "It is !{date}.", "text, which nobody runs"
    assert "pack" not in shown.containers
    assert {one["type"] for one in shown.state["customizations"]} <= {"plugin", "directory", "mcpServer"}
    loads = {name: one["load"]["kind"] for name, one in shown.containers.items() if "load" in one}
    assert {name for name, kind in loads.items() if kind == "degraded"} == {"all", "gem"}, "their servers failed"
    assert set(loads.values()) == {"degraded", "loaded"}


@requirement("enablement:child:flag-on-every-type", "enablement:child:skill-and-agent-flag")
@requirement("enablement:compat:additive", "customizations:update:no-child-update-action")
async def test_a_child_of_every_kind_is_switched_off_alone_and_only_then_has_a_flag(shown: Shown) -> None:
    types = ("agent", "skill", "prompt", "rule", "hook")
    assert [type for type in types if "enabled" in shown.child("all", type)] == []
    for type in types:
        id = shown.child("all", type)["id"]
        how: Json = {"enabled": False} if shown.version == "0.4.0" else {"enablement": [_off]}
        await shown.client.accepted(SESSION, {"type": "session/customizationToggled", "id": id, **how})
    now = await state_of(shown.client, SESSION)
    [entry] = [one for one in now["customizations"] if one["name"] == "all"]
    off = {one["type"] for one in entry["children"] if one.get("enabled") is False}
    assert off == set(types)
    update = {"type": "session/customizationUpdated", "customization": {**entry["children"][0], "name": "mine"}}
    assert "host" in await shown.client.rejected(SESSION, update)


_off = {"kind": "session", "enabled": False}


@requirement("core:chat:reject-confirm-not-pending", "core:chat:reject-unknown-pending-message")
@requirement("session:state:required-fields", "session:summary:required-fields", "session:lifecycle:values")
@requirement("session:config:schema-shape", "session:config:state-shape", "core:chat:state-repeats-summary")
async def test_a_session_always_has_its_fields_and_wrong_words_about_a_chat_are_refused(shown: Shown) -> None:
    client, chat = shown.client, shown.state["defaultChat"]
    assert shown.state["lifecycle"] == "ready"
    about = shown.state["summary"] if shown.version == "0.4.0" else shown.state
    assert {"provider", "title", "status"} <= about.keys()
    [entry] = (await client.ask("listSessions"))["items"]
    assert {"resource", "provider", "title", "status", "createdAt", "modifiedAt"} <= entry.keys()
    config = shown.state["config"]
    assert config["schema"]["type"] == "object"
    assert config["values"].keys() <= config["schema"]["properties"].keys()
    state = await state_of(client, chat)
    [listed] = [one for one in shown.state["chats"] if one["resource"] == chat]
    repeated = listed.keys() - {"origin", "workingDirectory", "workingDirectories"}
    assert {key: state[key] for key in repeated} == {key: listed[key] for key in repeated}
    gone = {"type": "chat/pendingMessageRemoved", "kind": "queued", "id": "none"}
    assert "none" in await client.rejected(chat, gone)
    start = say("/usage") if shown.version == "0.4.0" else {**say("/usage"), "startedAt": "2026-11-15T12:00:00.000Z"}
    await client.accepted(chat, start)
    confirm = {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": "c", "approved": True}
    assert await client.rejected(chat, {**confirm, "confirmed": "user-action"})


@requirement("customizations:container:children-absent-before-parse", "session:state:bare-mcp-from-server")
@requirement("session:action:active-client-own-entry", "session:active-client:shape")
@requirement("session:tool:schema-optional", "session:tool:definition-shape")
async def test_a_client_publishes_tools_and_plugins_for_itself_and_an_unread_plugin_has_no_children(
    shown: Shown,
) -> None:
    """Nobody answers the host here, so the client's plugin is never read."""
    oldest = shown.version == "0.4.0"
    plugin = {"type": "plugin", "id": "slow", "uri": "virtual://looker/p", "name": "Slow"}
    plugin |= {"enabled": True} if oldest else {}
    kind = "session/activeClientChanged" if oldest else "session/activeClientSet"
    full = {"name": "full", "title": "Full", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    active: Json = {"clientId": "looker", "displayName": "Me", "tools": [{"name": "bare"}, full]}
    server = {"type": "mcpServer", "id": "s", "uri": "virtual://looker/s", "name": "s", "state": {"kind": "ready"}}
    for wrong in ({**active, "clientId": "another"}, {**active, "customizations": [server]}, {"clientId": "looker"}):
        assert await shown.client.rejected(SESSION, {"type": kind, "activeClient": wrong})
    await shown.client.accepted(SESSION, {"type": kind, "activeClient": {**active, "customizations": [plugin]}})
    now = await state_of(shown.client, SESSION)
    [me] = [now["activeClient"]] if oldest else now["activeClients"]
    assert (me["displayName"], me["tools"]) == ("Me", active["tools"])
    [entry] = [one for one in now["customizations"] if one["id"] == "slow"]
    assert (entry["load"], "children" in entry) == ({"kind": "loading"}, False)
    chat = shown.state["defaultChat"]
    start = say("/skills") if oldest else {**say("/skills"), "startedAt": "2026-11-15T12:00:00.000Z"}
    await shown.client.ask("subscribe", chat)
    await shown.client.accepted(chat, start)
    await shown.client.action("chat/turnComplete")
    offered = str((await state_of(shown.client, chat))["turns"][-1]["responseParts"])
    assert ("bare" in offered, "full" in offered) == (True, True)


@requirement("commands:completions:contains")
async def test_what_begins_with_the_typed_part_comes_first_whoever_offers_it(shown: Shown) -> None:
    """`/skills` and `/ask` are commands of the agent, `/shaped:s` is a customization."""
    text = "/s"
    where = {"text": text, "offset": len(text)}
    answer = await shown.client.ask("completions", shown.state["defaultChat"], kind="userMessage", **where)
    offered = [item["insertText"].strip() for item in answer["items"]]
    begin = [name for name in offered if name.startswith(text)]
    assert {"/skills", "/shaped:s"} <= set(begin)
    assert "/ask" in offered
    assert offered[: len(begin)] == begin
