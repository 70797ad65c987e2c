"""Every format of customizations in a running host: what clients are shown, and what the agent is told."""

from __future__ import annotations

import asyncio
import json

import pytest

from customizations.builders import skill, text, write
from customizations.desk import Desk
from support import requirement
from support.bench import say
from support.raw_client import Json

PLUGIN = {
    ".claude-plugin/plugin.json": {"name": "kit", "mcpServers": {"inline": {"command": "secret-program"}}},
    "agents/reviewer.md": text("You review.", name="reviewer", description="Reviews"),
    "skills/deploy/SKILL.md": skill("deploy", "Ships it"),
    "skills/quiet/SKILL.md": skill("quiet", disable_model_invocation="true"),
    "skills/inner/SKILL.md": skill("inner", user_invocable="false"),
    "commands/tidy.md": text("Tidy up.", description="Tidies"),
    "hooks/hooks.json": {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "secret-script"}]}]}
    },
}
WORKSPACE = {
    ".github/prompts/ask.prompt.md": text("Ask.", description="Asks"),
    ".github/instructions/py.instructions.md": text("Use types.", applyTo="'**/*.py'"),
    ".cursor/rules/always.mdc": text("Be kind.", alwaysApply="true"),
    ".cursor/rules/tests.mdc": text("Test it.", alwaysApply="true", globs="tests/**"),
    ".cursor/rules/never.mdc": text("Only when asked."),
    ".cursor/rules/broken.mdc": "---\ntools: *\nalwaysApply: maybe\n---\nOdd.",
}
CHILDREN = {"agent", "skill", "prompt", "rule", "hook", "mcpServer"}
SHARED = {"type", "id", "uri", "name", "icons", "range", "enabled", "_meta"}
OWN = {
    "agent": {"description", "disableModelInvocation", "disableUserInvocation", "model", "tools"},
    "skill": {"description", "disableModelInvocation", "disableUserInvocation"},
    "prompt": {"description"},
    "rule": {"description", "alwaysApply", "globs"},
    "hook": {"event", "matcher"},
    "mcpServer": {"state", "channel", "mcpApp", "enablement"},
}


async def loads(desk: Desk) -> dict[str, list[str]]:
    """The load states that were announced for each container, by its name, in order."""
    found: dict[str, list[str]] = {}
    for entry in await desk.bench.host.spine.log.read(0):
        action = json.loads(entry.payload).get("action", {})
        for one in action.get("customizations", [action.get("customization", {})]):
            if kind := one.get("load", {}).get("kind"):
                found.setdefault(one["name"], []).append(kind)
    return found


async def shown(desk: Desk, version: str) -> tuple[list[Json], str]:
    """All entries of a session once they are read, and the session's chat."""
    desk.files(WORKSPACE)
    plugin = write(desk.home.parent / "kit", PLUGIN)
    write(desk.home.parent / "bad", {".plugin/plugin.json": "{"})
    servers = [{"name": "bare", "command": "another-secret"}]
    await desk.start(plugins=[plugin, desk.home.parent / "bad"], servers=servers)
    client = await desk.bench.connect("me")
    await client.initialize(protocolVersions=[version])
    session, chat = await desk.session(client)
    while True:
        entries = list((await desk.containers(client, session)).values())
        if not any(one.get("load", {}).get("kind") == "loading" for one in entries):
            return entries, chat
        await asyncio.sleep(0.02)


@requirement(
    "customizations:tree:top-level-kinds",
    "customizations:tree:child-kinds",
    "customizations:tree:mcp-server-either-position",
    "customizations:identity:id-and-uri-everywhere",
    "customizations:identity:id-unique-in-session",
    "customizations:identity:uri-by-kind",
    "customizations:identity:inline-declaration-range",
    "customizations:container:directory-contents",
    "customizations:container:directory-fields",
    "customizations:container:plugin-fields",
    "customizations:container:children-empty-after-parse",
    "customizations:children:base-fields",
    "customizations:children:leaves",
    "customizations:children:parent-by-position",
    "customizations:children:instructions-are-rules",
    "customizations:children:mcp-server-fields",
    "customizations:load:degraded-when-partial",
    "customizations:load:error-when-failed",
    "customizations:load:loaded-when-clean",
    "session:state:top-level-customizations",
    "session:customization:child-types",
    "session:customization:load-values",
    "session:customization:load-message",
    "session:customization:directory-shape",
    "session:customization:directory-may-not-exist",
    "session:customization:agent",
    "session:customization:skill-layouts",
    "session:customization:skill-description",
    "session:customization:prompt",
    "session:customization:hook",
)
@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
async def test_clients_are_shown_a_tree_of_two_levels_with_what_each_type_has(desk: Desk, version: str) -> None:
    entries, _ = await shown(desk, version)
    by_name = {entry["name"]: entry for entry in entries}
    assert {entry["type"] for entry in entries} <= {"plugin", "directory", "mcpServer"}
    everything = [*entries, *(child for entry in entries for child in entry.get("children", ()))]
    assert len({one["id"] for one in everything}) == len(everything)
    assert all(one["id"] and one["uri"] for one in everything)
    assert not any("clientId" in one for one in everything)
    for entry in entries:
        children: list[Json] = entry.get("children", [])
        assert {child["type"] for child in children} <= CHILDREN
        for child in children:
            assert child.keys() <= SHARED | OWN[child["type"]], child
        if entry["type"] == "directory":
            assert {child["type"] for child in children} <= {entry["contents"]}
            assert isinstance(entry["writable"], bool)
    kit = {(child["type"], child["name"]): child for child in by_name["kit"]["children"]}
    assert list(kit) == [
        ("agent", "kit:reviewer"),
        ("skill", "kit:deploy"),
        ("skill", "kit:inner"),
        ("skill", "kit:quiet"),
        ("skill", "kit:tidy"),
        ("hook", "PreToolUse (Bash)"),
        ("mcpServer", "inline"),
    ]
    texts = [kit["agent", "kit:reviewer"], kit["skill", "kit:deploy"], kit["skill", "kit:tidy"]]
    assert [one["description"] for one in texts] == ["Reviews", "Ships it", "Tidies"]
    assert kit["agent", "kit:reviewer"]["uri"].endswith("/agents/reviewer.md")
    assert by_name["kit"]["uri"] == (desk.home.parent / "kit").as_uri()
    inline = kit["mcpServer", "inline"]
    assert (inline["uri"].endswith("/plugin.json"), "start" in inline["range"]) == (True, True)
    assert by_name["bare"]["state"]["kind"] == inline["state"]["kind"] == "stopped"
    assert "secret" not in str(entries).replace("another-secret", "secret")
    assert by_name["kit"]["load"] == {"kind": "loaded"}
    assert by_name[".cursor/rules"]["load"]["kind"] == "degraded"
    assert "broken.mdc" in by_name[".cursor/rules"]["load"]["message"]
    bad = by_name["bad"]
    assert (bad["load"]["kind"], "children" in bad) == ("error", False)
    assert "not valid JSON" in bad["load"]["message"]
    empty = by_name[".github/agents"]
    assert (empty["children"], empty["load"], empty["contents"]) == ([], {"kind": "loaded"}, "agent")
    assert not (desk.workspace / ".github/agents").exists()
    rules = by_name[".github/instructions"]["children"] + by_name[".cursor/rules"]["children"]
    assert {rule["type"] for rule in rules} == {"rule"}
    announced = await loads(desk)
    for name, end in {"kit": "loaded", ".cursor/rules": "degraded", "bad": "error", ".github/agents": "loaded"}.items():
        assert list(dict.fromkeys(announced[name])) == ["loading", end], name


