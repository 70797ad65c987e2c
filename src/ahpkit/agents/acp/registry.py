"""Table of common agents: the command line of each, how to install it, which variable holds its key. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent:
    """An agent that speaks ACP."""

    name: str
    title: str
    command: str
    args: tuple[str, ...] = ()
    install: str
    """The command that installs it."""
    keys: tuple[str, ...] = ()
    """Variables from which the agent may take a key. They are passed on from the host's environment. Most agents also
    support a login."""
    settings: tuple[str, ...] = ()
    """Other variables that the agent reads. They are passed on too. `NAME_*` stands for all variables that begin with
    `NAME_`."""
    version_args: tuple[str, ...] = ("--version",)
    python: str = "3.11"
    """The oldest Python with which the agent runs, if it is written in Python."""
    asks: str = "not known"
    """Whether the agent asks before it acts, with its default settings: yes, no, or when. About calls through the host,
    the host itself asks."""

    loads_servers: tuple[str, ...] = ()
    """Files of a workspace whose MCP servers the agent starts itself. Only files that the host reads too are listed."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the host's environment that the agent gets."""
        return (*self.keys, *self.settings)


_AGENTS = (
    KnownAgent(
        name="claude",
        title="Claude Code",
        asks="yes",
        command="claude-agent-acp",
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        settings=("ANTHROPIC_*", "CLAUDE_*", "IS_SANDBOX"),
        loads_servers=(".mcp.json",),
    ),
    KnownAgent(
        name="cline",
        title="Cline",
        asks="yes",
        command="cline",
        args=("--acp",),
        install="npm install -g cline",
        keys=("CLINE_API_KEY",),
        settings=("CLINE_*",),
    ),
    KnownAgent(
        name="codex",
        title="Codex",
        asks="when it leaves its sandbox",
        command="codex-acp",
        install="npm install -g @zed-industries/codex-acp",
        keys=("OPENAI_API_KEY", "CODEX_API_KEY"),
        settings=("OPENAI_*", "CODEX_*", "NO_BROWSER"),
    ),
    KnownAgent(
        name="copilot",
        title="GitHub Copilot",
        asks="yes",
        command="copilot",
        args=("--acp",),
        install="npm install -g @github/copilot",
        keys=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
        settings=("COPILOT_*",),
    ),
    KnownAgent(
        name="crow",
        title="Crow",
        command="crow-cli",
        args=("acp",),
        install="uv tool install crow-cli",
        keys=("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
        settings=("CROW_*",),
    ),
    KnownAgent(
        name="cursor",
        title="Cursor",
        command="cursor-agent",
        args=("acp",),
        install="curl https://cursor.com/install -fsS | bash",
        keys=("CURSOR_API_KEY",),
        settings=("CURSOR_*",),
    ),
    KnownAgent(
        name="deepagents",
        title="Deep Agents",
        command="python3",
        args=("-m", "deepagents_acp"),
        install="pip install deepagents-acp langchain-openai",
        keys=("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
        settings=("OPENAI_*", "ANTHROPIC_*"),
        version_args=("-m", "pip", "show", "deepagents-acp"),
    ),
    KnownAgent(
        name="fast-agent",
        title="fast-agent",
        python="3.13",
        asks="yes",
        command="fast-agent-acp",
        install="uv tool install fast-agent-mcp",
        keys=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GENERIC_API_KEY"),
        settings=("ANTHROPIC_*", "OPENAI_*", "GENERIC_*"),
    ),
    KnownAgent(
        name="gemini",
        title="Gemini CLI",
        asks="yes",
        command="gemini",
        args=("--acp",),
        install="npm install -g @google/gemini-cli",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        settings=("GEMINI_*", "GOOGLE_*"),
    ),
    KnownAgent(
        name="goose",
        title="goose",
        asks="only with GOOSE_MODE=approve",
        command="goose",
        args=("acp",),
        install="curl -fsSL https://github.com/aaif-goose/goose/releases/download/stable/download_cli.sh | bash",
        keys=("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
        settings=("GOOSE_*", "OPENAI_*", "ANTHROPIC_*"),
    ),
    KnownAgent(
        name="hermes",
        title="Hermes",
        asks="for what is dangerous",
        command="hermes-acp",
        install="uv tool install 'hermes-agent[acp]'",
        keys=("OPENAI_API_KEY", "OPENROUTER_API_KEY"),
        settings=("HERMES_*", "OPENAI_*"),
    ),
    KnownAgent(
        name="kimi",
        title="Kimi Code",
        asks="yes",
        command="kimi",
        args=("acp",),
        install="npm install -g @moonshot-ai/kimi-code",
        keys=("KIMI_MODEL_API_KEY",),
        settings=("KIMI_*",),
    ),
    KnownAgent(
        name="opencode",
        title="opencode",
        asks="only if its settings say so",
        command="opencode",
        args=("acp",),
        install="npm install -g opencode-ai",
        keys=("ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
        settings=("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*"),
    ),
    KnownAgent(
        name="openhands",
        title="OpenHands",
        python="3.12",
        asks="yes",
        command="openhands",
        args=("acp",),
        install="uv tool install openhands",
        keys=("LLM_API_KEY",),
        settings=("LLM_*", "OPENHANDS_*"),
    ),
    KnownAgent(
        name="pi",
        title="pi",
        asks="no",
        command="pi-acp",
        install="npm install -g pi-acp @earendil-works/pi-coding-agent",
        keys=("ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
        settings=("PI_*",),
    ),
    KnownAgent(
        name="qwen",
        title="Qwen Code",
        asks="yes",
        command="qwen",
        args=("--acp",),
        install="npm install -g @qwen-code/qwen-code",
        keys=("OPENAI_API_KEY", "DASHSCOPE_API_KEY"),
        settings=("OPENAI_*", "QWEN_*"),
    ),
    KnownAgent(
        name="vibe",
        title="Mistral Vibe",
        python="3.12",
        asks="yes",
        command="vibe-acp",
        install="uv tool install mistral-vibe",
        keys=("MISTRAL_API_KEY",),
        settings=("VIBE_*",),
    ),
)

KNOWN_AGENTS: Mapping[str, KnownAgent] = {agent.name: agent for agent in _AGENTS}
"""The known agents, by the names that `--agent NAME` takes."""

__all__ = ["KNOWN_AGENTS", "KnownAgent"]
