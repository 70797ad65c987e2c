"""The exceptions of MCP servers.

McpError
├── McpConfigError      a declaration that cannot be started
├── McpUnavailable      the server does not run, ended in the middle, or took too long
├── TokenNeeded         the server wants a token first (`ahpkit.mcp.calls`)
└── McpRefused          the server answered with an error: code, message, data
"""

from __future__ import annotations

from typing import Any

from ahpkit.protocol.errors import AhpError


class McpError(AhpError):
    """Base of all of them. The text is for people and for models."""


class McpConfigError(McpError):
    """A declaration that cannot be started."""


class McpUnavailable(McpError):
    """The server does not answer: it is switched off, it ended, or it took too long."""


class McpRefused(McpError):
    """The server answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


__all__ = ["McpConfigError", "McpError", "McpRefused", "McpUnavailable"]
