"""What was said is found in every session, however old, and sessions at rest stay at rest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.host.agent import Turn
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from support.bench import Bench, Script, say
from support.raw_client import Json, RawClient


class Prepared(Feature):
    """Notes which sessions were woken."""

    name = "prepared"

    def __init__(self) -> None:
        self.woken: list[str] = []

    def register(self, host: Registration, services: Services) -> None:
        host.sessions.prepare.add(self._prepare)

    async def _prepare(self, session_uri: str) -> None:
        self.woken.append(session_uri)


async def search(client: RawClient, words: str) -> tuple[list[Json], int]:
    """Everything that is found, and how many answers that took."""
    found: list[Json] = []
    more: dict[str, Any] = {}
    for answers in range(1, 100):
        result = await client.ask("_ahpkit/sessions/search", words=words, **more)
        found += result["found"]
        if "next" not in result:
            return found, answers
        more = {"before": result["next"]}
    raise AssertionError("the search never ends")


async def told(client: RawClient, chat: str, text: str, turn: str = "t1") -> None:
    """A turn from its message to its end."""
    await client.accepted(chat, say(text, turn))
    ended = {"type": "chat/turnComplete", "turnId": turn}
    await client.action(lambda heard: heard["channel"] == chat and ended.items() <= heard["action"].items())


def saying(text: str) -> Script:
    async def script(turn: Turn) -> None:
        turn.text(text)

    return script


async def test_the_oldest_of_many_sessions_at_rest_is_found_and_none_is_woken(bench: Bench) -> None:
    client = await bench.client()
    made = [await bench.session(client) for _ in range(65)]
    for (_, chat), text in zip(
        (made[0], made[30], made[64]), ("Plum jam", "plums, no j-word", "jam of PLUMS"), strict=True
    ):
        await client.ask("subscribe", chat)
        await told(client, chat, text)
    await bench.stop()
    bench.features = [prepared := Prepared()]
    await bench.start()

    found, answers = await search(await bench.client(), "  JAM plum ")
    assert [one["session"] for one in found] == [made[64][0], made[0][0]]
    oldest, chat = made[0]
    assert found[1] == {"session": oldest, "chat": chat, "turnId": "t1", "text": "Plum jam You said: Plum jam"}
    assert answers == 4
    assert prepared.woken == []


async def test_what_is_being_said_is_found_and_so_is_what_tools_did(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.text("about apricots")
        call = turn.tool_call("look", id="c")
        call.running(tool_input='{"place": "orchard"}')
        await asyncio.Event().wait()

    bench.agent.script = script
    client = await bench.client()
    session, chat = await bench.session(client)
    await client.ask("subscribe", chat)
    await client.accepted(chat, say("go"))
    await client.action("chat/toolCallReady")
    for words in ("apricots", "orchard", "go orchard"):
        assert [one["session"] for one in (await search(client, words))[0]] == [session]
    assert (await search(client, "walnut"))[0] == []


async def test_words_are_found_wherever_they_stand_and_told_with_what_is_around_them(
    bench: Bench,
) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    for number, filling in enumerate(("ß" * 65_530, "x" * 200_000)):
        bench.agent.script = saying(f"PEAR {filling} before\n the  apple{' after' * 30}")
        await told(client, chat, "go", f"t{number}")
        (hit,), _ = await search(client, "Apple pear")
        assert hit["turnId"] == f"t{number}"
        assert hit["text"].startswith("…")
        assert hit["text"].endswith(" after…")
        assert "before the apple after after" in hit["text"]
        assert len(hit["text"]) < 200
    assert (await search(client, "apple quince"))[0] == []


async def test_an_answer_comes_early_when_sessions_are_long(bench: Bench) -> None:
    client = await bench.client()
    bench.agent.script = saying("x" * 1_500_000)
    for _ in range(4):
        _, chat = await bench.session(client)
        await told(client, chat, "plum")
    assert await search(client, "quince") == ([], 2)


@pytest.mark.parametrize(
    "params", [{}, {"words": "  "}, {"words": 7}, {"words": "x" * 2000}, {"words": "x", "before": "y"}]
)
async def test_a_search_for_nothing_or_for_something_odd_is_refused(bench: Bench, params: Json) -> None:
    client = await bench.client()
    assert (await client.refused("_ahpkit/sessions/search", **params))["code"] == -32602


@pytest.mark.parametrize("before", [-5, 10**12])
async def test_a_place_that_does_not_exist_is_the_end_or_the_beginning(bench: Bench, before: int) -> None:
    client = await bench.client()
    assert await client.ask("_ahpkit/sessions/search", words="x", before=before) == {"found": []}
