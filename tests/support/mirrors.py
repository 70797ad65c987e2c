"""A client that subscribes and otherwise only reduces, with the reducers of its version."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from ahpkit.dialects.v0_4.channels import CHANNELS as OLD
from ahpkit.protocol.channels import CHANNELS as NEW
from ahpkit.protocol.channels import channel_of
from support.raw_client import Json, RawClient
from support.squares import differences, plain

DERIVED = {
    "session": r"(\.summary)?\.(status|activity|annotations|modifiedAt|changes)(\..*)?",
    "chat": r"\.title",
}
"""Members that no action carries: snapshots derive them when they are sent."""

DERIVED_0_4 = {"chat": r"\.(title|modifiedAt|activity)"}
"""Reducers of 0.4 also read their own clock, and chats of 0.4 have no action for their activity."""

Reduce = Callable[[str, Json, Json], Json]


def reduced_by_0_4(kind: str, state: Json, action: Json) -> Json:
    """The state of a reader of 0.4.0 after one more action."""
    return OLD[kind].reducer(state, action, now=0)  # type: ignore[misc]  # A kind without a reducer is not asked for.


def reduced_by_1_0(kind: str, state: Json, action: Json) -> Json:
    """The state of a reader of 1.0.0 after one more action. A reader of 0.9.0 gets the same bytes."""
    return NEW[kind].reducer(state, action)  # type: ignore[misc]  # The same.


class Mirror:
    """One client that subscribes and otherwise only reduces."""

    def __init__(self, client: RawClient, version: str, reduce: Reduce) -> None:
        self.client, self.version, self._reduce = client, version, reduce
        self.states: dict[str, Json] = {}
        self._seqs: dict[str, int] = {}

    async def follow(self, *uris: str) -> None:
        for uri in uris:
            snapshot = (await self.client.ask("subscribe", uri))["snapshot"]
            self.states[uri], self._seqs[uri] = snapshot["state"], snapshot["fromSeq"]

    async def wrong(self) -> list[Any]:
        """The places where this client's state differs from a snapshot."""
        found: list[Any] = []
        for uri in self.states:
            snapshot = (await self.client.ask("subscribe", uri))["snapshot"]
            self._reduce_all(uri, self.client.actions(uri), snapshot["fromSeq"])
            kind = _kind(uri)
            accepted = (DERIVED_0_4 if self.version == "0.4.0" else {}).get(kind) or DERIVED.get(kind, "-")
            for place in differences(plain(self.states[uri]), snapshot["state"]):
                if not re.fullmatch(accepted, place[0]):
                    found.append((self.version, uri, *place))
        return found

    def come_back(self, client: RawClient, found: Json) -> None:
        """Go on with another connection, given the host's answer to `reconnect`."""
        for uri in self.states:
            self._reduce_all(uri, self.client.actions(uri), math.inf)
            self._reduce_all(uri, [said for said in found.get("actions", ()) if said["channel"] == uri], math.inf)
        for snapshot in found.get("snapshots", ()):
            self.states[snapshot["resource"]] = snapshot["state"]
            self._seqs[snapshot["resource"]] = snapshot["fromSeq"]
        self.client = client

    def _reduce_all(self, uri: str, envelopes: Sequence[Json], seq: float) -> None:
        """Reduce everything up to a number, except earlier actions and those that the snapshot contains."""
        for said in envelopes:
            if self._seqs[uri] < said["serverSeq"] <= seq and "rejectionReason" not in said:
                self.states[uri] = plain(self._reduce(_kind(uri), self.states[uri], said["action"]))
                self._seqs[uri] = said["serverSeq"]


def _kind(uri: str) -> str:
    channel = channel_of(uri)
    assert channel is not None
    return channel.name


__all__ = ["Mirror", "Reduce", "reduced_by_0_4", "reduced_by_1_0"]
