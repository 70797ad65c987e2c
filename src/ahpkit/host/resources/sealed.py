"""Recognises files that can cause execution: hook files, MCP declarations, plugin manifests, and the like. Pure.

Such files are sealed: clients and agents can write them through the host only with an approval that names their kind.
Names are recognised at any depth, and in any spelling that some file system treats as the same name.

The project's own code (sources, `Makefile`, scripts of `package.json`) is not sealed: it runs only when somebody runs
it. docs/security.md has the same table in words.
"""

from __future__ import annotations

import re
import unicodedata
from fnmatch import fnmatchcase
from pathlib import PurePath

_HOOKS = "a hook file: its commands run during turns"
_SERVERS = "a declaration of MCP servers: their commands are started"
_PLUGIN = "a plugin manifest: it can bring hooks and MCP servers"
_HOST = "settings of this host: they can name agents, plugins and programs to start"
_AGENT = "settings of an agent: they can bring hooks and MCP servers"
_EXTENSION = "a program that an agent loads: it runs when the agent starts"
_GIT = "part of a Git repository's own data: its hooks and settings run commands"
_REPOSITORY = "part of a repository's own data: its hooks and settings run commands"
_EDITOR = "settings of an editor: they can run commands when the folder is opened"
_SHELL = "run by a shell that enters the folder"
_COMMIT = "run by Git when somebody commits"
_LOGIN = "started when the user logs in"

SEALED: tuple[tuple[str, str], ...] = (
    (".github/hooks", _HOOKS),
    (".copilot/hooks", _HOOKS),
    (".claude/hooks", _HOOKS),
    (".clinerules/hooks", _HOOKS),
    (".factory/hooks", _HOOKS),
    ("hooks.json", _HOOKS),
    (".github/extensions", _EXTENSION),
    (".copilot/extensions", _EXTENSION),
    (".opencode/tool*", _EXTENSION),
    (".pi/extensions", _EXTENSION),
    (".ahpkit.toml", _HOST),
    (".claude/settings*.json", _AGENT),
    (".github/copilot/settings*.json", _AGENT),
    (".copilot/settings*.json", _AGENT),
    (".copilot/config*.json", _AGENT),
    (".gemini/settings.json", _AGENT),
    (".qwen/settings.json", _AGENT),
    (".codex/config.toml", _AGENT),
    (".cursor/cli.json", _AGENT),
    ("opencode.json*", _AGENT),
    ("crush.json", _AGENT),
    (".crush.json", _AGENT),
    ("firebender.json", _SERVERS),
    (".amp/settings.json", _AGENT),
    (".continue", _AGENT),
    (".augment/settings*.json", _AGENT),
    (".factory/settings*.json", _AGENT),
    (".iflow/settings.json", _AGENT),
    (".pi/settings.json", _AGENT),
    (".vibe/config.toml", _AGENT),
    (".amazonq/cli-agents", _AGENT),
    (".cursor/worktrees.json", _AGENT),
    (".cursor/environment.json", _AGENT),
    (".openhands/*.sh", _AGENT),
    (".aider.conf.yml", _AGENT),
    (".kiro/hooks", _HOOKS),
    (".opencode/plugin*", _AGENT),
    ("*-extension.json", _PLUGIN),
    (".mcp.json", _SERVERS),
    ("mcp.json", _SERVERS),
    ("mcp-config.json", _SERVERS),
    ("mcp_config.json", _SERVERS),
    ("*mcp_settings.json", _SERVERS),
    ("plugin.json", _PLUGIN),
    (".plugin", _PLUGIN),
    (".*-plugin", _PLUGIN),
    (".github/plugin", _PLUGIN),
    (".git", _GIT),
    (".gitmodules", _GIT),
    (".hg", _REPOSITORY),
    (".jj", _REPOSITORY),
    (".svn", _REPOSITORY),
    (".husky", _COMMIT),
    (".pre-commit-config.yaml", _COMMIT),
    ("lefthook.y*ml", _COMMIT),
    (".lefthook.y*ml", _COMMIT),
    (".envrc", _SHELL),
    ("mise*.toml", _SHELL),
    (".mise*.toml", _SHELL),
    ("mise/config*.toml", _SHELL),
    (".mise/config*.toml", _SHELL),
    (".exrc", _EDITOR),
    (".vimrc", _EDITOR),
    (".gvimrc", _EDITOR),
    ("_vimrc", _EDITOR),
    ("_gvimrc", _EDITOR),
    ("_exrc", _EDITOR),
    (".nvimrc", _EDITOR),
    (".nvim.lua", _EDITOR),
    (".lvimrc", _EDITOR),
    (".dir-locals*.el", _EDITOR),
    (".helix", _EDITOR),
    ("*.sublime-project", _EDITOR),
    (".fleet", _EDITOR),
    (".vscode/settings.json", _EDITOR),
    (".vscode/tasks.json", _EDITOR),
    (".vscode/launch.json", _EDITOR),
    (".vscode/extensions.json", _EDITOR),
    ("*.code-workspace", _EDITOR),
    (".devcontainer", _EDITOR),
    (".devcontainer.json", _EDITOR),
    (".idea", _EDITOR),
    (".zed", _EDITOR),
    ("library/launchagents", _LOGIN),
)
"""Patterns for consecutive names of a path, in lower case. A folder seals everything in it."""

_PATTERNS = tuple((tuple(pattern.split("/")), what) for pattern, what in SEALED)

_ANY = re.compile(
    "(?:^|/)(?:" + "|".join(".*".join(map(re.escape, pattern.split("*"))) for pattern, _ in SEALED) + r")(?:/|\Z)",
    re.DOTALL,
)
"""Quickly excludes most paths that match no pattern, because a folder may have very many. A name may have any
character, also one that becomes a slash when it is normalised."""

_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What Unicode calls default ignorable. A Linux folder that ignores case ignores all of these, macOS some."""

_FIRST = frozenset(pattern[depth] for pattern, _ in _PATTERNS for depth in range(len(pattern) - 1))
"""Names of folders that are not sealed, but may contain sealed files."""


def why_sealed(path: PurePath) -> str | None:
    """The kind of a file, if writing it could cause execution; otherwise None."""
    names = [plain(name) for name in path.parts]
    if _ANY.search("/".join(names)) is None:
        return None
    for pattern, what in _PATTERNS:
        for start in range(len(names) - len(pattern) + 1):
            if all(fnmatchcase(names[start + at], wanted) for at, wanted in enumerate(pattern)):
                return what
    return None


def leads_to_sealed(path: PurePath) -> bool:
    """Whether a folder with this name may contain sealed files. Then no link may replace it."""
    return plain(path.name) in _FIRST


def plain(name: str) -> str:
    """A name without the differences that some file systems ignore: case, forms of letters, marks, dots at the end."""
    if name.isascii():
        return name.lower().rstrip(". ") or name
    return unicodedata.normalize("NFKC", _IGNORED.sub("", name)).casefold().rstrip(". ") or name


__all__ = ["SEALED", "leads_to_sealed", "plain", "why_sealed"]
