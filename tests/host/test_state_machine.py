"""Any history of clients, connections and host deaths ends the same way: everyone agrees, and nothing happened twice.

Real hosts and real SDK clients over memory transports. A host dies as a process does: from one moment on nothing of it
becomes durable, and its connections are gone. Whatever the clients were shown until then must be found in the log.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from ahpkit.client import Accepted, Client, Dispatch, Rejected, Subscription
from ahpkit.client.errors import ClientError
from ahpkit.dialects.actions_down import is_repeat
from ahpkit.dialects.base import Dialect
from ahpkit.host.agent import Turn
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.log.entry import Batch, Entry
from ahpkit.log.errors import StorageError
from ahpkit.log.memory import MemoryStorage
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.chat.actions import chat_turn_cancelled
from ahpkit.protocol.errors import AhpError
from ahpkit.transports.errors import ConnectError
from ahpkit.transports.memory import MemoryTransport, memory_pair
from ahpkit.wire.codec import decode_json, encode
from support import requirement
from support.bench import ScriptedAgent
from support.clients import QUICKLY
from support.properties import examples
from support.raw_client import Json
from support.waiting import BOUND

T = TypeVar("T")

NOW = 1_700_000_000_000
"""Everyone's clock stands still: states hold times that each client sets by its own."""

CLIENTS = st.integers(0, 2)
TURNS = st.sampled_from(["t1", "t2", "t3"])
WORDS = st.sampled_from(["", "one", "two", "a\ud800b", "😀" * 50])


class Mortal(MemoryStorage):
    """Outlives its hosts. While `dead`, nothing becomes durable; while it is slow, nothing does yet."""

    def __init__(self) -> None:
        super().__init__()
        self.dead = False
        self.working = threading.Event()
        self.working.set()
        self.entries: dict[int, Entry] = {}

    def commit(self, batch: Batch) -> None:
        assert self.working.wait(BOUND)
        if self.dead:
            raise StorageError("the host is dead")
        super().commit(batch)
        for step in batch:
            if isinstance(step, Entry):
                assert step.seq not in self.entries
                self.entries[step.seq] = step


class Watched:
    """A client's end of a connection; keeps every action that comes over it."""

    def __init__(self, transport: MemoryTransport, seen: list[Json]) -> None:
        self.transport = transport
        self._seen = seen

    async def receive(self) -> bytes:
        data = await self.transport.receive()
        message: Json = decode_json(data)
        result: Any = message.get("result")
        if message.get("method") == "action":
            self._seen.append(message["params"])
        elif result is not None and result.get("type") == "replay":
            self._seen.extend(result["actions"])
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


class Person:
    """A client, what it holds, and everything it was shown."""

    def __init__(self, client: Client, seen: list[Json]) -> None:
        self.client = client
        self.seen = seen
        self.connection: Watched | None = None
        self.held: dict[str, Subscription] = {}


