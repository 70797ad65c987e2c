"""The client against the real host over real WebSockets: sessions, turns, tools, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.python import agent
from ahpkit.client import (
    ActionRejected,
    Backoff,
    Client,
    ConfirmationNeeded,
    InputNeeded,
    TextDelta,
    ToolCallCompleted,
    ToolCallContent,
    ToolContext,
    TurnCompleted,
    connect,
    publish_endpoint,
)
from ahpkit.host.agent import Turn
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.http.server import serve_http
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.transports.auth import Authenticator
from ahpkit.transports.errors import ConnectError
from support import requirement
from support.clients import QUICKLY, eventually

pytestmark = pytest.mark.usefixtures("bounded")


@agent(name="scripted")
async def scripted(turn: Turn) -> None:
    """Does what the prompt says."""
    match turn.prompt.split():
        case ["tool", name, tool_input]:
            call = turn.tool_call(name)
            outcome = await call.run_by_client(tool_input=tool_input)
            turn.text(f"{outcome.success}: {[content.get('text') for content in outcome.content]}")
        case ["confirm"]:
            call = turn.tool_call("rm")
            answer = await call.confirm(tool_input="{}", message="Remove it", editable=True)
            call.complete(success=answer.approved)
            turn.text(f"approved={answer.approved} input={answer.tool_input}")
        case ["ask"]:
            answers = await turn.ask([{"id": "name", "kind": "text", "message": "Name?", "required": True}])
            turn.text(str(answers.answers["name"]["value"]["value"]))  # type: ignore[typeddict-item]  # The answer has a value.
        case ["wait"]:
            turn.text("waiting")
            await asyncio.Event().wait()
        case _:
            for word in turn.prompt.split():
                turn.text(word + " ")


class Served:
    """A host on a fixed port that can be stopped and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str]:
        storage = SqliteStorage(self._directory / "host.db")
        config = HostConfig(default_directory=self._directory)
        port = int(self.url.rpartition(":")[2]) if self.url else 0
        async with Host(storage, agents=[scripted], config=config) as host:
            async with serve_http(host.serve, auth=Authenticator("secret"), port=port) as server:
                self.url = server.url.rstrip("/")
                yield self.url


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)


@pytest.fixture
async def url(served: Served) -> AsyncGenerator[str]:
    async with served.running() as url:
        yield url


def reach(url: str, **options: Any) -> Client:
    return connect(url, token="secret", backoff=QUICKLY, **options)


async def test_a_conversation_in_a_few_lines(url: str):
    async with reach(url) as client:
        session = await client.create_session(provider="scripted")
        chat = await session.chat()

        events = [event async for event in chat.send("hello dear world")]

        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "hello dear world "
        assert isinstance(events[-1], TurnCompleted)
        assert await chat.ask("again") == "again "
        assert [turn["message"]["text"] async for turn in chat.history(page=1)] == ["again", "hello dear world"]


async def test_without_a_url_the_running_host_is_found(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("AHPKIT_URL", raising=False)
    with publish_endpoint(url=url, token="secret", data_dir=tmp_path, started_at=1):
        async with connect() as client:
            assert await client.ping() >= 0


async def test_a_wrong_token_is_refused_with_the_reason(url: str):
    with pytest.raises(ConnectError, match="not let in"):
        async with connect(url, token="wrong"):
            pass


async def test_two_clients_see_the_same_session(url: str):
    async with reach(url) as first, reach(url) as second:
        session = await first.create_session(provider="scripted")
        seen = await second.session(session.uri)
        await session.rename("ours").accepted()
        await eventually(lambda: seen.confirmed["title"] == "ours")

        chat, watched = await session.chat(), await seen.chat()
        turn = chat.send("wait")
        await eventually(lambda: watched.confirmed.get("activeTurn"))
        following = watched.follow()
        assert following is not None
        with pytest.raises(ActionRejected, match="still running"):
            await watched.ask("me too")
        await watched.cancel().accepted()

        assert [type(event).__name__ async for event in turn][-1] == "TurnCancelled"
        assert [type(event).__name__ async for event in following][-1] == "TurnCancelled"


async def test_approvals_and_questions_by_callback(url: str):
    asked: list[str] = []

    def confirm(needed: ConfirmationNeeded) -> bool:
        asked.append(needed.call["toolName"])
        return True

    async def answer(needed: InputNeeded) -> dict[str, Any]:
        return {"name": "Ada"}

    async with reach(url, on_confirmation=confirm, on_input=answer) as client:
        chat = await (await client.create_session(provider="scripted")).chat()
        assert await chat.ask("confirm") == "approved=True input={}"
        assert await chat.ask("confirm", on_confirmation=lambda needed: False) == "approved=False input={}"
        assert await chat.ask("ask") == "Ada"
    assert asked == ["rm"]


@requirement("client-tools:call:client-completes", "client-tools:call:client-may-stream-content")
@requirement("commands:create-session:active-client-id")
async def test_a_client_tool_runs_in_the_clients_process(url: str):
    async with reach(url) as client:

        @client.tool
        def shout(text: str, context: ToolContext) -> str:
            "Say it loud."
            context.show("taking a breath")
            return text.upper()

        session = await client.create_session(provider="scripted", active_client=True)
        chat = await session.chat()
        turn = chat.send('tool shout {"text":"hi"}')
        events = [event async for event in turn]

    shown = [event.call.get("content") for event in events if isinstance(event, ToolCallContent)]
    assert shown == [[{"type": "text", "text": "taking a breath"}]]
    completed = next(event for event in events if isinstance(event, ToolCallCompleted))
    assert completed.call.get("content") == [{"type": "text", "text": "HI"}]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "True: ['HI']"


async def test_everything_goes_on_after_the_host_was_restarted(served: Served):
    async with served.running() as url:
        client = connect(url, token="secret", client_id="me", backoff=Backoff(first=0.01, longest=0.05))
        await client.__aenter__()
        session = await client.create_session(provider="scripted", active_client=True)
        chat = await session.chat()
        await chat.ask("before")
        interrupted = chat.send("wait")
        await anext(interrupted)
    await eventually(lambda: client.status == "reconnecting")
    offline = session.rename("while away")
    async with served.running():
        await offline.accepted()
        assert [type(event).__name__ async for event in interrupted][-1] == "TurnFailed"
        await eventually(lambda: session.is_active)
        assert await chat.ask("after") == "after "
        assert [turn["state"] for turn in chat.confirmed["turns"]] == ["complete", "error", "complete"]
        assert session.confirmed["title"] == "while away"
        await client.__aexit__()


async def test_a_client_id_that_is_taken_over_ends_the_old_client(url: str):
    async with reach(url, client_id="me") as old, reach(url, client_id="me") as new:
        await eventually(lambda: old.status == "closed")
        assert await new.ping() >= 0


async def test_a_session_that_is_disposed_leaves_every_list(url: str):
    async with reach(url) as client, client.session_list() as sessions:
        session = await client.create_session(provider="scripted")
        await eventually(lambda: [item["resource"] for item in sessions.items] == [session.uri])
        await session.dispose()
        await eventually(lambda: sessions.items == [])
        assert await client.sessions() == []
