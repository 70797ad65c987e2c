from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from ahpkit.customizations.details import Parsed, TextDetail
from ahpkit.customizations.expand import expand
from ahpkit.protocol.common.state import JsonObject
from customizations.builders import (
    AGENT_PLUGIN,
    child,
    children,
    codes,
    load,
    messages,
    names,
    read_plugin,
    skill,
    text,
    write,
)
from support import requirement

HOOKS = {"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}
SERVERS = {"mcpServers": {"files": {"command": "x"}}}
EVERYTHING: dict[str, Any] = {
    "skills/s/SKILL.md": skill("s"),
    "commands/c.md": text(),
    "agents/a.md": text(),
    "rules/r.mdc": text(),
    "hooks/hooks.json": HOOKS,
    ".mcp.json": SERVERS,
}


def read(tmp_path: Path, files: Mapping[str, Any]) -> Parsed:
    return read_plugin(write(tmp_path / "folder", files))


@requirement("customizations:container:plugin-fields")
@requirement("customizations:identity:uri-by-kind")
@requirement("customizations:tree:child-kinds")
@requirement("customizations:children:leaves")
@requirement("customizations:children:parent-by-position")
@requirement("customizations:children:no-client-id")
@requirement("customizations:container:client-id-marks-provenance")
def test_a_plugin_is_a_container_with_children_of_the_six_types(tmp_path: Path) -> None:
    parsed = read(tmp_path, {".plugin/plugin.json": {"name": "p"}, **EVERYTHING})
    container = parsed.container
    assert {key: value for key, value in container.items() if key != "children"} == {
        "type": "plugin",
        "id": container["id"],
        "uri": (tmp_path / "folder").as_uri(),
        "name": "p",
        "enabled": True,
        "load": {"kind": "loaded"},
    }
    assert [(entry["type"], entry["name"]) for entry in children(parsed)] == [
        ("agent", "p:a"),
        ("skill", "p:s"),
        ("skill", "p:c"),
        ("rule", "r"),
        ("hook", "Stop"),
        ("mcpServer", "files"),
    ]
    assert len({entry["id"] for entry in children(parsed)}) == 6
    assert not {"children", "clientId", "parent"} & {key for entry in children(parsed) for key in entry}


@pytest.mark.parametrize(
    ("manifest", "listed"),
    [
        (".plugin/plugin.json", ["p:a", "p:s", "p:c", "r", "Stop", "files"]),
        (".claude-plugin/plugin.json", ["p:a", "p:s", "p:c", "Stop", "files"]),
        ("plugin.json", ["p:a", "p:s", "p:c", "r", "Stop", "files"]),
        (".github/plugin/plugin.json", ["p:a", "p:s", "p:c", "r", "Stop", "files"]),
        (".cursor-plugin/plugin.json", ["p:a", "p:s", "p:c", "r", "Stop", "files"]),
        (".codex-plugin/plugin.json", ["p:a", "p:s", "p:c", "r", "Stop", "files"]),
        (".kimi-plugin/plugin.json", ["p:a", "p:s", "p:c", "r", "Stop", "files"]),
    ],
)
def test_each_family_has_its_default_places(tmp_path: Path, manifest: str, listed: list[str]) -> None:
    parsed = read(tmp_path, {manifest: {"name": "p"}, **EVERYTHING})
    assert names(parsed) == listed
    assert load(parsed) == {"kind": "loaded"}


def test_what_a_family_does_not_load_is_noted(tmp_path: Path) -> None:
    parsed = read(tmp_path, {".claude-plugin/plugin.json": {"name": "p"}, **EVERYTHING, "CLAUDE.md": "x"})
    assert "rules/r.mdc: not where this family (Claude Code plugin) keeps components" in messages(parsed)
    assert "CLAUDE.md" in messages(parsed)


def test_an_agent_plugin_has_fixed_places_and_a_vendors_folder(tmp_path: Path) -> None:
    files = {
        "plugin.json": AGENT_PLUGIN,
        ".claude-plugin/plugin.json": {"name": "other"},
        **EVERYTHING,
        "SKILL.md": skill("root"),
        "mcp.json": SERVERS,
        "com.github.copilot/agents/v.md": text(),
        "com.github.copilot/commands/w.md": text(),
        "com.github.copilot/rules/x.mdc": text(),
        "com.github.copilot/hooks/hooks.json": HOOKS,
    }
    parsed = read(tmp_path, files)
    assert names(parsed) == ["portable:v", "portable:s", "portable:w", "x", "Stop", "files"]
    assert codes(parsed).count("other-manifest") == 1
    for lost in ("commands/c.md", "agents/a.md", "SKILL.md", ".mcp.json", "hooks/hooks.json"):
        assert lost in messages(parsed)


def test_an_agent_plugin_cannot_move_its_places(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"plugin.json": {**AGENT_PLUGIN, "skills": "./other"}, "other/x/SKILL.md": skill("x")})
    assert names(parsed) == []
    assert codes(parsed, "warning") == ["fixed-places", "nothing-found"]


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_both_published_generations_of_agent_plugins_are_read(tmp_path: Path, version: str) -> None:
    schema = f"https://agent-plugins.org/schemas/{version}/plugin.schema.json"
    parsed = read(tmp_path, {"plugin.json": {"$schema": schema, "name": "p", "icon": "./i.png"}, **EVERYTHING})
    assert names(parsed) == ["p:s"]


