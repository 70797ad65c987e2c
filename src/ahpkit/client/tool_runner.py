"""Runs this client's tool calls in one chat: starts them when they may run, ends them when nobody wants the result.

Looks at the confirmed state, so a call is started once whatever happens to the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ahpkit.client.answers import Deny, confirmed
from ahpkit.client.channels import Channel, Channels
from ahpkit.client.tasks import Tasks
from ahpkit.client.tools import Tool, ToolContext, failed
from ahpkit.protocol.chat.turns import STREAMING_ACTIONS, tool_calls, waits_for_person
from ahpkit.protocol.common.state import JsonObject
from ahpkit.wire.errors import AhpError


class ToolRunner:
    """Listens to one chat of a session in which this client is, or was, the active one."""

    def __init__(
        self,
        channels: Channels,
        tasks: Tasks,
        chat: Channel,
        *,
        session: str,
        client_id: str,
        tools: Mapping[str, Tool],
    ) -> None:
        self._channels = channels
        self._tasks = tasks
        self._chat = chat
        self._session = session
        self._client_id = client_id
        self._tools = tools
        self._running: dict[str, asyncio.Task[None]] = {}
        self._denied: set[str] = set()
        chat.listeners.append(self)
        self.on_reset()

    def close(self) -> None:
        """Stop watching; what runs is ended."""
        if self in self._chat.listeners:
            self._chat.listeners.remove(self)
        for task in self._running.values():
            task.cancel()

    def on_action(self, envelope: JsonObject) -> None:
        if envelope["action"]["type"] not in STREAMING_ACTIONS:
            self.on_reset()

    def on_reset(self) -> None:
        turn: JsonObject = (self._chat.confirmed or {}).get("activeTurn", {})
        ours = {call["toolCallId"]: call for call in self._our_calls(turn)}
        for call_id in [id for id in self._running if ours.get(id, {}).get("status") != "running"]:
            self._running.pop(call_id).cancel()
        self._denied &= ours.keys()
        for call_id, call in ours.items():
            if call["status"] == "running" and call_id not in self._running:
                work = self._run(turn["id"], call)
                self._running[call_id] = self._tasks.spawn(work, name=f"tool {call['toolName']}")
            elif waits_for_person(call) and call["toolName"] not in self._tools:
                self._deny(turn["id"], call)

    def on_gone(self, error: AhpError) -> None:
        self.close()

    def _our_calls(self, turn: Mapping[str, Any]) -> Iterator[JsonObject]:
        for call in tool_calls(turn):
            owner: JsonObject = call.get("contributor") or {}
            if owner.get("kind") == "client" and owner.get("clientId") == self._client_id:
                yield call

    def _deny(self, turn_id: str, call: JsonObject) -> None:
        """Deny a call of a tool that this client does not have, instead of ignoring it."""
        if call["toolCallId"] not in self._denied:
            self._denied.add(call["toolCallId"])
            self._dispatch(confirmed(turn_id, call["toolCallId"], Deny()))

    async def _run(self, turn_id: str, call: JsonObject) -> None:
        ids = {"turnId": turn_id, "toolCallId": call["toolCallId"]}
        tool = self._tools.get(call["toolName"])
        if tool is None:
            name = call["toolName"]
            result = failed(f"{name} was not run", f"this client has no tool {name!r}")
        else:
            result = await tool.run(call.get("toolInput", ""), self._context(turn_id, call, ids))
        self._dispatch({"type": "chat/toolCallComplete", **ids, "result": result})

    def _context(self, turn_id: str, call: JsonObject, ids: JsonObject) -> ToolContext:
        def show(content: list[Any]) -> None:
            self._dispatch({"type": "chat/toolCallContentChanged", **ids, "content": content})

        return ToolContext(
            session=self._session,
            chat=self._chat.uri,
            turn_id=turn_id,
            tool_call_id=call["toolCallId"],
            meta=call.get("_meta", {}),
            _show=_on_loop(show),
        )

    def _dispatch(self, action: JsonObject) -> None:
        self._channels.dispatch(self._chat.uri, action)


def _on_loop(function: Callable[[list[Any]], None]) -> Callable[[list[Any]], None]:
    """`function`, run at once on the event loop, or soon when called from a thread."""
    loop = asyncio.get_running_loop()

    def call(content: list[Any]) -> None:
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            function(content)
        else:
            loop.call_soon_threadsafe(function, content)

    return call


__all__ = ["ToolRunner"]
