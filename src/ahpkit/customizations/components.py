"""Turns Markdown files with a header into children: agents, skills, commands, prompts and rules."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any

from ahpkit.customizations.build import Builder
from ahpkit.customizations.details import TextDetail, TextType
from ahpkit.customizations.frontmatter import Document
from ahpkit.customizations.text import DESCRIPTION_LIMIT, clean_label, clean_name, clean_text, first_paragraph, slug
from ahpkit.customizations.tree import base, parent
from ahpkit.customizations.yaml_values import flag, globs, text, words
from ahpkit.protocol.common.state import JsonObject

_SUFFIXES = (".agent.md", ".chatmode.md", ".prompt.md", ".instructions.md", ".mdc", ".md", ".toml")
_CONFORMING = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*$")


@dataclass(frozen=True, slots=True)
class ComponentNames:
    """A name for lists, and the names that a user may type for it, the best first."""

    name: str
    tokens: tuple[str, ...]


def stem(file_name: str) -> str:
    """A file name without the endings that say what kind of component it is."""
    lower = file_name.lower()
    for suffix in _SUFFIXES:
        if lower.endswith(suffix) and len(file_name) > len(suffix):
            return file_name[: -len(suffix)]
    return file_name


def name_component(
    builder: Builder,
    path: str,
    document: Document,
    *,
    fallback: str,
    folders: tuple[str, ...] = (),
    own_name: bool = True,
    identity: bool = False,
    namespaced: bool = True,
    form: bool = True,
) -> ComponentNames:
    """The name of a component: the header's `name`, or else `fallback` (its file or folder), with the plugin and the
    folders before it.

    `own_name`: whether the header's name counts. `namespaced`: whether the plugin comes before the name; off for
    components that nobody calls by name. `identity`: a name from the header has no folders before it. `form`: check the
    form of the name.
    """
    given = _given(builder, path, document) if own_name else None
    plain = (
        _clean_name(builder, path, given or fallback, form) or _clean_name(builder, path, fallback, form) or "unnamed"
    )
    if given and identity:
        folders = ()
    if given and slug(given) != slug(fallback) and plain != fallback:
        builder.report.note("name-differs", f"called `{plain}`, but its file or folder is `{fallback}`", path)
    spaces = [clean_name(part) for part in (builder.namespace, *folders) if part and namespaced]
    full = ":".join((*spaces, plain))
    short = (full, plain, ":".join((*spaces, fallback)), fallback)
    return ComponentNames(full, tuple(dict.fromkeys(filter(None, map(slug, short)))))


def _given(builder: Builder, path: str, document: Document) -> str | None:
    value = document.meta.get("name")
    if value is None:
        return None
    if not isinstance(value, str):
        builder.report.warn("name-shape", "`name` is not a string; it was read as written", path)
        value = document.raw("name") or ""
    prefix = f"{builder.namespace}:"
    return value.removeprefix(prefix) if builder.namespace and len(value) > len(prefix) else value


def _clean_name(builder: Builder, path: str, given: str, form: bool) -> str:
    shown = clean_label(given)
    if not slug(shown):
        builder.report.warn("name-cleaned", f"the name {json.dumps(given[:200])} cannot be typed; not used", path)
        return ""
    if shown != given.strip():
        builder.report.warn("name-cleaned", f"the name {json.dumps(given[:200])} is shown as `{shown}`", path)
    elif form and (not _CONFORMING.match(shown) or len(shown) > 64):
        builder.report.note("name-form", f"`{shown}` is not of the form a-z, 0-9 and single hyphens, 64 at most", path)
    return shown


META_KEY = "ahpkit/frontMatter"
"""The key in a child's `_meta` for header keys that have no field in AHP."""

SHOWN_KEYS = frozenset(
    {
        *(
            "argument-hint",
            "arguments",
            "allowed-tools",
            "disallowed-tools",
            "tools",
            "disallowedTools",
            "model",
            "effort",
        ),
        *("license", "compatibility", "context", "agent", "mode", "target", "color", "excludeAgent", "when_to_use"),
    }
)
"""Header keys that clients get, because they help to choose and show a component. Keys for things that run (hooks,
servers, scripts) are not sent."""

PRIVILEGED_KEYS = frozenset({"hooks", "mcpServers", "mcp-servers", "permissionMode"})
"""Header keys that would run something or grant rights. A text file may not do that, so they have no effect."""

