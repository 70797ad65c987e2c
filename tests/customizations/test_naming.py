from pathlib import Path

import pytest

from ahpkit.customizations.details import TextDetail
from ahpkit.customizations.naming import stem
from customizations.builders import children, codes, names, read_plugin, read_workspace, text, write
from customizations.builders import container as find


@pytest.mark.parametrize(
    ("file", "name"),
    [("a.md", "a"), ("a.agent.md", "a"), ("A.Prompt.MD", "A"), ("x.mdc", "x"), (".md", ".md"), (".cursorrules",) * 2],
)
def test_endings_that_say_the_kind_are_no_part_of_the_name(file: str, name: str) -> None:
    assert stem(file) == name


@pytest.mark.parametrize(
    ("given", "shown", "code"),
    [
        ("other", "p:other", "name-differs"),
        ("Two Words", "p:Two Words", "name-form"),
        ("a/b:c", "p:a-b-c", "name-cleaned"),
        ("a\u00a0b", "p:a b", "name-cleaned"),
        ("p:skill", "p:skill", ""),
        ("[x]", "p:[x]", "name-shape"),
        ("'///'", "p:skill", "name-cleaned"),
    ],
)
def test_a_plugins_skill_is_called_by_its_header_behind_the_plugin(
    tmp_path: Path, given: str, shown: str, code: str
) -> None:
    parsed = read_plugin(
        write(tmp_path / "p", {".plugin/plugin.json": {"name": "p"}, "skills/skill/SKILL.md": text(name=given)})
    )
    assert names(parsed) == [shown]
    assert not code or code in codes(parsed)


def test_folders_between_join_the_name_where_the_family_nests(tmp_path: Path) -> None:
    files = {
        ".claude-plugin/plugin.json": {"name": "p"},
        "agents/review/security.md": text(),
        "commands/git/push.md": "x",
    }
    assert names(read_plugin(write(tmp_path / "p", files))) == ["p:review:security", "p:git:push"]


def test_a_user_may_type_the_full_name_the_short_one_or_the_folder(tmp_path: Path) -> None:
    files = {".plugin/plugin.json": {"name": "p"}, "skills/folder/SKILL.md": text(name="My Skill")}
    [detail] = read_plugin(write(tmp_path / "p", files)).details.values()
    assert isinstance(detail, TextDetail)
    assert detail.tokens == ("p:My-Skill", "My-Skill", "p:folder", "folder")


def test_directories_have_no_namespace(tmp_path: Path) -> None:
    write(tmp_path, {".github/skills/a/SKILL.md": text(name="a"), ".claude/commands/x/b.md": "b"})
    discovery = read_workspace(tmp_path)
    assert [entry["name"] for entry in children(find(discovery, ".github/skills"))] == ["a"]
    assert [entry["name"] for entry in children(find(discovery, ".claude/commands"))] == ["x:b"]
