"""How far the creation of a session is: told to the connection that asked, and to no other. Over real sockets."""

from __future__ import annotations

import pytest

from ahpkit.client import connect
from ahpkit.client.errors import SessionFailed
from ahpkit.host.agent import AgentError
from ahpkit.protocol.root import ProgressParams
from support import requirement
from support.bench import Bench
from support.raw_client import Json, RawClient

SESSION = "ahp-session:/watched"


def frames(client: RawClient) -> list[Json]:
    return [said["params"] for said in client.received if said.get("method") == "root/progress"]


async def created(client: RawClient, **params: str) -> str:
    """Create a session; `ready` or `failed`."""
    await client.ask("createSession", SESSION, **params)
    state = (await client.ask("subscribe", SESSION))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        ends = ("session/ready", "session/creationFailed")
        await client.action(lambda said: said["channel"] == SESSION and said["action"]["type"] in ends)
    await client.ask("ping")
    return (await client.ask("subscribe", SESSION))["snapshot"]["state"]["lifecycle"]


@requirement("gen:progress:token-echo", "gen:progress:monotone", "gen:progress:final")
@pytest.mark.parametrize("version", ["0.5.0", "0.9.0", "1.0.0"])
@pytest.mark.parametrize("fails", [False, True])
async def test_the_creator_hears_how_far_it_is(sockets: Bench, version: str, fails: bool) -> None:
    if fails:
        sockets.agent.fail_open = AgentError("no")
    client = await sockets.client("ahp-root://", client_id="one", offer=[version])
    other = await sockets.client("ahp-root://", client_id="two", offer=[version])
    assert await created(client, progressToken="p7") in (("failed", "creationFailed") if fails else ("ready",))
    told = frames(client)
    assert len(told) > 1
    assert {frame["progressToken"] for frame in told} == {"p7"}
    assert {frame["channel"] for frame in told} == {"ahp-root://"}
    steps = [frame["progress"] for frame in told]
    assert steps == sorted(steps)
    assert [frame["progress"] == frame["total"] for frame in told] == [False] * (len(told) - 1) + [True]
    await other.ask("ping")
    assert frames(other) == []
    assert client.closed is None


@requirement("gen:progress:token-echo")
async def test_without_a_token_nothing_is_told_and_0_4_does_not_know_it(sockets: Bench) -> None:
    client = await sockets.client("ahp-root://", client_id="one", offer=["1.0.0"])
    assert await created(client) == "ready"
    assert frames(client) == []
    await client.ask("disposeSession", SESSION)
    old = await sockets.client("ahp-root://", client_id="old")
    assert await created(old, progressToken="p") == "ready"
    assert frames(old) == []


async def test_our_client_reports_progress(sockets: Bench) -> None:
    heard: list[ProgressParams] = []
    async with connect(sockets.url) as client:
        await client.create_session(on_progress=heard.append)
        assert [one["progress"] for one in heard] == sorted(one["progress"] for one in heard)
        assert heard[-1]["progress"] == heard[-1].get("total")
        count = len(heard)
        await client.create_session()
        assert len(heard) == count
        sockets.agent.fail_open = AgentError("no")
        with pytest.raises(SessionFailed):
            await client.create_session(on_progress=heard.append)
        assert heard[-1]["progress"] == heard[-1].get("total")
