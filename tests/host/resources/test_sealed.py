"""What can cause execution is known by its name, at any depth and in any spelling."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from ahpkit.host.resources.sealed import SEALED, leads_to_sealed, why_sealed

DOCS = Path(__file__).resolve().parents[3] / "docs" / "security.md"


@pytest.mark.parametrize(
    "path",
    [
        ".github/hooks/a.json",
        "deep/down/.github/hooks/sub/a.json",
        ".GitHub/Hooks/a.json",
        ".github./hooks /a.json",
        ".git\u200bhub/hooks/a.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".claude/settings／local.json",
        ".claude/settings\n.json",
        ".ｍcp.json",
        ".mcp.json",
        ".vscode/mcp.json",
        ".vscode/tasks.json",
        ".copilot/hooks/x.json",
        ".copilot/mcp-config.json",
        "p/.claude-plugin/plugin.json",
        "p/hooks/hooks.json",
        ".git/hooks/pre-commit",
        ".git/config",
        "worktree/.git",
        ".husky/pre-commit",
        ".envrc",
        "x.code-workspace",
        ".devcontainer/devcontainer.json",
    ],
)
def test_it_is_sealed_with_a_word_for_what_it_is(path: str) -> None:
    assert why_sealed(PurePath("/w") / path)


@pytest.mark.parametrize(
    "path",
    ["src/main.py", "Makefile", "package.json", ".github/workflows/ci.yml", ".claude/skills/x/SKILL.md", ".gitignore"],
)
def test_the_projects_own_files_are_not(path: str) -> None:
    assert why_sealed(PurePath("/w") / path) is None


def test_folders_that_hold_sealed_files_are_known() -> None:
    assert leads_to_sealed(PurePath("/w/.github"))
    assert leads_to_sealed(PurePath("/w/.CLAUDE"))
    assert not leads_to_sealed(PurePath("/w/src"))


def test_every_pattern_is_in_the_documentation() -> None:
    text = DOCS.read_text(encoding="utf-8").lower()
    assert [pattern for pattern, _ in SEALED if f"`{pattern}`" not in text] == []