def test_without_a_manifest_the_folder_names_the_plugin(tmp_path: Path) -> None:
    parsed = read(tmp_path, EVERYTHING)
    assert parsed.container["name"] == "folder"
    assert names(parsed) == ["folder:a", "folder:s", "folder:c", "r", "Stop", "files"]
    assert "no-manifest" in codes(parsed, "note")


@requirement("customizations:container:children-empty-after-parse")
def test_a_plugin_with_nothing_in_it_has_an_empty_list(tmp_path: Path) -> None:
    parsed = read(tmp_path, {".plugin/plugin.json": {"name": "p"}})
    assert parsed.container.get("children") == []


def test_a_marketplace_is_not_a_plugin_and_says_so(tmp_path: Path) -> None:
    parsed = read(tmp_path, {".claude-plugin/marketplace.json": {"plugins": []}, "plugins/x/skills/y/SKILL.md": "y"})
    assert "marketplace" in codes(parsed, "note")
    assert "plugins/x/skills/y/SKILL.md" in messages(parsed)


def test_a_component_that_several_names_lead_to_is_listed_once(tmp_path: Path) -> None:
    manifest = {"name": "p", "skills": ["./skills/", "./skills/a"], "agents": "./agents", "hooks": "./hooks/hooks.json"}
    files = {
        ".plugin/plugin.json": manifest,
        "skills/a/SKILL.md": skill("a"),
        "agents/b.md": text(),
        "hooks/hooks.json": {"hooks": {"Stop": [{"command": "true"}]}},
    }
    parsed = read(tmp_path, files)
    assert names(parsed) == ["p:b", "p:a", "Stop"]
    ids = [entry["id"] for entry in parsed.container.get("children", [])]
    assert len(ids) == len(set(ids))


def test_prompts_of_a_plugin_are_read(tmp_path: Path) -> None:
    files = {".plugin/plugin.json": {"name": "p"}, "prompts/a.prompt.md": text(), "prompts/b.md": text()}
    assert names(read(tmp_path, files)) == ["p:a", "p:b"]


@pytest.mark.parametrize(
    "files",
    [
        {"one/SKILL.md": skill("one"), "two/SKILL.md": skill("two")},
        {"one.mdc": text(alwaysApply="true"), "two.mdc": text()},
        {".cursor/rules/one.mdc": text(), ".cursor/rules/two.mdc": text()},
    ],
)
def test_a_folder_without_manifest_that_holds_skills_or_rules_is_read(tmp_path: Path, files: dict[str, str]) -> None:
    parsed = read(tmp_path, files)
    assert [name.removeprefix("folder:") for name in names(parsed)] == ["one", "two"]
    assert load(parsed) == {"kind": "loaded"}


def test_a_kiro_power_is_a_skill_with_steering_and_servers(tmp_path: Path) -> None:
    files = {
        "POWER.md": text("Use it.", name="supa", description="A power.", keywords='["db"]'),
        "mcp.json": {"mcpServers": {"db": {"command": "db"}}},
        "steering/always.md": text(),
        "steering/ts.md": text(inclusion="fileMatch", fileMatchPattern='"**/*.ts"'),
    }
    parsed = read(tmp_path, files)
    assert names(parsed) == ["folder:supa", "always", "ts", "db"]
    assert child(parsed, "always")["alwaysApply"] is True
    assert child(parsed, "ts")["globs"] == ["**/*.ts"]


