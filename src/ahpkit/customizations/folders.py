"""Finds the components in folders and watched directories, and reads them as children."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

from ahpkit.customizations.build import Builder
from ahpkit.customizations.components import agent, command, prompt, rule, skill
from ahpkit.customizations.details import Container, Parsed
from ahpkit.customizations.hook_files import hook_file
from ahpkit.customizations.mcp_files import mcp_file
from ahpkit.customizations.standard_places import Layout, StandardPlace
from ahpkit.customizations.tree import FileTree, base, join, parent
from ahpkit.protocol.common.state import JsonObject

_SKILL_FILE = "SKILL.md"

_CATEGORIES = 3
"""Folders between a `skills` folder and a skill: real repositories sort skills by topic, at most three deep."""


def skills_in(builder: Builder, folder: str) -> None:
    """`<folder>/<skill>/SKILL.md`, also in category folders. A folder that holds a SKILL.md is itself a skill."""
    own = skill_file(builder, folder)
    if own is not None:
        skill(builder, own, folder_name=base(folder) or builder.tree.name)
        return
    for file, name in _real_first(builder, _skill_folders(builder, folder, _CATEGORIES + 1)):
        skill(builder, file, folder_name=name)
        builder.claimed.update(builder.tree.walk(parent(file)))
    for path in _unclaimed(builder, folder):
        if is_skill_file(path):
            builder.report.warn("too-deep", f"a SKILL.md below more than {_CATEGORIES} folders; not listed", path)
        elif parent(path) == folder and path.endswith(".md"):
            builder.report.note("not-a-skill", "a skill is a folder with a SKILL.md; not listed", path)


def loose_skills(builder: Builder) -> None:
    """Skill folders directly in a plugin that has no `skills` folder, or in one category folder there."""
    for file, name in _real_first(builder, _skill_folders(builder, "", 2)):
        if not file.startswith("."):
            skill(builder, file, folder_name=name)
            builder.claimed.update(builder.tree.walk(parent(file)))


def _skill_folders(builder: Builder, folder: str, depth: int) -> Iterator[tuple[str, str]]:
    """Skills below a folder. Everything inside a skill belongs to that skill."""
    entry = builder.tree.folders.get(folder)
    for name in () if entry is None else entry.folders:
        inner = join(folder, name)
        if inner in builder.inner:
            continue
        if (file := skill_file(builder, inner)) is not None:
            yield file, name
        elif depth > 1:
            yield from _skill_folders(builder, inner, depth - 1)


def skill_file(builder: Builder, folder: str) -> str | None:
    """The SKILL.md directly in a folder. Other spellings are accepted, with a note."""
    entry = builder.tree.folders.get(folder)
    names = [] if entry is None else [name for name in entry.files if name.lower() == _SKILL_FILE.lower()]
    if not names:
        return None
    name = _SKILL_FILE if _SKILL_FILE in names else names[0]
    if name != _SKILL_FILE:
        builder.report.note("skill-file-case", f"`{name}` should be `{_SKILL_FILE}`", join(folder, name))
    return join(folder, name)


def is_skill_file(path: str) -> bool:
    return base(path).lower() == _SKILL_FILE.lower()


def in_skill(builder: Builder, path: str) -> bool:
    """Whether a file is in the folder of a skill."""
    folder = parent(path)
    while folder:
        entry = builder.tree.folders.get(folder)
        if entry is not None and any(is_skill_file(name) for name in entry.files):
            return True
        folder = parent(folder)
    return False


def commands_in(
    builder: Builder, folder: str, *, nested: bool, readme: bool, endings: tuple[str, ...] = (".md",)
) -> None:
    """`<folder>/*.md`, or other endings; with `nested` also in folders below, whose names join the command's."""

    def add(path: str) -> None:
        command(builder, path, folders=_between(folder, path))

    _texts(builder, folder, endings, add, nested=nested, readme=readme)


def _all_commands_in(builder: Builder, folder: str, endings: tuple[str, ...]) -> None:
    commands_in(builder, folder, nested=True, readme=False, endings=endings)


def agents_in(builder: Builder, folder: str, *, nested: bool, readme: bool) -> None:
    """`<folder>/*.md`; with `nested` also in folders below, whose names join the agent's."""

    def add(path: str) -> None:
        agent(builder, path, folders=_between(folder, path))

    _texts(builder, folder, (".md",), add, nested=nested, readme=readme)


def prompts_in(builder: Builder, folder: str, *, any_text: bool = False) -> None:
    """`<folder>/*.prompt.md`; with `any_text` every `.md`, as in a plugin."""
    _texts(
        builder,
        folder,
        (".md",) if any_text else (".prompt.md",),
        lambda path: prompt(builder, path),
        nested=False,
        readme=False,
    )


