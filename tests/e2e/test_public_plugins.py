"""Plugins in the shapes that public repositories have, given to a real host and seen over the wire."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from customizations.builders import skill, text, write
from support import requirement
from support.flow import open_session, say, state_of
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient

CLAUDE = ".claude-plugin/plugin.json"
SERVER = {"mcpServers": {"s": {"command": "sleep", "args": ["3600"]}}}
"""One that is there and says nothing: its plugin is sound."""

PLUGINS: dict[str, dict[str, Any]] = {
    "twice": {
        CLAUDE: {"name": "twice", "skills": ["./skills/", "skills", "./skills/a"], "mcpServers": "./.mcp.json"},
        "skills/a/SKILL.md": skill("a"),
        "skills/topic/b/SKILL.md": skill("b"),
        ".mcp.json": SERVER,
    },
    "loose": {"a/SKILL.md": skill("a"), "topic/b/SKILL.md": skill("b")},
    "empty-skill": {CLAUDE: {"name": "empty-skill"}, "skills/a/SKILL.md": ""},
    "no-name": {CLAUDE: {}, "skills/a/SKILL.md": skill("a")},
    "odd-name": {CLAUDE: {"name": "odd-name"}, "skills/a/SKILL.md": text(name="[]")},
    "no-url": {CLAUDE: {"name": "no-url"}, ".mcp.json": {"mcpServers": {"s": {"type": "http", "url": ""}}}},
    "newer": {CLAUDE: {"name": "newer"}, ".lsp.json": "{}", "monitors/m.json": "{}", "workflows/w.md": "x"},
    "inner": {
        CLAUDE: {"name": "inner"},
        "skills/a/SKILL.md": skill("a"),
        "plugins/x/.claude-plugin/plugin.json": {"name": "x"},
    },
    "kiro": {"POWER.md": skill("power"), "steering/s.md": text(inclusion="always"), "mcp.json": SERVER},
    "cursor": {
        "rules/a.mdc": "---\nglobs: **/*.ts\nalwaysApply: false\n---\nTypes first.",
        "skills/s/SKILL.md": skill("s"),
        "skills/s/references/AGENTS.md": "Of the skill.",
        "prompts/p.md": "Say p.",
    },
    "harmless": {
        "README.md": "# About",
        "rules/globs.mdc": "---\nglobs: **/*.ts, *.py\n---\nTypes first.",
        "rules/plain.md": "Be plain.",
        "GEMINI.md": "Be kind.",
        "skills/s/SKILL.md": skill("s"),
        "skills/s/README.md": "# Of the skill",
        "skills/s/scripts/run.py": "print()",
    },
    "names": {
        CLAUDE: {"name": "names"},
        "agents/w.md": text("I write.", name='"SE: Tech Writer"'),
        "agents/c.md": text("I know C#.", name="C# Expert"),
        "agents/team/cpp.md": text("I know C++.\n\nMore.", name="C++ Expert"),
    },
    "market": {
        ".claude-plugin/marketplace.json": {
            "plugins": [
                {"name": "one", "source": "./one"},
                {"name": "far", "source": {"source": "github", "repo": "a/b"}},
                {"name": "gone", "source": "./gone"},
                {"name": "inner", "source": "./lists/inner"},
            ]
        },
        "one/skills/a/SKILL.md": skill("a"),
        "lists/inner/.claude-plugin/marketplace.json": {"plugins": [{"name": "deep", "source": "./deep"}]},
        "lists/inner/deep/skills/a/SKILL.md": skill("a"),
    },
    "pattern": {
        CLAUDE: {"name": "pattern", "commands": ["./do/*.md"], "agents": "./none/*.md"},
        "do/ship.md": "Ship it.",
    },
    "others": {
        ".codex/prompts/plan.md": "Plan it.",
        ".agent/skills/s/SKILL.md": skill("s"),
        ".codex/config.toml": "x = 1",
    },
}


class Shown:
    """A host with all of these plugins, and what a session of it lists."""

    def __init__(self, host: HostProcess, client: RawClient, session: str, chat: str, entries: list[Json]) -> None:
        self.host, self.client, self.session, self.chat = host, client, session, chat
        self.plugins = {entry["name"]: entry for entry in entries if entry["type"] == "plugin"}
        self.entries = entries

    def names(self, plugin: str) -> list[str]:
        return [child["name"] for child in self.plugins[plugin].get("children", [])]

    def load(self, plugin: str) -> Json:
        return self.plugins[plugin]["load"]


@pytest.fixture
async def shown(tmp_path: Path) -> Any:
    options: list[str] = []
    for name, files in PLUGINS.items():
        write(tmp_path / "plugins" / name, files)
        options += ["--plugin", str(tmp_path / "plugins" / name)]
    options += ["--plugin", str(tmp_path / "plugins" / "not-there")]
    async with host_process(tmp_path, *options) as host:
        client = await host.client("ahp-root://")
        session, chat = await open_session(client)
        state = await state_of(client, session)
        while any(entry.get("load", {}).get("kind") == "loading" for entry in state["customizations"]):
            state = await state_of(client, session)
        yield Shown(host, client, session, chat, state["customizations"])


@requirement(
    "customizations:found:one-entry",
    "customizations:found:nothing-lost",
    "customizations:found:skill-folders",
    "customizations:found:marketplace",
    "customizations:found:broken-said",
    "customizations:found:harmless",
    "customizations:found:names",
    "customizations:found:nested-marketplace",
    "customizations:found:patterns",
    "customizations:found:other-products",
)
async def test_each_is_listed_once_or_named_and_what_is_wrong_is_said(shown: Shown) -> None:
    ids = [one["id"] for entry in shown.entries for one in (entry, *entry.get("children", []))]
    assert [id for id, count in Counter(ids).items() if count > 1] == []
    assert shown.names("twice") == ["twice:a", "twice:b", "s"]
    assert shown.names("loose") == ["loose:a", "loose:b"]
    wrong = {
        "empty-skill": "the file is empty",
        "no-name": "no usable name",
        "odd-name": "`name` is not a string",
        "no-url": "`url` is empty",
        "newer": "seen: workflows, monitors, .lsp.json",
        "market": "not on this machine, and nothing is fetched: far",
        "pattern": "'./none/*.md' matches nothing",
    }
    said = {name: shown.load(name).get("message", "") for name in wrong}
    assert {name: wrong[name] in said[name] for name in wrong} == dict.fromkeys(wrong, True), said
    assert {shown.load(name)["kind"] for name in wrong} == {"degraded"}
    assert shown.load("not-there") == {"kind": "error", "message": "there is no such folder"}
    assert "./gone" in said["market"]
    assert shown.names("one") == ["one:a"]
    assert shown.names("deep") == ["deep:a"]
    assert shown.names("pattern") == ["pattern:ship"]
    assert sorted(shown.names("others")) == ["others:plan", "others:s"]
    assert ".codex/config.toml" in str(shown.plugins["others"]["_meta"]["ahpkit/notListed"])
    assert "plugins/x" in shown.plugins["inner"]["_meta"]["ahpkit/notListed"][0]
    sound = ("twice", "loose", "inner", "kiro", "cursor", "harmless", "names", "one")
    assert {name: shown.load(name) for name in sound} == {name: {"kind": "loaded"} for name in sound}
    assert shown.names("kiro") == ["kiro:power", "s", "s"]
    assert shown.names("cursor") == ["cursor:s", "cursor:p", "a"]
    assert shown.names("harmless") == ["harmless:s", "globs", "plain"]
    assert "not read: there is no such folder" in shown.host.errors
    await _names_stay_what_they_are_and_complete_unambiguously(shown)


async def _names_stay_what_they_are_and_complete_unambiguously(shown: Shown) -> None:
    agents = {child["name"]: child.get("description") for child in shown.plugins["names"]["children"]}
    assert agents == {
        "names:C# Expert": "I know C#.",
        "names:C++ Expert": "I know C++.",
        "names:SE: Tech Writer": "I write.",
    }
    answers = [await _completed(shown, typed) for typed in ("@c#", "@c++", "@tech")]
    assert answers == [["@names:C#-Expert "], ["@names:C++-Expert "], ["@names:SE-Tech-Writer "]]


async def _completed(shown: Shown, typed: str) -> list[str]:
    answer = await shown.client.ask("completions", shown.chat, kind="userMessage", text=typed, offset=len(typed))
    return [item["insertText"] for item in answer["items"]]


@requirement("customizations:found:one-entry", "customizations:found:off-is-said")
async def test_a_skill_that_two_paths_name_is_off_when_it_is_switched_off(shown: Shown) -> None:
    [twice] = [child for child in shown.plugins["twice"]["children"] if child["name"] == "twice:a"]
    await shown.client.accepted(
        shown.session, {"type": "session/customizationToggled", "id": twice["id"], "enabled": False}
    )
    await shown.client.accepted(shown.chat, say("/skills"))
    await shown.client.action("chat/turnComplete")
    answer = str((await state_of(shown.client, shown.chat))["turns"][-1]["responseParts"])
    assert ("twice:b" in answer, "twice:a" in answer) == (True, False)
    await shown.client.accepted(shown.chat, say("/twice:a", "t2"))
    await shown.client.action(
        lambda envelope: envelope["action"].get("turnId") == "t2" and envelope["action"]["type"] != "chat/turnStarted"
    )
    await shown.client.action(
        lambda envelope: (
            envelope["action"]["type"] in ("chat/turnComplete", "chat/error") and envelope["action"]["turnId"] == "t2"
        )
    )
    assert "switched off" in str((await state_of(shown.client, shown.chat))["turns"][-1])
