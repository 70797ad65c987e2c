from pathlib import Path

from customizations.builders import container, names, read_workspace, skill, write


def plugin(root: Path, name: str, folder: str) -> Path:
    return write(root / folder, {".plugin/plugin.json": {"name": name}, "skills/s/SKILL.md": skill("s")})


def test_containers_stand_in_order_of_precedence(tmp_path: Path) -> None:
    home = write(tmp_path / "home", {".claude/skills/a/SKILL.md": skill("a")})
    work = write(tmp_path / "work", {".claude/skills/a/SKILL.md": skill("a"), ".agents/skills/a/SKILL.md": skill("a")})
    discovery = read_workspace(work, home=home, plugins=(plugin(tmp_path, "p", "p"),))
    found = [entry["name"] for entry in discovery.containers if entry.get("children")]
    assert found == [".agents/skills", ".claude/skills", "~/.claude/skills", "p"]


def test_two_plugins_of_one_name_are_both_listed_and_the_second_says_so(tmp_path: Path) -> None:
    first, second = plugin(tmp_path, "twin", "one"), plugin(tmp_path, "twin", "two")
    discovery = read_workspace(tmp_path, plugins=(first, second))
    one, two = [entry for entry in discovery.containers if entry["type"] == "plugin"]
    assert (names(one), names(two)) == (["twin:s"], ["twin:s"])
    assert one.get("load") == {"kind": "loaded"}
    assert two.get("load", {})["kind"] == "degraded"
    assert first.as_uri() in str(two.get("load"))
    assert one["id"] != two["id"]


def test_a_plugin_given_twice_is_listed_once(tmp_path: Path) -> None:
    root = plugin(tmp_path, "p", "p")
    discovery = read_workspace(tmp_path, plugins=(root, root))
    assert [entry["name"] for entry in discovery.containers].count("p") == 1


def test_a_plugin_reached_by_two_paths_lists_its_files_once(tmp_path: Path) -> None:
    root = plugin(tmp_path, "p", "p")
    (tmp_path / "link").symlink_to("p")
    discovery = read_workspace(tmp_path, plugins=(root, tmp_path / "link"))
    assert [names(entry) for entry in discovery.containers if entry["type"] == "plugin"] == [["p:s"], []]


def test_details_stay_beside_the_tree_by_child(tmp_path: Path) -> None:
    discovery = read_workspace(tmp_path, plugins=(plugin(tmp_path, "p", "p"),))
    entry = container(discovery, "p")
    assert discovery.details.keys() == {found["id"] for found in entry["children"]}
    assert discovery.roots[entry["id"]] == str(tmp_path / "p")
