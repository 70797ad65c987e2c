"""Lists the conversations that an agent stores itself (`session/list`)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ahpkit.agents.acp.connection import AcpConnection
from ahpkit.agents.untrusted_json import obj, objects, text
from ahpkit.host.agent import AgentSession
from ahpkit.protocol.common.state import JsonObject

SESSION_ID = "sessionId"
"""Key of a chat's memory: the ACP session to take up after a restart."""

MAX_SESSIONS = 1000
"""Conversations taken from one agent: a list that people look through."""
_MAX_PAGES = 20
_TIMEOUT = 30.0
"""Seconds for one page."""


async def kept_sessions(connection: AcpConnection) -> list[AgentSession]:
    """All that the agent lists and can take up again, page by page."""
    if not connection.session_can("list") or not connection.restores:
        return []
    found: list[AgentSession] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        params = {"cursor": cursor} if cursor else {}
        page = obj(await connection.request("session/list", params, timeout=_TIMEOUT))
        found += filter(None, map(_kept, objects(page.get("sessions"))))
        cursor = text(page.get("nextCursor"))
        if cursor is None or len(found) >= MAX_SESSIONS:
            break
    return found[:MAX_SESSIONS]


def _kept(entry: JsonObject) -> AgentSession | None:
    id, directory = text(entry.get("sessionId")), text(entry.get("cwd"))
    if id is None or directory is None or not directory.startswith("/") or "\0" in directory:
        return None
    return AgentSession(
        memory={SESSION_ID: id},
        working_directory=Path(directory),
        title=text(entry.get("title")),
        modified_at=_milliseconds(text(entry.get("updatedAt"))),
    )


def _milliseconds(time: str | None) -> int | None:
    """An ISO 8601 time; one without a zone is in UTC."""
    try:
        parsed = datetime.fromisoformat(time or "")
        return int(parsed.replace(tzinfo=parsed.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


__all__ = ["MAX_SESSIONS", "SESSION_ID", "kept_sessions"]
