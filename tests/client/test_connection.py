"""The connection: connect, lose the connection, come back or give up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.client import Backoff, Client, ClientClosed, ConnectionLost
from ahpkit.dialects.negotiation import OFFERED, supported_versions
from ahpkit.protocol.errors import RemoteProtocolError, UnsupportedProtocolVersion
from ahpkit.testing.fake_host import FakeHost
from ahpkit.wire.errors import TransportClosed
from support.clients import QUICKLY, eventually, lose_connection


async def test_a_client_is_connected_inside_its_with_and_closed_after_it(host: FakeHost):
    client = Client(host.dial)
    assert client.status == "connecting"
    async with client:
        assert client.status == "connected"
    assert client.status == "closed"


async def test_a_first_connection_that_fails_is_reported_at_once(host: FakeHost):
    host.accepting = False

    with pytest.raises(ConnectionLost, match="does not accept"):
        async with Client(host.dial):
            pass


@pytest.mark.parametrize(
    ("spoken", "offers", "reason"),
    [
        (["9.0.0", "junk"], 1, "the host speaks AHP 9.0.0, junk; this client speaks {oldest} to {newest}"),
        ([], 1, "the host speaks AHP none that it names; this client speaks {oldest} to {newest}"),
        (["0.6.0", "0.7.0"], 2, "not today"),
    ],
)
async def test_the_hosts_refusal_of_our_version_reaches_the_user(
    host: FakeHost, spoken: list[str], offers: int, reason: str
):
    def refuse(params: object) -> None:
        raise UnsupportedProtocolVersion(spoken, "not today")

    host.handlers["initialize"] = refuse

    with pytest.raises(UnsupportedProtocolVersion) as caught:
        async with Client(host.dial):
            pass
    assert caught.value.supported_versions == spoken
    newest, *_, oldest = supported_versions()
    assert str(caught.value) == reason.format(oldest=oldest, newest=newest)
    offered = [params["protocolVersions"] for params in host.sent("initialize")]
    assert offered == [[*OFFERED], ["0.7.0"]][:offers], "its own proposal is taken up once"


async def test_a_handshake_that_makes_no_sense_is_reported(host: FakeHost):
    host.handlers["initialize"] = lambda params: {"hello": "world"}

    with pytest.raises(RemoteProtocolError, match="is not valid"):
        async with Client(host.dial):
            pass


async def test_whatever_a_dialler_raises_is_reported(bounded: None):
    async def dial() -> Any:
        raise ValueError("no such cable")

    with pytest.raises(ConnectionLost, match="no such cable") as caught:
        async with Client(dial):
            pass
    assert isinstance(caught.value.__cause__, ValueError)


async def test_a_lost_connection_comes_back_and_the_status_tells(host: FakeHost, client: Client):
    seen: list[str] = []
    stop = client.on_status(seen.append)

    await lose_connection(host, client)
    assert seen == ["reconnecting", "connected"]

    stop()
    await lose_connection(host, client)
    assert len(seen) == 2


async def test_it_keeps_trying_while_nobody_listens(host: FakeHost, client: Client):
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")

    host.accepting = True
    await client.wait_connected()

    assert client.status == "connected"


async def test_it_gives_up_after_max_attempts_and_tells_everyone_who_waits(host: FakeHost):
    async with Client(host.dial, backoff=Backoff(first=0.001, max_attempts=2)) as client:
        host.accepting = False
        host.drop()
        await eventually(lambda: client.status != "connected")
        with pytest.raises(ConnectionLost, match="gave up after 2 attempts"):
            await client.request("ping")
        assert client.status == "closed"
        with pytest.raises(ConnectionLost):
            client.dispatch("ahp-session:/s", {"type": "session/titleChanged", "title": "x"})


@pytest.mark.parametrize(
    ("code", "reason"), [(1008, "the same client connected again"), (1009, "a message of 99 MB is too big")]
)
async def test_a_host_that_objects_to_us_is_not_dialled_again(host: FakeHost, client: Client, code: int, reason: str):
    await host.connections[-1].rpc.transport.aclose(code=code, reason=reason)
    await eventually(lambda: client.status == "closed")

    with pytest.raises(TransportClosed, match=reason):
        await client.request("ping")


async def test_a_host_that_goes_away_in_order_is_dialled_again(host: FakeHost, client: Client):
    await host.connections[-1].rpc.transport.aclose(code=1001, reason="the host is shutting down")
    await eventually(lambda: client.status == "reconnecting")

    await client.wait_connected()


async def test_a_request_made_while_away_waits_for_the_connection(host: FakeHost, client: Client):
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    asking = asyncio.create_task(client.ping())

    host.accepting = True

    assert await asking >= 0


async def test_a_request_that_is_cut_off_fails_because_it_may_have_been_done(host: FakeHost, client: Client):
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    host.handlers["fetchTurns"] = lambda params: never
    asking = asyncio.create_task(client.request("fetchTurns"))
    await eventually(lambda: host.sent("fetchTurns"))

    host.drop()

    with pytest.raises(TransportClosed):
        await asking


async def test_a_request_without_an_answer_times_out(host: FakeHost, client: Client):
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    host.handlers["fetchTurns"] = lambda params: never

    with pytest.raises(TimeoutError, match=r"^fetchTurns: no answer within 0.01 s$"):
        await client.request("fetchTurns", timeout=0.01)


async def test_a_host_that_never_answers_the_handshake_is_named_as_the_reason(host: FakeHost):
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    host.handlers["initialize"] = lambda params: never

    with pytest.raises(ConnectionLost, match=r"did not answer the handshake within 0.01 s"):
        async with Client(host.dial, handshake_timeout=0.01):
            pass


async def test_requests_after_the_end_say_that_the_client_is_closed(host: FakeHost):
    async with Client(host.dial, backoff=QUICKLY) as client:
        pass
    with pytest.raises(ClientClosed):
        await client.request("ping")


async def test_a_status_callback_that_fails_breaks_nothing(host: FakeHost, client: Client):
    async def fail(status: str) -> None:
        raise RuntimeError(status)

    client.on_status(fail)
    await lose_connection(host, client)

    assert await client.ping() >= 0


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_delay_lies_between_nothing_and_the_bound(attempt: int, chance: float):
    delay = Backoff(first=0.5, longest=8).delay(attempt, chance)

    assert delay is not None
    assert 0 <= delay <= min(8, 0.5 * 2 ** min(attempt - 1, 10))


def test_the_bound_doubles_until_the_longest():
    backoff = Backoff(first=1, longest=5)

    assert [backoff.delay(attempt, 1.0) for attempt in range(1, 6)] == [1, 2, 4, 5, 5]


def test_the_delay_is_the_given_share_of_the_bound():
    assert Backoff(first=1, longest=5).delay(3, 0.25) == 1


def test_it_gives_up_after_max_attempts():
    backoff = Backoff(max_attempts=2)

    assert backoff.delay(2, 0.5) is not None
    assert backoff.delay(3, 0.5) is None
