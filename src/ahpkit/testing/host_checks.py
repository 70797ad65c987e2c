"""Checks that every AHP host must pass, whoever wrote it. Each one tests a sentence of the specification.

A check opens its own connections. If it needs a session, it creates one and disposes of it. It raises `CheckFailed`
with what the host did instead, or `NotApplicable`. `host_conformance` runs them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from ahpkit.dialects.generations import Generation
from ahpkit.dialects.validation import check_action
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.testing.conformance import PROTOCOLS, Difference, differences, without_nulls
from ahpkit.testing.host_probe import CheckFailed, Json, Probe, connect_to, expect_error, object_in
from ahpkit.testing.host_target import Client, NotApplicable, Target, chat_of, title_of
from ahpkit.wire.errors import InvalidParams

_ARCHIVED: Final = 64
"""The bit of a status that says "archived"."""


def _renaming(title: object) -> Json:
    return {"type": "session/titleChanged", "title": title}


def _since(client: Client, generation: Generation) -> None:
    if client.generation < generation:
        raise NotApplicable(f"{client.version} does not have it")


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise CheckFailed(otherwise)


Check = Callable[[Target], Awaitable[None]]

HOST_CHECKS: Final[dict[str, Check]] = {}
"""Every check by its name. Its docstring is the sentence that it proves."""


def _check(name: str) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        HOST_CHECKS[name] = check
        return check

    return add


@_check("connection:ping-first")
async def _ping(target: Target) -> None:
    """`ping` is answered before `initialize`."""
    async with target.connect() as probe:
        await probe.result("ping")


@_check("connection:initialize-first")
async def _initialize_first(target: Target) -> None:
    """Other requests are refused before `initialize`."""
    async with target.connect() as probe:
        await probe.error("listSessions")


@_check("connection:version")
async def _version(target: Target) -> None:
    """`initialize` answers one of the offered versions, letter by letter, a serverSeq and the snapshots asked for."""
    async with target.client() as client:
        _expect(client.version in target.offered, f"it answered {client.version!r}, which was not offered")
        seq = client.result.get("serverSeq")
        _expect(isinstance(seq, int) and seq >= 0, f"serverSeq is {seq!r}")
        _expect(isinstance(client.root.get("agents"), list), "the root has no list of agents")


@_check("connection:version-order")
async def _version_order(target: Target) -> None:
    """The order in which versions are offered does not matter: the highest that both speak is chosen. (1.0.0)"""
    if len(target.offered) < 2:
        raise NotApplicable("only one version is offered")
    async with target.client() as client:
        _since(client, Generation.V0_9)
    async with target.connect() as probe:
        backwards = list(reversed(target.offered))
        result = await probe.result("initialize", protocolVersions=backwards, clientId=probe.client_id)
        chosen = result.get("protocolVersion")
        _expect(chosen == client.version, f"it chose {client.version}, and {chosen} when the offer was turned round")


@_check("connection:unknown-version")
async def _unknown_version(target: Target) -> None:
    """An offer of unknown versions is refused with -32005, and the error lists what the host speaks."""
    async with target.connect() as probe:
        error = await probe.error("initialize", code=-32005, protocolVersions=["99.0.0"], clientId=probe.client_id)
        spoken: object = object_in(error, "data").get("supportedVersions")
        _expect(isinstance(spoken, list) and spoken != [], f"data.supportedVersions is {spoken!r}")


@_check("connection:malformed-version")
async def _malformed_version(target: Target) -> None:
    """A malformed version makes the whole offer an error, also beside good ones. (1.0.0)"""
    async with target.client() as client:
        _since(client, Generation.V1_0)
    async with target.connect() as probe:
        offer = [*target.offered, "1.0.0-beta"]
        await probe.error("initialize", protocolVersions=offer, clientId=probe.client_id)


@_check("rpc:string-id")
async def _string_id(target: Target) -> None:
    """A request may have a string as its id, and is answered under it."""
    async with target.connect() as probe:
        probe.send({"jsonrpc": "2.0", "id": "one", "method": "ping", "params": {"channel": ROOT_URI}})
        await probe.wait(lambda message: message.get("id") == "one", "the answer to the id 'one'")


@_check("rpc:unknown-method")
async def _unknown_method(target: Target) -> None:
    """An unknown method is refused with -32601."""
    async with target.client() as client:
        await client.probe.error("conformance/noSuchMethod", code=-32601)


@_check("rpc:malformed-params")
async def _malformed_params(target: Target) -> None:
    """Malformed params are refused with -32602."""
    async with target.client() as client:
        await client.probe.error("subscribe", channel=7, code=-32602)  # pyright: ignore[reportArgumentType]  # the fault


@_check("rpc:unknown-notification")
async def _unknown_notification(target: Target) -> None:
    """An unknown notification changes nothing."""
    async with target.client() as client:
        client.probe.send({"jsonrpc": "2.0", "method": "conformance/nothing", "params": {"channel": ROOT_URI}})
        await client.probe.result("ping")


@_check("rpc:not-json")
async def _not_json(target: Target) -> None:
    """A frame that is not JSON is answered with -32700, or ends the connection; others notice nothing."""
    async with target.client() as other:
        async with target.client() as client:
            client.probe.send_bytes(b'{"jsonrpc": "2.0", "id": 1, "meth')
            answer = await client.probe.wait_answer_or_end(None)
            if answer is not None:
                expect_error(answer, -32700, "a frame that is not JSON")
        await other.probe.result("ping")


@_check("rpc:no-batches")
async def _no_batches(target: Target) -> None:
    """A batch is answered with -32600, or ends the connection."""
    async with target.client() as client:
        client.probe.send([{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"channel": ROOT_URI}}])
        answer = await client.probe.wait_answer_or_end(None)
        if answer is not None:
            expect_error(answer, -32600, "a batch")


@_check("channel:unknown")
async def _unknown_channel(target: Target) -> None:
    """Subscribing to a channel that does not exist is refused."""
    async with target.client() as client:
        await client.probe.error("subscribe", target.session_uri.format(id=uuid4()))


@_check("files:fence")
async def _fence(target: Target) -> None:
    """A file that belongs to no session is not served."""
    async with target.client() as client:
        await client.probe.error("resourceRead", uri="file:///etc/passwd")


@_check("session:created")
async def _created(target: Target) -> None:
    """A new session is announced to everybody who follows the root, and is in the list."""
    async with target.client() as other, target.client() as client, target.session(client) as session:
        uri = session["resource"]
        await other.probe.notification(
            "root/sessionAdded", lambda params: object_in(params, "summary").get("resource") == uri
        )
        await _listed(other.probe, uri)


@_check("session:created-once")
async def _created_once(target: Target) -> None:
    """A URI that a session has is refused for another one with -32003."""
    async with target.client() as client, target.session(client) as session:
        await client.probe.error("createSession", session["resource"], code=-32003, provider=client.first_agent)


@_check("session:disposed")
async def _disposed(target: Target) -> None:
    """A session that was disposed of is announced as removed, and can no longer be followed."""
    async with target.client() as other, target.client() as client:
        async with target.session(client) as session:
            uri = session["resource"]
        await other.probe.notification("root/sessionRemoved", lambda params: uri in params.values())
        await other.probe.error("subscribe", uri)
        found = [each.get("resource") for each in (await other.probe.result("listSessions"))["items"]]
        _expect(uri not in found, "it is still in the list of sessions")


@_check("session:archived")
async def _archived(target: Target) -> None:
    """The list of sessions shows that a session was archived."""
    async with target.client() as client, target.session(client) as session:
        uri = session["resource"]
        await client.probe.accepted(uri, {"type": "session/isArchivedChanged", "isArchived": True})
        summary = await _listed(client.probe, uri)
        _expect(bool(summary.get("status", 0) & _ARCHIVED), f"its status in the list is {summary.get('status')}")


async def _listed(probe: Probe, uri: str) -> Json:
    items = (await probe.result("listSessions")).get("items")
    found = next((each for each in items or () if each.get("resource") == uri), None)
    if found is None:
        raise CheckFailed("the session is not in the list of sessions")
    return found


@_check("action:echo")
async def _echo(target: Target) -> None:
    """An accepted action reaches its sender, with its origin, and all others under the same serverSeq."""
    async with target.client() as other, target.client() as client, target.session(client) as session:
        uri = session["resource"]
        start = (await other.probe.snapshot(uri))["fromSeq"]
        mine = await client.probe.accepted(uri, _renaming("Renamed"))
        theirs = await other.probe.same_action(mine)
        _expect(mine["serverSeq"] > start, f"its serverSeq {mine['serverSeq']} is not above the snapshot's {start}")
        _expect(theirs.get("action") == mine["action"], "the two clients got different actions")


@_check("action:in-the-snapshot")
async def _in_the_snapshot(target: Target) -> None:
    """Whoever subscribes later finds the action in the state, and its serverSeq in `fromSeq`."""
    async with target.client() as other, target.client() as client, target.session(client) as session:
        mine = await client.probe.accepted(session["resource"], _renaming("Renamed"))
        snapshot = await other.probe.snapshot(session["resource"])
        _expect(
            title_of(snapshot["state"]) == "Renamed", f"the title in the snapshot is {title_of(snapshot['state'])!r}"
        )
        _expect(snapshot["fromSeq"] >= mine["serverSeq"], "its fromSeq is below the action that it contains")


@_check("action:malformed")
async def _malformed_action(target: Target) -> None:
    """A malformed action comes back with a reason, and changes nothing."""
    async with target.client() as client, target.session(client) as session:
        before = title_of(session["state"])
        await client.probe.refused(session["resource"], _renaming(7))
        after = title_of((await client.probe.snapshot(session["resource"]))["state"])
        _expect(after == before, f"the title is {after!r} now, and was {before!r}")


@_check("action:host-only")
async def _host_only(target: Target) -> None:
    """An action that only the host may dispatch is refused for a client, with a reason."""
    async with target.client() as client, target.session(client) as session:
        await client.probe.refused(session["resource"], {"type": "session/ready"})


@_check("action:order")
async def _order(target: Target) -> None:
    """Actions of two clients arrive at both in one order, with rising serverSeq, and both end where the host ends."""
    async with target.client() as one, target.client() as two, target.session(one) as session:
        uri = session["resource"]
        start = await two.probe.snapshot(uri)
        for number in range(10):
            one.probe.dispatch(uri, _renaming(f"one {number}"))
            two.probe.dispatch(uri, _renaming(f"two {number}"))
        last = two.probe.dispatch(uri, _renaming("two at last"))
        await two.probe.own_action(last, "session/titleChanged")
        await one.probe.accepted(uri, _renaming("the end"))
        await two.probe.action(lambda each: each["action"].get("title") == "the end", "the last action")
        told = [_numbered(each.probe.envelopes(uri), after=start["fromSeq"]) for each in (one, two)]
        _expect(told[0] == told[1], "the two clients got different actions, or in another order")
        _expect([seq for seq, _ in told[0]] == sorted({seq for seq, _ in told[0]}), "serverSeq does not rise")
        _expect_mirror(one, "session", start, uri, (await one.probe.snapshot(uri))["state"])


def _numbered(envelopes: Sequence[Json], *, after: int) -> list[tuple[int, str]]:
    titled = (each for each in envelopes if each["serverSeq"] > after)
    return [(each["serverSeq"], json.dumps(each["action"], sort_keys=True)) for each in titled]


@_check("action:unsubscribed")
async def _unsubscribed(target: Target) -> None:
    """After `unsubscribe` no action of the channel arrives."""
    async with target.client() as other, target.client() as client, target.session(client) as session:
        uri = session["resource"]
        await other.probe.snapshot(uri)
        other.probe.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}})
        await other.probe.result("ping")
        before = len(other.probe.envelopes(uri))
        await client.probe.accepted(uri, _renaming("Renamed"))
        await other.probe.result("ping")
        _expect(len(other.probe.envelopes(uri)) == before, "an action arrived after it")


@_check("reconnect:missed")
async def _missed(target: Target) -> None:
    """`reconnect` brings what a client missed, as actions or as a state."""
    async with target.client() as client, target.session(client) as session:
        uri = session["resource"]
        async with target.client() as leaver:
            seen = (await leaver.probe.snapshot(uri))["fromSeq"]
        await client.probe.accepted(uri, _renaming("Meanwhile"))
        async with connect_to(target.dial, leaver.probe.client_id, target.timeout) as back:
            result = await _reconnect(back, seen, uri)
            titles = [envelope["action"].get("title") for envelope in result.get("actions") or ()]
            titles += [title_of(snapshot["state"]) for snapshot in result.get("snapshots") or ()]
            _expect("Meanwhile" in titles, f"the title is not in the answer of type {result.get('type')!r}")
            await client.probe.accepted(uri, _renaming("And on"))
            await back.action(lambda each: each["action"].get("title") == "And on", "the next action")


@_check("reconnect:gone")
async def _gone(target: Target) -> None:
    """`reconnect` does not fail for a channel that is gone: it is missing, and the rest is answered."""
    async with target.client() as client:
        async with target.client() as leaver:
            seen = leaver.result["serverSeq"]
        gone = target.session_uri.format(id=uuid4())
        async with connect_to(target.dial, leaver.probe.client_id, target.timeout) as back:
            result = await _reconnect(back, seen, gone)
            if result.get("type") == "replay":
                _expect(gone in (result.get("missing") or ()), "the channel is not among the missing ones")
        await client.probe.result("ping")


async def _reconnect(probe: Probe, seen: int, uri: str) -> Json:
    return await probe.result(
        "reconnect", clientId=probe.client_id, lastSeenServerSeq=seen, subscriptions=[ROOT_URI, uri]
    )


@_check("chat:default")
async def _default_chat(target: Target) -> None:
    """A session has a chat that can be followed, and that has turns."""
    async with target.client() as client, target.session(client) as session:
        state = (await client.probe.snapshot(chat_of(session["state"])))["state"]
        _expect(isinstance(state.get("turns"), list), "its state has no list of turns")


@_check("chat:nothing-to-cancel")
async def _nothing_to_cancel(target: Target) -> None:
    """Cancelling a turn that does not run is refused."""
    async with target.client() as client, target.session(client) as session:
        chat = chat_of(session["state"])
        await client.probe.snapshot(chat)
        await client.probe.refused(chat, {"type": "chat/turnCancelled", "turnId": "none", **_ended(client)})


@_check("chat:draft")
async def _draft(target: Target) -> None:
    """A draft is shared by all who follow the chat. (0.5.0)"""
    async with target.client() as other, target.client() as client, target.session(client) as session:
        _since(client, Generation.V0_5_0)
        chat = chat_of(session["state"])
        await client.probe.snapshot(chat)
        await other.probe.snapshot(chat)
        draft = {"text": "half a sentence", "origin": {"kind": "user"}}
        envelope = await client.probe.accepted(chat, {"type": "chat/draftChanged", "draft": draft})
        await other.probe.same_action(envelope)


@_check("turn:runs")
async def _turn(target: Target) -> None:
    """A turn begins, runs and ends; its actions have the shape of their version, and lead to the host's own state."""
    async with target.client() as client, target.session(client) as session:
        chat = chat_of(session["state"])
        start = await client.probe.snapshot(chat)
        await _run_turn(target, client, chat)
        for envelope in client.probe.envelopes(chat):
            _expect_shape(envelope["action"], client)
        _expect_mirror(client, "chat", start, chat, (await client.probe.snapshot(chat))["state"])


