"""Agents of other people: where they are, how to run each against the fake model, how it writes a file.

They are there when AHPKIT_REAL_AGENTS names a directory that has them: `node_modules` with the packages of `FEW` and
`NPM`, and a virtual environment `venv-NAME` for each of `PYPI`, which do not go together. `make test-agents` makes it;
CI has those of `FEW`. `SERVERS` and `PYPI_SERVERS` are MCP servers of other people, for the same tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from ahpkit.agents.acp import AcpAgent, AcpAgentConfig
from ahpkit.testing.fake_model import FakeModel
from support.waiting import BOUND

WHERE = Path(os.environ.get("AHPKIT_REAL_AGENTS", "")).resolve()
FEW = (
    "@aaif/goose-binary-linux-x64@1.52.0",
    "@zed-industries/codex-acp@0.16.0",
    "opencode-ai@1.18.33",
    "@moonshot-ai/kimi-code@2.1.0",
    "node@22",
)
"""Agents that are installed in half a minute."""
NPM = (
    "@agentclientprotocol/codex-acp@2.6.0",
    "@agentclientprotocol/claude-agent-acp@0.99.1",
    "@github/copilot@1.0.102",
    "@google/gemini-cli@0.61.0",
    "@qwen-code/qwen-code@0.24.4",
    "cline@3.0.65",
)
PYPI = ("fast-agent-mcp", "mistral-vibe")

SERVERS = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
)
PYPI_SERVERS = ("mcp-server-time", "mcp-server-git", "mcp-server-fetch")

needs_agents = pytest.mark.skipif("AHPKIT_REAL_AGENTS" not in os.environ, reason="AHPKIT_REAL_AGENTS is not set")

Json = dict[str, Any]


@dataclass(frozen=True)
class Real:
    """How to run one agent against a model at `{root}`, and how to make it write a file."""

    program: str
    args: tuple[str, ...] = ()
    env: Json = field(default_factory=dict[str, Any])
    files: dict[str, Callable[[str, Path], str]] = field(default_factory=dict[str, Any])
    tool: str = "write"
    write: Callable[[Path], Json] = lambda path: {"path": str(path), "content": "hello"}
    config: Json = field(default_factory=dict[str, Any])
    """The options with which the agent asks for approval."""
    asks: bool = True
    """Whether it asks before it writes a file."""
    restores: bool = True
    """Whether it can load a session that it has just left."""


def _codex_config(url: str, workspace: Path) -> str:
    return f"""
model = "fake-model"
model_provider = "fake"
approval_policy = "on-request"
approvals_reviewer = "user"
sandbox_mode = "read-only"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "Fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
requires_openai_auth = false
[projects."{workspace}"]
trust_level = "trusted"
"""


def _opencode_config(url: str, workspace: Path) -> str:
    model = {"name": "Fake", "tool_call": True, "limit": {"context": 100000, "output": 8000}}
    options = {"baseURL": f"{url}/v1", "apiKey": "sk-fake"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options, "models": {"fake-model": model}}
    names = {"model": "fake/fake-model", "small_model": "fake/fake-model"}
    ask = {"edit": "ask", "bash": "ask"}
    quiet = {"autoupdate": False, "share": "disabled"}
    return json.dumps(names | quiet | {"permission": ask, "provider": {"fake": provider}})


def _vibe_config(url: str, workspace: Path) -> str:
    return f"""
