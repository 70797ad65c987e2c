"""One more costs the same however many there are: of sessions, chats, turns, customizations, clients, subscriptions.

Work is counted in lines of Python that run on the event loop, so a busy machine changes nothing. `bench/growth.py` has
the same things in milliseconds, up to ten thousand of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

import ahpkit
from ahpkit.dialects.base import Dialect, Identity
from ahpkit.host.clients.clients import Clients
from ahpkit.host.clients.connection import Connection
from ahpkit.host.policy import TurnIds
from ahpkit.host.registration import Registration
from ahpkit.host.spine.fanout import Fanout
from ahpkit.host.spine.store import Store
from ahpkit.log.memory import MemoryStorage
from ahpkit.protocol.chat.state import Turn
from ahpkit.protocol.errors import InvalidRequest
from support.growth import KINDS, Bed, Kind, Lines, bed
from support.raw_client import RawClient

FEW, MANY = 10, 80
MOST = 1.3
"""How much more work one more may be among many than among few."""


async def least_work(made: Bed, kind: Kind) -> int:
    """Lines for one more. The least of a few: now and then something else runs too."""
    counts: list[int] = []
    for _ in range(3):
        with Lines() as lines:
            await kind.grow(made)
        counts.append(lines.count)
    return min(counts)


@pytest.mark.parametrize("name", KINDS)
async def test_one_more_is_the_same_work_among_many_as_among_few(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    fill = kind.fill or kind.grow
    async with bed(tmp_path, MemoryStorage()) as made:
        for _ in range(FEW):
            await fill(made)
        few = await least_work(made, kind)
        for _ in range(MANY):
            await fill(made)
        many = await least_work(made, kind)
    assert many <= MOST * few, f"{few} lines among {FEW}, {many} among {MANY}"


# -- actions ---------------------------------------------------------------------------------------------------------

MOST_LINES = 530
"""Lines of the host for one action of a client that comes with others, from its bytes to the bytes of its echo."""


@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
async def test_an_action_that_comes_with_others_is_little_work(version: str, tmp_path: Path) -> None:
    async with bed(tmp_path, MemoryStorage()) as made:
        client = await made.connect("writer", version)
        await client.ask("subscribe", made.session)
        few, many = await lines_for_titles(made, client, 10), await lines_for_titles(made, client, 50)
    assert (many - few) / 40 <= MOST_LINES


async def lines_for_titles(made: Bed, client: RawClient, count: int) -> int:
    """Lines of the host for so many actions that one client sends at once."""
    with Lines(below=Path(ahpkit.__file__).parent) as lines:
        titles = [{"type": "session/titleChanged", "title": f"title {number}"} for number in range(count)]
        sent = [client.post(made.session, title) for title in titles]
        await client.action(lambda told: told.get("origin") == {"clientId": "writer", "clientSeq": sent[-1]})
    return lines.count


# -- turns -----------------------------------------------------------------------------------------------------------


class Looked(dict[str, str]):
    """A turn that counts how often somebody looks at it."""

    looks = 0

    def __getitem__(self, key: str) -> str:
        Looked.looks += 1
        return super().__getitem__(key)


def turns(*ids: str) -> list[Turn]:
    return [cast("Turn", Looked(id=id)) for id in ids]


def test_of_all_turns_of_a_chat_only_new_ones_are_looked_at() -> None:
    ids, first = TurnIds(), turns(*map(str, range(1000)))
    assert "999" in ids.of("ahp-chat:/c", first)
    Looked.looks = 0
    assert "1000" not in ids.of("ahp-chat:/c", first)
    assert "1000" in ids.of("ahp-chat:/c", [*first, *turns("1000")])
    assert Looked.looks == 1


def test_turns_that_were_cut_off_are_not_known_any_more() -> None:
    ids, first = TurnIds(), turns("a", "b", "c")
    ids.of("ahp-chat:/c", first)
    assert ids.of("ahp-chat:/c", first[:1]) == {"a"}
    assert ids.of("ahp-chat:/c", [first[0], *turns("d", "e")]) == {"a", "d", "e"}
    assert ids.of("ahp-chat:/c", []) == set()


def test_chats_do_not_share_their_turns() -> None:
    ids = TurnIds()
    ids.of("ahp-chat:/c", turns("a"))
    assert ids.of("ahp-chat:/d", turns("b")) == {"b"}


# -- clients ---------------------------------------------------------------------------------------------------------


class Outlet:
    """Where nothing is ever written."""

    def __init__(self) -> None:
        self.channels: set[str] = set()

    def speak(self, dialect: Dialect) -> None: ...

    def close(self) -> None: ...


class Arrived:
    """A connection of which only the names matter."""

    def __init__(self, credential: str) -> None:
        self.credential = credential
        self.client_id = ""
        self.outlet = Outlet()

    def identify(self, client_id: str) -> None:
        self.client_id = client_id

    def close(self, reason: str) -> None: ...


def clients(*, max_away: int) -> Clients:
    no_store = cast("Store", None)  # Names and owners are not in it.
    hooks = Registration()
    return Clients(
        no_store,
        Fanout(),
        events=hooks.clients,
        channels=hooks.channels,
        not_stored=hooks.actions.not_stored,
        reader_patience=0,
        max_away=max_away,
    )


def admit(all: Clients, client_id: str, credential: str = "mine") -> Connection:
    one = cast("Connection", Arrived(credential))
    all.connected(one)
    all.admit(one, client_id, capabilities={}, dialect=Identity("1.0.0"))
    return one


def test_a_client_that_comes_is_no_more_work_when_ten_thousand_others_are_there() -> None:
    def work(others: int) -> int:
        all = clients(max_away=5)
        for number in range(others):
            admit(all, f"other-{number}")
        with Lines() as lines:
            all.left(admit(all, "one more"))
        return lines.count

    assert work(10_000) == work(10)


def test_who_left_first_is_forgotten_first_and_who_is_there_never() -> None:
    all = clients(max_away=2)
    admit(all, "here")
    for name in ("first", "second", "third"):
        all.left(admit(all, name))
    admit(all, "first", "another credential")
    for name in ("here", "second", "third"):
        with pytest.raises(InvalidRequest, match="belongs to another credential"):
            admit(all, name, "another credential")


def test_who_came_back_is_not_forgotten_because_it_once_left() -> None:
    all = clients(max_away=1)
    all.left(admit(all, "back"))
    admit(all, "back")
    all.left(admit(all, "another"))
    all.left(admit(all, "one more"))
    with pytest.raises(InvalidRequest, match="belongs to another credential"):
        admit(all, "back", "another credential")