@pytest.mark.parametrize("name", [".lsp.json", ".app.json", "monitors/m.json", "workflows/w.yml"])
def test_default_files_that_have_no_meaning_here_are_named(tmp_path: Path, name: str) -> None:
    parsed = read(tmp_path, {".claude-plugin/plugin.json": {"name": "p"}, name: "{}"})
    assert f"`{name.split('/')[0]}`: AHP has no such customization" in messages(parsed)


@pytest.mark.parametrize(
    "files",
    [{".claude-plugin/plugin.json": {"name": "p"}, "src/main.rs": "fn main() {}"}, {"README.md": "Not a plugin."}],
)
def test_a_plugin_that_holds_only_strange_files_says_so(tmp_path: Path, files: dict[str, Any]) -> None:
    parsed = read(tmp_path, files)
    assert load(parsed)["kind"] == "degraded"
    assert "nothing in this folder is a component" in load(parsed)["message"]


# --- manifest paths -------------------------------------------------------------------------------------------


MORE = {"extra/s2/SKILL.md": skill("s2"), "extra/c2.md": text(), "extra/a2.md": text()}


@pytest.mark.parametrize(
    ("manifest", "skills", "listed"),
    [
        (".plugin/plugin.json", "./extra", ["p:s", "p:s2"]),
        (".plugin/plugin.json", ["./extra/s2"], ["p:s", "p:s2"]),
        (".plugin/plugin.json", ["extra/s2/SKILL.md"], ["p:s", "p:s2"]),
        (".plugin/plugin.json", {"paths": ["./extra"], "exclusive": True}, ["p:s2"]),
        (".plugin/plugin.json", {"paths": "./extra"}, ["p:s", "p:s2"]),
        (".claude-plugin/plugin.json", "./extra/", ["p:s", "p:s2"]),
        ("plugin.json", "./extra", ["p:s", "p:s2"]),
    ],
)
def test_declared_skills_add_to_the_default_folder(
    tmp_path: Path, manifest: str, skills: Any, listed: list[str]
) -> None:
    files = {manifest: {"name": "p", "skills": skills}, "skills/s/SKILL.md": skill("s"), **MORE}
    assert sorted(names(read(tmp_path, files), "skill")) == listed


def test_a_claude_plugins_commands_and_agents_replace_the_default(tmp_path: Path) -> None:
    manifest = {"name": "p", "commands": "./extra/c2.md", "agents": ["./extra/a2.md"]}
    parsed = read(tmp_path, {".claude-plugin/plugin.json": manifest, **EVERYTHING, **MORE})
    assert names(parsed, "agent") == ["p:a2"]
    assert names(parsed, "skill") == ["p:s", "p:c2"]
    assert "commands/c.md" in messages(parsed)
    assert "agents/a.md" in messages(parsed)


def test_a_claude_plugin_may_map_command_names_to_files(tmp_path: Path) -> None:
    manifest = {"name": "p", "commands": {"go": {"source": "./extra/c2.md"}, "lost": {"content": "inline"}}}
    parsed = read(tmp_path, {".claude-plugin/plugin.json": manifest, **MORE})
    assert names(parsed) == ["p:go"]
    assert codes(parsed, "warning") == ["manifest-inline"]


@pytest.mark.parametrize("path", ["../out", "/etc", "~/x", "skills/../../out", "C:/x", "https://x/y", "./missing", ""])
def test_a_path_that_leads_nowhere_or_out_is_refused_and_said(tmp_path: Path, path: str) -> None:
    write(tmp_path / "out", {"x/SKILL.md": skill("x")})
    files = {".plugin/plugin.json": {"name": "p", "skills": [path]}, "skills/s/SKILL.md": skill("s")}
    parsed = read(tmp_path, files)
    assert names(parsed) == ["p:s"]
    assert codes(parsed, "warning") == ["manifest-path"]
    assert load(parsed)["kind"] == "degraded"