@requirement(
    "session:customization:skill-user-only",
    "session:customization:skill-description",
    "session:customization:rule-formats",
    "session:customization:rule-always-apply",
    "session:customization:rule-globs",
    "session:action:customization-toggled-children",
    "customizations:toggle:children-follow-container",
    "customizations:tree:mcp-server-either-position",
    "enablement:invocation:skill-model-gate",
    "enablement:invocation:default-allows-both",
    "enablement:invocation:flags-independent",
    "enablement:precedence:both-must-be-enabled",
    "enablement:surface:not-invocable-child-listed",
    "enablement:surface:disabled-child-listed",
    "enablement:child:absent-means-enabled",
)
async def test_the_agent_is_told_what_is_in_force_and_nothing_else(desk: Desk) -> None:
    _, chat = await shown(desk, "0.4.0")
    client = await desk.bench.client()
    session = (await client.ask("listSessions"))["items"][0]["resource"]
    for channel in (session, chat):
        await client.ask("subscribe", channel)

    async def told(words: str) -> tuple[list[str], list[str]]:
        turn = await desk.turn(client, chat, words)
        return sorted(offer.name for offer in turn.context.skills), [rule.strip() for rule in turn.context.rules]

    async def switch(name: str, on: bool) -> None:
        entries = await desk.containers(client, session)
        every = [*entries.values(), *(child for one in entries.values() for child in one.get("children", ()))]
        [id] = [one["id"] for one in every if one["name"] == name]
        await client.accepted(session, {"type": "session/customizationToggled", "id": id, "enabled": on})

    skills, rules = await told("hello")
    assert skills == ["kit:deploy", "kit:inner", "kit:tidy"]
    assert rules == ["Be kind."]
    assert (await told("look at src/a.py"))[1] == ["Use types.", "Be kind."]
    assert (await told("look at tests/a.txt"))[1] == ["Be kind.", "Test it."], "always, within its globs"
    assert "Only when asked." in (await told("#never please"))[1]
    turn = await desk.turn(client, chat, "/quiet now")
    assert "# quiet" in turn.prompt
    await client.accepted(chat, say("/inner now", "t-inner"))
    refused = await client.action("chat/error")
    assert "`kit:inner` is for the model alone" in refused["action"]["error"]["message"]
    offered = await client.ask("completions", chat, kind="userMessage", text="/", offset=1)
    typed = {item["insertText"].strip() for item in offered["items"]}
    assert ("/kit:quiet" in typed, "/kit:inner" in typed) == (True, False)
    helped = {item["insertText"].strip(): item["attachment"]["_meta"]["description"] for item in offered["items"]}
    assert helped["/kit:tidy"] == "Tidies"
    assert ("kit:tidy", "Tidies") in [(offer.name, offer.description) for offer in turn.context.skills]
    await switch("kit:deploy", False)
    assert (await told("hello"))[0] == ["kit:inner", "kit:tidy"]
    listed = (await desk.containers(client, session))["kit"]["children"]
    assert [child.get("enabled") for child in listed if child["name"] == "kit:deploy"] == [False]
    await switch("kit", False)
    assert (await told("hello"))[0] == []
    await switch("kit:deploy", True)
    assert (await told("hello"))[0] == []
    await switch("kit", True)
    assert (await told("hello"))[0] == ["kit:deploy", "kit:inner", "kit:tidy"]

    async def servers() -> list[str]:
        return sorted(offer.name for offer in (await desk.turn(client, chat, "hello")).context.mcp_servers)

    assert await servers() == ["bare", "inline"]
    for name, rest in (("bare", ["inline"]), ("inline", ["bare"])):
        await switch(name, False)
        assert await servers() == rest
        await switch(name, True)
        assert await servers() == ["bare", "inline"]
