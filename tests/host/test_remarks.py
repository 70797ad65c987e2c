"""Annotations in every version: their origin, at least one entry, unknown ones refused. Over real sockets."""

from __future__ import annotations

import pytest

from support import requirement
from support.bench import Bench
from support.raw_client import Json, RawClient

ENTRY: Json = {"id": "e1", "text": "look here"}


def remark(id: str, **more: object) -> Json:
    return {"id": id, "resource": "file:///a.py", "resolved": False, "entries": [ENTRY], **more}


async def all_versions(bench: Bench) -> tuple[dict[str, RawClient], str, str]:
    clients = {
        version: await bench.client("ahp-root://", client_id=f"v{version}", offer=[version])
        for version in ("0.4.0", "0.7.0", "0.8.0", "0.9.0", "1.0.0")
    }
    session, _ = await bench.session(clients["1.0.0"])
    for client in clients.values():
        await client.ask("subscribe", f"{session}/annotations")
    return clients, session, f"{session}/annotations"


@requirement("gen:annotations:origin", "gen:project-state:annotation-turn", "gen:project-action:annotation-up")
async def test_a_remark_has_its_origin_for_new_clients_and_its_turn_for_old_ones(sockets: Bench) -> None:
    clients, session, uri = await all_versions(sockets)
    old, new = clients["0.4.0"], clients["1.0.0"]
    await old.accepted(uri, {"type": "annotations/set", "annotation": remark("a", turnId="t1")})
    given = {"session": session, "chat": "ahp-chat:/c", "turnId": "t2"}
    await new.accepted(uri, {"type": "annotations/set", "annotation": remark("b", origin=given)})
    await new.accepted(uri, {"type": "annotations/set", "annotation": remark("c", origin={"session": session})})
    await new.accepted(
        uri, {"type": "annotations/updated", "annotationId": "c", "origin": {"session": session, "turnId": "t3"}}
    )
    for version, client in clients.items():
        await client.action("annotations/updated")
        said = [
            one["action"]["annotation"] for one in client.actions(uri) if one["action"]["type"] == "annotations/set"
        ]
        shown = (await sockets.state(client, uri))["annotations"]
        for remarks, third in ((said, ""), (shown, "t3")):
            turns = [one.get("turnId") for one in remarks]
            origins = [one.get("origin") for one in remarks]
            if version in ("0.9.0", "1.0.0"):
                assert turns == [None, None, None]
                later = {"session": session, "turnId": "t3"} if third else {"session": session}
                assert origins == [{"session": session, "turnId": "t1"}, given, later]
            else:
                assert turns == ["t1", "t2", third]


@requirement("gen:annotations:one-entry", "gen:annotations:unknown-refused", "gen:annotations:origin")
@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "0.9.0", "1.0.0"])
async def test_a_remark_keeps_an_entry_and_unknown_ones_are_refused(sockets: Bench, version: str) -> None:
    clients, session, uri = await all_versions(sockets)
    client = clients[version]
    about = {"origin": {"session": session}} if version in ("0.9.0", "1.0.0") else {"turnId": "t1"}
    empty: Json = {**remark("a", **about), "entries": []}
    assert "at least one entry" in await client.rejected(uri, {"type": "annotations/set", "annotation": empty})
    await client.accepted(uri, {"type": "annotations/set", "annotation": remark("a", **about)})
    last = {"type": "annotations/entryRemoved", "annotationId": "a", "entryId": "e1"}
    assert "at least one entry" in await client.rejected(uri, last)
    if version in ("0.9.0", "1.0.0"):
        foreign = {"session": "ahp-session:/another"}
        moved = {"type": "annotations/updated", "annotationId": "a", "origin": foreign}
        assert "not to ahp-session:/another" in await client.rejected(uri, moved)
        made = {"type": "annotations/set", "annotation": remark("b", origin=foreign)}
        assert "not to ahp-session:/another" in await client.rejected(uri, made)
    second = {"type": "annotations/entrySet", "annotationId": "a", "entry": {"id": "e2", "text": "more"}}
    await client.accepted(uri, second)
    await client.accepted(uri, last)
    for wrong in (
        {"type": "annotations/updated", "annotationId": "none", "resolved": True},
        {"type": "annotations/removed", "annotationId": "none"},
        {**second, "annotationId": "none"},
        {**last, "annotationId": "none"},
        {**last, "entryId": "none"},
    ):
        echo = await client.dispatch(uri, wrong)
        assert "none" in echo["rejectionReason"]
        assert echo["action"] == wrong, "in the words of the client"
    remarks = (await sockets.state(clients["1.0.0"], uri))["annotations"]
    assert [[entry["id"] for entry in one["entries"]] for one in remarks] == [["e2"]]
