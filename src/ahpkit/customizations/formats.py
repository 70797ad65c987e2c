"""The plugin families as tables: where each keeps its components, and how it reads its manifest. Data only.

Where products disagree, docs/decisions/2026-11-15-customization-precedence.md says what was chosen and why.
"""

from __future__ import annotations

from dataclasses import dataclass

from ahpkit.customizations.details import Dialect

AGENT_PLUGIN_SCHEMA = ("https://agent-plugins.org/schemas/", "/plugin.schema.json")
"""The beginning and the end of the `$schema` of an Agent Plugin. It is never fetched."""

VENDOR_FOLDER = "com.github.copilot"
"""The folder in which an Agent Plugin keeps components that the portable format does not define."""


@dataclass(frozen=True, slots=True)
class Format:
    """Default places, and whether a path in the manifest replaces them."""

    dialect: Dialect
    title: str
    skills: tuple[str, ...] = ("skills",)
    commands: tuple[str, ...] = ("commands",)
    agents: tuple[str, ...] = ("agents",)
    rules: tuple[str, ...] = ("rules",)
    prompts: tuple[str, ...] = ("prompts",)
    hooks: tuple[str, ...] = ("hooks/hooks.json",)
    servers: tuple[str, ...] = (".mcp.json",)
    replaces: frozenset[str] = frozenset()
    """Manifest fields whose paths replace the default folder; the others add to it."""
    declares: bool = True
    """Whether the manifest may name components."""
    root_skill: bool = True
    """A SKILL.md beside the manifest is a skill when there are no others."""
    nested: bool = False
    """Agents and commands in folders below theirs count, and the folder joins their name."""
    command_ending: str = ".md"
    rules_always: bool = False
    """Whether a rule that names no files applies everywhere."""
    own_skill: str | None = None
    """A file beside the manifest that is a skill: instructions that are read when they are needed."""
    instructions: tuple[str, str] | None = None
    """The manifest field that names files of instructions, and the file that is read when the field is absent."""


AGENT_PLUGIN = Format(
    "agent-plugin",
    "Agent Plugin",
    commands=(f"{VENDOR_FOLDER}/commands",),
    agents=(f"{VENDOR_FOLDER}/agents",),
    rules=(f"{VENDOR_FOLDER}/rules",),
    hooks=(f"{VENDOR_FOLDER}/hooks/hooks.json",),
    servers=("mcp.json",),
    declares=False,
    root_skill=False,
)

OPEN_PLUGIN = Format("open-plugin", "Open Plugin", servers=(".mcp.json", "mcp.json"))

CLAUDE = Format("claude", "Claude Code plugin", rules=(), replaces=frozenset({"commands", "agents"}), nested=True)

COPILOT = Format(
    "copilot",
    "Copilot plugin",
    hooks=("hooks.json", "hooks/hooks.json"),
    servers=(".mcp.json", ".github/mcp.json", "mcp.json"),
)

POWER_FILE = "POWER.md"

KIRO = Format(
    "open-plugin",
    "Kiro power",
    rules=("steering",),
    servers=("mcp.json", ".mcp.json"),
    rules_always=True,
    own_skill=POWER_FILE,
)
"""A folder with a `POWER.md`."""

GEMINI = Format(
    "open-plugin",
    "Gemini CLI extension",
    rules=(),
    prompts=(),
    servers=(),
    nested=True,
    command_ending=".toml",
    instructions=("contextFileName", "GEMINI.md"),
)
"""Its manifest holds the servers."""

MARKET_ENTRY = Format(
    "claude", "entry of a marketplace", skills=(), commands=(), agents=(), rules=(), prompts=(), hooks=(), servers=()
)
"""A plugin that its marketplace describes: what the entry names, and nothing else of the folder."""

MANIFESTS: tuple[tuple[str, Format], ...] = (
    (".plugin/plugin.json", OPEN_PLUGIN),
    (".claude-plugin/plugin.json", CLAUDE),
    ("plugin.json", COPILOT),
    (".github/plugin/plugin.json", COPILOT),
    (".cursor-plugin/plugin.json", OPEN_PLUGIN),
    (".codex-plugin/plugin.json", OPEN_PLUGIN),
    ("gemini-extension.json", GEMINI),
)
"""Manifests by precedence. A root plugin.json with the Agent Plugin schema comes before them all."""

MANIFEST_KEYS = frozenset(
    {
        *("$schema", "name", "displayName", "version", "description", "author", "homepage", "repository", "license"),
        *("keywords", "category", "tags", "logo", "icon", "interface", "metadata", "experimental", "extensions"),
        *("skills", "commands", "agents", "rules", "hooks", "mcpServers", "lspServers", "outputStyles", "workflows"),
        *(
            "apps",
            "userConfig",
            "channels",
            "dependencies",
            "defaultEnabled",
            "strict",
            "source",
            "prompts",
            "monitors",
            *("contextFileName", "excludeTools", "settings", "themes"),
        ),
    }
)
"""Keys that some family defines."""

WITHOUT_TYPE = ("lspServers", "outputStyles", "workflows", "apps", "channels", "monitors")
"""Components of plugins that AHP has no customization type for: reported, not listed."""

FOLDERS_WITHOUT_TYPE = ("output-styles", "workflows", "monitors", "themes")

FILES_WITHOUT_TYPE = (".lsp.json", "lsp.json", ".app.json", "settings.json")
"""Default files of other products' plugins that have no meaning here. Each is reported once."""

__all__ = [
    "AGENT_PLUGIN",
    "AGENT_PLUGIN_SCHEMA",
    "CLAUDE",
    "COPILOT",
    "FILES_WITHOUT_TYPE",
    "FOLDERS_WITHOUT_TYPE",
    "GEMINI",
    "KIRO",
    "MANIFESTS",
    "MANIFEST_KEYS",
    "MARKET_ENTRY",
    "OPEN_PLUGIN",
    "POWER_FILE",
    "WITHOUT_TYPE",
    "Format",
]
