"""The mirror against a model host: whatever is interleaved, confirmed is the host's log and nothing stays pending."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ahpkit.client import Chat, Client, TextDelta, ToolCallInputDelta, ToolCallStarted
from ahpkit.client.dispatch import Accepted, Rejected
from ahpkit.client.mirror import ActionSettled, Applied, Mirror, PlainStates, plain
from ahpkit.protocol.channels import reduce
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.rope import Rope
from ahpkit.testing.fake_host import FakeHost, chat_state
from support import requirement
from support.clients import CHAT, eventually
from support.properties import examples

NOW = 9999
ME, OTHER = "me", "other"
SESSION = "ahp-session:/s"


def session_state(title: str = "first") -> JsonObject:
    return {"provider": "p", "title": title, "status": 1, "lifecycle": "ready", "activeClients": [], "chats": []}


def renamed(title: str) -> JsonObject:
    return {"type": "session/titleChanged", "title": title}


def envelope(seq: int, action: JsonObject, origin: tuple[str, int] | None = None, **extra: Any) -> JsonObject:
    made: JsonObject = {"channel": SESSION, "action": action, "serverSeq": seq, **extra}
    if origin is not None:
        made["origin"] = {"clientId": origin[0], "clientSeq": origin[1]}
    return made


def title(state: JsonObject | None) -> str:
    assert state is not None
    return state["title"]


@pytest.fixture
def mirror() -> Mirror:
    mirror = Mirror(ME)
    mirror.follow(SESSION)
    mirror.snapshot({"resource": SESSION, "state": session_state(), "fromSeq": 10})
    list(mirror.resume(SESSION, now=NOW))
    return mirror


@requirement("core:connection:optimistic-state")
def test_an_own_action_shows_at_once_and_confirmed_waits_for_the_host(mirror: Mirror):
    mirror.dispatch(SESSION, 1, renamed("mine"))

    assert title(mirror[SESSION].optimistic) == "mine"
    assert title(mirror[SESSION].confirmed) == "first"


def test_without_pending_actions_optimistic_is_the_confirmed_object(mirror: Mirror):
    mirror.envelope(envelope(11, renamed("theirs")), now=NOW)

    assert mirror[SESSION].optimistic is mirror[SESSION].confirmed


@requirement("core:connection:own-echo")
def test_the_echo_moves_an_own_action_from_pending_to_confirmed(mirror: Mirror):
    mirror.dispatch(SESSION, 1, renamed("mine"))

    changes = mirror.envelope(envelope(11, renamed("mine"), (ME, 1)), now=NOW)

    assert [type(change) for change in changes] == [Applied, ActionSettled]
    assert changes[1] == ActionSettled(SESSION, 1, Accepted(11))
    assert not mirror[SESSION].pending
    assert title(mirror[SESSION].confirmed) == "mine"


@requirement("core:connection:foreign-action")
def test_a_foreign_action_goes_below_the_pending_ones(mirror: Mirror):
    mirror.dispatch(SESSION, 1, renamed("mine"))

    mirror.envelope(envelope(11, renamed("theirs"), (OTHER, 1)), now=NOW)

    assert title(mirror[SESSION].confirmed) == "theirs"
    assert title(mirror[SESSION].optimistic) == "mine"


@requirement("core:connection:rejection-rolls-back")
def test_a_rejected_action_leaves_no_trace(mirror: Mirror):
    mirror.dispatch(SESSION, 1, renamed("mine"))

    changes = mirror.envelope(envelope(11, renamed("mine"), (ME, 1), rejectionReason="no"), now=NOW)

    assert changes == [ActionSettled(SESSION, 1, Rejected("no"))]
    assert title(mirror[SESSION].optimistic) == "first"


def test_answers_are_matched_by_number_and_not_by_place(mirror: Mirror):
    mirror.dispatch(SESSION, 1, renamed("a"))
    mirror.dispatch(SESSION, 2, renamed("b"))

    mirror.envelope(envelope(11, renamed("b"), (ME, 2), rejectionReason="no"), now=NOW)

    assert list(mirror[SESSION].pending) == [1]
    assert title(mirror[SESSION].optimistic) == "a"


def test_a_rejection_does_not_hide_actions_that_are_still_on_the_way(mirror: Mirror):
    """A host sends a rejection at once, with its head, while committed actions before it are still being written."""
    mirror.dispatch(SESSION, 1, renamed("mine"))
    mirror.envelope(envelope(15, renamed("mine"), (ME, 1), rejectionReason="no"), now=NOW)

    mirror.envelope(envelope(14, renamed("theirs")), now=NOW)

    assert title(mirror[SESSION].confirmed) == "theirs"


def test_another_clients_rejection_is_none_of_our_business(mirror: Mirror):
    mirror.dispatch(SESSION, 1, renamed("mine"))

    assert mirror.envelope(envelope(11, renamed("x"), (OTHER, 1), rejectionReason="no"), now=NOW) == []
    assert list(mirror[SESSION].pending) == [1]


@requirement("core:hardening:duplicates-dropped")
def test_an_action_that_is_known_is_dropped(mirror: Mirror):
    mirror.envelope(envelope(11, renamed("theirs")), now=NOW)

    assert mirror.envelope(envelope(11, renamed("again")), now=NOW) == []
    assert list(mirror.replay([envelope(9, renamed("old"))], now=NOW)) == []
    assert title(mirror[SESSION].confirmed) == "theirs"


def test_a_late_echo_of_an_action_that_the_snapshot_contains_only_settles_it(mirror: Mirror):
    mirror.dispatch(SESSION, 1, renamed("mine"))
    mirror.expect([SESSION])
    mirror.snapshot({"resource": SESSION, "state": session_state(title="newer"), "fromSeq": 20})
    list(mirror.resume(SESSION, now=NOW))

    changes = mirror.envelope(envelope(15, renamed("mine"), (ME, 1)), now=NOW)

    assert changes == [ActionSettled(SESSION, 1, Accepted(15))]
    assert title(mirror[SESSION].optimistic) == "newer"


def test_what_overtakes_its_snapshot_is_applied_after_it(mirror: Mirror):
    mirror.expect([SESSION])
    assert mirror.envelope(envelope(21, renamed("live")), now=NOW) == []

    mirror.snapshot({"resource": SESSION, "state": session_state(title="newer"), "fromSeq": 20})
    list(mirror.resume(SESSION, now=NOW))

    assert title(mirror[SESSION].confirmed) == "live"
    assert mirror[SESSION].seq == 21


def test_what_overtakes_its_replay_is_applied_after_it(mirror: Mirror):
    mirror.expect([SESSION])
    mirror.envelope(envelope(13, renamed("live")), now=NOW)

    list(mirror.replay([envelope(11, renamed("a")), envelope(12, renamed("b"))], now=NOW))
    assert title(mirror[SESSION].confirmed) == "b"
    list(mirror.resume(SESSION, now=NOW))

    assert title(mirror[SESSION].confirmed) == "live"


def test_a_snapshot_of_a_host_that_lost_its_log_is_believed(mirror: Mirror):
    mirror.expect([SESSION])
    mirror.snapshot({"resource": SESSION, "state": session_state(title="reborn"), "fromSeq": 2})
    list(mirror.resume(SESSION, now=NOW))

    mirror.envelope(envelope(3, renamed("onwards")), now=NOW)

    assert title(mirror[SESSION].confirmed) == "onwards"


@requirement("core:hardening:min-last-seen")
def test_the_replay_starts_at_the_lowest_number_of_any_channel(mirror: Mirror):
    mirror.follow("ahp-session:/t")
    mirror.snapshot({"resource": "ahp-session:/t", "state": session_state(), "fromSeq": 30})
    mirror.follow("ahp-session:/not-joined-yet")

    assert mirror.last_seen() == 10
    mirror.envelope(envelope(40, renamed("x")), now=NOW)
    assert mirror.last_seen() == 30


def test_a_channel_without_state_passes_its_envelopes_on():
    mirror = Mirror(ME)
    mirror.follow(SESSION)
    mirror.without_state(SESSION)
    list(mirror.resume(SESSION, now=NOW))

    assert mirror.envelope(envelope(5, renamed("x")), now=NOW) == [Applied(SESSION, envelope(5, renamed("x")))]
    assert mirror[SESSION].optimistic is None


def test_leaving_a_channel_names_the_actions_nobody_will_answer(mirror: Mirror):
    mirror.dispatch(SESSION, 4, renamed("mine"))

    assert mirror.forget(SESSION) == [4]
    assert mirror.envelope(envelope(11, renamed("late")), now=NOW) == []


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=6))
def test_adding_one_by_one_gives_what_replaying_all_gives(titles: list[str]):
    mirror = Mirror(ME)
    mirror.follow(SESSION)
    mirror.snapshot({"resource": SESSION, "state": session_state(), "fromSeq": 1})
    for number, text in enumerate(titles):
        mirror.dispatch(SESSION, number, renamed(text))

    expected = session_state()
    for text in titles:
        expected = reduce(SESSION, expected, renamed(text))
    assert mirror[SESSION].optimistic == expected


def queued(id: str) -> JsonObject:
    """An action whose effect depends on everything before it: a hole or a repeat shows."""
    message = {"text": id, "origin": {"kind": "user"}}
    return {"type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message}


class MirrorMachine(RuleBasedStateMachine):
    """A host with a log, a client with a mirror, a wire that keeps each channel's order, breaks, and is replaced."""

    uris = ("ahp-chat:/a", "ahp-chat:/b")

    @initialize()
    def start(self) -> None:
        self.log: list[JsonObject] = []
        self.head = 0
        self.wire: list[JsonObject] = []
        self.seqs = itertools.count(1)
        self.undelivered: list[tuple[str, int, JsonObject]] = []
        """Dispatched, and not yet taken by the host."""
        self.answered: dict[int, int] = {}
        """clientSeq → how the host answered: its serverSeq, or 0 for a rejection."""
        self.settled: dict[int, object] = {}
        self.sent: set[int] = set()
        self.mirror = Mirror(ME)
        for uri in self.uris:
            self.mirror.follow(uri)
            self._take_snapshot(uri)

    # The model.

    def state(self, uri: str, until: int | None = None) -> JsonObject:
        state = chat_state(uri)
        for entry in self.log:
            if entry["channel"] == uri and (until is None or entry["serverSeq"] <= until):
                state = reduce(uri, state, entry["action"])
        return state

    def _append(self, uri: str, action: JsonObject, origin: tuple[str, int] | None) -> None:
        self.head += 1
        entry = {**envelope(self.head, action, origin), "channel": uri}
        self.log.append(entry)
        self.wire.append(entry)

    def _note(self, changes: Any) -> None:
        for change in changes:
            if isinstance(change, ActionSettled):
                assert change.client_seq not in self.settled, "settled twice"
                self.settled[change.client_seq] = change.outcome

    def _take_snapshot(self, uri: str) -> None:
        self.mirror.snapshot({"resource": uri, "state": self.state(uri), "fromSeq": self.head})
        self._note(self.mirror.resume(uri, now=NOW))

    # What can happen.

    @rule(uri=st.sampled_from(uris))
    def dispatch(self, uri: str) -> None:
        seq = next(self.seqs)
        self.sent.add(seq)
        self.mirror.dispatch(uri, seq, queued(f"mine {seq}"))
        self.undelivered.append((uri, seq, queued(f"mine {seq}")))

    @rule(uri=st.sampled_from(uris))
    def someone_else_acts(self, uri: str) -> None:
        self._append(uri, queued(f"theirs {self.head}"), (OTHER, 1))

    @precondition(lambda self: self.undelivered)
    @rule(accept=st.booleans(), data=st.data())
    def host_takes_one(self, accept: bool, data: st.DataObject) -> None:
        uri, seq, action = self.undelivered.pop(data.draw(st.integers(0, len(self.undelivered) - 1)))
        if seq in self.answered:  # A repeat: the host recognises it and echoes what it did.
            done = self.answered[seq]
            self.wire.append({**envelope(done, action, (ME, seq)), "channel": uri})
        elif accept:
            self._append(uri, action, (ME, seq))
            self.answered[seq] = self.head
        else:  # Said at once: it overtakes actions that are still being written.
            rejection = {**envelope(self.head, action, (ME, seq), rejectionReason="no"), "channel": uri}
            self.wire.insert(data.draw(st.integers(0, len(self.wire))), rejection)

    @precondition(lambda self: self.wire)
    @rule(data=st.data())
    def one_message_arrives(self, data: st.DataObject) -> None:
        """The next one of some channel: another channel may be slower."""
        self._deliver(data.draw(st.sampled_from(sorted({message["channel"] for message in self.wire}))))

    def _deliver(self, uri: str) -> None:
        message = next(message for message in self.wire if message["channel"] == uri)
        self.wire.remove(message)
        self._note(self.mirror.envelope(message, now=NOW))

    @rule(replay=st.booleans(), overtaken=st.booleans())
    def reconnect(self, replay: bool, overtaken: bool) -> None:
        """Everything on the wire is lost, then asked for again: maybe more than is missing."""
        self.wire.clear()
        self.mirror.expect(self.uris)
        self.undelivered.clear()
        last_seen, until = self.mirror.last_seen(), self.head
        snapshots = [(uri, self.state(uri)) for uri in self.uris]
        if overtaken:  # A live action arrives before the answer to `reconnect`.
            self._append(self.uris[0], queued(f"live {self.head}"), None)
            self._note(self.mirror.envelope(self.wire.pop(), now=NOW))
        if replay:
            missed = [entry for entry in self.log if last_seen < entry["serverSeq"] <= until]
            self._note(self.mirror.replay(missed, now=NOW))
        for uri, state in snapshots:
            if not replay:
                self.mirror.snapshot({"resource": uri, "state": state, "fromSeq": until})
            self._note(self.mirror.resume(uri, now=NOW))
        for uri, pending in self.mirror.unanswered():
            self.undelivered.append((uri, pending.client_seq, pending.action))

    @rule(uri=st.sampled_from(uris))
    def subscribe_again(self, uri: str) -> None:
        self.mirror.expect([uri])
        while any(message["channel"] == uri for message in self.wire):  # The answer comes after what was sent before.
            self._deliver(uri)
        self._take_snapshot(uri)

    # What always holds.

    @invariant()
    def confirmed_is_the_fold_of_the_log(self) -> None:
        for uri in self.uris:
            channel = self.mirror[uri]
            assert channel.confirmed == self.state(uri, until=channel.seq)

    @invariant()
    def optimistic_is_confirmed_with_the_pending_actions(self) -> None:
        for uri in self.uris:
            channel = self.mirror[uri]
            state = channel.confirmed
            assert state is not None
            for pending in channel.pending.values():
                state = reduce(uri, state, pending.action)
            assert channel.optimistic == state

    @invariant()
    def every_action_is_either_pending_or_settled(self) -> None:
        pending = {pending.client_seq for _, pending in self.mirror.unanswered()}
        assert pending.isdisjoint(self.settled)
        assert pending | self.settled.keys() == self.sent

    def teardown(self) -> None:
        """When everything was delivered, nothing is pending and both sides agree."""
        while self.undelivered or self.wire:
            while self.wire:
                self._deliver(self.wire[0]["channel"])
            for uri, seq, action in self.undelivered:
                if seq in self.answered:
                    self.wire.append({**envelope(self.answered[seq], action, (ME, seq)), "channel": uri})
                else:
                    self._append(uri, action, (ME, seq))
                    self.answered[seq] = self.head
            self.undelivered.clear()
        assert self.settled.keys() == self.sent
        for seq, done in self.answered.items():
            assert self.settled[seq] == Accepted(done)
        for uri in self.uris:
            assert self.mirror[uri].optimistic == self.state(uri)


