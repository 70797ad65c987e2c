"""What components are called: in lists, and when a user types them. Knows headers, not component types."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ahpkit.customizations.build import Builder
from ahpkit.customizations.frontmatter import Document
from ahpkit.customizations.text import clean_label, clean_name, slug

_SUFFIXES = (".agent.md", ".chatmode.md", ".prompt.md", ".instructions.md", ".mdc", ".md")
_CONFORMING = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*$")


@dataclass(frozen=True, slots=True)
class Named:
    """A name for lists, and what may be typed for it, best first."""

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
) -> Named:
    """The header's `name`, else `fallback` (its file or folder), behind the plugin and the folders it is in.

    `own_name` is off for formats where the file name alone counts, `namespaced` for what nobody calls by name.
    `identity`: a name of its own stands without the folders. `form`: the specifications say how names look.
    """
    given = _given(builder, path, document) if own_name else None
    plain = _shown(builder, path, given or fallback, form) or _shown(builder, path, fallback, form) or "unnamed"
    if given and identity:
        folders = ()
    if given and slug(given) != slug(fallback):
        builder.report.note("name-differs", f"called `{plain}`, but its file or folder is `{fallback}`", path)
    spaces = [clean_name(part) for part in (builder.namespace, *folders) if part and namespaced]
    full = ":".join((*spaces, plain))
    short = (full, plain, ":".join((*spaces, fallback)), fallback)
    return Named(full, tuple(dict.fromkeys(filter(None, map(slug, short)))))


def _given(builder: Builder, path: str, document: Document) -> str | None:
    value = document.meta.get("name")
    if value is None:
        return None
    if not isinstance(value, str):
        builder.report.warn("name-shape", "`name` is no text; it was read as written", path)
        value = document.raw("name") or ""
    prefix = f"{builder.namespace}:"
    return value.removeprefix(prefix) if builder.namespace and len(value) > len(prefix) else value


def _shown(builder: Builder, path: str, given: str, form: bool) -> str:
    shown = clean_label(given)
    if not slug(shown):
        builder.report.warn("name-cleaned", f"the name {json.dumps(given[:200])} cannot be typed; not used", path)
        return ""
    if shown != given.strip():
        builder.report.warn("name-cleaned", f"the name {json.dumps(given[:200])} is shown as `{shown}`", path)
    elif form and (not _CONFORMING.match(shown) or len(shown) > 64):
        builder.report.note("name-form", f"`{shown}` is not of the form a-z, 0-9 and single hyphens, 64 at most", path)
    return shown


__all__ = ["Named", "name_component", "stem"]
