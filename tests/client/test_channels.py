"""Holding channels and dispatching to them: shared subscriptions, offline actions, outcomes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.client import Accepted, ActionRejected, ChannelGone, Client, ClientClosed, Rejected
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.testing.fake_host import FakeConnection, FakeHost, session_state
from support import requirement
from support.clients import CHAT, QUICKLY, SESSION, eventually, lose_connection, settled
from support.schemas import wrong, wrong_action


def renamed(title: str) -> dict[str, Any]:
    return {"type": "session/titleChanged", "title": title}


async def test_subscriptions_of_one_channel_share_one_at_the_host(host: FakeHost, client: Client):
    async with client.subscribe(SESSION), client.subscribe(SESSION) as second:
        assert second.state["lifecycle"] == "ready"
        assert host.sent("subscribe") == [{"channel": SESSION}]
    await eventually(lambda: host.sent("unsubscribe"))
    assert host.sent("unsubscribe") == [{"channel": SESSION}]


async def test_the_last_holder_ends_the_subscription_and_not_an_earlier_one(host: FakeHost, client: Client):
    async with client.subscribe(SESSION):
        async with client.subscribe(SESSION):
            pass
        await settled()
        assert host.sent("unsubscribe") == []


async def test_a_channel_that_was_left_can_be_followed_again(host: FakeHost, client: Client):
    async with client.subscribe(SESSION):
        pass
    host.emit(SESSION, renamed("while away"))
    async with client.subscribe(SESSION) as again:
        assert again.state["title"] == "while away"


async def test_a_channel_that_is_followed_anew_during_a_reconnect_waits_for_its_snapshot(client: Client):
    channels = client._core.channels  # pyright: ignore[reportPrivateUsage]  # Channels are not public.
    first = await channels.open(SESSION)
    channels.begin()
    _, resumed = channels.resumable()
    channels.release(first)
    again = channels.hold(SESSION)
    action = {"channel": SESSION, "action": renamed("missed"), "serverSeq": 99}
    channels.take_replay([action], resumed)
    assert (again.live, again.seq, again.confirmed) == (False, 0, None)


async def test_following_a_channel_that_does_not_exist_says_so(client: Client):
    with pytest.raises(ChannelGone, match=r"^there is no ahp-session:/nowhere$"):
        async with client.subscribe("ahp-session:/nowhere"):
            pass


async def test_a_subscription_that_is_cut_off_while_joining_is_asked_for_again(host: FakeHost, client: Client):
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    host.accepting = True

    async with client.subscribe(SESSION) as session:
        assert session.state["lifecycle"] == "ready"


@requirement("core:connection:dispatch-shape")
async def test_a_dispatched_action_is_sent_with_its_channel_and_number(host: FakeHost, client: Client):
    dispatch = client.dispatch(SESSION, renamed("mine"))

    assert isinstance(await dispatch, Accepted)
    assert host.sent("dispatchAction") == [
        {"channel": SESSION, "clientSeq": dispatch.client_seq, "action": renamed("mine")}
    ]


@requirement("core:connection:optimistic-state", "core:connection:own-echo")
async def test_the_effect_shows_before_the_host_answers(host: FakeHost, client: Client):
    session = await client.session(SESSION)

    dispatch = client.dispatch(SESSION, renamed("mine"))

    assert dispatch.outcome is None
    assert session.optimistic["title"] == "mine"
    assert session.confirmed["title"] == ""
    assert await dispatch.accepted() == host.seq
    assert session.confirmed["title"] == "mine"


@requirement("core:connection:rejection-rolls-back")
async def test_a_rejected_action_is_taken_back_and_its_reason_told(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    host.decide = lambda channel, action: "not allowed"

    dispatch = client.dispatch(SESSION, renamed("mine"))

    assert await dispatch == Rejected("not allowed")
    assert session.optimistic["title"] == ""
    with pytest.raises(ActionRejected, match="not allowed") as caught:
        await dispatch.accepted()
    assert caught.value.action == renamed("mine")


async def test_a_dispatch_to_a_channel_nobody_follows_follows_it_until_it_is_answered(host: FakeHost, client: Client):
    assert isinstance(await client.dispatch(SESSION, renamed("x")), Accepted)
    await eventually(lambda: host.sent("unsubscribe") == [{"channel": SESSION}])


async def test_a_dispatch_to_a_channel_that_does_not_exist_is_rejected(client: Client):
    outcome = await client.dispatch("ahp-session:/nowhere", renamed("x"))

    assert isinstance(outcome, Rejected)
    assert "ahp-session:/nowhere" in outcome.reason


async def test_what_is_dispatched_offline_shows_at_once_and_is_sent_later_in_order(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")

    first, second = session.rename("a"), session.rename("b")
    assert session.state["title"] == "b"
    host.accepting = True

    assert [type(outcome) for outcome in (await first, await second)] == [Accepted, Accepted]
    assert [params["action"]["title"] for params in host.sent("dispatchAction")] == ["a", "b"]
    assert host.states[SESSION]["summary"]["title"] == "b"


@pytest.mark.parametrize("log_lost", [False, True])
async def test_an_action_whose_echo_was_lost_is_applied_once(host: FakeHost, client: Client, log_lost: bool):
    session = await client.session(SESSION)
    connection = host.connections[-1]
    connection.channels.clear()  # The echo never arrives.
    dispatch = session.rename("mine")
    await eventually(lambda: host.states[SESSION]["summary"]["title"] == "mine")
    if log_lost:
        host.forget()

    await lose_connection(host, client)

    assert await dispatch == Accepted(1)
    assert len(host.log) == 1
    assert session.state["title"] == "mine"


async def test_an_action_that_never_arrived_is_sent_again_with_the_same_number(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    host.drop()  # The client has not noticed yet: what it sends now is lost.
    dispatch = session.rename("mine")

    assert isinstance(await dispatch, Accepted)
    assert {params["clientSeq"] for params in host.sent("dispatchAction")} == {dispatch.client_seq}


async def test_actions_of_a_channel_that_went_away_are_rejected(host: FakeHost, client: Client):
    session = await client.session(SESSION)
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    dispatch = session.rename("too late")
    host.close(SESSION)
    host.accepting = True

    assert isinstance(await dispatch, Rejected)


async def test_a_closed_client_leaves_no_dispatch_open(host: FakeHost):
    async with Client(host.dial, backoff=QUICKLY) as client:
        session = await client.session(SESSION)
        host.accepting = False
        host.drop()
        await eventually(lambda: client.status == "reconnecting")
        dispatch = session.rename("never")

    with pytest.raises(ClientClosed):
        await dispatch
    assert dispatch.outcome is None


@requirement("core:wire:root-channel", "core:wire:channel-in-params")
async def test_everything_a_client_says_carries_a_channel(host: FakeHost, client: Client):
    host.handlers["fetchTurns"] = lambda params: {"turns": [], "hasMore": False}
    session = await client.session(SESSION)
    chat = await session.chat()
    await session.rename("x")
    await client.ping()
    await client.sessions()
    await chat.fetch_turns()
    await chat.aclose()
    await lose_connection(host, client)

    assert all(isinstance(params.get("channel"), str) for _, params in host.received)
    connection_level = {"initialize", "ping", "reconnect", "listSessions"}
    channels = {method: params["channel"] for method, params in host.received}
    assert {channels[method] for method in connection_level} == {ROOT_URI}
    assert channels["fetchTurns"] == CHAT
    assert channels["dispatchAction"] == SESSION


@requirement("extensibility:meta:no-custom-root-fields")
async def test_nothing_a_client_says_has_a_member_that_nobody_specified(host: FakeHost, client: Client):
    host.handlers["fetchTurns"] = lambda params: {"turns": [], "hasMore": False}
    host.handlers["completions"] = lambda params: {"items": []}

    @client.tool
    def show(text: str) -> str:
        """Show a text."""
        return text

    await client.create_session(model="m", working_directory="file:///w", config={"a": 1})
    session = await client.session(SESSION)
    chat = await session.chat()
    said = [
        session.rename("x"),
        session.claim(),
        session.toggle_customization("p", False),
        chat.queue("later"),
        chat.steer("now"),
    ]
    await asyncio.gather(*said, chat.fetch_turns(limit=3), chat.completions("/", 1), client.sessions())
    await lose_connection(host, client)

    actions = [params["action"] for method, params in host.received if method == "dispatchAction"]
    assert len(actions) == len(said)
    assert [message for action in actions for message in wrong_action("0.4.0", action, strictly=True)] == []
    names = [(f"{method[:1].upper()}{method[1:]}Params", params) for method, params in host.received]
    assert [message for name, params in names for message in wrong("0.4.0", name, params, strictly=True)] == []


@requirement("core:wire:routing")
async def test_the_same_notification_reaches_the_channel_it_names(host: FakeHost, client: Client):
    host.open("ahp-session:/t", host.states[SESSION])
    first, second = await client.session(SESSION), await client.session("ahp-session:/t")

    host.emit(SESSION, renamed("for s"))
    host.emit("ahp-session:/t", renamed("for t"))

    await eventually(lambda: second.confirmed["title"] == "for t")
    assert first.confirmed["title"] == "for s"


UNREADABLE: dict[str, dict[str, Any]] = {
    "an action that is none": {"action": 5, "serverSeq": 1},
    "an action without a type": {"action": {}, "serverSeq": 1},
    "a type that is a list": {"action": {"type": ["x"]}, "serverSeq": 1},
    "a number that is a text": {"action": renamed("y"), "serverSeq": "x"},
    "no number": {"action": renamed("y")},
    "no envelope at all": {},
    "an origin without a client": {"action": renamed("y"), "serverSeq": 10_000, "origin": {}},
    "a chat that is an object": {"action": {"type": "session/chatRemoved", "chat": {}}, "serverSeq": 10_000},
}


@pytest.mark.parametrize("sent", UNREADABLE.values(), ids=UNREADABLE)
async def test_for_an_action_that_cannot_be_read_the_state_is_asked_for_again(
    host: FakeHost, client: Client, sent: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    async with client.subscribe(SESSION) as subscription:
        host.notify("action", {"channel": SESSION, **sent})
        await eventually(lambda: len(host.sent("subscribe")) == 2)
        host.emit(SESSION, renamed("later"))

        assert (await subscription.wait_for(lambda state: state["title"] == "later"))["lifecycle"] == "ready"
    assert [record.exc_info for record in caplog.records] == [None]


class Garbling(FakeHost):
    """Its answer to the first action of a client cannot be read."""

    _garbled = False

    def _dispatched(self, connection: FakeConnection, params: dict[str, Any]) -> None:
        if self._garbled:
            super()._dispatched(connection, params)
        else:
            self._garbled = True
            self.notify("action", {"channel": params["channel"], "action": 5})


@pytest.mark.usefixtures("bounded")
async def test_an_action_whose_answer_cannot_be_read_is_sent_again():
    async with Garbling() as host:
        host.open(SESSION, session_state(SESSION))
        async with Client(host.dial) as client, client.subscribe(SESSION):
            assert isinstance(await client.dispatch(SESSION, renamed("mine")), Accepted)
    first, second = host.sent("dispatchAction")
    assert first == second


async def test_a_host_that_sends_nothing_readable_loses_the_channel_and_fills_no_log(
    host: FakeHost, client: Client, caplog: pytest.LogCaptureFixture
):
    async with client.subscribe(SESSION) as subscription:
        for _ in range(21):
            host.notify("action", {"channel": SESSION, "action": 5})
            await settled()
        assert len(host.sent("subscribe")) == 21
        with pytest.raises(ChannelGone, match="actions that cannot be read"):
            await subscription.wait_for(lambda state: False)
    for _ in range(100):
        host.notify("action", {"channel": "ahp-session:/nobody", "action": 5})
    await settled()
    assert len(caplog.records) == 20
    assert caplog.records[-1].getMessage().endswith("more are not logged")


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"snapshot": 5},
        {"snapshot": {}},
        {"snapshot": {"state": {}}},
        {"snapshot": {"state": None, "fromSeq": 1}},
        {"snapshot": {"state": 5, "fromSeq": 1}},
    ],
    ids=str,
)
async def test_a_state_that_cannot_be_read_is_an_error_and_not_a_wait_without_end(
    host: FakeHost, client: Client, answer: Any
):
    host.handlers["subscribe"] = lambda params: answer

    with pytest.raises(ChannelGone, match="cannot be read"):
        await client.session(SESSION)


async def test_a_state_that_never_comes_is_a_timeout(host: FakeHost):
    host.handlers["subscribe"] = lambda params: asyncio.Event().wait()

    async with Client(host.dial, request_timeout=0.01) as client:
        with pytest.raises(TimeoutError, match=r"ahp-session:/s: no answer within 0\.01 s"):
            await client.session(SESSION)
    await eventually(lambda: not host.connections)


async def test_the_state_of_another_channel_is_taken_for_the_one_that_was_asked_for(host: FakeHost, client: Client):
    other = session_state(SESSION, title="ours")
    host.handlers["subscribe"] = lambda params: {"snapshot": {"resource": CHAT, "state": other, "fromSeq": 1}}

    assert (await client.session(SESSION)).state["title"] == "ours"
