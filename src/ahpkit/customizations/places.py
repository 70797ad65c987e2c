"""Where workspaces and users keep customizations, as tables. Touches no disk.

The order is the precedence: of two things with one name the first is meant. Within a level `.github` comes before
`.agents` before `.claude` before `.cursor`; the working directory before its parents; the workspace before the user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ahpkit.protocol.session.customizations import ChildCustomizationType

Layout = Literal[
    "agents", "nested-agents", "skills", "commands", "prompts", "rules", "always-rules", "hooks", "settings", "servers"
]
"""How a place is read; see `directory.py`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder below a workspace or a home directory, or some files in it."""

    folder: str
    contents: ChildCustomizationType
    layout: Layout
    files: tuple[str, ...] = ()
    """Only these files of the folder; such a place is listed when one of them holds something."""
    offered: bool = False
    """Listed while it does not exist yet, because it is where clients save this kind of thing."""
    title: str = ""

    @property
    def writable(self) -> bool:
        """Clients may save into it. Not hooks, which would run; not single files, where a new one would not be seen."""
        return self.contents != "hook" and not self.files


WORKSPACE: tuple[Place, ...] = (
    Place(".github/agents", "agent", "agents", offered=True),
    Place(".agents/agents", "agent", "agents"),
    Place(".claude/agents", "agent", "nested-agents"),
    Place(".github/chatmodes", "agent", "agents"),
    Place(".github/skills", "skill", "skills", offered=True),
    Place(".agents/skills", "skill", "skills"),
    Place(".claude/skills", "skill", "skills"),
    Place(".claude/commands", "skill", "commands"),
    Place(".github/prompts", "prompt", "prompts", offered=True),
    Place(".github/instructions", "rule", "rules", offered=True),
    Place(".claude/rules", "rule", "always-rules"),
    Place(".cursor/rules", "rule", "rules"),
    Place(
        "",
        "rule",
        "always-rules",
        files=(
            "AGENTS.md",
            "CLAUDE.md",
            ".claude/CLAUDE.md",
            ".github/copilot-instructions.md",
            "GEMINI.md",
            ".cursorrules",
        ),
        title="Instructions",
    ),
    Place(".github/hooks", "hook", "hooks"),
    Place(".github/copilot", "hook", "settings", files=("settings.json", "settings.local.json")),
    Place(".claude", "hook", "settings", files=("settings.json", "settings.local.json")),
    Place("", "mcpServer", "servers", files=(".mcp.json",), title=".mcp.json"),
    Place(".vscode", "mcpServer", "servers", files=("mcp.json",), title=".vscode/mcp.json"),
)

USER: tuple[Place, ...] = (
    Place(".copilot/agents", "agent", "agents", offered=True),
    Place(".agents/agents", "agent", "agents"),
    Place(".claude/agents", "agent", "nested-agents"),
    Place(".copilot/skills", "skill", "skills", offered=True),
    Place(".agents/skills", "skill", "skills"),
    Place(".claude/skills", "skill", "skills"),
    Place(".claude/commands", "skill", "commands"),
    Place(".claude/rules", "rule", "always-rules"),
    Place(".copilot", "rule", "always-rules", files=("copilot-instructions.md",), title="~/.copilot instructions"),
    Place(".claude", "rule", "always-rules", files=("CLAUDE.md",), title="~/.claude instructions"),
    Place(".copilot/hooks", "hook", "hooks"),
    Place(".copilot", "hook", "settings", files=("settings.json",)),
    Place(".claude", "hook", "settings", files=("settings.json",)),
    Place(".copilot", "mcpServer", "servers", files=("mcp-config.json",), title="~/.copilot/mcp-config.json"),
)

__all__ = ["USER", "WORKSPACE", "Layout", "Place"]
