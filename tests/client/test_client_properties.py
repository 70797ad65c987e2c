"""A whole client against the fake host: random actions, losses and returns; in the end both sides agree."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ahpkit.client import Accepted, Client, Dispatch, LaggedError, Rejected, Subscription
from ahpkit.testing.fake_host import FakeHost, chat_state
from support.clients import QUICKLY
from support.properties import examples
from support.waiting import BOUND

URIS = ("ahp-chat:/a", "ahp-chat:/b")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["mine", "theirs"]), st.sampled_from(URIS)),
        st.tuples(st.sampled_from(["drop", "forget", "refuse", "accept", "deaf", "breathe"])),
    ),
    max_size=30,
)


def queued(id: str) -> dict[str, Any]:
    """An action whose effect depends on everything before it: a hole or a repeat shows."""
    message = {"text": id, "origin": {"kind": "user"}}
    return {"type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message}


class Run:
    """One random life of a client."""

    def __init__(self, host: FakeHost, client: Client) -> None:
        self.host, self.client = host, client
        self.dispatches: list[Dispatch] = []

    async def step(self, kind: str, *arguments: str) -> None:
        match kind:
            case "mine":
                self.dispatches.append(self.client.dispatch(arguments[0], queued(f"mine {len(self.dispatches)}")))
            case "theirs":
                self.host.emit(arguments[0], queued(f"theirs {self.host.seq}"))
            case "drop":
                self.host.drop()
            case "forget":
                self.host.forget()
            case "refuse" | "accept":
                self.host.decide = lambda channel, action: "no" if kind == "refuse" else None
            case "deaf":  # The client's connection is alive and hears nothing until it is lost.
                for connection in self.host.connections:
                    connection.channels.clear()
            case _:
                for _ in range(5):
                    await asyncio.sleep(0)


@examples(0.5)
@given(STEPS, st.sets(st.sampled_from(URIS)))
def test_after_any_life_every_action_is_settled_and_both_sides_agree(steps: list[Any], followed: set[str]):
    asyncio.run(asyncio.wait_for(_live(steps, followed), BOUND))


async def _live(steps: list[Any], followed: set[str]) -> None:
    async with FakeHost() as host:
        for uri in URIS:
            host.open(uri, chat_state(uri))
        async with Client(host.dial, backoff=QUICKLY) as client:
            chats = {uri: await client.subscribe(uri).__aenter__() for uri in sorted(followed)}
            seen = [asyncio.create_task(_numbers(client, uri)) for uri in sorted(followed)]
            run = Run(host, client)
            for step in steps:
                await run.step(*step)
            host.decide = lambda channel, action: None
            host.drop()  # Whoever went deaf comes back.
            outcomes = [await dispatch for dispatch in run.dispatches]
            assert all(isinstance(outcome, Accepted | Rejected) for outcome in outcomes)
            await _agree(host, run, chats)
            for task in seen:
                task.cancel()
            for numbers in await asyncio.gather(*seen):
                assert numbers == sorted(set(numbers)), "every action once, in order"


async def _agree(host: FakeHost, run: Run, chats: dict[str, Subscription]) -> None:
    for uri, chat in chats.items():
        host.emit(uri, queued("the end"))
        state = await chat.wait_for(lambda state: state.get("queuedMessages", [{}])[-1].get("id") == "the end")
        assert state["queuedMessages"] == host.states[uri]["queuedMessages"]
        assert chat.optimistic is chat.confirmed
    logged = [entry["origin"]["clientSeq"] for entry in host.log if "origin" in entry]
    assert len(logged) == len(set(logged)), "no action was applied twice"
    accepted = {dispatch.client_seq for dispatch in run.dispatches if isinstance(dispatch.outcome, Accepted)}
    assert accepted == set(logged)


async def _numbers(client: Client, uri: str) -> list[int]:
    """The serverSeqs a consumer sees, gaps it was told about included."""
    numbers: list[int] = []
    try:
        async with client.subscribe(uri) as subscription:
            while True:
                try:
                    async for envelope in subscription:
                        numbers.append(int(envelope["serverSeq"]))  # An error must not lose them.
                except LaggedError:
                    continue
    except asyncio.CancelledError:
        return numbers
