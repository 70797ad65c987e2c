"""Reads a plugin package of any family as a container with children. Pure: takes a `FileTree`, returns `Parsed`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from ahpkit.customizations.build import Builder
from ahpkit.customizations.components import agent, command, prompt, rule, skill, stem
from ahpkit.customizations.details import Parsed
from ahpkit.customizations.diagnostics import Diagnostic
from ahpkit.customizations.folders import (
    FOLDERS,
    agents_in,
    commands_in,
    is_skill_file,
    loose_skills,
    prompts_in,
    rules_in,
    skill_file,
    skills_in,
)
from ahpkit.customizations.formats import COPILOT, FILES_WITHOUT_TYPE, FOLDERS_WITHOUT_TYPE, MANIFESTS, POWER_FILE
from ahpkit.customizations.hook_files import hook_file, hooks
from ahpkit.customizations.manifest import (
    Declared,
    Manifest,
    declared,
    find_manifest,
    inside,
    listed_manifest,
    plugin_name,
    report_keys,
    report_shapes,
)
from ahpkit.customizations.mcp_files import mcp_file, servers
from ahpkit.customizations.standard_places import OTHER_PRODUCTS, WORKSPACE
from ahpkit.customizations.text import clean_name
from ahpkit.customizations.tree import FileTree, base, join, parent
from ahpkit.protocol.common.state import JsonObject

_COMPONENT_FOLDERS = ("skills", "commands", "agents", "rules", "prompts", "hooks", *FOLDERS_WITHOUT_TYPE)
_COMPONENT_ENDINGS = (
    *(".agent.md", ".chatmode.md", ".prompt.md", ".instructions.md", ".mdc"),
    *(".kiro.hook", ".collection.yml"),
)
_COMPONENT_NAMES = frozenset(
    {
        *("hooks.json", ".mcp.json", "mcp.json", POWER_FILE),
        *(path for path, _ in MANIFESTS if "/" not in path and path != "plugin.json"),
        *("AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", "WARP.md", "copilot-instructions.md"),
        *(".cursorrules", ".windsurfrules", ".clinerules", ".roomodes", "opencode.json"),
    }
)
_TEXT_FOLDERS = frozenset({"commands", "agents", "rules", "prompts", "steering", *FOLDERS_WITHOUT_TYPE})
_PAPERS = frozenset({"references", "test", "tests"})
"""Folders with texts of another kind. A file in `agents` below them is not an agent."""

_DOCS = frozenset({"doc", "docs", "documentation"})
"""`docs/agents` contains texts about agents. `docs/de/agents` contains agents in another language."""

_Take = Callable[[str], None]


def parse_plugin(
    tree: FileTree,
    *,
    id: str,
    root: str | None = None,
    name: str = "",
    entry: Mapping[str, Any] | None = None,
    findings: Sequence[Diagnostic] = (),
    inner: Iterable[str] = (),
    taken: Sequence[str] = (),
    names_rest: bool = True,
    absent: str = "there is no such folder",
) -> Parsed:
    """Everything in a plugin folder. `root`: where it is on this machine, if it is.

    `name`: its name if no manifest gives one. `entry`: what a marketplace says about it, used if the folder has no
    manifest. `findings`: problems that were found before it was read. `inner`: its folders that are read as separate
    plugins. `taken`: files that other plugins of the same folder list. `names_rest`: whether this plugin reports files
    that no plugin lists. `absent`: the message if there is no such folder.
    """
    builder = Builder(tree, id, COPILOT.dialect, inner=frozenset(inner))
    if not tree.exists:
        builder.report.error("missing", absent)
    if "" not in tree.folders:
        return builder.finish(_base(name or clean_name(tree.name)), root=root)
    builder.report.items += findings
    manifest = find_manifest(builder)
    if manifest is None:
        for path in filter(_looks_like_component, tree.files):
            builder.report.note("not-listed", "not read, because the manifest is broken", path)
        return builder.finish(_base(name or clean_name(tree.name)), root=root)
    if entry is not None and manifest.path is None:
        manifest = listed_manifest(entry, "marketplace.json")
    builder.dialect = manifest.format.dialect
    builder.namespace = plugin_name(builder, manifest, name)
    report_keys(builder, manifest)
    report_shapes(builder, manifest)
    _components(builder, manifest)
    if names_rest:
        builder.claimed.update(path for one in taken for path in (one, *tree.walk(one)))
        _strays(builder, manifest)
    fields = _base(builder.namespace, enabled=manifest.get("defaultEnabled") is not False)
    if icons := _icons(builder, manifest):
        fields["icons"] = icons
    return builder.finish(fields, root=root, manifest=None if manifest.json is None else manifest.json.root.object)


def _base(name: str, *, enabled: bool = True) -> JsonObject:
    return {"type": "plugin", "name": name or "plugin", "enabled": enabled}


_PICTURES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"} | {
    ".webp": "image/webp",
    ".gif": "image/gif",
}


def _icons(builder: Builder, manifest: Manifest) -> list[JsonObject]:
    """The picture that a manifest names, where it is a file of the plugin. Nothing is fetched from elsewhere."""
    interface = manifest.node("interface")
    given = [manifest.get("icon"), manifest.get("logo"), None if interface is None else interface.get("logo")]
    for value in given:
        path = inside(value) if isinstance(value, str) else None
        kind = _PICTURES.get(f".{path.rpartition('.')[2].lower()}") if path in builder.tree.files else None
        if path is not None and kind is not None:
            return [{"src": builder.tree.uri_of(path), "contentType": kind}]
    return []


def _components(builder: Builder, manifest: Manifest) -> None:
    nested = manifest.format.nested

    def commands(folder: str) -> None:
        commands_in(builder, folder, nested=nested, readme=True, endings=(manifest.format.command_ending,))

    def agents(folder: str) -> None:
        agents_in(builder, folder, nested=nested, readme=True)

    def prompts(folder: str) -> None:
        prompts_in(builder, folder, any_text=True)

    form = manifest.format
    _skills(builder, manifest)
    _folders(builder, manifest, "commands", form.commands, commands, lambda path: command(builder, path))
    _folders(builder, manifest, "agents", form.agents, agents, lambda path: agent(builder, path))
    if form.rules or manifest.node("rules") is not None:
        always = form.rules_always
        _folders(
            builder,
            manifest,
            "rules",
            form.rules,
            lambda folder: rules_in(builder, folder, own_name=False, always=always),
            lambda path: rule(builder, path, own_name=False, always=always),
        )
    _folders(builder, manifest, "prompts", form.prompts, prompts, lambda path: prompt(builder, path))
    _files(builder, manifest, "hooks", form.hooks, lambda path: hook_file(builder, path))
    _files(builder, manifest, "mcpServers", form.servers, lambda path: mcp_file(builder, path))
    if form.instructions is not None:
        for path in _instructions(builder, manifest, *form.instructions):
            rule(builder, path, own_name=False, always=True)


def _instructions(builder: Builder, manifest: Manifest, field: str, default: str) -> list[str]:
    """The files of instructions that a field of the manifest names, or the default one when it is absent."""
    said = manifest.get(field)
    names = cast("list[Any]", said) if isinstance(said, list) else [default if said is None else said]
    paths = [inside(name) for name in names if isinstance(name, str)]
    return [path for path in paths if path in builder.tree.files]


def _skills(builder: Builder, manifest: Manifest) -> None:
    form = manifest.format

    def one(path: str) -> None:
        folder = base(parent(path)) or builder.tree.name
        skill(builder, path, folder_name=folder if is_skill_file(path) else stem(base(path)))

    _folders(builder, manifest, "skills", form.skills, lambda folder: skills_in(builder, folder), one)
    if form.own_skill is not None:
        skill(builder, form.own_skill, folder_name=builder.tree.name)
    found = any(is_skill_file(path) for path in builder.claimed)
    own = skill_file(builder, "") if form.root_skill and not found else None
    if own is not None:
        skill(builder, own, folder_name=builder.tree.name)
    elif not found and manifest.path is None and form.own_skill is None:
        _loose(builder)


def _loose(builder: Builder) -> None:
    """A folder without a manifest that contains skill folders, rules in Cursor's form, or the folders of a
    workspace."""
    loose_skills(builder)
    for path in builder.tree.walk("", depth=1):
        if path.endswith(".mdc"):
            rule(builder, path)
    for place in WORKSPACE:
        if not place.files and place.contents != "hook" and builder.tree.is_folder(place.folder):
            FOLDERS[place.layout](builder, place.folder)


def _folders(
    builder: Builder, manifest: Manifest, key: str, defaults: tuple[str, ...], folder: _Take, file: _Take
) -> None:
    """The default folders and the declared ones; only the declared ones if the family or the manifest says so."""
    said = declared(builder, manifest, key)
    alone = said.exclusive or (bool(said.paths or said.inline) and key in manifest.format.replaces)
    if not alone:
        for path in defaults:
            if builder.tree.is_folder(path):
                folder(path)
    for path, _ in said.paths:
        (folder if builder.tree.is_folder(path) else file)(path)
    _inline_texts(builder, manifest, key, said)


def _inline_texts(builder: Builder, manifest: Manifest, key: str, said: Declared) -> None:
    """Texts inside the manifest: Claude Code allows them in `commands`; no family allows others."""
    for node in said.inline:
        for name, entry in node.members.items():
            source = entry.get("source")
            path = source.strip().removeprefix("./") if isinstance(source, str) else ""
            if key == "commands" and path in builder.tree.files:
                command(builder, path, name=name)
            else:
                line = None if manifest.json is None else manifest.json.line(entry)
                message = f"`{key}`: `{clean_name(name)}` has no file in the plugin; not listed"
                builder.report.warn("manifest-inline", message, manifest.path or "", line)


def _files(builder: Builder, manifest: Manifest, key: str, defaults: tuple[str, ...], file: _Take) -> None:
    """Default files, declared files, and declarations in the manifest itself."""
    said = declared(builder, manifest, key)
    paths = [] if said.exclusive else [path for path in defaults if path in builder.tree.files]
    for path in dict.fromkeys((*paths, *(_file_in(builder, path, defaults) for path, _ in said.paths))):
        if path in builder.tree.files:
            if builder.claim(path):
                file(path)
        else:
            builder.report.warn("manifest-path", f"`{key}` names a folder, not a file", path)
    for node in said.inline:
        if manifest.json is not None and manifest.path is not None:
            take = hooks if key == "hooks" else servers
            take(builder, manifest.path, manifest.json, node)


def _file_in(builder: Builder, path: str, defaults: tuple[str, ...]) -> str:
    """The file with a default name in a folder that a manifest names."""
    if path in builder.tree.files:
        return path
    names = (join(path, base(default)) for default in defaults)
    return next((name for name in names if name in builder.tree.files), path)


def _strays(builder: Builder, manifest: Manifest) -> None:
    """Report files that look like components but were not listed."""
    inner = {folder for path in builder.tree.files if (folder := _plugin_of(path))} - builder.inner
    if inner:
        listed = ", ".join(sorted(inner)[:5]) + (f" and {len(inner) - 5} more" if len(inner) > 5 else "")
        builder.report.note("inner-plugins", f"holds other plugins; name their folders to load them: {listed}")
    for name in (*FOLDERS_WITHOUT_TYPE, *FILES_WITHOUT_TYPE):
        if name in builder.tree.files or (name in builder.tree.folders and any(builder.tree.walk(name))):
            builder.report.note("no-type", f"`{name}`: AHP has no such customization; not listed", name)
            builder.claimed.update({name, *builder.tree.walk(name)})
    for name in OTHER_PRODUCTS:
        if name in builder.tree.files and name not in builder.claimed:
            builder.report.note("no-type", f"`{name}`: settings of another product; not listed", name)
            builder.claimed.add(name)
    for path in builder.tree.files:
        if path in builder.claimed or builder.is_taken(path) or not _looks_like_component(path):
            continue
        if not any(path.startswith(f"{folder}/") for folder in (*inner, *builder.inner)):
            message = f"not where this family ({manifest.format.title}) keeps components; not listed"
            builder.report.note("not-listed", message, path)


def _plugin_of(path: str) -> str:
    """The folder of the plugin whose manifest this is; empty for any other file and for the plugin that is read."""
    folder = parent(path)
    if base(path) != "plugin.json" or not folder.endswith("plugin"):
        return ""
    above = parent(folder)
    return parent(above) if base(folder) == "plugin" and base(above) == ".github" else above


def _looks_like_component(path: str) -> bool:
    if is_skill_file(path) or base(path) in _COMPONENT_NAMES or path.endswith(_COMPONENT_ENDINGS):
        return True
    first, *rest = path.split("/")[:-1] or [""]
    if first in _COMPONENT_FOLDERS and first != "skills" and path.endswith((".md", ".json", ".toml")):
        return True
    if not path.endswith((".md", ".toml", ".markdown", ".txt")) or _PAPERS & {first, *rest}:
        return False
    above = zip(("", first, *rest), (first, *rest), strict=False)
    return any(folder in _TEXT_FOLDERS and over not in _DOCS for over, folder in above)


__all__ = ["parse_plugin"]