def test_a_root_skill_counts_when_there_is_no_other(tmp_path: Path) -> None:
    assert names(read(tmp_path, {".claude-plugin/plugin.json": {"name": "p"}, "SKILL.md": text()})) == ["p:folder"]
    parsed = read(tmp_path, {"skills/s/SKILL.md": skill("s")})
    assert names(parsed) == ["p:s"]
    assert "SKILL.md: not where" in messages(parsed)


def test_hook_and_server_files_may_be_declared(tmp_path: Path) -> None:
    manifest = {"name": "p", "hooks": ["./h.json", "./hooks/hooks.json"], "mcpServers": "./m.json"}
    other = {"hooks": {"SessionStart": [{"hooks": [{"command": "y"}]}]}}
    files = {".claude-plugin/plugin.json": manifest, "hooks/hooks.json": HOOKS, "h.json": other, "m.json": SERVERS}
    parsed = read(tmp_path, files)
    assert names(parsed) == ["Stop", "SessionStart", "files"]
    assert load(parsed) == {"kind": "loaded"}


# --- manifests of the wrong shape -----------------------------------------------------------------------------


@requirement("customizations:load:error-when-failed")
@requirement("customizations:container:children-absent-before-parse")
@pytest.mark.parametrize("manifest", ["{", "[]", '"text"', "null", "", "\x00\x01", '{"name": "p"} trailing'])
@pytest.mark.parametrize("path", [".plugin/plugin.json", "plugin.json"])
def test_a_manifest_that_is_no_object_is_an_error_of_the_plugin(tmp_path: Path, manifest: str, path: str) -> None:
    parsed = read(tmp_path, {path: manifest, **EVERYTHING})
    assert load(parsed)["kind"] == "error"
    assert path in load(parsed)["message"]
    assert "children" not in parsed.container
    assert parsed.container["name"] == "folder"
    unread = {item.path for item in parsed.diagnostics if item.code == "not-listed"}
    assert {"skills/s/SKILL.md", "agents/a.md", "commands/c.md"} <= unread
    assert "because the manifest is broken" in str(cast("JsonObject", parsed.container)["_meta"]["ahpkit/notListed"])


@pytest.mark.parametrize(
    "fields",
    [
        {"author": "Someone"},
        {"author": {"name": "x", "extra": 1}},
        {"repository": {"type": "git"}},
    ],
)
def test_fields_that_clients_never_see_may_have_any_usual_shape(tmp_path: Path, fields: dict[str, Any]) -> None:
    parsed = read(tmp_path, {".plugin/plugin.json": {"name": "p", **fields}})
    assert load(parsed) == {"kind": "loaded"}


@pytest.mark.parametrize("fields", [{"keywords": "a, b"}, {"version": 3}, {"author": []}, {"description": {}}])
def test_a_manifest_that_breaks_its_schema_is_read_and_said(tmp_path: Path, fields: dict[str, Any]) -> None:
    parsed = read(tmp_path, {".plugin/plugin.json": {"name": "p", **fields}, "skills/a/SKILL.md": skill("a")})
    assert names(parsed) == ["p:a"]
    assert load(parsed)["kind"] == "degraded"
    assert f"`{next(iter(fields))}` should be" in load(parsed)["message"]


@pytest.mark.parametrize("name", [None, 7, "", [], "///"])
def test_a_name_that_is_none_falls_back_to_the_folder(tmp_path: Path, name: Any) -> None:
    parsed = read(tmp_path, {".plugin/plugin.json": {"name": name}})
    assert parsed.container["name"] == "folder"
    assert "plugin-name" in codes(parsed)


def test_component_fields_of_the_wrong_shape_are_said(tmp_path: Path) -> None:
    manifest: dict[str, Any] = {
        "name": "p",
        "skills": 7,
        "agents": [True],
        "hooks": [None],
        "mcpServers": False,
        "rules": {},
    }
    parsed = read(tmp_path, {".plugin/plugin.json": manifest, "skills/s/SKILL.md": skill("s")})
    assert names(parsed) == ["p:s"]
    assert codes(parsed, "warning") == ["manifest-path"] * 4