class Histories(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.storage = Mortal()
        self.host: Host | None = None
        self.people: list[Person] = []
        self.sessions: list[str] = []
        self.dispatches: list[tuple[Person, Dispatch]] = []
        self.told: list[Dispatch] = []
        self.working: set[asyncio.Task[Any]] = set()
        self.serving: set[asyncio.Task[Any]] = set()
        self.run(self._begin())

    async def _begin(self) -> None:
        self.go_on = asyncio.Event()
        await self._start()
        for number in range(3):
            seen: list[Json] = []
            client = Client(lambda number=number: self._dial(number), client_id=f"person-{number}", backoff=QUICKLY)
            self.people.append(Person(client, seen))
            await client.__aenter__()
        self.sessions.append("ahp-session:/0")
        await self._request(0, "createSession", "ahp-session:/0")
        for person in self.people:
            await self._subscribe(person, self._channel(0))
            await self._subscribe(person, self._channel(0, chat=True))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(BOUND):
                return await work

        return self.loop.run_until_complete(bounded())

    def soon(self, work: Coroutine[Any, Any, Any]) -> None:
        """Begin something and look after it later."""
        task = self.loop.create_task(work)
        self.working.add(task)
        task.add_done_callback(self.working.discard)

    # -- the host -----------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        agent = ScriptedAgent()
        agent.script = self._script
        self.storage.dead = False
        config = HostConfig(default_directory=Path("/"), client_grace=0.01)
        host = Host(self.storage, agents=[agent], config=config, now=lambda: NOW)
        await host.__aenter__()
        self.host = host

    async def _script(self, turn: Turn) -> None:
        turn.think("hmm")
        for word in ("one ", "two ", "three"):
            turn.text(word)
            await asyncio.sleep(0)
        if turn.prompt == "wait":
            await self.go_on.wait()
        if turn.prompt == "ask":
            call = turn.tool_call("hammer")
            answer = await call.confirm(tool_input="{}")
            call.complete(success=answer.approved, message="done")

    async def _dial(self, number: int) -> Any:
        if self.host is None:
            raise ConnectError("memory", "nobody listens there", transient=True)
        ours, theirs = memory_pair()
        serving = asyncio.create_task(self.host.serve(theirs))
        self.serving.add(serving)
        serving.add_done_callback(self.serving.discard)
        person = self.people[number]
        person.connection = Watched(ours, person.seen)
        return person.connection

    async def _die(self) -> None:
        assert self.host is not None
        host, self.host = self.host, None
        self.storage.dead = True
        self.storage.working.set()
        for person in self.people:
            if person.connection is not None:
                person.connection.abort()
        await host.__aexit__(None, None, None)

    @precondition(lambda self: self.host is not None)
    @rule()
    def kill(self) -> None:
        self.run(self._die())

    @precondition(lambda self: self.host is not None)
    @rule()
    def slow_down_the_disk(self) -> None:
        self.storage.working.clear()

    @rule()
    def speed_up_the_disk(self) -> None:
        self.storage.working.set()

    @precondition(lambda self: self.host is None)
    @rule()
    def start_again(self) -> None:
        self.run(self._start())

    # -- the clients ---------------------------------------------------------------------------------------------

    @rule(number=CLIENTS)
    def cut(self, number: int) -> None:
        connection = self.people[number].connection
        if connection is not None:
            connection.abort()

    @rule(steps=st.integers(1, 60))
    def let_it_run(self, steps: int) -> None:
        async def idle() -> None:
            for _ in range(steps):
                await asyncio.sleep(0)

        self.run(idle())

    @rule(number=CLIENTS, which=st.integers(0, 5), chat=st.booleans())
    def subscribe(self, number: int, which: int, chat: bool) -> None:
        uri = self._channel(which, chat=chat)
        if uri not in self.people[number].held:
            self.soon(self._subscribe(self.people[number], uri))

    async def _subscribe(self, person: Person, uri: str) -> None:
        subscription = person.client.subscribe(uri)
        with suppress(ClientError):
            await subscription.__aenter__()
            if uri in person.held:
                await subscription.__aexit__()
            else:
                person.held[uri] = subscription

    @rule(number=CLIENTS, which=st.integers(0, 5))
    def unsubscribe(self, number: int, which: int) -> None:
        held = self.people[number].held
        if held:
            uri = sorted(held)[which % len(held)]
            self.run(held.pop(uri).__aexit__())

    # -- what they do --------------------------------------------------------------------------------------------

    @rule(number=CLIENTS, which=st.integers(0, 5), text=WORDS)
    def rename(self, number: int, which: int, text: str) -> None:
        self._dispatch(number, self._channel(which), {"type": "session/titleChanged", "title": text})

    @rule(number=CLIENTS, which=st.integers(0, 5), turn=TURNS, text=st.sampled_from(["hello", "wait", "ask"]))
    def talk(self, number: int, which: int, turn: str, text: str) -> None:
        message = {"text": text, "origin": {"kind": "user"}}
        action = {"type": "chat/turnStarted", "turnId": turn, "message": message}
        self._dispatch(number, self._channel(which, chat=True), action)

    @rule(number=CLIENTS, which=st.integers(0, 5), turn=TURNS)
    def cancel(self, number: int, which: int, turn: str) -> None:
        self._dispatch(number, self._channel(which, chat=True), {"type": "chat/turnCancelled", "turnId": turn})

    @rule(number=CLIENTS, which=st.integers(0, 5), turn=TURNS, approved=st.booleans())
    def decide(self, number: int, which: int, turn: str, approved: bool) -> None:
        action: Json = {"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": f"{turn}-tool-2"}
        action |= (
            {"approved": True, "confirmed": "user-action"} if approved else {"approved": False, "reason": "denied"}
        )
        self._dispatch(number, self._channel(which, chat=True), action)

    @rule(number=CLIENTS, which=st.integers(0, 5), model=st.sampled_from(["small", "large", "none"]))
    def choose_model(self, number: int, which: int, model: str) -> None:
        """Waits for the end of a turn, and dies with the host."""
        self._dispatch(number, self._channel(which), {"type": "session/modelChanged", "model": {"id": model}})

    @rule(number=CLIENTS, which=st.integers(0, 5), text=WORDS)
    def queue(self, number: int, which: int, text: str) -> None:
        message = {"text": text, "origin": {"kind": "user"}}
        action = {"type": "chat/pendingMessageSet", "kind": "queued", "id": f"q{text[:1]}", "message": message}
        self._dispatch(number, self._channel(which, chat=True), action)

    @rule(
        number=CLIENTS,
        wrong=st.sampled_from(
            [
                ("ahp-session:/0", {"type": "session/titleChanged", "title": 7}),
                ("ahp-session:/0", {"type": "session/ready"}),
                ("ahp-session:/0", {"type": "no/suchAction"}),
                ("ahp-session:/nowhere", {"type": "session/titleChanged", "title": "x"}),
                ("ahp-nothing:/x", {"type": "session/titleChanged", "title": "x"}),
            ]
        ),
    )
    def try_what_is_not_allowed(self, number: int, wrong: tuple[str, Json]) -> None:
        self._dispatch(number, *wrong)

    @rule(number=CLIENTS)
    def tell_settings(self, number: int) -> None:
        """VS Code's way: what the host does not know holds for this connection. It is answered and not logged."""
        person = self.people[number]

        async def dispatch() -> Dispatch:
            return person.client.dispatch(ROOT_URI, {"type": "root/configChanged", "config": {"no": "such"}})

        self.told.append(self.run(dispatch()))

    @rule(number=CLIENTS)
    def create_session(self, number: int) -> None:
        if len(self.sessions) < 4:
            uri = f"ahp-session:/{len(self.sessions)}"
            self.sessions.append(uri)
            self.soon(self._request(number, "createSession", uri))

    @precondition(lambda self: len(self.sessions) > 1)
    @rule(number=CLIENTS, which=st.integers(0, 5))
    def dispose_session(self, number: int, which: int) -> None:
        """Never the first one: there is always somewhere to go on."""
        uri = self.sessions[1:][which % (len(self.sessions) - 1)]
        self.soon(self._request(number, "disposeSession", uri))

    async def _request(self, number: int, method: str, uri: str) -> None:
        with suppress(AhpError, TimeoutError):
            await self.people[number].client.request(method, channel=uri)

    def _dispatch(self, number: int, uri: str, action: Json) -> None:
        person = self.people[number]

        async def dispatch() -> Dispatch:
            return person.client.dispatch(uri, action)

        self.dispatches.append((person, self.run(dispatch())))

    def _channel(self, which: int, *, chat: bool = False) -> str:
        """One of the sessions, also one that is gone; or its chat, as far as anybody knows it."""
        session = self.sessions[which % len(self.sessions)]
        if not chat:
            return session
        state = None if self.host is None else self.host.services.state(session)
        return (state or {}).get("defaultChat", "ahp-chat:/unknown")

    # -- the end -------------------------------------------------------------------------------------------------

    @rule()
    def everyone_agrees(self) -> None:
        self.run(self._settle())
        self._check_states()
        self._check_log()

    async def _settle(self) -> None:
        if self.host is None:
            await self._start()
        assert self.host is not None
        for person in self.people:
            await person.client.wait_connected()
        self.go_on.set()
        self.storage.working.set()
        while self.working:
            await asyncio.wait(self.working)
        seen = -1
        while self._end_turns() or self._unanswered() or seen != self.host.spine.log.head_seq:
            seen = self.host.spine.log.head_seq
            await self.host.services.durable()
            for person in self.people:
                await person.client.ping()  # The answer comes after every action before it.
        self.go_on.clear()

    def _unanswered(self) -> bool:
        return any(dispatch.outcome is None for dispatch in [*self.told, *(each for _, each in self.dispatches)])

    def _end_turns(self) -> bool:
        """Let turns come to their end; those that wait for somebody's decision are ended. Whether any still runs."""
        assert self.host is not None
        states = [(uri, self.host.services.state(uri) or {}) for uri in self.host.spine.store.channels()]
        running = [(uri, state["activeTurn"]) for uri, state in states if "activeTurn" in state]
        for uri, turn in running:
            if any(part["kind"] == "toolCall" for part in turn["responseParts"]):
                self.host.services.dispatch(uri, chat_turn_cancelled(turn_id=turn["id"], duration=0))
        return bool(running)

    def _check_states(self) -> None:
        assert self.host is not None
        for person in self.people:
            for uri, subscription in person.held.items():
                committed = self.host.spine.store.committed(uri)
                if committed is not None:
                    told = self._told(person, uri, committed)
                    if uri.startswith("ahp-chat:"):  # No action gives a chat another title.
                        told = {**told, "title": subscription.confirmed["title"]}
                    assert timeless(subscription.confirmed) == timeless(told)
                    assert subscription.optimistic is subscription.confirmed
            root = self.host.spine.store.committed(ROOT_URI)
            assert root is not None
            assert plain(person.client.root) == plain(self._told(person, ROOT_URI, root))

    def _told(self, person: Person, uri: str, committed: Any) -> Any:
        """A committed state as this person's client is told it."""
        return self._dialect(person).state(uri, committed)

    def _dialect(self, person: Person) -> Dialect:
        assert self.host is not None
        connection = self.host.clients.get(person.client.client_id)
        assert connection is not None
        return connection.outlet.dialect

    def _told_action(self, person: Person, entry: Entry) -> Any:
        """A logged action as this person's client is told it."""
        body = self._dialect(person).action(entry.type, entry.payload)
        assert body is not None
        return decode_json(body)

    def _check_log(self) -> None:
        logged = self.storage.entries
        assert list(logged) == list(range(1, len(logged) + 1))
        used = Counter((entry.client_id, entry.client_seq) for entry in logged.values() if entry.client_id is not None)
        assert set(used.values()) <= {1}
        for person in self.people:
            for said in person.seen:
                if "rejectionReason" not in said and said["action"]["type"] != "root/configChanged":
                    assert self._told_action(person, logged[said["serverSeq"]]) == said
        assert all(isinstance(dispatch.outcome, Accepted) for dispatch in self.told)
        for person, dispatch in self.dispatches:
            number = (person.client.client_id, dispatch.client_seq)
            match dispatch.outcome:
                case Accepted(server_seq):
                    entry = logged[server_seq]
                    assert (entry.client_id, entry.client_seq) == number
                    assert is_repeat(plain(dispatch.action), self._told_action(person, entry)["action"])
                case Rejected(reason):
                    assert reason
                    assert used[number] == 0 or "removed" in reason or "no " in reason
                case None:
                    raise AssertionError("never answered")

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        try:
            if len(self.people) == 3:
                self.everyone_agrees()
        finally:
            self.run(self._end())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    async def _end(self) -> None:
        for person in self.people:
            await person.client.__aexit__(None, None, None)
        if self.host is not None:
            await self.host.__aexit__(None, None, None)
        while self.serving:
            await asyncio.wait(self.serving)


def plain(state: object) -> Any:
    """As it goes over the wire."""
    return decode_json(encode(state))


def timeless(state: object) -> Any:
    """Without the times of changes: 0.4 clients write them by their own clocks."""
    return _without_times(plain(state))


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: _without_times(one) for key, one in members if key != "modifiedAt"}
    return [_without_times(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


@requirement("core:connection:server-seq-monotonic")
@requirement("core:connection:snapshot-then-actions")
@requirement("core:connection:accepted-broadcast")
@requirement("core:hardening:server-seq-survives-restart")
@requirement("core:hardening:duplicates-dropped")
def test_after_any_history_everyone_agrees_and_nothing_happened_twice(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ahpkit.client.core.now", lambda: NOW)
    run_state_machine_as_test(
        Histories,
        settings=settings(
            examples(0.6),
            stateful_step_count=50,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
