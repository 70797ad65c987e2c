"""Data about customizations that the host does not send to clients: bodies, commands, configurations.

It is kept by child id, and is never part of a state, an action or a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ahpkit.customizations.diagnostics import Diagnostic
from ahpkit.protocol.session.customizations import DirectoryCustomization, PluginCustomization

TextType = Literal["agent", "skill", "prompt", "rule"]

Dialect = Literal["agent-plugin", "open-plugin", "claude", "copilot", "workspace"]
"""The product whose rules apply to matchers and placeholders: one of the plugin families, or a workspace or user
directory."""


@dataclass(frozen=True, slots=True)
class TextDetail:
    """The text and header of an agent, skill, prompt or rule, as they are in the file."""

    type: TextType
    name: str
    tokens: tuple[str, ...]
    """The names that a user may type for it, the best first."""
    description: str
    """The description for the model: the file's own, or else its first paragraph."""
    meta: Mapping[str, Any]
    body: str
    folder: str
    """Path or URI of the folder the file is in; skills refer to files beside them."""


@dataclass(frozen=True, slots=True)
class HookDetail:
    """A group of hook actions for one event and matcher."""

    event: str
    matcher: str | None
    actions: tuple[Mapping[str, Any], ...]
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class ServerDetail:
    """The declaration of an MCP server, with placeholders not filled in. `problem`: why it cannot be started."""

    name: str
    config: Mapping[str, Any]
    dialect: Dialect
    problem: str | None = None
    consented: bool = False
    """Whether the host's own configuration names it, so that no further consent is needed."""


Detail = TextDetail | HookDetail | ServerDetail

Container = PluginCustomization | DirectoryCustomization


@dataclass(frozen=True, slots=True)
class Parsed:
    """A container for clients, and the details that only the host has."""

    container: Container
    details: Mapping[str, Detail]
    diagnostics: tuple[Diagnostic, ...]
    real_paths: Mapping[str, str] = field(default_factory=dict[str, str])
    """The file of each child that has its own file, to recognise a file that is listed twice."""
    root: str | None = None
    """The container's folder on this machine; None: it is not on this machine."""
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """A plugin's manifest as written."""


__all__ = ["Container", "Detail", "Dialect", "HookDetail", "Parsed", "ServerDetail", "TextDetail", "TextType"]
