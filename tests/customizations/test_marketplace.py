"""Marketplaces and packs given as a plugin, and instructions of subfolders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from ahpkit.customizations.diagnostics import Diagnostic
from ahpkit.customizations.discovery import Discovery, discover
from ahpkit.customizations.standard_places import SKILLS_ONLY
from ahpkit.protocol.meta_keys import NOT_LISTED
from customizations.builders import children, container, read_workspace, skill, text, write
from support import requirement


def names_of(discovery: Any) -> dict[str, list[str]]:
    return {entry["name"]: [child["name"] for child in entry.get("children", [])] for entry in discovery.containers}


def market(root: Path, *entries: dict[str, Any], **more: Any) -> Path:
    return write(root, {".claude-plugin/marketplace.json": {"name": "m", "plugins": list(entries), **more}})


def test_the_local_entries_of_a_marketplace_are_plugins(tmp_path: Path) -> None:
    write(tmp_path, {"plugins/a/.claude-plugin/plugin.json": {"name": "a"}, "plugins/a/skills/s/SKILL.md": skill("s")})
    write(tmp_path, {"plugins/b/skills/t/SKILL.md": skill("t")})
    market(
        tmp_path,
        {"name": "a", "source": "./plugins/a"},
        {"name": "b", "source": {"source": "local", "path": "./plugins/b"}},
    )
    assert names_of(discover(None, home=None, plugins=[tmp_path])) == {"a": ["a:s"], "b": ["b:t"]}


@requirement("customizations:found:nested-marketplace")
def test_marketplaces_in_marketplaces_and_in_folders_are_read(tmp_path: Path) -> None:
    team = market(tmp_path / "all" / "team", {"name": "b", "source": "./b"}, {"name": "loop", "source": "./"})
    write(team, {"b/skills/t/SKILL.md": skill("t"), "own/x/SKILL.md": skill("x")})
    own = market(tmp_path / "all" / "own", {"name": "own", "source": "./"}, {"name": "far", "source": "github:a/b"})
    write(own, {".claude-plugin/plugin.json": {"name": "own"}, "skills/s/SKILL.md": skill("s")})
    shared = [{"name": name, "source": "./", "skills": [f"./{name}"]} for name in ("one", "two")]
    write(market(tmp_path / "all" / "shared", *shared), {"one/SKILL.md": skill("one"), "two/SKILL.md": skill("two")})
    market(tmp_path / "all" / "empty", {"name": "gone", "source": "https://example.org/gone"})
    entries = [{"name": name, "source": f"./{name}"} for name in ("team", "own", "shared", "empty")]
    expected = {"b": ["b:t"], "own": ["own:s"], "one": ["one:one"], "two": ["two:two"]}
    in_folder = discover(None, home=None, plugins=[tmp_path / "all"])
    in_list = discover(None, home=None, plugins=[market(tmp_path / "all", *entries)])
    for discovery in (in_folder, in_list):
        found = names_of(discovery)
        assert {name: found.get(name) for name in expected} == expected
        ids = [one["id"] for entry in discovery.containers for one in (entry, *children(entry))]
        assert len(ids) == len(set(ids))
        assert "nothing is fetched: gone" in container(discovery, "empty")["load"]["message"]
        assert "own/x/SKILL.md" in str(discovery.containers), "what lies beside the inner list's plugins is named"


def test_a_plugin_root_in_the_metadata_is_where_sources_begin(tmp_path: Path) -> None:
    write(tmp_path, {"all/a/skills/s/SKILL.md": skill("s")})
    market(tmp_path, {"name": "a", "source": "./a"}, metadata={"pluginRoot": "./all"})
    assert names_of(discover(None, home=None, plugins=[tmp_path])) == {"a": ["a:s"]}


def test_entries_that_share_a_folder_have_what_each_names(tmp_path: Path) -> None:
    write(tmp_path, {"skills/x/SKILL.md": skill("x"), "skills/y/SKILL.md": skill("y"), "skills/z/SKILL.md": skill("z")})
    market(
        tmp_path,
        {"name": "one", "source": "./", "strict": False, "skills": ["./skills/x"]},
        {"name": "two", "source": "./", "strict": False, "skills": ["./skills/y", "./skills/z"]},
    )
    discovery = discover(None, home=None, plugins=[tmp_path])
    assert names_of(discovery) == {"one": ["one:x"], "two": ["two:y", "two:z"]}
    ids = [child["id"] for entry in discovery.containers for child in children(entry)]
    assert len(ids) == len(set(ids)) == 3
    assert [entry for entry in discovery.containers if "_meta" in entry] == [], "none names what another one lists"


def test_what_no_entry_of_a_shared_folder_lists_is_named_once(tmp_path: Path) -> None:
    write(tmp_path, {"skills/x/SKILL.md": skill("x"), "skills/y/SKILL.md": skill("y"), "lost/z/SKILL.md": skill("z")})
    market(
        tmp_path,
        {"name": "one", "source": "./", "strict": False, "skills": "skills/x"},
        {"name": "two", "source": "./", "strict": False, "skills": ["./skills/y/"]},
    )
    containers = discover(None, home=None, plugins=[tmp_path]).containers
    assert [entry.get("_meta", {}).get(NOT_LISTED) is not None for entry in containers] == [True, False]
    assert "lost/z/SKILL.md" in str(containers[0].get("_meta"))
    assert "skills/y" not in str(containers[0].get("_meta"))


def test_entries_that_would_have_to_be_fetched_or_are_not_there_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"a/skills/s/SKILL.md": skill("s")})
    market(
        tmp_path,
        {"name": "a", "source": "./a"},
        {"name": "far", "source": {"source": "github", "repo": "x/y"}},
        {"name": "gone", "source": "./gone"},
        {"name": "out", "source": "../../etc"},
    )
    discovery = discover(None, home=None, plugins=[tmp_path])
    message = container(discovery, tmp_path.name)["load"]["message"]
    assert "far" in message
    assert "'./gone'" in message
    assert "'../../etc'" in message


def test_a_folder_of_plugins_loads_each_of_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / "plugins" / name
        write(folder, {".claude-plugin/plugin.json": {"name": name}, "commands/c.md": "x"})
    found = names_of(discover(None, home=None, plugins=[tmp_path]))
    assert found["a"] == ["a:c"]
    assert found["b"] == ["b:c"]


def test_instructions_of_subfolders_are_for_the_files_there(tmp_path: Path) -> None:
    write(tmp_path, {"AGENTS.md": "Top.", "api/AGENTS.md": "Be strict.", "web/app/CLAUDE.md": "Be kind."})
    write(tmp_path, {"web/GEMINI.md": "Be brief.", "node_modules/x/AGENTS.md": "no", ".venv/AGENTS.md": "no"})
    nested = container(read_workspace(tmp_path), "Instructions of subfolders")
    assert [(child["name"], child["globs"]) for child in children(nested)] == [
        ("api/AGENTS.md", ["api/**"]),
        ("web/GEMINI.md", ["web/**"]),
        ("web/app/CLAUDE.md", ["web/app/**"]),
    ]


def test_a_workspace_without_such_files_shows_no_such_container(tmp_path: Path) -> None:
    write(tmp_path, {"api/main.py": "x"})
    assert "Instructions of subfolders" not in names_of(read_workspace(tmp_path))


def test_folders_of_other_tools_are_read(tmp_path: Path) -> None:
    write(tmp_path, {".clinerules/style.md": "S", ".kiro/steering/tech.md": "T", ".cursor/commands/ship.md": "x"})
    write(tmp_path, {".cursor/agents/a.md": text(), ".cursor/mcp.json": {"mcpServers": {"s": {"command": "s"}}}})
    found = names_of(read_workspace(tmp_path))
    assert found[".clinerules"] == ["style"]
    assert found[".kiro/steering"] == ["tech"]
    assert found[".cursor/commands"] == ["ship"]
    assert found[".cursor/agents"] == ["a"]
    assert found[".cursor/mcp.json"] == ["s"]


def test_cline_rules_may_be_a_single_file(tmp_path: Path) -> None:
    write(tmp_path, {".clinerules": "Be brief."})
    assert names_of(read_workspace(tmp_path))["Instructions"] == [".clinerules"]


@requirement("customizations:found:marketplace")
def test_a_marketplace_does_not_speak_of_what_its_entries_have(tmp_path: Path) -> None:
    write(tmp_path, {"a/.claude-plugin/plugin.json": {"name": "a"}, "a/skills/s/SKILL.md": skill("s")})
    market(tmp_path, {"name": "a", "source": "./a"}, {"name": "far", "source": {"source": "npm", "package": "x"}})
    discovery = discover(None, home=None, plugins=[tmp_path])
    assert names_of(discovery) == {tmp_path.name: [], "a": ["a:s"]}
    assert "_meta" not in container(discovery, tmp_path.name)
    assert "far" in container(discovery, tmp_path.name)["load"]["message"]


@requirement("customizations:found:marketplace")
@pytest.mark.parametrize("listed", [[], {"a": {"source": "./a"}}, "a", None])
def test_a_marketplace_that_names_no_plugins_says_so(tmp_path: Path, listed: Any) -> None:
    write(tmp_path, {".claude-plugin/marketplace.json": {"plugins": listed}, "a/skills/s/SKILL.md": skill("s")})
    [entry] = discover(None, home=None, plugins=[tmp_path]).containers
    load: Any = entry.get("load")
    assert (load["kind"], "names no plugins" in load["message"]) == ("degraded", True)


@requirement("customizations:found:marketplace")
def test_a_plugin_whose_list_of_others_is_broken_keeps_its_own_things(tmp_path: Path) -> None:
    files = {".claude-plugin/marketplace.json": "{", ".claude-plugin/plugin.json": {"name": "p"}}
    write(tmp_path, {**files, "skills/s/SKILL.md": skill("s")})
    [entry] = discover(None, home=None, plugins=[tmp_path]).containers
    assert (entry.get("load", {})["kind"], [child["name"] for child in children(entry)]) == ("degraded", ["p:s"])


@requirement("customizations:found:pack")
def test_a_folder_of_plugins_is_not_listed_beside_them(tmp_path: Path) -> None:
    write(tmp_path, {"x/plugin.json": {"name": "x"}, "x/skills/s/SKILL.md": skill("s")})
    assert names_of(discover(None, home=None, plugins=[tmp_path])) == {"x": ["x:s"]}


@requirement("customizations:found:nothing-lost")
def test_what_lies_beside_the_plugins_of_a_list_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a/.claude-plugin/plugin.json": {"name": "a"}, "a/skills/s/SKILL.md": skill("s")})
    write(tmp_path, {"skills/loose/SKILL.md": skill("loose"), "prompts/p.md": "x"})
    market(tmp_path, {"name": "a", "source": "./a"})
    discovery = discover(None, home=None, plugins=[tmp_path])
    assert names_of(discovery) == {tmp_path.name: [], "a": ["a:s"]}
    said = "\n".join(container(discovery, tmp_path.name)["_meta"]["ahpkit/notListed"])
    assert "skills/loose/SKILL.md" in said
    assert "prompts/p.md" in said


@requirement("customizations:found:marketplace")
def test_many_folders_that_are_not_there_are_one_line(tmp_path: Path) -> None:
    market(tmp_path, *({"name": f"p{n}", "source": f"./p{n}"} for n in range(8)))
    [entry] = discover(None, home=None, plugins=[tmp_path]).containers
    message = cast("Any", entry.get("load"))["message"]
    assert "names folders './p0', './p1', './p2', './p3', './p4' and 3 more, which are not there" in message


@requirement("customizations:found:other-products")
def test_skills_are_read_where_installers_put_them(tmp_path: Path) -> None:
    """A skill that several products link to is listed once."""
    write(tmp_path, {".agents/skills/shared/SKILL.md": skill("shared")})
    for product in SKILLS_ONLY:
        write(tmp_path, {f"{product}/skills/own/SKILL.md": skill("own")})
        (tmp_path / product / "skills/shared").symlink_to(tmp_path / ".agents/skills/shared")
    write(tmp_path, {"AGENTS.override.md": "x", "AGENT.md": "x", ".amazonq/cli-agents/a.json": "{}"})
    discovery = read_workspace(tmp_path)
    found = names_of(discovery)
    assert all(found[f"{product}/skills"] == ["own"] for product in SKILLS_ONLY)
    assert found[".agents/skills"] == ["shared"]
    assert found["Instructions"] == ["AGENTS.override", "AGENT"]
    assert any("a.json: not read here" in str(said) for lines in discovery.diagnostics.values() for said in lines)


@requirement("customizations:found:other-products")
def test_places_of_more_products_are_read_or_named(tmp_path: Path) -> None:
    files = {".codex/prompts/ship.md": "x", ".factory/droids/d.md": text(), ".agent/skills/s/SKILL.md": skill("s")}
    files |= {".roo/rules-code/r.md": "x", ".trae/rules/t.md": "x", "WARP.md": "x", "QWEN.md": "x"}
    write(tmp_path, {**files, ".roo/mcp.json": {"mcpServers": {"s": {"command": "s"}}}})
    write(tmp_path, {".codex/config.toml": "x = 1", ".codex/agents/a.toml": "x", "opencode.json": "{}"})
    discovery = read_workspace(tmp_path)
    found = names_of(discovery)
    assert found[".codex/prompts"] == ["ship"]
    assert found[".factory/droids"] == ["d"]
    assert found[".agent/skills"] == ["s"]
    assert found[".roo/rules-code"] == ["r"]
    assert found[".trae/rules"] == ["t"]
    assert found["Instructions"] == ["QWEN", "WARP"]
    assert found[".roo/mcp.json"] == ["s"]
    named = {item.path for name in ("Settings of other products", ".codex/agents") for item in said(discovery, name)}
    assert named == {".codex/config.toml", "opencode.json", "a.toml"}


@requirement("customizations:found:other-products")
def test_agents_in_folders_and_commands_in_both_forms_are_read(tmp_path: Path) -> None:
    files = {".agents/agents/reviewer/agent.md": text(), ".agents/agents/x/agent.md": text(name="tester")}
    files |= {".qwen/commands/ship.toml": 'prompt = "Ship it"', ".qwen/commands/git/log.md": "Log."}
    files |= {".iflow/commands/x.toml": 'prompt = "x"', ".bob/rules/r.md": "x", ".qoder/rules/q.md": "x"}
    files |= {".kiro/powers/p/POWER.md": text(), ".bob/custom_modes.yaml": "x: 1", ".amazonq/prompts/a.md": "x"}
    write(tmp_path, files)
    for folder in (".github/copilot", ".bob"):
        write(tmp_path, {f"{folder}/mcp.json": {"mcpServers": {"s": {"command": "s"}}}})
    discovery = read_workspace(tmp_path)
    found = names_of(discovery)
    assert sorted(found[".agents/agents"]) == ["reviewer", "tester"]
    assert sorted(found[".qwen/commands"]) == ["git:log", "ship"]
    assert (found[".iflow/commands"], found[".bob/rules"], found[".qoder/rules"]) == (["x"], ["r"], ["q"])
    assert found[".amazonq/prompts"] == ["a"]
    assert found[".github/copilot/mcp.json"] == found[".bob/mcp.json"] == ["s"]
    assert [item.path for item in said(discovery, ".kiro/powers")] == ["p/POWER.md"]
    assert [item.path for item in said(discovery, "Settings of other products")] == [".bob/custom_modes.yaml"]


def said(discovery: Discovery, name: str) -> Sequence[Diagnostic]:
    return discovery.diagnostics[container(discovery, name)["id"]]


@requirement("customizations:found:marketplace")
def test_a_plugin_without_manifest_has_the_name_that_its_list_gives_it(tmp_path: Path) -> None:
    write(tmp_path, {"folder/skills/s/SKILL.md": skill("s"), "skills/t/SKILL.md": skill("t")})
    market(tmp_path, {"name": "given", "source": "./folder"}, {"name": "here", "source": "./"})
    assert names_of(discover(None, home=None, plugins=[tmp_path])) == {"here": ["here:t"], "given": ["given:s"]}


@requirement("customizations:found:marketplace")
def test_entries_that_name_nothing_are_counted(tmp_path: Path) -> None:
    write(tmp_path, {"a/skills/s/SKILL.md": skill("s")})
    entries: list[Any] = [5, None, {"name": "x"}, {"name": "y", "source": 5}, {"name": "a", "source": "./a"}]
    market(tmp_path, *entries)
    discovery = discover(None, home=None, plugins=[tmp_path])
    assert names_of(discovery)["a"] == ["a:s"]
    assert "4 entries without a name or a `source`" in container(discovery, tmp_path.name)["load"]["message"]


def test_lists_and_plugins_of_further_products_are_read(tmp_path: Path) -> None:
    sources = [{"type": "local", "path": "./tool"}, {"type": "github", "repo": "a/b", "path": "tool"}]
    entries = [{"name": name, "source": source} for name, source in zip(("near", "far"), sources, strict=True)]
    write(tmp_path / "list", {".sprout-plugin/marketplace.json": {"name": "m", "plugins": entries}})
    plugin = {".sprout-plugin/plugin.json": {"name": "tool"}, "skills/s/SKILL.md": skill("s")}
    write(tmp_path / "list" / "tool", plugin)
    write(tmp_path / "pack" / "packages" / "tool", plugin)
    found = discover(None, home=None, plugins=[tmp_path / "list"])
    assert names_of(found) == {"list": [], "tool": ["tool:s"]}
    assert "not on this machine, and nothing is fetched: far" in str(found.diagnostics)
    assert names_of(discover(None, home=None, plugins=[tmp_path / "pack"])) == {"tool": ["tool:s"]}


@requirement("customizations:found:marketplace")
def test_a_folder_with_a_manifest_is_one_plugin_however_often_it_is_listed(tmp_path: Path) -> None:
    again = {"name": "again", "source": "./", "strict": False, "skills": ["./skills/s"]}
    market(tmp_path, {"name": "own", "source": "./"}, again, {"name": "in", "source": "./in"}, {"source": "in"})
    write(tmp_path, {".claude-plugin/plugin.json": {"name": "own"}, "skills/s/SKILL.md": skill("s")})
    write(tmp_path / "in", {".claude-plugin/plugin.json": {"name": "in"}, "skills/t/SKILL.md": skill("t")})
    found = discover(None, home=None, plugins=[tmp_path])
    assert [entry["name"] for entry in found.containers] == ["own", "in"]
    assert "names this folder 2 times; its manifest makes it one plugin" in str(said(found, "own"))


def test_a_plugin_does_not_take_its_own_manifest_for_another_plugin(tmp_path: Path) -> None:
    write(tmp_path, {".github/plugin/plugin.json": {"name": "own"}, "skills/s/SKILL.md": skill("s")})
    assert not said(discover(None, home=None, plugins=[tmp_path]), "own")
    write(tmp_path / "more", {".github/plugin/plugin.json": {"name": "more"}, "skills/t/SKILL.md": skill("t")})
    assert "name their folders to load them: more" in str(said(discover(None, home=None, plugins=[tmp_path]), "own"))
