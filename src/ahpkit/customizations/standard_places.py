"""Tables of the places where workspaces and users keep customizations.

The order is the precedence: of two things with the same name, the first is used. Within a level `.github` comes before
`.agents` before `.claude` before `.cursor` before others; the working directory before its parents; the workspace
before the user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ahpkit.protocol.session.customizations import ChildCustomizationType

Layout = Literal[
    "agents",
    "nested-agents",
    "skills",
    "commands",
    "toml-commands",
    "any-commands",
    "prompts",
    "rules",
    "always-rules",
    "nested-rules",
    "hooks",
    "settings",
    "servers",
    "no-type",
]
"""How a place is read; see `folders.py`."""


@dataclass(frozen=True, slots=True)
class StandardPlace:
    """A folder below a workspace or a home directory, or some files in it."""

    folder: str
    contents: ChildCustomizationType
    layout: Layout
    files: tuple[str, ...] = ()
    """Only these files of the folder. Such a place is listed if one of them has content."""
    writable: bool = True
    """Whether clients may write there. They never may for hooks and servers, because those would run."""
    offered: bool = False
    """Whether it is listed even before it exists, so that clients know whether they can save such files there."""
    title: str = ""
    quiet: bool = False
    """Whether it is listed only if it has content."""
    without: tuple[str, ...] = ()
    """Folders in it with files of another kind."""

    @property
    def path(self) -> str:
        """The path that names the place: its folder, or its file if it has only one."""
        return "/".join(part for part in (self.folder, *(self.files if len(self.files) == 1 else ())) if part)


def _file(
    folder: str, name: str, contents: ChildCustomizationType, layout: Layout, *, writable: bool = True
) -> StandardPlace:
    return StandardPlace(folder, contents, layout, files=(name,), writable=writable)


INSTRUCTIONS = (
    "AGENTS.md",
    "CLAUDE.md",
    "AGENTS.local.md",
    "AGENTS.override.md",
    "AGENT.md",
    "CLAUDE.local.md",
    ".claude/CLAUDE.md",
    ".github/copilot-instructions.md",
    "GEMINI.md",
    ".gemini/GEMINI.md",
    ".cursorrules",
    ".clinerules",
    ".windsurfrules",
    ".roorules",
    ".junie/guidelines.md",
    "QWEN.md",
    ".qwen/QWEN.md",
    "WARP.md",
    ".rules",
    ".goosehints",
    ".idx/airules.md",
    ".augment-guidelines",
)

OTHER_PRODUCTS = (
    ".codex/AGENTS.md",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".qwen/settings.json",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".roomodes",
    ".kilocodemodes",
    ".continue/config.yaml",
    ".bob/custom_modes.yaml",
    ".firebender/firebender.json",
    "firebender.json",
    ".aider.conf.yml",
)
"""Settings of other products. They may name customizations, but have no meaning here, so they are only reported."""

SKILLS_ONLY = (
    ".antigravity",
    ".augment",
    ".bob",
    ".codebuddy",
    ".continue",
    ".crush",
    ".devin",
    ".goose",
    ".grok",
    ".iflow",
    ".junie",
    ".openhands",
    ".pi",
    ".qoder",
    ".trae",
    ".vibe",
    ".zencoder",
)
"""Folders of products in which installers of skills put a folder `skills`, often as a link to another one."""

_AGENTS_TOO = (".codebuddy", ".iflow", ".junie", ".qoder")
_COMMANDS_TOO = (".bob", ".codebuddy", ".junie", ".qoder")

WORKSPACE: tuple[StandardPlace, ...] = (
    StandardPlace(".github/agents", "agent", "agents", offered=True),
    StandardPlace(".agents/agents", "agent", "nested-agents"),
    StandardPlace(".claude/agents", "agent", "nested-agents"),
    StandardPlace(".github/chatmodes", "agent", "agents"),
    StandardPlace(".github/skills", "skill", "skills", offered=True),
    StandardPlace(".agents/skills", "skill", "skills"),
    StandardPlace(".claude/skills", "skill", "skills"),
    StandardPlace(".claude/commands", "skill", "commands"),
    StandardPlace(".agents/command", "skill", "commands"),
    StandardPlace(".agents/commands", "skill", "commands"),
    StandardPlace(".agent/skills", "skill", "skills"),
    StandardPlace(".agent/workflows", "skill", "commands"),
    StandardPlace(".cursor/agents", "agent", "agents"),
    StandardPlace(".cursor/skills", "skill", "skills"),
    StandardPlace(".cursor/commands", "skill", "commands"),
    StandardPlace(".opencode/agent", "agent", "agents"),
    StandardPlace(".opencode/agents", "agent", "agents"),
    StandardPlace(".opencode/skills", "skill", "skills"),
    StandardPlace(".opencode/command", "skill", "commands"),
    StandardPlace(".opencode/commands", "skill", "commands"),
    StandardPlace(".codex/skills", "skill", "skills"),
    StandardPlace(".codex/prompts", "skill", "commands"),
    StandardPlace(".windsurf/skills", "skill", "skills"),
    StandardPlace(".windsurf/workflows", "skill", "commands"),
    StandardPlace(".clinerules/skills", "skill", "skills"),
    StandardPlace(".clinerules/workflows", "skill", "commands"),
    StandardPlace(".roo/skills", "skill", "skills"),
    StandardPlace(".roo/commands", "skill", "commands"),
    StandardPlace(".kilocode/skills", "skill", "skills"),
    StandardPlace(".kilocode/workflows", "skill", "commands"),
    StandardPlace(".factory/droids", "agent", "agents"),
    StandardPlace(".factory/skills", "skill", "skills"),
    StandardPlace(".factory/commands", "skill", "commands"),
    StandardPlace(".augment/agents", "agent", "agents"),
    StandardPlace(".augment/commands", "skill", "commands"),
    StandardPlace(".continue/prompts", "skill", "commands"),
    StandardPlace(".qwen/agents", "agent", "agents"),
    StandardPlace(".qwen/skills", "skill", "skills"),
    StandardPlace(".qwen/commands", "skill", "any-commands"),
    StandardPlace(".amazonq/prompts", "skill", "commands"),
    *(StandardPlace(f"{product}/agents", "agent", "agents") for product in _AGENTS_TOO),
    *(StandardPlace(f"{product}/commands", "skill", "commands") for product in _COMMANDS_TOO),
    StandardPlace(".iflow/commands", "skill", "any-commands"),
    StandardPlace(".kiro/skills", "skill", "skills"),
    StandardPlace(".gemini/agents", "agent", "agents"),
    StandardPlace(".gemini/skills", "skill", "skills"),
    StandardPlace(".gemini/commands", "skill", "toml-commands"),
    *(StandardPlace(f"{product}/skills", "skill", "skills") for product in SKILLS_ONLY),
    StandardPlace(".github/prompts", "prompt", "prompts", offered=True),
    StandardPlace(".github/instructions", "rule", "rules", offered=True),
    StandardPlace(".claude/rules", "rule", "always-rules"),
    StandardPlace(".cursor/rules", "rule", "rules"),
    StandardPlace(".claude/output-styles", "rule", "no-type", writable=False, quiet=True),
    StandardPlace(".clinerules", "rule", "always-rules", without=("skills", "workflows")),
    StandardPlace(".kiro/steering", "rule", "always-rules"),
    StandardPlace(".windsurf/rules", "rule", "rules"),
    StandardPlace(".agent/rules", "rule", "rules"),
    StandardPlace(".trae/rules", "rule", "always-rules"),
    StandardPlace(".openhands/microagents", "rule", "rules"),
    StandardPlace(".aiassistant/rules", "rule", "rules"),
    StandardPlace(".roo/rules", "rule", "always-rules"),
    StandardPlace(".roo/rules-architect", "rule", "rules"),
    StandardPlace(".roo/rules-ask", "rule", "rules"),
    StandardPlace(".roo/rules-code", "rule", "rules"),
    StandardPlace(".roo/rules-debug", "rule", "rules"),
    StandardPlace(".codex/agents", "agent", "no-type", writable=False, quiet=True),
    StandardPlace(".kiro/agents", "agent", "no-type", writable=False, quiet=True),
    StandardPlace(".kiro/hooks", "hook", "no-type", writable=False, quiet=True),
    StandardPlace(".opencode/prompts", "prompt", "no-type", writable=False, quiet=True),
    StandardPlace(".amazonq/cli-agents", "agent", "no-type", writable=False, quiet=True),
    StandardPlace(".claude/workflows", "skill", "no-type", writable=False, quiet=True),
    StandardPlace(".continue/mcpServers", "mcpServer", "no-type", writable=False, quiet=True),
    StandardPlace("", "rule", "no-type", files=OTHER_PRODUCTS, writable=False, title="Settings of other products"),
    StandardPlace(".kiro/powers", "skill", "no-type", writable=False, quiet=True),
    StandardPlace(".kilocode/rules", "rule", "always-rules"),
    StandardPlace(".bob/rules", "rule", "always-rules"),
    StandardPlace(".codebuddy/rules", "rule", "rules"),
    StandardPlace(".firebender/rules", "rule", "rules"),
    StandardPlace(".qoder/rules", "rule", "rules"),
    StandardPlace(".tabnine/guidelines", "rule", "always-rules"),
    StandardPlace(".zencoder/rules", "rule", "rules"),
    StandardPlace(".continue/rules", "rule", "rules"),
    StandardPlace(".amazonq/rules", "rule", "always-rules"),
    StandardPlace(".augment/rules", "rule", "rules"),
    StandardPlace("", "rule", "always-rules", files=INSTRUCTIONS, title="Instructions"),
    StandardPlace(".github/hooks", "hook", "hooks", offered=True, writable=False),
    _file(".github/copilot", "settings.json", "hook", "settings", writable=False),
    _file(".github/copilot", "settings.local.json", "hook", "settings", writable=False),
    _file(".claude", "settings.json", "hook", "settings", writable=False),
    _file(".claude", "settings.local.json", "hook", "settings", writable=False),
    _file(".cursor", "hooks.json", "hook", "settings", writable=False),
    _file(".codex", "hooks.json", "hook", "settings", writable=False),
    _file("", ".mcp.json", "mcpServer", "servers", writable=False),
    _file(".claude", "mcp.json", "mcpServer", "no-type", writable=False),
    _file(".vscode", "mcp.json", "mcpServer", "servers", writable=False),
    _file(".github/copilot", "mcp.json", "mcpServer", "servers", writable=False),
    _file(".cursor", "mcp.json", "mcpServer", "servers", writable=False),
    _file(".bob", "mcp.json", "mcpServer", "servers", writable=False),
    _file(".kiro/settings", "mcp.json", "mcpServer", "servers", writable=False),
    _file(".roo", "mcp.json", "mcpServer", "servers", writable=False),
    _file(".kilocode", "mcp.json", "mcpServer", "servers", writable=False),
)

NESTED = StandardPlace("", "rule", "nested-rules", writable=False, quiet=True, title="Instructions of subfolders")
"""`AGENTS.md` and the like in folders below the working directory: each is for the files of its folder."""

NESTED_NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")

USER: tuple[StandardPlace, ...] = (
    StandardPlace(".copilot/agents", "agent", "agents", offered=True),
    StandardPlace(".agents/agents", "agent", "nested-agents"),
    StandardPlace(".claude/agents", "agent", "nested-agents"),
    StandardPlace(".copilot/skills", "skill", "skills", offered=True),
    StandardPlace(".agents/skills", "skill", "skills"),
    StandardPlace(".claude/skills", "skill", "skills"),
    StandardPlace(".claude/commands", "skill", "commands"),
    StandardPlace(".claude/rules", "rule", "always-rules"),
    _file(".copilot", "copilot-instructions.md", "rule", "always-rules", writable=False),
    _file(".claude", "CLAUDE.md", "rule", "always-rules", writable=False),
    StandardPlace(".copilot/hooks", "hook", "hooks", writable=False),
    _file(".copilot", "settings.json", "hook", "settings", writable=False),
    _file(".claude", "settings.json", "hook", "settings", writable=False),
    _file(".copilot", "mcp-config.json", "mcpServer", "servers", writable=False),
)

__all__ = ["NESTED", "NESTED_NAMES", "OTHER_PRODUCTS", "SKILLS_ONLY", "USER", "WORKSPACE", "Layout", "StandardPlace"]