active_model = "fake"
enable_update_checks = false
enable_auto_update = false
enable_telemetry = false
[[providers]]
name = "fakes"
api_base = "{url}/v1"
api_key_env_var = "FAKE_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "fake-model"
provider = "fakes"
alias = "fake"
"""


def _cline_config(url: str, workspace: Path) -> str:
    settings = {"provider": "openai-compatible", "apiKey": "x", "model": "fake-model", "baseUrl": f"{url}/v1"}
    entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    return json.dumps(
        {"version": 1, "lastUsedProvider": "openai-compatible", "providers": {settings["provider"]: entry}}
    )


def _file(path: Path) -> Json:
    return {"file_path": str(path), "content": "hello"}


def _escalated(path: Path) -> Json:
    command = {"cmd": f"echo hello > {path}", "workdir": str(path.parent), "justification": "a test"}
    return command | {"sandbox_permissions": "require_escalated"}


_NEW_NODE = {"PATH": "{where}/node_modules/.bin:/usr/bin:/bin"}
"""The `node` among the packages, which may be newer than the system's."""

AGENTS = {
    "goose": Real(
        "node_modules/@aaif/goose-binary-linux-x64/bin/goose",
        ("acp", "--with-builtin", "developer"),
        {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "fake-model",
            "OPENAI_HOST": "{root}",
            "OPENAI_API_KEY": "x",
            "GOOSE_MODE": "approve",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
            "GOOSE_CONTEXT_LIMIT": "100000",
        },
    ),
    "codex": Real(
        "node_modules/.bin/codex-acp-linux-x64",
        env={"CODEX_HOME": "{home}/.codex", "FAKE_KEY": "x", "NO_BROWSER": "1"},
        files={".codex/config.toml": _codex_config},
        tool="exec_command",
        write=_escalated,
    ),
    "opencode": Real(
        "node_modules/opencode-linux-x64/bin/opencode",
        ("acp",),
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        files={".config/opencode/opencode.json": _opencode_config},
        write=lambda path: {"filePath": str(path), "content": "hello"},
    ),
    "kimi": Real(
        "node_modules/.bin/kimi",
        ("acp",),
        {
            **_NEW_NODE,
            "KIMI_CODE_HOME": "{home}/.kimi-code",
            "KIMI_MODEL_NAME": "fake-model",
            "KIMI_MODEL_API_KEY": "x",
            "KIMI_MODEL_PROVIDER_TYPE": "openai",
            "KIMI_MODEL_BASE_URL": "{root}/v1",
            "KIMI_MODEL_MAX_CONTEXT_SIZE": "100000",
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
        },
        tool="Write",
    ),
    "fast-agent": Real(
        "venv-fast-agent-mcp/bin/fast-agent-acp",
        ("--model", "generic.fake-model", "-x"),
        {"GENERIC_API_KEY": "x", "GENERIC_BASE_URL": "{root}/v1"},
        asks=False,
    ),
    "codex-acp": Real(
        "node_modules/@agentclientprotocol/codex-acp/dist/index.js",
        env={**_NEW_NODE, "CODEX_HOME": "{home}/.codex", "FAKE_KEY": "x", "NO_BROWSER": "1", "MODEL_PROVIDER": "fake"},
        files={".codex/config.toml": _codex_config},
        tool="exec_command",
        write=_escalated,
        config={"mode": "read-only"},
    ),
    "claude": Real(
        "node_modules/.bin/claude-agent-acp",
        env={
            **_NEW_NODE,
            "ANTHROPIC_API_KEY": "x",
            "ANTHROPIC_BASE_URL": "{root}",
            "CLAUDE_CONFIG_DIR": "{home}/.claude",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        },
        tool="Write",
        write=_file,
    ),
    "copilot": Real(
        "node_modules/.bin/copilot",
        ("--acp",),
        {
            **_NEW_NODE,
            "COPILOT_PROVIDER_BASE_URL": "{root}/v1",
            "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_MODEL": "fake-model",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        },
        tool="create",
        write=lambda path: {"path": str(path), "file_text": "hello"},
    ),
    "gemini": Real(
        "node_modules/.bin/gemini",
        ("--acp",),
        {
            **_NEW_NODE,
            "GEMINI_API_KEY": "x",
            "GOOGLE_GEMINI_BASE_URL": "{root}",
            "GEMINI_MODEL": "gemini-2.5-flash",
        },
        files={
            ".gemini/settings.json": lambda url, workspace: json.dumps(
                {
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "general": {"enableAutoUpdate": False},
                    "privacy": {"usageStatisticsEnabled": False},
                }
            )
        },
        tool="write_file",
        write=_file,
        restores=False,  # It overwrites the session that it should load if that session began in the same minute.
    ),
    "qwen": Real(
        "node_modules/.bin/qwen",
        ("--acp",),
        {**_NEW_NODE, "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "{root}/v1", "OPENAI_MODEL": "fake-model"},
        files={
            ".qwen/settings.json": lambda url, workspace: json.dumps(
                {
                    "security": {"auth": {"selectedType": "openai"}},
                    "tools": {"approvalMode": "default"},
                    "general": {"enableAutoUpdate": False},
                    "privacy": {"usageStatisticsEnabled": False},
                }
            )
        },
        tool="write_file",
        write=_file,
    ),
    "cline": Real(
        "node_modules/.bin/cline",
        ("--acp",),
        {
            **_NEW_NODE,
            "CLINE_DIR": "{home}/.cline",
            "CLINE_API_KEY": "x",
            "CLINE_PROVIDER": "openai-compatible",
            "CLINE_MODEL": "fake-model",
            "CLINE_NO_AUTO_UPDATE": "1",
        },
        files={".cline/data/settings/providers.json": _cline_config},
        tool="run_commands",
        write=lambda path: {"commands": [f"echo hello > {path}"]},
    ),
    "vibe": Real(
        "venv-mistral-vibe/bin/vibe-acp",
        env={"FAKE_KEY": "x", "VIBE_HOME": "{home}/.vibe"},
        files={".vibe/config.toml": _vibe_config},
        tool="write_file",
        config={"mode": "ask"},
    ),
}


def made(name: str, model: FakeModel, home: Path, workspace: Path, **env: str) -> AcpAgent:
    """An agent that talks to `model` and has its home at `home`; skips the test where it is not installed."""
    real = AGENTS[name]
    program = WHERE / real.program
    if not program.exists():
        pytest.skip(f"{program} is not installed")
    home.mkdir(exist_ok=True)
    for path, content in real.files.items():
        (home / path).parent.mkdir(parents=True)
        (home / path).write_text(content(model.root, workspace))
    names = {"CONFIG": ".config", "DATA": ".data", "STATE": ".state", "CACHE": ".cache"}
    around = {"HOME": str(home)} | {f"XDG_{key}_HOME": str(home / value) for key, value in names.items()}
    facts = {"root": model.root, "home": home, "where": WHERE}
    around |= {key: value.format(**facts) for key, value in real.env.items()}
    return AcpAgent(AcpAgentConfig(name=name, command=str(program), args=real.args, env=around | env))


PACKAGES = WHERE / "node_modules/@modelcontextprotocol"
EVERYTHING = str(PACKAGES / "server-everything/dist/index.js")
FILES = str(PACKAGES / "server-filesystem/dist/index.js")
NODE = str(WHERE / "node_modules/.bin/node")


@asynccontextmanager
async def everything_over(transport: Literal["streamableHttp", "sse"]) -> AsyncGenerator[str]:
    """The reference server behind a URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        NODE, EVERYTHING, transport, env={"PORT": str(port)}, stdout=pipe, stderr=pipe
    )
    try:
        await _listening(port)
        yield f"http://127.0.0.1:{port}/{'mcp' if transport == 'streamableHttp' else 'sse'}"
    finally:
        process.kill()
        await process.communicate()


async def _listening(port: int) -> None:
    async with asyncio.timeout(BOUND):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return


__all__ = [
    "AGENTS",
    "EVERYTHING",
    "FEW",
    "FILES",
    "NODE",
    "NPM",
    "PYPI",
    "PYPI_SERVERS",
    "SERVERS",
    "WHERE",
    "Real",
    "everything_over",
    "made",
    "needs_agents",
]