MirrorMachine.TestCase.settings = settings(examples(0.5), stateful_step_count=40)
TestMirrorMachine = MirrorMachine.TestCase


ROPE = Rope.of("a").add("b")


def test_ropes_become_strings_wherever_they_are() -> None:
    assert plain({"a": [{"b": ROPE}], "c": 1}) == {"a": [{"b": "ab"}], "c": 1}
    assert type(plain({"a": ROPE})["a"]) is str
    assert json.dumps(plain([ROPE])) == '["ab"]'


def test_a_state_without_ropes_is_not_copied() -> None:
    state = {"a": [{"b": "ab"}], "c": None}
    assert plain(state) is state


def test_what_did_not_change_is_taken_from_the_last_look() -> None:
    states = PlainStates()
    old: dict[str, Any] = {"turns": [{"text": ROPE}], "title": "x"}
    first = states.of(old)
    assert states.of(old) is first
    second = states.of({**old, "title": "y"})
    assert second == {"turns": [{"text": "ab"}], "title": "y"}
    assert second["turns"] is first["turns"]


JSON = st.recursive(
    st.none() | st.integers() | st.text() | st.text().map(Rope.of),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=5))
def test_a_look_is_the_same_whatever_was_looked_at_before(values: list[Any]) -> None:
    states = PlainStates()
    for value in values:
        assert states.of(value) == plain(value)
        json.dumps(states.of(value))


