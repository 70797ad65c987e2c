"""One client, hosts of every version it offers: the same calls, the same states, the same events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ahpkit.client import Client, UnknownSetting
from ahpkit.client.answers import open_requests
from ahpkit.client.events import TurnFailed
from ahpkit.dialects import pin
from ahpkit.host.agent import Turn
from ahpkit.host.config import HostConfig
from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.transports.memory import MemoryTransport, memory_pair
from support import requirement
from support.bench import Bench
from support.clients import eventually

VERSIONS = ("0.4.0", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.7.0", "0.8.0", "0.9.0", "1.0.0")


@asynccontextmanager
async def pinned(directory: Path, version: str) -> AsyncGenerator[tuple[Bench, Client]]:
    """A host that speaks one version only, and our client on it."""
    bench = Bench(directory)
    bench.config = HostConfig(default_directory=directory, spoken=pin(version))
    await bench.start()
    try:
        async with another(bench, "me") as client:
            assert client.host.protocol_version == version
            yield bench, client
    finally:
        await bench.stop()


@asynccontextmanager
async def another(bench: Bench, client_id: str = "late") -> AsyncGenerator[Client]:
    """A client of ours on a host."""
    serving: set[asyncio.Task[None]] = set()

    async def dial() -> MemoryTransport:
        ours, theirs = memory_pair()
        serving.add(asyncio.create_task(bench.host.serve(theirs)))
        return ours

    async with Client(dial, client_id=client_id) as client:
        yield client
    await asyncio.gather(*serving, return_exceptions=True)


@pytest.mark.parametrize("version", VERSIONS)
@requirement("gen:negotiation:client-offer", "gen:project-client:old-host")
async def test_the_same_calls_do_the_same_with_hosts_of_every_version(tmp_path: Path, version: str) -> None:
    async with pinned(tmp_path, version) as (_, client):
        session = await client.create_session(model="large", working_directory=tmp_path.as_uri())
        assert session.state.get("workingDirectories") == [tmp_path.as_uri()]
        assert session.selection["model"] == {"id": "large"}
        await session.rename("Ours").accepted()
        assert session.confirmed["title"] == "Ours"
        await session.claim().accepted()
        assert [one["clientId"] for one in session.confirmed["activeClients"]] == ["me"]
        chat = await session.chat()
        assert await chat.ask("hello") == "You said: hello"
        [turn] = chat.confirmed["turns"]
        assert turn["state"] == "complete"
        assert [one["id"] async for one in chat.history()] == [turn["id"]]
        [listed] = await client.sessions()
        assert listed["title"] == "Ours"
        assert listed["modifiedAt"].endswith("Z")


@pytest.mark.parametrize("version", VERSIONS)
@requirement("gen:project-client:old-error")
async def test_an_error_is_a_part_whatever_the_host_speaks(tmp_path: Path, version: str) -> None:
    async def script(turn: Turn) -> None:
        turn.text("half")
        raise RuntimeError("boom")

    async with pinned(tmp_path, version) as (bench, client):
        bench.agent.script = script
        chat = await (await client.create_session()).chat()
        events = [event async for event in chat.send("x")]
        assert isinstance(events[-1], TurnFailed)
        [turn] = chat.confirmed["turns"]
        assert [part["kind"] for part in turn["responseParts"]] == ["markdown", "error"]
        assert "error" not in turn
        with pytest.raises(LookupError if version >= "0.9.0" else LocalProtocolError):
            chat.resume()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tool_of_ours_is_run_and_a_turn_is_cancelled(tmp_path: Path, version: str) -> None:
    async def script(turn: Turn) -> None:
        if turn.prompt == "wait":
            await asyncio.Event().wait()
        call = turn.tool_call("shout")
        result = await call.run_by_client(tool_input='{"text": "hey"}')
        turn.text(str(result))

    async with pinned(tmp_path, version) as (bench, client):
        bench.agent.script = script

        @client.tool
        def shout(text: str) -> str:
            """Say it loudly."""
            return text.upper()

        session = await client.create_session(active_client=True)
        chat = await session.chat()
        assert "HEY" in await chat.ask("go")
        turn = chat.send("wait")
        await eventually(lambda: "activeTurn" in chat.confirmed)
        await chat.cancel().accepted()
        assert [event async for event in turn]
        assert chat.confirmed["turns"][-1]["state"] == "cancelled"
        assert open_requests(chat.confirmed) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_settings_that_a_session_lacks_are_refused_before_they_are_sent(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def session_config(directory: object, values: object) -> object:
        return {"type": "object", "properties": {"tone": {"type": "string", "title": "Tone", "sessionMutable": True}}}

    async with pinned(tmp_path, version) as (bench, client):
        monkeypatch.setattr(bench.agent, "session_config", session_config)
        with pytest.raises(UnknownSetting, match=r"no setting 'mood'; known: tone"):
            await client.create_session(config={"mood": "x"})
        assert await client.sessions() == []
        session = await client.create_session(config={"tone": "dry"})
        with pytest.raises(UnknownSetting, match="'mood'"):
            session.set_config({"mood": "x", "tone": "warm"})
        assert session.state.get("config", {}).get("values") == {"tone": "dry"}
        await session.set_config({"tone": "warm"}).accepted()


@requirement("gen:view:client-tolerates-more")
@pytest.mark.parametrize("version", VERSIONS)
async def test_approvals_questions_forks_and_later_turns_are_the_same(tmp_path: Path, version: str) -> None:
    async def script(turn: Turn) -> None:
        if turn.prompt == "ask":
            answer = await turn.ask([{"id": "q", "kind": "text", "message": "?", "required": True}])
            turn.text(str(answer.answers["q"].get("value", {}).get("value")))
        elif turn.prompt == "call":
            call = turn.tool_call("remove")
            decided = await call.confirm(tool_input="x")
            call.complete()
            turn.text("yes" if decided.approved else "no")
        else:
            turn.text(turn.prompt)

    async with pinned(tmp_path, version) as (bench, client):
        bench.agent.script = script
        session = await client.create_session()
        chat = await session.chat()
        assert await chat.ask("call", on_confirmation=lambda event: True) == "yes"
        assert await chat.ask("call", on_confirmation=lambda event: False) == "no"
        assert await chat.ask("ask", on_input=lambda event: {"q": "blue"}) == "blue"
        turns = chat.confirmed["turns"]
        [question] = [part for part in turns[-1]["responseParts"] if part["kind"] == "inputRequest"]
        assert question.get("response") == "accept"
        fork = await session.create_chat(fork=(chat.uri, turns[0]["id"]))
        assert [turn["id"] for turn in fork.confirmed["turns"]] == [turns[0]["id"]]
        assert await fork.ask("on") == "on"
        async with another(bench) as late:
            part = await (await late.session(session.uri)).chat(chat.uri, turns=1)
            assert len(part.confirmed["turns"]) == (1 if version > "0.5.0" else len(turns)), "the host may send more"
            assert len([turn async for turn in part.history()]) == len(turns)
        tail = [turn["id"] async for turn in chat.history()]
        assert tail == [turn["id"] for turn in reversed(turns)]