@_check("turn:one-at-a-time")
async def _one_turn(target: Target) -> None:
    """A turn whose id is taken does not begin again."""
    async with target.client() as client, target.session(client) as session:
        chat = chat_of(session["state"])
        await client.probe.snapshot(chat)
        await _run_turn(target, client, chat, turn_id="first")
        await client.probe.echo(chat, _starting(client, "first", "again"))
        turns: list[Json] = (await client.probe.snapshot(chat))["state"]["turns"]
        _expect([turn["id"] for turn in turns] == ["first"], f"there are {len(turns)} turns now")


@_check("turn:truncated")
async def _truncated(target: Target) -> None:
    """Truncating a chat without a turn removes all turns."""
    async with target.client() as client, target.session(client) as session:
        chat = chat_of(session["state"])
        await client.probe.snapshot(chat)
        await _run_turn(target, client, chat)
        await client.probe.accepted(chat, {"type": "chat/truncated"})
        _expect((await client.probe.snapshot(chat))["state"]["turns"] == [], "there are turns left")


_ENDS = frozenset({"chat/turnComplete", "chat/turnCancelled", "chat/error"})


async def _run_turn(target: Target, client: Client, chat: str, *, turn_id: str = "turn") -> None:
    if target.prompt is None:
        raise NotApplicable("no prompt was given")
    await client.probe.accepted(chat, _starting(client, turn_id, target.prompt))
    await client.probe.action(
        lambda each: each["action"]["type"] in _ENDS and each["action"].get("turnId") == turn_id, "the end of the turn"
    )