async def streaming(host: FakeHost, client: Client) -> Chat:
    chat = await (await client.session(SESSION)).chat()
    host.emit(CHAT, {"type": "chat/turnStarted", "turnId": "t", "message": {"text": "?", "origin": {"kind": "user"}}})
    host.emit(
        CHAT, {"type": "chat/responsePart", "turnId": "t", "part": {"kind": "markdown", "id": "p", "content": ""}}
    )
    await eventually(lambda: chat.follow() is not None)
    return chat


async def test_the_state_of_a_chat_is_plain_while_its_text_streams(host: FakeHost, client: Client) -> None:
    chat = await streaming(host, client)
    for word in ("hello ", "wor", "ld"):
        host.emit(CHAT, {"type": "chat/delta", "turnId": "t", "partId": "p", "content": word})
    await eventually(lambda: "world" in str(chat.state))
    for state in (chat.state, chat.confirmed, chat.optimistic):
        part: Any = state.get("activeTurn", {})["responseParts"][0]
        assert type(part["content"]) is str
        assert part["content"].upper() == "HELLO WORLD"
        assert "hello world" in json.dumps(state)


async def test_conditions_and_subscriptions_see_plain_states(host: FakeHost, client: Client) -> None:
    await streaming(host, client)
    async with client.subscribe(CHAT) as subscription:
        host.emit(CHAT, {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "hello"})
        state = await subscription.wait_for(lambda state: "hello" in json.dumps(state))
        json.dumps([state, subscription.state, subscription.confirmed, subscription.optimistic])