def rules_in(builder: Builder, folder: str, *, always: bool = False, own_name: bool = True) -> None:
    """`<folder>/**/*.mdc` and `.md`, `.instructions.md` among them."""

    def add(path: str) -> None:
        rule(builder, path, always=always, own_name=own_name)

    _texts(builder, folder, (".mdc", ".md"), add, nested=True, readme=False)


def hooks_in(builder: Builder, folder: str) -> None:
    """`<folder>/**/*.json`."""
    for path in _walk(builder, folder):
        if path.endswith(".json") and builder.claim(path):
            hook_file(builder, path)


def no_type_in(builder: Builder, folder: str) -> None:
    """Files of another product that have no meaning here. They are only reported."""
    for path in _walk(builder, folder):
        _no_type(builder, path)


def _no_type(builder: Builder, path: str) -> None:
    builder.report.note("no-type", "not read here; not listed", path)


def _texts(
    builder: Builder, folder: str, endings: tuple[str, ...], add: Callable[[str], None], *, nested: bool, readme: bool
) -> None:
    paths = [path for path in _walk(builder, folder, depth=None if nested else 1) if path.endswith(endings)]
    if not readme:
        paths = [path for path in paths if base(path) != "README.md"]
    for path, _ in _real_first(builder, ((path, "") for path in paths)):
        add(path)
    for path in _unclaimed(builder, folder):
        if base(path) == "README.md":
            builder.report.note("readme", "a README is not a component", path)
        else:
            builder.report.note("not-listed", _why_not(path, endings), path)


def _why_not(path: str, endings: tuple[str, ...]) -> str:
    if path.endswith(endings):
        return "only files directly in this folder are read"
    return f"does not end in {' or '.join(endings)}"


def _unclaimed(builder: Builder, folder: str) -> list[str]:
    """The files of the folder that no component uses. They are marked as used, so that they are reported once."""
    paths = [path for path in _walk(builder, folder) if path not in builder.claimed]
    builder.claimed.update(paths)
    return paths


def _walk(builder: Builder, folder: str, depth: int | None = None) -> Iterator[str]:
    """The files of a folder, without folders that are read separately."""
    skipped = tuple(f"{one}/" for one in builder.inner)
    return (path for path in builder.tree.walk(folder, depth=depth) if not path.startswith(skipped))


def _real_first(builder: Builder, found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Files before links to files. So if several paths lead to one file, the file itself is listed."""
    return sorted(found, key=lambda item: (builder.tree.files[item[0]].linked, item[0]))


def _between(folder: str, path: str) -> tuple[str, ...]:
    inner = parent(path).removeprefix(folder).strip("/")
    return tuple(inner.split("/")) if inner else ()


FOLDERS: Mapping[Layout, Callable[[Builder, str], None]] = {
    "agents": lambda builder, folder: agents_in(builder, folder, nested=False, readme=False),
    "nested-agents": lambda builder, folder: agents_in(builder, folder, nested=True, readme=False),
    "skills": skills_in,
    "commands": lambda builder, folder: _all_commands_in(builder, folder, (".md",)),
    "toml-commands": lambda builder, folder: _all_commands_in(builder, folder, (".toml",)),
    "any-commands": lambda builder, folder: _all_commands_in(builder, folder, (".md", ".toml")),
    "prompts": prompts_in,
    "rules": rules_in,
    "always-rules": lambda builder, folder: rules_in(builder, folder, always=True),
    "hooks": hooks_in,
    "no-type": no_type_in,
}
"""How a folder of each layout is read."""


def _always_rule(builder: Builder, path: str) -> None:
    rule(builder, path, always=True)


def _nested_rule(builder: Builder, path: str) -> None:
    rule(builder, path, only_for=f"{parent(path)}/**")


_FILES: Mapping[Layout, Callable[[Builder, str], None]] = {
    "always-rules": _always_rule,
    "nested-rules": _nested_rule,
    "settings": lambda builder, path: hook_file(builder, path, only_wrapped=True),
    "servers": mcp_file,
    "no-type": _no_type,
}
"""How a single file is read."""


def parse_directory(tree: FileTree, place: StandardPlace, shown: Container, *, root: str) -> Parsed:
    """The children of a place, in the container that was shown while it was read. A place that does not exist has no
    children."""
    builder = Builder(tree, shown["id"], "workspace", inner=frozenset(place.without))
    if place.files or place.layout == "nested-rules":
        for file in sorted(tree.files.values(), key=lambda file: file.linked):
            _FILES[place.layout](builder, file.path)
    elif "" in tree.folders:
        FOLDERS[place.layout](builder, "")
    return builder.finish(cast("JsonObject", shown), root=root)


__all__ = [
    "FOLDERS",
    "agents_in",
    "commands_in",
    "in_skill",
    "is_skill_file",
    "loose_skills",
    "parse_directory",
    "prompts_in",
    "rules_in",
    "skill_file",
    "skills_in",
]
