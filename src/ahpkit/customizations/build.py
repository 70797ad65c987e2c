"""Collects the content of one container while its files are parsed: children with stable ids, details, and problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ahpkit.customizations.details import Container, Detail, Dialect, Parsed
from ahpkit.customizations.diagnostics import UNLISTED, Diagnostic, Report, load_state, unlisted
from ahpkit.customizations.frontmatter import Document
from ahpkit.customizations.jsonc import Json, JsonError
from ahpkit.customizations.jsonc import parse as parse_json
from ahpkit.customizations.text import decode
from ahpkit.customizations.tree import FileTree, Unreadable
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.meta_keys import NOT_LISTED
from ahpkit.protocol.session.customizations import ChildCustomization, stable_id

JSON_LIMIT = 256 * 1024
"""Bytes of a manifest. The reader remembers positions, so it is slower than a plain one. Real manifests are smaller
than 100 kB."""

_TYPES = ("agent", "skill", "prompt", "rule", "hook", "mcpServer")


@dataclass(slots=True)
class Builder:
    """Collects the children of the container `id`. `namespace` is put before the names that people and models use."""

    tree: FileTree
    id: str
    dialect: Dialect
    namespace: str = ""
    report: Report = field(default_factory=Report)
    children: list[JsonObject] = field(default_factory=list[JsonObject])
    details: dict[str, Detail] = field(default_factory=dict[str, Detail])
    real_paths: dict[str, str] = field(default_factory=dict[str, str])
    claimed: set[str] = field(default_factory=set[str])
    """Files that were handled already: listed, or reported."""
    servers: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """The declarations of the MCP servers that were found so far, by name."""
    inner: frozenset[str] = frozenset()
    """Folders that are read separately: other plugins, other places."""
    _reals: dict[str, str] = field(default_factory=dict[str, str])

    def claim(self, path: str) -> bool:
        """Take a file for a child; False if it was taken before, also through another path to the same file."""
        self.claimed.add(path)
        real = self.tree.files[path].real
        other = self._reals.get(real)
        if other is None:
            self._reals[real] = path
            return True
        if other != path:
            self.report.note("same-file", f"the same file as {other}; listed once", path)
        return False

    def document(self, path: str) -> Document | None:
        """A text file; None if it is not fetched yet, or cannot be read. The latter is reported."""
        document = self.tree.document(path)
        if document is None:
            return None
        if isinstance(document, Unreadable):
            self.report.warn("unreadable", document.message, path)
            return None
        self.report.items += (replace(problem, path=path) for problem in document.problems)
        return document

    def json(self, path: str) -> Json | None:
        """A JSON file; None if it is not fetched yet, or cannot be read. The latter is reported."""
        self.claimed.add(path)
        content = self.tree.content(path)
        if content is None:
            return None
        if isinstance(content, Unreadable):
            self.report.warn("unreadable", content.message, path)
            return None
        if len(content.data) > JSON_LIMIT:
            self.report.warn("too-long", f"longer than {JSON_LIMIT} bytes; not read", path)
            return None
        text, odd = decode(content.data)
        for warning in (odd, content.warning):
            if warning:
                self.report.warn("encoding", warning, path)
        return self._parse_json(text, path)

    def _parse_json(self, text: str, path: str) -> Json | None:
        try:
            parsed = parse_json(text)
        except JsonError as error:
            self.report.warn("not-json", f"not valid JSON ({error})", path, error.line)
            return None
        if parsed.lenient:
            self.report.note("json-comments", "comments or trailing commas, which strict JSON does not have", path)
        if parsed.duplicates:
            keys = ", ".join(f"`{key}`" for key in list(dict.fromkeys(parsed.duplicates))[:5])
            self.report.warn("duplicate-key", f"{keys} given more than once; the last one counts", path)
        return parsed

    def add(self, child: Mapping[str, Any], detail: Detail, *, path: str, key: str = "") -> None:
        """List a child. Its id is made of its type, its file, and `key` if the file has several children."""
        child_id = stable_id(child["type"], self.id, path, key)
        self.children.append({"id": child_id, "uri": self.tree.uri_of(path), **child})
        self.details[child_id] = detail
        if not key:
            self.real_paths[child_id] = self.tree.files[path].real

    def _nothing_found(self) -> None:
        """Report that a plugin has no children.

        If it has files besides its manifest and readme, their kind is unknown. A folder without a manifest is probably
        the wrong folder.
        """
        message = "nothing in this folder is a component that can be listed"
        more = any(path.rpartition("/")[2] not in _PAPERS for path in self.tree.files)
        seen = list(dict.fromkeys(filter(None, (item.thing for item in self.report.items if item.code in UNLISTED))))
        if seen:
            message += f"; seen: {', '.join(seen[:3])}" + (f" and {len(seen) - 3} more" if len(seen) > 3 else "")
        more = more or any(item.code == "no-manifest" for item in self.report.items)
        (self.report.warn if more or seen else self.report.note)("nothing-found", message)

    def is_taken(self, path: str) -> bool:
        """Whether a file is listed, under this path or another one."""
        return self.tree.files[path].real in self._reals

    def _is_listed_after_all(self, item: Diagnostic) -> bool:
        """Whether a file that was reported as not listed was listed afterwards, because the manifest names it."""
        return item.code in ("not-listed", "not-a-skill") and item.path in self.tree.files and self.is_taken(item.path)

    def finish(self, base: Mapping[str, Any], *, root: str | None, manifest: Mapping[str, Any] | None = None) -> Parsed:
        """The container with its load state. A container that failed as a whole has no children."""
        silent = self.children or self.inner or self.report.failed or self.tree.missing
        if base["type"] == "plugin" and not silent:
            self._nothing_found()
        diagnostics = (
            *self.tree.findings,
            *(item for item in self.report.items if not self._is_listed_after_all(item)),
        )
        container: JsonObject = {"id": self.id, "uri": self.tree.uri, **base, "load": load_state(diagnostics)}
        if seen := unlisted(diagnostics):
            container["_meta"] = {NOT_LISTED: seen}
        if container["load"]["kind"] == "error":
            return Parsed(cast("Container", container), {}, diagnostics, {}, root, manifest or {})
        container["children"] = cast(
            "list[ChildCustomization]", sorted(self.children, key=lambda child: _TYPES.index(child["type"]))
        )
        return Parsed(cast("Container", container), self.details, diagnostics, self.real_paths, root, manifest or {})


_PAPERS = ("plugin.json", "marketplace.json", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore")
"""Files that do not make a plugin."""


__all__ = ["Builder"]
