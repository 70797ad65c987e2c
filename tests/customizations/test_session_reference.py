"""What the session reference says about customizations, on a workspace read from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.discovery import discover
from ahpkit.customizations.in_force import InForce, fill_context
from ahpkit.host.agent import TurnContext
from support import requirement

FILES = {
    ".claude/agents/reviewer.md": "---\ndescription: Reviews code\n---\nYou review code.\n",
    ".claude/skills/format/SKILL.md": "---\ndescription: Formats files\n---\nFormat them.\n",
    ".claude/skills/deploy/SKILL.md": "---\ndescription: Deploys\ndisable-model-invocation: true\n---\nDeploy.\n",
    ".claude/commands/ship.md": "---\ndescription: Ships it\n---\nShip $ARGUMENTS.\n",
    ".github/prompts/explain.prompt.md": "---\ndescription: Explains code\n---\nExplain it.\n",
    ".github/instructions/python.instructions.md": '---\napplyTo: "**/*.py"\n---\nUse type hints.\n',
    ".github/hooks/audit.json": '{"version": 1, "hooks": {"sessionStart": [{"type": "command", "bash": "true"}]}}',
    ".cursor/rules/tone.mdc": "---\ndescription: Tone\nalwaysApply: true\n---\nBe kind.\n",
    ".cursor/rules/bad.mdc": "---\nglobs: [unclosed\n---\nStill read.\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "work"


@pytest.fixture
def found(workspace: Path) -> Any:
    return discover(workspace, home=None)


def children(found: Any) -> dict[str, Any]:
    return {child["name"]: child for container in found.containers for child in container.get("children", ())}


def given(found: Any, workspace: Path, *files: str) -> TurnContext:
    """What a turn gets whose message has these files attached."""
    context = TurnContext()
    attached = [{"type": "resource", "label": name, "uri": (workspace / name).as_uri()} for name in files]
    message: Any = {"text": "go", "origin": {"kind": "user"}, "attachments": attached}
    in_force = InForce(found.containers, found.details, found.roots, workspace=str(workspace))
    fill_context(context, in_force, message, agent_uri=None, environment={})
    return context


@requirement("session:state:top-level-customizations")
@requirement("session:customization:child-types")
@requirement("session:customization:directory-shape")
@requirement("session:customization:directory-may-not-exist")
@requirement("session:state:bare-mcp-from-server")
def test_the_top_level_holds_containers_and_children_are_leaves(found: Any) -> None:
    assert {container["type"] for container in found.containers} <= {"plugin", "directory", "mcpServer"}
    kinds = {"agent", "skill", "prompt", "rule", "hook", "mcpServer"}
    assert {child["type"] for child in children(found).values()} <= kinds
    assert all("children" not in child for child in children(found).values())
    for container in found.containers:
        assert container["contents"] in kinds
        assert isinstance(container["writable"], bool)
    absent = [one for one in found.containers if not Path(one["uri"].removeprefix("file://")).exists()]
    assert absent
    assert all(one["load"]["kind"] == "loaded" for one in absent)


@requirement("session:customization:load-values")
@requirement("session:customization:load-message")
def test_a_container_with_a_bad_file_is_degraded_with_a_message_and_the_others_are_loaded(found: Any) -> None:
    states = {container["name"]: container["load"] for container in found.containers}
    degraded = [load for load in states.values() if load["kind"] == "degraded"]
    assert len(degraded) == 1
    assert "bad.mdc" in degraded[0]["message"]
    assert all("message" not in load for load in states.values() if load["kind"] == "loaded")
    assert "bad" in children(found)


@requirement("session:customization:agent")
@requirement("session:customization:skill-layouts")
@requirement("session:customization:skill-description")
@requirement("session:customization:prompt")
@requirement("session:customization:hook")
def test_each_format_becomes_its_type_with_what_its_header_says(found: Any) -> None:
    by_name = children(found)
    expected = {
        "reviewer": ("agent", "Reviews code"),
        "format": ("skill", "Formats files"),
        "ship": ("skill", "Ships it"),
        "explain": ("prompt", "Explains code"),
    }
    assert {name: (by_name[name]["type"], by_name[name]["description"]) for name in expected} == expected
    assert "You review code." in found.details[by_name["reviewer"]["id"]].body
    assert [child["type"] for child in by_name.values() if child["type"] == "hook"]


@requirement("session:customization:rule-formats")
@requirement("session:customization:rule-always-apply")
@requirement("session:customization:rule-globs")
def test_rules_of_both_formats_reach_the_context_when_they_apply(found: Any, workspace: Path) -> None:
    by_name = children(found)
    assert by_name["tone"]["alwaysApply"] is True
    assert by_name["python"]["globs"] == ["**/*.py"]
    assert {by_name["tone"]["type"], by_name["python"]["type"]} == {"rule"}

    def rules(*files: str) -> str:
        return "\n".join(given(found, workspace, *files).rules)

    assert "Be kind." in rules()
    assert "Use type hints." not in rules("notes.txt")
    assert "Use type hints." in rules("src/app.py")


@requirement("session:customization:skill-user-only")
def test_a_skill_for_users_only_is_not_offered_to_the_model(found: Any, workspace: Path) -> None:
    assert children(found)["deploy"]["disableModelInvocation"] is True
    names = [skill.name for skill in given(found, workspace).skills]
    assert "format" in names
    assert "deploy" not in names
