"""What three releases of VS Code say, from opening a folder to the first question: written by hand, in their order.

Each has its own oddities: the versions it offers, the way it names a folder, a `clientSeq` of 0 for every setting of
the root, a notification that is not in the protocol and has no channel, and the default chat's URI, which it makes
from the session's URI by itself.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

REMOTE = "vscode-remote://127.0.0.1:18411"
"""How VS Code 1.134 names its server."""

_ROOT = "ahp-root://"

_OFFERED: Mapping[str, Sequence[str]] = {
    "1.134": ("0.8.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"),
    "1.136": ("1.0.0", "0.9.0", "0.8.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"),
    "1.139": ("0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"),
}
"""Release → the versions that it offers. The first one that 1.136 offers is a draft of 1.0."""

_SETTINGS: Mapping[str, Sequence[Json]] = {
    "1.134": ({"agentMerge.mergePullRequest": False, "showExternalSessions": "none"},),
    "1.136": ({"agentMerge.mergePullRequest": "never", "http.proxy": "", "http.noProxy": []},),
    "1.139": (
        {"agentMerge.mergePullRequest": "never", "autoAttachPullRequests": True},
        {"workspaceTrust": {"enabled": True, "trustedUris": []}},
    ),
}
"""Release → settings of the root that it sends, besides those that all send."""


def words(release: str) -> str:
    """What a release says, one JSON line per message, in the form of the recordings. Its folder is `/workspace`."""
    counted: Iterator[int] = iter(range(1, 100))
    said: list[Json] = []
    for method, params in _messages(release):
        number = {} if method in ("dispatchAction", "setClientManagedSettingsPermissions") else {"id": next(counted)}
        said.append({"dir": "c2s", "m": {"jsonrpc": "2.0", **number, "method": method, "params": params}})
    return "\n".join(json.dumps(message, separators=(",", ":")) for message in said)


def _messages(release: str) -> Iterator[tuple[str, Json]]:
    folder = f"{REMOTE}/workspace" if release == "1.134" else "file:///workspace"
    session = f"demo:/session-of-{release}"
    chat = f"ahp-chat://default/{b64encode(session.encode()).decode().rstrip('=')}"
    yield (
        "initialize",
        {
            "channel": _ROOT,
            "protocolVersions": [*_OFFERED[release]],
            "clientId": f"window-of-{release}",
            "clientInfo": {"name": "vscode-editor-window", "title": "VS Code"},
            "_meta": {"vscode.telemetryLevel": "all", "vscode.clientConnectionKind": "remote_extension_host"},
            "initialSubscriptions": [_ROOT],
        },
    )
    rules = {"ls": True, r"/^git(\s+(-C\s+\S+|--no-pager))*\s+log\b.*\s--output(=|\s|$)/": False}
    settings = ({"telemetryLevel": "all"}, {"terminalAutoApproveRules": rules}, {"disableRepoInfoTelemetry": False})
    for config in (*_SETTINGS[release], *settings):
        yield "dispatchAction", _action(_ROOT, 0, {"type": "root/configChanged", "config": config})
    yield "setClientManagedSettingsPermissions", {"permissions": {}}
    yield "listSessions", {"channel": _ROOT}
    yield "ping", {"channel": _ROOT}
    for _ in range(2):
        yield "resolveSessionConfig", {"channel": _ROOT, "provider": "demo", "workingDirectory": folder}
    yield (
        "createSession",
        {
            "channel": session,
            "provider": "demo",
            "workingDirectories": [folder],
            "config": {"isolation": "folder", "autoApprove": "default", "mode": "interactive"},
            "progressToken": f"token-of-{release}",
        },
    )
    yield "dispatchAction", _action(session, 1, _announcement(release))
    yield "subscribe", {"channel": session}
    yield "subscribe", {"channel": chat}
    yield "dispatchAction", _action(chat, 2, _question(release))
    yield "ping", {"channel": _ROOT}


def _action(channel: str, number: int, action: Json) -> Json:
    return {"channel": channel, "clientSeq": number, "action": action}


def _announcement(release: str) -> Json:
    schema: Json = {"type": "object", "properties": {"symbol": {"type": "string"}}, "required": ["symbol"]}
    tool = {"name": "usages", "title": "List usages", "description": "Where a symbol is used.", "inputSchema": schema}
    client = {"clientId": f"window-of-{release}", "tools": [tool], "customizations": []}
    return {"type": "session/activeClientSet", "activeClient": client}


def _question(release: str) -> Json:
    message: Json = {"text": "hello there", "origin": {"kind": "user"}, "model": {"id": "m1"}}
    started = "2026-11-15T14:42:20.982Z"
    return {"type": "chat/turnStarted", "turnId": f"request-{release}", "startedAt": started, "message": message}


WORDS: Mapping[str, str] = {release: words(release) for release in _OFFERED}
"""Release → what it says."""

__all__ = ["REMOTE", "WORDS"]