FIELD_KEYS = frozenset(
    {
        *("name", "description", "disable-model-invocation", "user-invocable", "user-invokable", "infer"),
        *(
            "globs",
            "applyTo",
            "paths",
            "alwaysApply",
            "metadata",
            "shell",
            "background",
            "handoffs",
            "agents",
            "skills",
        ),
        *("maxTurns", "memory", "isolation", "initialPrompt", "inclusion", "fileMatchPattern", "trigger", "keywords"),
    }
)
"""Known header keys: those that become fields, and those of other products, which are only kept."""

_META_LIMIT = 1_000
"""Characters of one value shown in `_meta`."""

_SCOPE_KEYS = ("globs", "applyTo", "paths", "fileMatchPattern")
"""The header keys of different products for the files that a rule is for."""

_ARGUMENT_KEYS = ("argument-hint", "arguments")


def skill(builder: Builder, path: str, *, folder_name: str) -> None:
    """`<folder>/SKILL.md`."""
    document = _open(builder, path)
    if document is not None:
        named = name_component(builder, path, document, fallback=folder_name)
        _add(builder, path, document, named, "skill", _invocation(builder, path, document))


def command(builder: Builder, path: str, *, folders: tuple[str, ...] = (), name: str | None = None) -> None:
    """`commands/**/<name>.md`: a skill named by its file."""
    document = _open(builder, path)
    if document is not None and path.endswith(".toml"):
        document = _from_toml(builder, path, document)
    if document is not None:
        fallback = name or stem(base(path))
        named = name_component(builder, path, document, fallback=fallback, folders=folders, own_name=False)
        _add(builder, path, document, named, "skill", _invocation(builder, path, document))


def agent(builder: Builder, path: str, *, folders: tuple[str, ...] = ()) -> None:
    """`agents/**/<name>.md` and similar files; the body is a system prompt."""
    document = _open(builder, path)
    if document is not None:
        fallback = stem(base(path))
        if fallback.lower() == "agent" and folders:  # A folder for each agent.
            folders, fallback = folders[:-1], folders[-1]
        named = name_component(builder, path, document, fallback=fallback, folders=folders, identity=True)
        _add(builder, path, document, named, "agent", _invocation(builder, path, document, infer=True))


def prompt(builder: Builder, path: str) -> None:
    """`<name>.prompt.md`."""
    document = _open(builder, path)
    if document is not None:
        _add(builder, path, document, name_component(builder, path, document, fallback=stem(base(path))), "prompt", {})


def rule(
    builder: Builder, path: str, *, always: bool = False, own_name: bool = True, only_for: str | None = None
) -> None:
    """A rule or instruction file. `always`: in this format a rule without scope applies everywhere.

    `only_for`: the files that the rule is for, if its place says so.
    """
    document = _open(builder, path)
    if document is not None:
        fallback = stem(base(path))
        if fallback == "RULE":  # Cursor's newer layout: a folder for each rule.
            fallback = base(parent(path)) or fallback
        named = name_component(
            builder, path, document, fallback=fallback, own_name=own_name, namespaced=False, form=False
        )
        if only_for is None:
            scope = _scope(builder, path, document, always)
        else:
            named = ComponentNames(clean_label(path), (slug(path),))
            scope = {"globs": [only_for]}
        _add(builder, path, document, named, "rule", scope)


def _scope(builder: Builder, path: str, document: Document, unscoped_always: bool) -> JsonObject:
    fields: JsonObject = {}
    scope = next((key for key in _SCOPE_KEYS if document.meta.get(key) is not None), None)
    patterns = [] if scope is None else [clean_text(item, limit=_META_LIMIT) for item in globs(document.meta[scope])]
    always = _flag(builder, path, document, "alwaysApply")
    if always is None and "inclusion" in document.meta:  # Kiro's steering files.
        always = document.meta["inclusion"] == "always"
    if always is None and "trigger" in document.meta:  # Windsurf's rules.
        always = document.meta["trigger"] == "always_on"
    if always is None and not patterns and unscoped_always:
        always = True
    if always is not None:
        fields["alwaysApply"] = always
    if patterns:
        fields["globs"] = patterns
    elif scope is not None:
        builder.report.note("no-globs", f"`{scope}` names no pattern", path)
    return fields


def _open(builder: Builder, path: str) -> Document | None:
    if not builder.claim(path):
        return None
    document = builder.document(path)
    if document is not None and not document.meta and not document.body.strip():
        builder.report.warn("empty", "the file is empty", path)
    return document


