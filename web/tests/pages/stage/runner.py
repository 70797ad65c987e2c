"""An agent on the Python ACP SDK that runs what it is told in a terminal of the host, and waits for its end."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
from typing import Any

import acp
from acp import helpers, schema


class Runner:
    """A prompt is a command line."""

    def __init__(self) -> None:
        self._client: Any = None

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **rest: Any) -> schema.InitializeResponse:
        info = schema.Implementation(name="runner", version="1")
        return schema.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, agent_info=info)

    async def new_session(self, cwd: str, **rest: Any) -> schema.NewSessionResponse:
        return schema.NewSessionResponse(session_id="runner-session")

    async def cancel(self, session_id: str, **rest: Any) -> None:
        """Nothing to do: the host ends the terminals of a turn that is cancelled."""

    async def prompt(self, prompt: list[Any], session_id: str, **rest: Any) -> schema.PromptResponse:
        command: str = prompt[0].text
        terminal = await self._client.create_terminal(command=command, session_id=session_id)
        shown = schema.TerminalToolCallContent(type="terminal", terminal_id=terminal.terminal_id)
        call = helpers.start_tool_call("run", command, kind="execute", status="in_progress", content=[shown])
        await self._client.session_update(session_id, call)
        ended = await self._client.wait_for_terminal_exit(session_id=session_id, terminal_id=terminal.terminal_id)
        status = "completed" if ended.exit_code == 0 else "failed"
        await self._client.session_update(session_id, helpers.update_tool_call("run", status=status))
        await self._client.session_update(session_id, helpers.update_agent_message_text("It has ended."))
        return schema.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    agent: Any = Runner()
    asyncio.run(acp.run_agent(agent))
