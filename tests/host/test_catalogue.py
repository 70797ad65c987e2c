"""The list of sessions while one of them is disposed of, and the times of sessions over restarts."""

from __future__ import annotations

from itertools import count
from typing import Any, cast

from ahpkit.host.clients.clients import Clients
from ahpkit.host.sessions.catalogue import SessionCatalogue, SessionTimes
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.host.spine.store import ChannelChanges
from ahpkit.host.turns.new_state import NO_CONFIG, new_session
from support.bench import Bench
from support.raw_client import RawClient

SESSION = "ahp-session:/a"


class Told:
    """Clients that write down what they are told."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, dict[str, Any]]] = []

    def to_all(self, method: str, params: dict[str, Any]) -> None:
        self.messages.append((method, params))

    to_root = to_all


async def test_nothing_is_told_of_a_session_between_its_disposal_and_the_commit_that_removes_it() -> None:
    """Its times are forgotten by then: it would seem to be from 1970."""
    told, states = Told(), {SESSION: new_session(provider="x", directories=None, project=None, config=NO_CONFIG)}
    times = SessionTimes(DurableValues(lambda key, data: 0), lambda: 10**12)
    catalogue = SessionCatalogue(
        cast("Any", states.get), cast("Clients", told), times, kinds=lambda uri: "session" if uri == SESSION else None
    )
    times.created(SESSION, 10**12)
    catalogue.follow(ChannelChanges([SESSION], []), ())
    states[SESSION]["title"] = "new"
    catalogue.follow(ChannelChanges([], []), [SESSION])
    times.forget(SESSION)
    [listed] = catalogue.summaries()
    catalogue.flush()
    catalogue.follow(ChannelChanges([], [SESSION]), ())
    assert listed["createdAt"].startswith("2001")
    assert [method for method, _ in told.messages] == ["root/sessionAdded", "root/sessionRemoved"]


def renamed(title: str) -> dict[str, Any]:
    return {"type": "session/titleChanged", "title": title}


async def modified(client: RawClient) -> dict[str, str]:
    return {entry["resource"]: entry["modifiedAt"] for entry in (await client.ask("listSessions"))["items"]}


async def test_the_time_of_a_change_is_stored_with_its_action_and_survives_a_restart(bench: Bench) -> None:
    ticks = count(1_700_000_000_000, 1000)
    await bench.restart(now=lambda: next(ticks))
    client = await bench.client()
    session, _ = await bench.session(client)
    await bench.session(client)
    created, steps = await modified(client), bench.host.spine.log.steps
    await client.accepted(session, renamed("Mine"))
    assert bench.host.spine.log.steps - steps == 2, "the action, and the title of the only chat"
    shown = await modified(client)
    assert [uri for uri in shown if shown[uri] > created[uri]] == [session]
    for _ in range(2):
        await bench.restart(now=lambda: next(ticks))
        assert await modified(await bench.client()) == shown


async def test_the_time_of_a_change_survives_when_the_state_is_stored_and_its_action_is_not_read_again(
    bench: Bench,
) -> None:
    ticks = count(1_700_000_000_000, 1000)
    await bench.restart(now=lambda: next(ticks))
    client = await bench.client()
    session, _ = await bench.session(client)
    await client.accepted(session, renamed("Mine"))
    shown = await modified(client)
    for number in range(80):
        bench.host.services.dispatch(session, {"type": "session/titleChanged", "title": f"{number} {'x' * 900}"})
    await bench.host.services.durable()
    await client.ask("ping")
    await bench.stop()
    assert not [entry for entry in bench.storage.load().tail if entry.channel == session and entry.client_id]
    await bench.start(now=lambda: next(ticks))
    assert await modified(await bench.client()) == shown