def test_unknown_keys_and_components_without_a_type_are_noted(tmp_path: Path) -> None:
    manifest: dict[str, Any] = {"name": "p", "colour": "red", "lspServers": {"x": {}}, "outputStyles": "./o"}
    parsed = read(tmp_path, {".plugin/plugin.json": manifest, "output-styles/x.md": "x"})
    assert codes(parsed, "note") == ["unknown-keys", "no-type", "no-type", "no-type"]
    assert load(parsed)["kind"] == "degraded"
    assert "seen: lspServers, outputStyles, output-styles" in load(parsed)["message"]


def test_a_manifest_may_have_comments(tmp_path: Path) -> None:
    parsed = read(tmp_path, {".plugin/plugin.json": '{"name": "p", // hi\n}'})
    assert (parsed.container["name"], load(parsed)) == ("p", {"kind": "loaded"})


def test_a_plugin_that_is_off_by_default_is_listed_disabled(tmp_path: Path) -> None:
    parsed = read(tmp_path, {".plugin/plugin.json": {"name": "p", "defaultEnabled": False}})
    assert parsed.container.get("enabled") is False


def test_plugins_inside_a_plugin_are_named_in_one_line(tmp_path: Path) -> None:
    files = {
        ".claude-plugin/plugin.json": {"name": "p"},
        "plugins/x/.claude-plugin/plugin.json": {"name": "x"},
        "plugins/x/skills/y/SKILL.md": skill("y"),
    }
    assert "name their folders to load them: plugins/x" in messages(read(tmp_path, files))


@requirement("customizations:load:degraded-when-partial")
@requirement("customizations:load:loaded-when-clean")
def test_one_bad_file_degrades_its_plugin_and_costs_nothing_else(tmp_path: Path) -> None:
    clean = read(tmp_path, {".plugin/plugin.json": {"name": "p"}, "skills/a/SKILL.md": skill("a")})
    assert load(clean) == {"kind": "loaded"}
    parsed = read(tmp_path, {"rules/b.mdc": "---\nname: b\nx: *\n---\n"})
    assert names(parsed) == ["p:a", "b"]
    assert load(parsed)["kind"] == "degraded"
    assert "rules/b.mdc:3: the front matter is not valid YAML" in load(parsed)["message"]


def test_ids_survive_edits_of_name_text_and_siblings(tmp_path: Path) -> None:
    before = read(tmp_path, {".plugin/plugin.json": {"name": "p"}, "skills/b/SKILL.md": skill("b")})
    after = read(tmp_path, {"skills/a/SKILL.md": skill("a"), "skills/b/SKILL.md": skill("renamed", "New.")})
    assert child(before, "p:b")["id"] == child(after, "p:renamed")["id"]
    assert before.container["id"] == after.container["id"]


@requirement("customizations:found:gemini")
def test_a_gemini_extension_has_commands_in_toml_servers_and_instructions(tmp_path: Path) -> None:
    files = {
        "gemini-extension.json": {"name": "g", "version": "1", "mcpServers": {"s": {"command": "x"}}},
        "GEMINI.md": "Always say please.",
        "commands/deploy.toml": 'description = "Ships it"\nprompt = "Deploy {{args}} now, !{rm -rf /}"',
        "commands/gcs/sync.toml": 'prompt = "Sync"',
        "commands/broken.toml": "prompt = ",
        "commands/empty.toml": 'description = "nothing"',
    }
    parsed = read(tmp_path, files)
    assert names(parsed) == ["g:deploy", "g:gcs:sync", "GEMINI", "s"]
    assert codes(parsed, "warning") == ["not-toml", "no-prompt"]
    deploy = next(child for child in children(parsed.container) if child["name"] == "g:deploy")
    assert deploy["description"] == "Ships it"
    detail = parsed.details[deploy["id"]]
    assert isinstance(detail, TextDetail)
    assert expand(detail, "api", {}) == "Deploy api now, !{rm -rf /}"
    context = {"gemini-extension.json": {"name": "g", "contextFileName": ["A.md", "../out.md"]}, "A.md": "x"}
    assert names(read(tmp_path / "other", context)) == ["A"]


