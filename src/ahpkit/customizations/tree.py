"""The files of a container as data: their paths, and the contents that were fetched so far.

Parsers are pure functions of a `FileTree`. When a parser needs a file whose contents are not fetched yet, it leaves the
file out and the tree remembers the request. `source.load` then fetches it and parses again, until nothing is missing.
So one parser works for a folder on disk and for a plugin in a client's memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from ahpkit.customizations.diagnostics import Diagnostic
from ahpkit.customizations.frontmatter import Document, read_document


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a container is read. The rest is reported, but not read."""

    entries: int = 50_000
    files: int = 20_000
    file_bytes: int = 1024 * 1024
    total_bytes: int = 64 * 1024 * 1024
    depth: int = 12


@dataclass(frozen=True, slots=True)
class File:
    """One file. Equal `stamp`s mean equal contents; None means that this is not known."""

    path: str
    real: str
    """The same for every path that leads to the same file."""
    stamp: tuple[int, ...] | None = None
    linked: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file has no contents."""

    message: str


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file, and problems while reading it."""

    data: bytes
    warning: str | None = None


Documents = Mapping[str, tuple[Any, Document]]
"""Parsed texts by real path, each with its stamp: texts that did not change are not parsed again."""


@dataclass(slots=True)
class Folder:
    files: list[str] = field(default_factory=list[str])
    folders: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class FileTree:
    """The content of a container. Paths are relative to its root, with `/`."""

    uri: str
    name: str
    exists: bool = True
    files: dict[str, File] = field(default_factory=dict[str, File])
    folders: dict[str, Folder] = field(default_factory=dict[str, Folder])
    contents: dict[str, Content | Unreadable] = field(default_factory=dict[str, "Content | Unreadable"])
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    """Problems while listing the files."""
    known: Documents = field(default_factory=dict[str, tuple[Any, Document]])
    documents: dict[str, tuple[Any, Document]] = field(default_factory=dict[str, tuple[Any, Document]])
    """The texts this tree's parser used; the next tree's `known`."""
    missing: set[str] = field(default_factory=set[str])

    def content(self, path: str) -> Content | Unreadable | None:
        """The contents of a file that exists; None when they are not fetched yet: then they are requested."""
        content = self.contents.get(path)
        if content is None:
            self.missing.add(path)
        return content

    def document(self, path: str) -> Document | Unreadable | None:
        """A text file as header and body; None when its contents are not fetched yet: then they are requested."""
        file = self.files[path]
        done = self.documents.get(file.real) or self.known.get(file.real)
        if done is not None and file.stamp is not None and done[0] == file.stamp:
            self.documents[file.real] = done
            return done[1]
        content = self.content(path)
        if not isinstance(content, Content):
            return content
        document = read_document(content.data)
        if content.warning:
            cut = Diagnostic("warning", "read", content.warning)
            document = replace(document, problems=(cut, *document.problems))
        self.documents[file.real] = (file.stamp, document)
        return document

    def uri_of(self, path: str) -> str:
        return f"{self.uri}/{quote(os.fsencode(path))}" if path else self.uri

    def is_folder(self, path: str) -> bool:
        return path in self.folders

    def walk(self, folder: str, *, depth: int | None = None) -> Iterator[str]:
        """Files below `folder`, in order; `depth` 1 takes only those directly in it."""
        entry = self.folders.get(folder)
        if entry is None:
            return
        for name in entry.files:
            yield join(folder, name)
        if depth is None or depth > 1:
            for name in entry.folders:
                yield from self.walk(join(folder, name), depth=None if depth is None else depth - 1)


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def parent(path: str) -> str:
    return path.rpartition("/")[0]


def base(path: str) -> str:
    return path.rpartition("/")[2]


__all__ = ["Content", "Documents", "File", "FileTree", "Folder", "Limits", "Unreadable", "base", "join", "parent"]
