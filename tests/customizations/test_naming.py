from pathlib import Path

import pytest

from ahpkit.customizations.components import stem
from ahpkit.customizations.details import TextDetail
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
        ("a/b:c", "p:a/b:c", "name-form"),
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


@pytest.mark.parametrize("name", ["SE: Tech Writer", "C# Expert", "C++ Expert", "CI/CD"])
def test_an_agents_name_is_its_identity_and_stays_what_it_is(tmp_path: Path, name: str) -> None:
    files = {".claude-plugin/plugin.json": {"name": "p"}, "agents/deep/folder/x.md": text(name=name)}
    assert names(read_plugin(write(tmp_path / "p", files))) == [f"p:{name}"]


def test_names_that_differ_in_punctuation_alone_are_typed_differently(tmp_path: Path) -> None:
    given = ["C# Expert", "C++ Expert", "C Expert", "SE: Tech Writer"]
    files = {f"agents/{number}.md": text(name=name) for number, name in enumerate(given)}
    parsed = read_plugin(write(tmp_path / "p", {".plugin/plugin.json": {"name": "p"}, **files}))
    typed = [detail.tokens[1] for detail in parsed.details.values() if isinstance(detail, TextDetail)]
    assert typed == ["C#-Expert", "C++-Expert", "C-Expert", "SE-Tech-Writer"]


def test_a_name_that_is_a_list_is_said_and_the_folder_is_used(tmp_path: Path) -> None:
    files = {".plugin/plugin.json": {"name": "p"}, "skills/folder/SKILL.md": text(name="[]")}
    parsed = read_plugin(write(tmp_path / "p", files))
    assert names(parsed) == ["p:folder"]
    assert "name-shape" in codes(parsed, "warning")
