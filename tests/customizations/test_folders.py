from pathlib import Path

from customizations.builders import (
    codes,
    container,
    load,
    messages,
    names,
    read_plugin,
    read_workspace,
    skill,
    text,
    write,
)

OPEN = {".plugin/plugin.json": {"name": "p"}}


def test_skills_are_read_in_category_folders_and_not_inside_other_skills(tmp_path: Path) -> None:
    files = {
        **OPEN,
        "skills/a/SKILL.md": skill("a"),
        "skills/group/b/SKILL.md": skill("b"),
        "skills/a/inner/SKILL.md": skill("c"),
        "skills/loose.md": "text",
        "skills/a/references/more.md": "text",
    }
    parsed = read_plugin(write(tmp_path / "p", files))
    assert names(parsed) == ["p:a", "p:b"]
    assert load(parsed)["kind"] == "loaded"
    assert "skills/a" not in messages(parsed)
    assert "skills/loose.md" in messages(parsed)
    assert "references" not in messages(parsed)


def test_other_spellings_of_skill_md_are_taken_and_noted(tmp_path: Path) -> None:
    parsed = read_plugin(write(tmp_path / "p", {**OPEN, "skills/a/skill.md": skill("a")}))
    assert names(parsed) == ["p:a"]
    assert codes(parsed) == ["skill-file-case"]


def test_a_readme_is_an_agent_in_a_plugin_but_not_in_a_directory(tmp_path: Path) -> None:
    plugin = read_plugin(write(tmp_path / "p", {**OPEN, "agents/README.md": text(), "agents/a.md": text()}))
    assert names(plugin) == ["p:README", "p:a"]
    discovery = read_workspace(
        write(tmp_path / "w", {".github/agents/README.md": text(), ".github/agents/a.agent.md": text()})
    )
    assert names(container(discovery, ".github/agents")) == ["a"]


def test_files_that_are_no_components_are_noted_each(tmp_path: Path) -> None:
    files = {**OPEN, "commands/a.md": "x", "commands/b.toml": "x", "commands/deep/c.md": "x"}
    parsed = read_plugin(write(tmp_path / "p", files))
    assert names(parsed) == ["p:a"]
    assert codes(parsed) == ["not-listed", "not-listed"]
    assert "commands/b.toml: does not end in .md" in messages(parsed)
    assert "commands/deep/c.md: only files directly in this folder" in messages(parsed)
    assert load(parsed) == {"kind": "loaded"}


def test_a_file_reached_by_several_paths_is_listed_once_by_its_own(tmp_path: Path) -> None:
    root = write(tmp_path / "p", {**OPEN, "skills/z/SKILL.md": skill("z")})
    (root / "skills/a").symlink_to("z")
    (root / "skills/b").mkdir()
    (root / "skills/b/SKILL.md").symlink_to("../z/SKILL.md")
    parsed = read_plugin(root)
    assert [entry["uri"] for entry in parsed.container.get("children", [])] == [(root / "skills/z/SKILL.md").as_uri()]
    assert codes(parsed) == ["same-file", "same-file"]


def test_folders_of_a_place_that_hold_something_else_are_read_as_that(tmp_path: Path) -> None:
    files = {".clinerules/01.md": "Be kind.", ".clinerules/team/02.md": "Be brief."}
    files |= {".clinerules/workflows/release.md": "Do it.", ".clinerules/skills/s/SKILL.md": skill("s")}
    discovery = read_workspace(write(tmp_path, {**files, ".clinerules/hooks/PreToolUse": "#!/bin/sh"}))
    shown = {name: names(container(discovery, name)) for name in (".clinerules", ".clinerules/workflows")}
    assert shown == {".clinerules": ["01", "02"], ".clinerules/workflows": ["release"]}
    assert names(container(discovery, ".clinerules/skills")) == ["s"]
    assert "PreToolUse" in str(container(discovery, ".clinerules")["_meta"])


def test_files_of_other_products_that_have_no_meaning_here_are_named(tmp_path: Path) -> None:
    files = {".claude/output-styles/terse.md": "Be terse.", ".claude/mcp.json": "{}", "docs/workflows/x.md": "x"}
    discovery = read_workspace(write(tmp_path / "w", files))
    for name, file in ((".claude/output-styles", "terse.md"), (".claude/mcp.json", "mcp.json")):
        entry = container(discovery, name)
        assert (entry["children"], entry["load"]) == ([], {"kind": "loaded"})
        assert file in str(entry["_meta"])
    plugin = read_plugin(write(tmp_path / "p", {**OPEN, "skills/a/SKILL.md": skill("a"), "inner/workflows/w.md": "x"}))
    assert "inner/workflows/w.md" in messages(plugin)
