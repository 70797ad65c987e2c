"""Members that nobody expects, and what a crash leaves in a session's summary."""

from __future__ import annotations

from pathlib import Path

from support.flow import open_session, say, state_of
from support.process import host_process

ROOT = "ahp-root://"


async def test_an_attachment_without_a_label_and_a_call_id_that_is_no_text(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        _, chat = await open_session(client)
        message = {"text": "wait", "origin": {"kind": "user"}, "attachments": [{"type": "x-unknown"}]}
        await client.accepted(chat, {"type": "chat/turnStarted", "turnId": "t1", "message": message})
        pending = {"id": "p", "message": message}
        action = {"type": "chat/pendingMessageSet", "kind": "queued", **pending, "toolCallId": {}}
        await client.dispatch(chat, action)
        await client.action(lambda said: said["action"]["type"] in ("chat/turnComplete", "chat/error"))
        assert not any(said["action"]["type"] == "chat/error" for said in client.actions(chat))
        await client.aclose()
        await host.stop()
    assert "Traceback" not in host.errors, host.errors


async def test_after_a_crash_nothing_is_shown_as_running(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        session, chat = await open_session(client)
        await client.accepted(chat, say("/sleep 60"))
        await client.action(lambda said: said["channel"] == session and "activity" in str(said["action"]))
        host.kill()
        await host.ended()
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        state = await state_of(client, session)
        assert not state.get("activity")
        assert not (await state_of(client, chat)).get("activity")
        await client.aclose()
