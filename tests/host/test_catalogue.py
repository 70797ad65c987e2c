"""The list of sessions while one of them is disposed of."""

from __future__ import annotations

from typing import Any, cast

from ahpkit.host.clients.clients import Clients
from ahpkit.host.sessions.catalogue import SessionCatalogue, SessionTimes
from ahpkit.host.spine.durable_values import DurableValues
from ahpkit.host.spine.store import ChannelChanges
from ahpkit.host.turns.new_state import NO_CONFIG, new_session

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
    times = SessionTimes(DurableValues(lambda key, data: 0), lambda: 10**12, lambda call: None)
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