def _starting(client: Client, turn_id: str, text: str) -> Json:
    message = {"text": text, "origin": {"kind": "user"}}
    started = {"startedAt": _now()} if client.generation >= Generation.V0_6 else {}
    return {"type": "chat/turnStarted", "turnId": turn_id, "message": message, **started}


def _ended(client: Client) -> Json:
    return {"duration": 0} if client.generation >= Generation.V0_6 else {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _expect_shape(action: Json, client: Client) -> None:
    try:
        check_action(action, by=client.generation)
    except InvalidParams as error:
        raise CheckFailed(f"{action.get('type')} is malformed in {client.version}: {error.message}") from None


_DERIVED: Final[Mapping[str, frozenset[str]]] = {
    "session": frozenset({"modifiedAt", "status", "activity", "summary", "chats"}),
    "chat": frozenset({"modifiedAt", "title"}),
}
"""Members of a state that a host may change without an action of that channel, or that 0.4 takes from a clock."""


def _expect_mirror(client: Client, kind: str, start: Json, uri: str, end: Json) -> None:
    """Whoever applies the actions to the first snapshot has what the host has."""
    protocol = PROTOCOLS.get(client.version)
    if protocol is None:
        return  # We have no reducers of that version.
    state: Json = start["state"]
    for envelope in client.probe.envelopes(uri):
        if envelope["serverSeq"] > start["fromSeq"]:
            state = protocol.reducers[kind](state, envelope["action"])
    places = [place for place in _places(end, state) if _member(place) not in _DERIVED[kind]]
    if places:
        raise CheckFailed(f"applying its actions gives another state than its snapshot\n{places[0]}")


def _member(place: Difference) -> str:
    """The member of the state in which it is: `chats` for `$.chats[0].title`."""
    return place.path.removeprefix("$.").partition(".")[0].partition("[")[0]


def _places(expected: Json, got: Json) -> Iterator[Difference]:
    return differences(without_nulls(expected), without_nulls(json.loads(json.dumps(got, default=str))))


__all__ = ["HOST_CHECKS", "Check"]
