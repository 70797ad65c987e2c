"""Nobody forges the notes that the host makes for clients of other versions, and no action keeps news from others.

The host notes things under `ahpkit.dev/…` in `_meta`, and tells each client in its own version what others said.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio

from support.flow import begun, title
from support.process import HostProcess
from support.raw_client import Json, RawClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERSIONS = ("0.4.0", "0.5.0", "0.5.2", "0.6.0", "0.7.0", "0.8.0", "0.9.0", "1.0.0")
ODD: list[Any] = [7, "x", True, [], [7], {}, {"model": 7}, {"agent": "x"}, {"agent": {}}, {"session": 7, "turnId": 7}]
ROOT = "ahp-root://"

_numbers = itertools.count(1)


class Room:
    """A session that a client of every version follows."""

    def __init__(self, host: HostProcess, session: str, clients: dict[str, RawClient]) -> None:
        self.host = host
        self.session = session
        self.clients = clients
        self.attacker = clients["1.0.0"]

    async def tried(self, *, channel: str | None = None, client: RawClient | None = None, **action: Any) -> Json:
        return await (client or self.attacker).dispatch(channel or self.session, action)

    async def all_hear(self, text: str) -> None:
        """Everybody still hears what happens, on the same connection, and can begin anew."""
        await self.attacker.accepted(self.session, title(text))
        for client in self.clients.values():
            await client.action(lambda said: said["action"].get("title") == text)
            assert client.closed is None
            state: Json = (await client.ask("subscribe", self.session))["snapshot"]["state"]
            assert (state.get("summary") or state)["title"] == text
            assert self.session in [item["resource"] for item in (await client.ask("listSessions"))["items"]]

    def entry(self, **more: Any) -> Json:
        return {"clientId": self.attacker.client_id, "tools": [], **more}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def room(host: HostProcess) -> AsyncGenerator[Room]:
    clients: dict[str, RawClient] = {}
    for version in VERSIONS:
        clients[version] = await host.connect(f"speaks {version}")
        await clients[version].initialize(ROOT, protocolVersions=[version])
    session = f"ahp-session:/room-{next(_numbers)}"
    await clients["1.0.0"].ask("createSession", session)
    for client in clients.values():
        await begun(client, session)
    yield Room(host, session, clients)
    for client in clients.values():
        await client.aclose()


@pytest.mark.parametrize("note", ODD, ids=str)
async def test_a_forged_note_in_an_action_is_not_passed_on(room: Room, note: Any) -> None:
    oldest, forged = room.clients["0.4.0"], {"ahpkit.dev/primary": note, "ahpkit.dev/selection": note}
    await oldest.accepted(
        room.session,
        {"type": "session/activeClientChanged", "activeClient": {"clientId": oldest.client_id, "tools": []}},
    )
    entry = room.entry(_meta={**forged, "mine": 1})
    told = await room.tried(type="session/activeClientSet", activeClient=entry, _meta=forged)
    assert "rejectionReason" not in told
    assert told["action"]["activeClient"]["_meta"] == {"mine": 1}
    assert not (told["action"].get("_meta") or {}).keys() & forged.keys()
    told = await room.tried(type="session/activeClientRemoved", clientId=room.attacker.client_id, _meta=forged)
    assert "rejectionReason" not in told
    await room.all_hear(f"after {note}")
    state: Json = (await oldest.ask("subscribe", room.session))["snapshot"]["state"]
    assert state["activeClient"]["clientId"] == oldest.client_id
    last = [said["action"] for said in oldest.actions(room.session) if "activeClient" in said["action"]][-1]
    assert last["activeClient"]["clientId"] == oldest.client_id


@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "1.0.0"])
@pytest.mark.parametrize("note", ODD, ids=str)
async def test_a_forged_note_in_a_command_is_refused(room: Room, version: str, note: Any) -> None:
    """It made sessions that clients of 0.4 could not list."""
    client = room.clients[version]
    for key in ("ahpkit.dev/selection", "ahpkit.dev/fork"):
        answer = await client.call("createSession", f"ahp-session:/forged-{next(_numbers)}", _meta={key: note})
        assert answer.get("error", {}).get("code") in (None, -32602), answer
        answer = await client.call("createChat", room.session, chat=f"ahp-chat:/{next(_numbers)}", _meta={key: note})
        assert answer.get("error", {}).get("code") in (None, -32602), answer
    await room.all_hear(f"after {version} {note}")


@pytest.mark.parametrize("version", VERSIONS)
async def test_members_that_a_version_does_not_have_may_be_anything(room: Room, version: str) -> None:
    """What one version has not, another one translates: a number for a list of directories ended the connection."""
    client = room.clients[version]
    members = ("workingDirectories", "workingDirectory", "cwd", "fork", "model", "agent", "filter", "view", "delivery")
    calls: dict[str, Json] = {
        "createSession": {},
        "createChat": {"chat": room.session},
        "createTerminal": {},
        "subscribe": {},
        "resolveSessionConfig": {"channel": "ahp-root://"},
        "sessionConfigCompletions": {"channel": "ahp-root://", "property": "x"},
    }
    for (method, given), member, value in itertools.product(calls.items(), members, ODD):
        answer = await client.call(method, **{"channel": room.session, **given, member: value})
        assert answer.get("error", {}).get("code") != -32603, (method, member, value)
    assert "Traceback" not in room.host.errors
    await room.all_hear(f"after the members of {version}")


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_action_under_a_number_that_was_used_may_be_anything(room: Room, version: str) -> None:
    """It is compared with the one that was stored under the number, before anybody has checked it."""
    client = room.clients[version]
    used = (await client.accepted(room.session, title(f"used by {version}")))["origin"]
    odd: list[Json] = [{}, *({"type": value} for value in ODD)]
    odd += [{"type": "session/canvasInstanceOpened", "instance": value} for value in ODD]
    odd += [{"type": "session/titleChanged", "title": value} for value in ODD if value != "x"]
    for action in odd:
        client.received.clear()
        client.post(room.session, action, client_seq=used["clientSeq"])
        answer = await client.wait(lambda one: one.get("method") == "action" and one["params"].get("origin") == used)
        assert "rejectionReason" in answer["params"], action
    assert "Traceback" not in room.host.errors
    await room.all_hear(f"after the numbers of {version}")


async def test_an_unknown_kind_inside_of_what_a_client_brings_keeps_no_news_from_others(room: Room) -> None:
    """A newer client may bring kinds that we do not know: whatever is in them, older clients are told the rest."""
    plugin: Json = {"type": "plugin", "id": "p", "uri": "virtual:/p", "name": "P"}
    children: list[Any] = [
        {"type": "new", "children": 7},
        {"type": "new", "children": [7], "enablement": 7},
        {"type": "new", "id": 7, "name": None, "children": [{"type": "plugin", "enablement": [{}]}]},
    ]
    decisions: list[Any] = [{"kind": "new"}, {"kind": "new", "enabled": []}, {"kind": "session", "enabled": False}]
    for number in range(3):
        brought = {
            **plugin,
            "children": [children[number]],
            "enablement": [decisions[number]],
            "childEnablement": {"a": [decisions[number]]},
        }
        entry = room.entry(customizations=[brought])
        told = await room.tried(type="session/activeClientSet", activeClient=entry)
        assert "rejectionReason" not in told
        await room.all_hear(f"brought {number}")
    told = await room.tried(type="session/customizationToggled", id="p", enablement=[{"kind": "new"}])
    assert "session, workspace, global" in told["rejectionReason"]
    await room.all_hear("toggled")
    await room.tried(type="session/activeClientRemoved", clientId=room.attacker.client_id)