def _from_toml(builder: Builder, path: str, document: Document) -> Document | None:
    """Gemini CLI's commands: `description`, and `prompt` with `{{args}}` in it. Shell commands in it (`!{…}`) stay text
    and are not run."""
    try:
        said = tomllib.loads(document.body)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        builder.report.warn("not-toml", f"not valid TOML ({error})", path)
        return None
    prompt, description = said.get("prompt"), said.get("description")
    if not isinstance(prompt, str) or not prompt.strip():
        builder.report.warn("no-prompt", "a command in TOML needs a `prompt`; not listed", path)
        return None
    meta = {"description": description} if isinstance(description, str) else {}
    return Document(meta, prompt.replace("{{args}}", "$ARGUMENTS"))


def _add(
    builder: Builder, path: str, document: Document, named: ComponentNames, type: TextType, fields: JsonObject
) -> None:
    child: JsonObject = {"type": type, "name": named.name}
    description = _description(builder, path, document) or first_paragraph(document.body)
    if description:
        child["description"] = description
    child.update(fields)
    meta = {key: _header_value(document, key) for key in document.meta if key in SHOWN_KEYS}
    meta = {key: value for key, value in meta.items() if value}
    if meta and type != "rule":
        child["_meta"] = {META_KEY: meta}
    _report_keys(builder, path, document)
    detail = TextDetail(
        type=type,
        name=named.name,
        tokens=named.tokens,
        description=description,
        meta=document.meta,
        body=document.body,
        folder=builder.tree.uri_of(parent(path)),
    )
    builder.add(child, detail, path=path)


def _description(builder: Builder, path: str, document: Document) -> str | None:
    value = document.meta.get("description")
    if value is None:
        return None
    prose = text(value)
    if prose is None:
        builder.report.warn("description-shape", "`description` is not a string; it was read as written", path)
        prose = document.raw("description") or ""
    if len(prose) > DESCRIPTION_LIMIT:
        message = f"the description has {len(prose)} characters; {DESCRIPTION_LIMIT} are shown"
        builder.report.warn("description-cut", message, path)
    return clean_text(prose)


def _invocation(builder: Builder, path: str, document: Document, *, infer: bool = False) -> JsonObject:
    """Whether the user and the model may invoke a component. If the header contradicts itself, the stricter reading
    counts."""
    model = _flag(builder, path, document, "disable-model-invocation")
    user = _flag(builder, path, document, "user-invocable")
    if user is None and "user-invokable" in document.meta:
        builder.report.warn("misspelt-key", "`user-invokable` is read as `user-invocable`", path)
        user = _flag(builder, path, document, "user-invokable")
    inferred = _flag(builder, path, document, "infer") if infer else None
    if inferred is not None and model is not None and inferred == model:
        builder.report.warn(
            "flags-disagree", "`infer` and `disable-model-invocation` disagree; the model may not invoke it", path
        )
    fields: JsonObject = {}
    if model or inferred is False:
        fields["disableModelInvocation"] = True
    if user is False:
        fields["disableUserInvocation"] = True
    return fields


def _flag(builder: Builder, path: str, document: Document, key: str) -> bool | None:
    value = document.meta.get(key)
    if value is None:
        return None
    read = flag(value)
    if read is None:
        builder.report.warn("flag-shape", f"`{key}` is neither true nor false; it was ignored", path)
    return read


def _header_value(document: Document, key: str) -> Any:
    """A header value as text or a list of texts; brackets of a hint are not a list."""
    value = document.meta[key]
    if key in _ARGUMENT_KEYS and not isinstance(value, str):
        value = document.raw(key)
    if isinstance(value, list) or key.endswith(("tools", "Tools")):
        return [clean_text(item, limit=_META_LIMIT) for item in words(value)]
    return clean_text(value, limit=_META_LIMIT) if isinstance(value, str) else None


def _report_keys(builder: Builder, path: str, document: Document) -> None:
    privileged = sorted(PRIVILEGED_KEYS & document.meta.keys())
    if privileged:
        keys = ", ".join(f"`{key}`" for key in privileged)
        builder.report.note("privileged-keys", f"without effect in a header: {keys}", path)
    unknown = sorted(document.meta.keys() - SHOWN_KEYS - PRIVILEGED_KEYS - FIELD_KEYS)
    if unknown:
        keys = ", ".join(f"`{clean_text(key, limit=64)}`" for key in unknown[:8])
        builder.report.note("unknown-keys", f"keys without a meaning here: {keys}", path)


__all__ = [
    "FIELD_KEYS",
    "META_KEY",
    "PRIVILEGED_KEYS",
    "SHOWN_KEYS",
    "ComponentNames",
    "agent",
    "command",
    "prompt",
    "rule",
    "skill",
    "stem",
]