@requirement("customizations:found:workspace-shape")
def test_a_folder_in_the_shape_of_a_workspace_is_read_as_a_plugin_too(tmp_path: Path) -> None:
    files = {
        ".claude/skills/a/SKILL.md": skill("a"),
        ".claude/agents/b.md": text(name="b"),
        ".github/prompts/c.prompt.md": "x",
        ".windsurf/rules/d.md": text(trigger="always_on"),
        ".github/hooks/e.json": {"hooks": {"Stop": [{"command": "x"}]}},
    }
    parsed = read(tmp_path, files)
    assert names(parsed) == ["folder:b", "folder:a", "folder:c", "d"]
    assert next(child for child in children(parsed.container) if child["name"] == "d")["alwaysApply"] is True


@requirement("customizations:found:skill-folders")
def test_skills_in_category_folders_of_a_folder_without_manifest_are_read(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"text/a/SKILL.md": skill("a"), "text/b/SKILL.md": skill("b"), "c/SKILL.md": skill("c")})
    assert names(parsed) == ["folder:c", "folder:a", "folder:b"]


@requirement("customizations:found:nothing-lost")
def test_what_was_seen_and_not_listed_is_told_to_clients_in_few_lines(tmp_path: Path) -> None:
    many = {f".claude/agents/a{number}.md": text(name=f"a{number}") for number in range(9)}
    files = {".claude-plugin/plugin.json": {"name": "p"}, "skills/s/SKILL.md": skill("s"), ".lsp.json": "{}", **many}
    parsed = read(tmp_path, {**files, "docs/agents/about.md": "x"})
    assert load(parsed) == {"kind": "loaded"}
    first, second = cast("JsonObject", parsed.container)["_meta"]["ahpkit/notListed"]
    assert first == ".lsp.json: `.lsp.json`: AHP has no such customization; not listed"
    assert second.startswith("9 times:")
    assert second.endswith(".claude/agents/a0.md, .claude/agents/a1.md, .claude/agents/a2.md and 6 more")


@requirement("customizations:found:one-entry")
def test_a_server_that_two_files_declare_alike_is_one_and_needs_no_word(tmp_path: Path) -> None:
    server = {"s": {"command": "x", "args": ["y"]}}
    manifest = {"name": "p", "mcpServers": server, "hooks": "./hooks/"}
    hooks = {"hooks": {"Stop": [{"command": "x"}]}}
    files = {".claude-plugin/plugin.json": manifest, ".mcp.json": {"mcpServers": server}, "hooks/hooks.json": hooks}
    parsed = read(tmp_path, files)
    assert (names(parsed), load(parsed)) == (["Stop", "s"], {"kind": "loaded"})


@requirement("customizations:found:broken-said")
@pytest.mark.parametrize("manifest", [{}, {"name": 5}, {"name": ""}, {"name": "p", "keywords": "a"}])
def test_a_manifest_that_breaks_its_schema_is_not_shown_as_sound(tmp_path: Path, manifest: dict[str, Any]) -> None:
    parsed = read(tmp_path, {".claude-plugin/plugin.json": manifest, "skills/s/SKILL.md": skill("s")})
    assert (load(parsed)["kind"], len(names(parsed))) == ("degraded", 1)


@requirement("customizations:found:icons")
@pytest.mark.parametrize(
    ("manifest", "shown"),
    [
        ({"icon": "./art/i.svg"}, "image/svg+xml"),
        ({"logo": "art/i.png"}, "image/png"),
        ({"interface": {"logo": "./art/i.png"}}, "image/png"),
        ({"icon": "https://example.com/i.png"}, None),
        ({"icon": "../i.png"}, None),
        ({"icon": "./art/gone.png"}, None),
    ],
)
def test_a_plugin_has_the_picture_that_its_manifest_names(
    tmp_path: Path, manifest: dict[str, Any], shown: str | None
) -> None:
    files = {".plugin/plugin.json": {"name": "p", **manifest}, "art/i.svg": "x", "art/i.png": "x"}
    icons = read(tmp_path, {**files, "skills/s/SKILL.md": skill("s")}).container.get("icons")
    assert ([icon.get("contentType") for icon in icons] if icons else None) == ([shown] if shown else None)
    assert all(icon["src"].startswith("file:///") for icon in icons or [])


@requirement("customizations:found:nothing-lost")
def test_translations_of_components_are_named_and_pages_about_them_are_not(tmp_path: Path) -> None:
    files = {".claude-plugin/plugin.json": {"name": "p"}, "skills/s/SKILL.md": skill("s")}
    parsed = read(tmp_path, {**files, "docs/agents/about.md": "x", "docs/de/agents/pruefer.md": "x"})
    assert [item.path for item in parsed.diagnostics if item.code == "not-listed"] == ["docs/de/agents/pruefer.md"]


