"""The live list of sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.client import Client
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.testing.fake_host import FakeHost, session_state
from ahpkit.wire.errors import RemoteProtocolError
from support import requirement
from support.clients import SESSION, eventually, lose_connection, settled

OTHER = "ahp-session:/other"


def announce(host: FakeHost, kind: str, **fields: Any) -> None:
    host.notify(f"root/{kind}", {"channel": ROOT_URI, **fields})


async def test_the_list_follows_what_the_host_announces(host: FakeHost, client: Client):
    changes: list[int] = []
    async with client.session_list(lambda: changes.append(1)) as sessions:
        assert [item["resource"] for item in sessions.items] == [SESSION]

        announce(host, "sessionAdded", summary={**session_state(OTHER)["summary"], "modifiedAt": 99_999})
        await eventually(lambda: len(sessions.items) == 2)
        assert sessions.items[0]["resource"] == OTHER, "the one changed last comes first"

        announce(host, "sessionSummaryChanged", session=OTHER, changes={"title": "new"})
        await eventually(lambda: sessions.items[0]["title"] == "new")

        announce(host, "sessionRemoved", session=OTHER)
        await eventually(lambda: len(sessions.items) == 1)
        assert len(changes) == 4

    announce(host, "sessionRemoved", session=SESSION)
    await client.ping()
    assert len(sessions.items) == 1, "outside the with nothing changes"


async def test_news_of_an_unknown_session_and_other_notifications_are_ignored(host: FakeHost, client: Client):
    async with client.session_list() as sessions:
        announce(host, "sessionSummaryChanged", session=OTHER, changes={"title": "new"})
        host.notify("auth/required", {"channel": ROOT_URI, "resource": "x"})
        await client.ping()
        assert [item["resource"] for item in sessions.items] == [SESSION]


@requirement("core:connection:relist-after-reconnect")
async def test_the_list_is_fetched_anew_after_a_reconnect(host: FakeHost, client: Client):
    async with client.session_list() as sessions:
        host.accepting = False
        host.drop()
        await eventually(lambda: client.status == "reconnecting")
        host.open(OTHER, session_state(OTHER))  # Announced to nobody.
        host.accepting = True

        await eventually(lambda: len(sessions.items) == 2)
        await lose_connection(host, client)
        await eventually(lambda: len(host.sent("listSessions")) == 3)


async def test_what_is_announced_while_listing_is_not_lost(host: FakeHost, client: Client):
    def list_sessions(params: Any) -> Any:
        announce(host, "sessionAdded", summary=session_state(OTHER)["summary"])
        announce(host, "sessionRemoved", session=SESSION)
        return {"items": [session_state(SESSION)["summary"]]}

    host.handlers["listSessions"] = list_sessions

    async with client.session_list() as sessions:
        assert [item["resource"] for item in sessions.items] == [OTHER]


async def test_sessions_lists_once(host: FakeHost, client: Client):
    assert [summary["resource"] for summary in await client.sessions()] == [SESSION]


async def test_a_list_that_is_opened_while_away_is_fetched_once(
    host: FakeHost, client: Client, caplog: pytest.LogCaptureFixture
):
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    sessions = client.session_list()
    opening = asyncio.create_task(sessions.__aenter__())
    await settled()
    host.accepting = True

    await opening
    await client.ping()

    assert [item["resource"] for item in sessions.items] == [SESSION]
    assert len(host.sent("listSessions")) == 1
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    await sessions.__aexit__()


async def test_a_connection_lost_while_listing_is_no_failure(
    host: FakeHost, client: Client, caplog: pytest.LogCaptureFixture
):
    async with client.session_list() as sessions:
        host.handlers["listSessions"] = lambda params: host.drop()
        await lose_connection(host, client)
        await eventually(lambda: len(host.sent("listSessions")) == 2)
        del host.handlers["listSessions"]
        host.open(OTHER, session_state(OTHER))
        await eventually(lambda: len(sessions.items) == 2)

    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_list_that_cannot_be_read_is_an_error_of_the_host(host: FakeHost, client: Client):
    host.handlers["listSessions"] = lambda params: {"items": [{"title": "x"}]}

    with pytest.raises(RemoteProtocolError, match="the host's list of sessions cannot be read"):
        async with client.session_list():
            pass
