"""An agent built on the Python ACP SDK, run as a program by test_sdk_peer.py."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
from typing import Any

import acp
from acp import helpers, schema


class SdkAgent:
    """Streams, asks for permission, waits for a cancel: by what the prompt says."""

    def __init__(self) -> None:
        self._client: Any = None
        self._cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **rest: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(load_session=True),
            agent_info=schema.Implementation(name="sdk", version="1"),
        )

    async def new_session(self, cwd: str, **rest: Any) -> schema.NewSessionResponse:
        return schema.NewSessionResponse(session_id="sdk-session")

    async def load_session(self, session_id: str, **rest: Any) -> schema.LoadSessionResponse:
        await self._client.session_update(session_id, helpers.update_agent_message_text("an old answer"))
        return schema.LoadSessionResponse()

    async def cancel(self, session_id: str, **rest: Any) -> None:
        self._cancelled.set()

    async def prompt(self, prompt: list[Any], session_id: str, **rest: Any) -> schema.PromptResponse:
        text = prompt[0].text
        await self._client.session_update(session_id, helpers.update_agent_thought_text("thinking"))
        if text == "wait":
            await self._client.session_update(session_id, helpers.update_agent_message_text("waiting"))
            await self._cancelled.wait()
            return schema.PromptResponse(stop_reason="cancelled")
        if text == "write":
            await self._write(session_id)
        for word in text.split():
            await self._client.session_update(session_id, helpers.update_agent_message_text(f"{word} "))
        usage = schema.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
        return schema.PromptResponse(stop_reason="end_turn", usage=usage)

    async def _write(self, session_id: str) -> None:
        diff = helpers.tool_diff_content(path="/tmp/a.txt", new_text="new", old_text="old")
        call = helpers.start_tool_call("call-1", "Write a.txt", kind="edit", status="pending", content=[diff])
        await self._client.session_update(session_id, call)
        answer = await self._client.request_permission(
            options=[
                schema.PermissionOption(option_id="ok", name="Allow", kind="allow_once"),
                schema.PermissionOption(option_id="no", name="Deny", kind="reject_once"),
            ],
            session_id=session_id,
            tool_call=schema.ToolCallUpdate(tool_call_id="call-1"),
        )
        allowed = answer.outcome.outcome == "selected" and answer.outcome.option_id == "ok"
        status = "completed" if allowed else "failed"
        await self._client.session_update(session_id, helpers.update_tool_call("call-1", status=status))


if __name__ == "__main__":
    agent: Any = SdkAgent()
    asyncio.run(acp.run_agent(agent))