async def test_who_only_follows_events_pays_nothing(
    host: FakeHost, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []

    def counted(self: PlainStates, state: Any) -> Any:
        looks.append(state)
        return plain(state)

    chat = await streaming(host, client)
    turn = chat.follow()
    assert turn is not None
    monkeypatch.setattr(PlainStates, "of", counted)
    for number in range(100):
        host.emit(CHAT, {"type": "chat/delta", "turnId": "t", "partId": "p", "content": f"{number} "})
    host.emit(CHAT, {"type": "chat/turnComplete", "turnId": "t"})
    text = "".join([event.text async for event in turn if isinstance(event, TextDelta)])
    assert text == "".join(f"{number} " for number in range(100))
    assert looks == []


async def test_the_tool_call_of_an_event_is_plain(host: FakeHost, client: Client) -> None:
    chat = await streaming(host, client)
    turn = chat.follow()
    assert turn is not None
    call = {"turnId": "t", "toolCallId": "c"}
    host.emit(CHAT, {"type": "chat/toolCallStart", **call, "toolName": "x", "displayName": "X"})
    for piece in ('{"a"', ": 1}"):
        host.emit(CHAT, {"type": "chat/toolCallDelta", **call, "content": piece})
    await eventually(lambda: "1}" in str(chat.state))
    late = chat.follow()  # It learns of the call from the state, not from actions.
    host.emit(CHAT, {"type": "chat/turnComplete", "turnId": "t"})
    for stream in (turn, late):
        assert stream is not None
        events = [event async for event in stream]
        json.dumps([event.call for event in events if isinstance(event, ToolCallStarted)])
        assert "".join(event.text for event in events if isinstance(event, ToolCallInputDelta)) == '{"a": 1}'
