"""Initialize and reconnect: what is said, and what is made of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit import __version__
from ahpkit.client import ChannelGone, Client
from ahpkit.dialects import states_up
from ahpkit.dialects.negotiation import OFFERED
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.errors import NotFound
from ahpkit.testing.fake_host import FakeHost, session_state
from support import requirement
from support.clients import CHAT, QUICKLY, SESSION, eventually, lose_connection


def renamed(title: str) -> dict[str, Any]:
    return {"type": "session/titleChanged", "title": title}


@requirement("core:connection:initialize-params")
@requirement("gen:negotiation:client-offer")
async def test_initialize_says_who_we_are_what_we_speak_and_what_we_follow(host: FakeHost):
    async with Client(host.dial, client_id="me", locale="de", extensions={"example.com/x": {"version": "1.0"}}):
        assert host.sent("initialize") == [
            {
                "channel": ROOT_URI,
                "protocolVersions": [*OFFERED],
                "clientId": "me",
                "initialSubscriptions": [ROOT_URI],
                "clientInfo": {"name": "ahpkit", "version": __version__},
                "locale": "de",
                "capabilities": {"_meta": {"ahpkit/canvases": True, "example.com/x": {"version": "1.0"}}},
            }
        ]


async def test_what_the_host_says_about_itself_is_readable(host: FakeHost):
    host.meta = {"example.com/y": True}
    async with Client(host.dial) as client:
        assert client.host.protocol_version == "0.4.0"
        assert client.host.meta == {"example.com/y": True}
        assert client.root == {"agents": []}


@requirement("core:hardening:min-last-seen")
async def test_a_reconnect_asks_from_the_lowest_number_of_any_channel(host: FakeHost, client: Client):
    await client.session(SESSION)
    for number in range(5):
        host.emit(SESSION, renamed(str(number)))
    async with client.subscribe(CHAT) as chat:
        await eventually(lambda: chat.state is not None)

        await lose_connection(host, client)

    (asked,) = host.sent("reconnect")
    assert asked["lastSeenServerSeq"] == 0, "the root channel heard nothing since it was joined"
    assert sorted(asked["subscriptions"]) == sorted([ROOT_URI, SESSION, CHAT])
    assert asked["clientId"] == "me"


async def test_a_client_says_the_highest_number_that_it_saw(host: FakeHost):
    async with Client(host.dial, client_id="me", backoff=QUICKLY) as client:
        async with client.subscribe(SESSION) as session:
            host.emit(SESSION, renamed("a"))
            await anext(session)
            await lose_connection(host, client)
    (asked,) = host.sent("reconnect")
    assert (asked["lastSeenServerSeq"], asked["_meta"]["ahpkit/highest"]) == (0, 1)


async def test_capabilities_are_said_again_for_a_host_that_forgot_them(host: FakeHost):
    async with Client(host.dial, backoff=QUICKLY, extensions={"example.com/x": True}) as client:
        await lose_connection(host, client)
        assert host.sent("reconnect")[0]["_meta"] == {
            "ahpkit/capabilities": {"_meta": {"ahpkit/canvases": True, "example.com/x": True}},
            "ahpkit/spoken": "0.4.0",
        }


@requirement("core:hardening:duplicates-dropped")
async def test_a_replay_brings_what_was_missed_and_nothing_twice(host: FakeHost, client: Client):
    async with client.subscribe(SESSION) as session:
        host.emit(SESSION, renamed("a"))
        assert (await anext(session))["serverSeq"] == 1
        host.accepting = False
        host.drop()
        await eventually(lambda: client.status == "reconnecting")
        host.emit(SESSION, renamed("b"))
        host.accepting = True

        assert (await anext(session))["serverSeq"] == 2
        assert session.confirmed["title"] == "b"
        host.emit(SESSION, renamed("c"))
        assert (await anext(session))["serverSeq"] == 3


async def test_snapshots_take_the_place_of_a_replay_that_is_no_longer_possible(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    host.emit(SESSION, renamed("missed"))
    host.forget()
    host.accepting = True
    await client.wait_connected()

    assert session.confirmed["title"] == "missed"
    host.emit(SESSION, renamed("live"))
    await eventually(lambda: session.confirmed["title"] == "live")


async def test_a_host_that_does_not_know_us_is_initialized_anew(host: FakeHost, client: Client):
    def unknown(params: object) -> None:
        raise NotFound("who are you?")

    session = await client.session(SESSION)
    host.handlers["reconnect"] = unknown
    host.states[SESSION] = session_state(SESSION)
    host.seq = 0  # It lost its log: numbers begin again.

    await lose_connection(host, client)

    assert set(host.sent("initialize")[-1]["initialSubscriptions"]) == {ROOT_URI, SESSION}
    host.emit(SESSION, renamed("reborn"))
    await eventually(lambda: session.confirmed["title"] == "reborn")


@pytest.mark.parametrize("log_lost", [False, True])
async def test_a_channel_that_is_gone_ends_its_own_subscription_only(host: FakeHost, client: Client, log_lost: bool):
    async with client.subscribe(CHAT) as chat, client.subscribe(SESSION) as session:
        host.close(CHAT)
        if log_lost:
            host.emit(SESSION, renamed("x"))
            host.forget()

        await lose_connection(host, client)

        with pytest.raises(ChannelGone) as caught:
            await anext(chat)
        assert caught.value.channel == CHAT
        host.emit(SESSION, renamed("alive"))
        await session.wait_for(lambda state: state["title"] == "alive")


async def test_a_replay_that_cannot_be_applied_is_made_up_for_by_snapshots(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    nonsense = {"channel": SESSION, "serverSeq": 99}
    host.handlers["reconnect"] = lambda params: {"type": "replay", "actions": [nonsense], "missing": []}

    host.drop()
    await eventually(lambda: len(host.sent("initialize")) == 2)
    await client.wait_connected()

    assert session.confirmed == states_up.session_state(host.states[SESSION])


async def test_a_client_id_that_is_used_again_does_not_repeat_its_numbers(host: FakeHost):
    """The host remembers (clientId, clientSeq): a repeated number would be taken for a repeated action."""
    for title in ("first", "second"):
        async with Client(host.dial, client_id="known", backoff=QUICKLY) as client:
            await client.dispatch(SESSION, renamed(title)).accepted()

    assert host.states[SESSION]["summary"]["title"] == "second"
