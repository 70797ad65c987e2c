"""Plain data about customizations that the host does not send to clients: bodies, commands, configurations.

Kept beside the tree, by child id. Nothing in here is ever put into state, an action or a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ahpkit.customizations.diagnostics import Diagnostic
from ahpkit.protocol.session.customizations import DirectoryCustomization, PluginCustomization

TextType = Literal["agent", "skill", "prompt", "rule"]

Dialect = Literal["agent-plugin", "open-plugin", "claude", "copilot", "workspace"]
"""Whose rules apply to matchers and placeholders: one of the plugin families, or a workspace or user directory."""


@dataclass(frozen=True, slots=True)
class TextDetail:
    """An agent, skill, prompt or rule: its text and header as they are in the file."""

    type: TextType
    name: str
    tokens: tuple[str, ...]
    """What a user may type for it, best first."""
    description: str
    """For the model: the description, or the first paragraph where the file has none."""
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
    """An MCP server as it is declared, nothing expanded. `problem`: it cannot be started as it stands."""

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
    """A container as clients get it, and the details that they do not get."""

    container: Container
    details: Mapping[str, Detail]
    diagnostics: tuple[Diagnostic, ...]
    real_paths: Mapping[str, str] = field(default_factory=dict[str, str])
    """The file behind each child that is a file of its own, to recognise one that is listed twice."""
    root: str | None = None
    """Where the container is on this machine; None: it is not."""
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """A plugin's manifest as written."""


__all__ = ["Container", "Detail", "Dialect", "HookDetail", "Parsed", "ServerDetail", "TextDetail", "TextType"]