PATTERNS = {
    "commands/a.md": text(),
    "commands/deep/b.md": text(),
    "commands/data.json": "{}",
    "agents/one.md": text(),
    "extra/two.md": text(),
    "skills/s/SKILL.md": skill("s"),
    "skills/s/notes.md": "Not a skill.",
    "skills/README.md": "About skills.",
    "more/flat.md": skill("flat"),
    "hooks/guard.json": {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}},
}


@requirement("customizations:found:patterns")
@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"commands": ["./commands/*.md"]}, {"p:a", "p:s", "p:one"}),
        ({"commands": "./commands/**/*.md"}, {"p:a", "p:b", "p:s", "p:one"}),
        ({"commands": "./commands/*"}, {"p:a", "p:b", "p:s", "p:one"}),
        ({"agents": ["./{agents,extra}/*.md"]}, {"p:one", "p:two", "p:a", "p:deep:b", "p:s"}),
        ({"skills": ["./skills/*"]}, {"p:s", "p:a", "p:deep:b", "p:one"}),
        ({"skills": ["./skills/*/SKILL.md"]}, {"p:s", "p:a", "p:deep:b", "p:one"}),
        ({"skills": ["./skills/**/*.md", "./more/*.md"]}, {"p:s", "p:README", "p:flat", "p:a", "p:deep:b", "p:one"}),
        ({"hooks": ["./hooks/*.json"]}, {"Stop", "p:s", "p:a", "p:deep:b", "p:one"}),
    ],
)
def test_a_manifest_may_name_components_by_a_pattern(tmp_path: Path, declared: JsonObject, expected: set[str]) -> None:
    parsed = read(tmp_path, {**PATTERNS, ".claude-plugin/plugin.json": {"name": "p", **declared}})
    assert sorted(names(parsed)) == sorted(expected)
    assert load(parsed) == {"kind": "loaded"}


@requirement("customizations:found:patterns")
def test_a_pattern_that_matches_nothing_or_leads_out_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"outside/x.md": text()})
    manifest = {"name": "p", "agents": ["./none/*.md", "../outside/*.md"]}
    parsed = read(tmp_path / "p", {".claude-plugin/plugin.json": manifest, "skills/s/SKILL.md": skill("s")})
    messages = [item.message for item in parsed.diagnostics if item.code == "manifest-path"]
    assert messages == [
        "`agents`: './none/*.md' matches nothing",
        "`agents`: '../outside/*.md' is not a path inside the plugin",
    ]
    assert [child["name"] for child in children(parsed.container)] == ["p:s"]


@requirement("customizations:found:patterns")
def test_a_text_that_a_manifest_names_as_a_skill_is_called_by_its_file(tmp_path: Path) -> None:
    manifest = {"name": "p", "skills": ["./texts/tidy.md"]}
    parsed = read(tmp_path, {".claude-plugin/plugin.json": manifest, "texts/tidy.md": "Tidy up."})
    assert [child["name"] for child in children(parsed.container)] == ["p:tidy"]


@requirement("customizations:found:nothing-lost")
def test_what_a_manifest_names_after_all_is_not_called_unlisted(tmp_path: Path) -> None:
    manifest = {"name": "p", "commands": "./commands/**/*.md"}
    parsed = read(tmp_path, {".plugin/plugin.json": manifest, "commands/a.md": text(), "commands/deep/b.md": text()})
    assert sorted(names(parsed)) == ["p:a", "p:b"]
    assert "_meta" not in cast("JsonObject", parsed.container)


@requirement("customizations:found:nothing-lost")
def test_a_file_that_is_listed_through_a_link_is_not_called_unlisted(tmp_path: Path) -> None:
    folder = write(tmp_path / "folder", {".claude-plugin/plugin.json": {"name": "p"}, "kept/s/SKILL.md": skill("s")})
    (folder / "skills").symlink_to("kept")
    parsed = read_plugin(folder)
    assert names(parsed) == ["p:s"]
    assert "_meta" not in cast("JsonObject", parsed.container)
