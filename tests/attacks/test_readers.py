"""Who does not read costs the host no memory: large answers are made as they are read, and memory goes back."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from support.flow import open_session, remark, say, title
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient
from support.unread import Unread
from support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = "ahp-root://"
MIB = 1024 * 1024
ACTIONS = {"ahpkit/missed": "actions"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[HostProcess]:
    async with host_process(tmp_path_factory.mktemp("host")) as running:
        yield running
        assert running.process.returncode is None
        assert "Traceback" not in running.errors, running.errors


@pytest_asyncio.fixture(loop_scope="module")
async def client(host: HostProcess) -> AsyncGenerator[RawClient]:
    client = await host.client(ROOT)
    yield client
    await client.aclose()


class Memory:
    """What a host takes more than at the beginning."""

    def __init__(self, host: HostProcess) -> None:
        self._host = host
        self._base = host.memory

    @property
    def more(self) -> float:
        """In MiB."""
        return (self._host.memory - self._base) / MIB

    async def stays_below(self, most: float, client: RawClient, *, rounds: int = 60) -> None:
        """While the host serves somebody else."""
        for _ in range(rounds):
            assert await client.ask("ping") is None
            assert self.more < most, f"{self.more:.0f} MiB"
            await asyncio.sleep(0.02)

    async def goes_back(self, most: float) -> None:
        try:
            await until(lambda: self.more < most)
        except TimeoutError:
            raise AssertionError(f"{self.more:.0f} MiB more than {self._base / MIB:.0f}") from None


def workspace(host: HostProcess) -> Path:
    folder = host.home / "workspace"
    folder.mkdir(exist_ok=True)
    return folder


async def working_session(client: RawClient, uri: str, folder: Path) -> None:
    await client.ask("createSession", uri, workingDirectory=folder.as_uri())
    state = (await client.ask("subscribe", uri))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        await client.action(lambda said: said["channel"] == uri and said["action"]["type"] == "session/ready")


async def test_unread_results_of_large_files_wait_on_the_disk(host: HostProcess, client: RawClient) -> None:
    large = workspace(host) / "large.txt"
    large.write_bytes(b"x" * (10 * MIB))
    await working_session(client, "ahp-session:/reads", large.parent)
    memory = Memory(host)
    with ExitStack() as open_sockets:
        for number in range(20):
            reader = open_sockets.enter_context(Unread(host))
            reader.ask(0, "initialize", protocolVersions=["0.4.0"], clientId=f"unread-{number}")
            for request in range(1, 20):
                reader.ask(request, "resourceRead", uri=large.as_uri())
        await memory.stays_below(60, client)
    await memory.goes_back(40)


async def fill_log(client: RawClient, session: str, *, actions: int, each: int) -> int:
    """Actions that a client misses; the number before them."""
    before = (await client.accepted(session, title("before")))["serverSeq"]
    for _ in range(actions):
        await client.accepted(session, title("y" * each))
        client.received.clear()
    return before


@pytest.mark.slow
@pytest.mark.parametrize(("actions", "each"), [(20, MIB), (4, 7 * MIB), (400, 20_000)])
async def test_unread_replays_wait_on_the_disk(host: HostProcess, client: RawClient, actions: int, each: int) -> None:
    session, _ = await open_session(client)
    before = await fill_log(client, session, actions=actions, each=each)
    memory = Memory(host)
    with ExitStack() as open_sockets:
        for number in range(25):
            reader = open_sockets.enter_context(Unread(host))
            subscribed: Json = {"clientId": f"missed-{number}", "subscriptions": [session], "_meta": ACTIONS}
            reader.ask(0, "reconnect", lastSeenServerSeq=before, **subscribed)
        await memory.stays_below(120, client)
    await memory.goes_back(40)
    await client.ask("disposeSession", session)


async def test_unread_states_share_what_is_in_memory(host: HostProcess, client: RawClient) -> None:
    session, _ = await open_session(client)
    await client.ask("subscribe", f"{session}/annotations")
    await client.accepted(f"{session}/annotations", remark("z" * (7 * MIB)))
    client.received.clear()
    memory = Memory(host)
    with ExitStack() as open_sockets:
        for number in range(40):
            reader = open_sockets.enter_context(Unread(host))
            reader.ask(0, "initialize", protocolVersions=["0.4.0"], clientId=f"states-{number}")
            for request in range(1, 4):
                reader.ask(request, "subscribe", channel=f"{session}/annotations")
        await memory.stays_below(60, client)
    await memory.goes_back(40)
    await client.ask("disposeSession", session)


async def test_memory_goes_back_after_an_import_and_its_disposal_while_everybody_stays(
    host: HostProcess, client: RawClient
) -> None:
    message = {"text": "x" * 6_000, "origin": {"kind": "user"}}
    turn: Json = {"message": message, "responseParts": [], "state": "complete"}
    memory = Memory(host)
    for piece in range(20):
        turns = [{"id": f"{piece}-{number}", **turn} for number in range(1_000)]
        await client.ask("_ahpkit/sessions/stage", chat=0, turns=turns)
    document: Json = {"format": 1, "title": "x", "provider": "demo", "chats": [{"title": "c", "turns": []}]}
    session = (await client.ask("_ahpkit/sessions/import", document=document, staged=20_000))["session"]
    await client.ask("disposeSession", session)
    await memory.goes_back(40)


async def test_clients_that_do_nothing_cost_little(host: HostProcess, client: RawClient) -> None:
    """16 KiB each is the goal of `bench/host.py`; pages and heaps are counted whole here."""
    with ExitStack() as open_sockets:

        def connect(name: str, count: int) -> None:
            for number in range(count):
                open_sockets.enter_context(Unread(host)).ask(
                    0, "initialize", protocolVersions=["1.0.0"], clientId=f"{name}-{number}"
                )

        connect("first", 50)
        assert await client.ask("ping") is None
        memory = Memory(host)
        connect("idle", 300)
        assert await client.ask("ping") is None
        assert memory.more * 1024 / 300 < 20


async def test_a_reader_that_stops_holds_up_nobody(host: HostProcess, client: RawClient) -> None:
    """It is far behind when somebody produces more: that is told to the others without waiting for it."""
    session, _ = await open_session(client)
    with Unread(host) as reader:
        reader.ask(0, "initialize", protocolVersions=["1.0.0"], clientId="stalled", initialSubscriptions=[session])
        for _ in range(3):
            await client.accepted(session, title("y" * MIB))
        for number in range(50):
            assert (await client.accepted(session, title(f"title {number}")))["action"]["title"] == f"title {number}"
    await client.ask("disposeSession", session)


async def test_what_is_added_to_a_large_file_is_not_read_with_it(host: HostProcess, client: RawClient) -> None:
    large = workspace(host) / "huge.bin"
    with large.open("wb") as file:
        file.truncate(1_500 * MIB)
    await working_session(client, "ahp-session:/huge", large.parent)
    memory = Memory(host)
    writing = asyncio.create_task(
        client.ask("resourceWrite", uri=large.as_uri(), data="!", encoding="utf-8", mode="append")
    )
    await memory.stays_below(40, client, rounds=10)
    assert await writing == {}
    assert large.stat().st_size == 1_500 * MIB + 1
    assert large.stat().st_blocks < 1024, "it was copied"
    large.unlink()


# -- who reads gets everything ---------------------------------------------------------------------------------------


def text_of(size: int) -> str:
    """Text with everything that has to be escaped or that takes several bytes."""
    letters = 'abc "\\\n\t\x01äß€😀'
    return "".join(random.Random(size).choices(letters, k=size))


@pytest.mark.parametrize("make", [lambda: text_of(700_000).encode(), lambda: random.Random(1).randbytes(700_001)])
async def test_a_large_file_arrives_as_it_is(host: HostProcess, client: RawClient, make: Callable[[], bytes]) -> None:
    content = make()
    file = workspace(host) / "content.bin"
    file.write_bytes(content)
    await working_session(client, f"ahp-session:/content-{len(content)}", file.parent)
    found = await client.ask("resourceRead", uri=file.as_uri())
    got = found["data"].encode() if found["encoding"] == "utf-8" else base64.b64decode(found["data"])
    assert got == content


async def test_what_happens_while_a_large_state_is_read_comes_after_it(host: HostProcess, client: RawClient) -> None:
    session, _ = await open_session(client)
    remarks = f"{session}/annotations"
    await client.ask("subscribe", remarks)
    said = text_of(800_000)
    await client.accepted(remarks, remark(said))
    reader = await host.client(client_id="late")
    asking = asyncio.create_task(reader.call("subscribe", remarks))
    posted = [client.post(remarks, remark(f"after {number}")) for number in range(50)]
    snapshot = (await asking)["result"]["snapshot"]
    posted.append(client.post(remarks, remark("after all")))  # The others may be in the state already.
    await reader.action(lambda told: told.get("origin", {}).get("clientSeq") == posted[-1])
    numbers = [told["serverSeq"] for told in reader.actions(remarks)]
    first_action = next(at for at, message in enumerate(reader.received) if message.get("method") == "action")
    assert "snapshot" in reader.received[first_action - 1]["result"]
    assert numbers == list(range(snapshot["fromSeq"] + 1, snapshot["fromSeq"] + 1 + len(numbers)))
    entry = snapshot["state"]["annotations"][0]["entries"][0]
    assert entry["text"] == said or entry["text"].startswith("after")
    await reader.aclose()
    await client.ask("disposeSession", session)


@pytest.mark.slow
async def test_a_long_chat_arrives_whole_in_every_version(host: HostProcess, client: RawClient) -> None:
    _, chat = await open_session(client)
    for number in range(120):
        await client.accepted(chat, say(f"/usage {number}", f"turn-{number}"))
        await client.action(lambda told, turn=f"turn-{number}": is_end(told["action"], turn))
        client.received.clear()
    for version in ("0.4.0", "1.0.0"):
        reader = await host.connect(f"long-{version}")
        await reader.initialize(protocolVersions=[version])
        state = (await reader.ask("subscribe", chat))["snapshot"]["state"]
        assert [turn["id"] for turn in state["turns"]] == [f"turn-{number}" for number in range(120)]
        assert all(turn["responseParts"] for turn in state["turns"])
        await reader.aclose()


def is_end(action: Json, turn: str) -> bool:
    return action["type"] in ("chat/turnComplete", "chat/error") and action["turnId"] == turn


async def test_a_large_replay_is_the_same_as_a_small_one(host: HostProcess, client: RawClient) -> None:
    session, _ = await open_session(client)
    before = (await client.accepted(session, title("before")))["serverSeq"]
    sent = [text_of(size) for size in (10, 300_000, 5, 900_000, 70_000, 1)]
    told = [await client.accepted(session, title(text)) for text in sent]
    reader = await host.connect("missed")
    subscribed: Json = {"clientId": "missed", "subscriptions": [session], "_meta": ACTIONS}
    result = await reader.ask("reconnect", lastSeenServerSeq=before, **subscribed)
    assert result["type"] == "replay"
    assert [one for one in result["actions"] if "origin" in one] == told
    await reader.aclose()
    await client.ask("disposeSession", session)


async def test_states_are_sent_when_they_are_smaller_than_the_actions(host: HostProcess, client: RawClient) -> None:
    session, _ = await open_session(client)
    first = await client.accepted(session, title("first"))
    for number in range(200):
        client.post(session, title(f"title {number}"))
    last = await client.accepted(session, title("last"))
    answers: dict[str, Json] = {}
    for wish in ("", "actions", "states"):
        reader = await host.connect(f"wish-{wish}")
        subscribed: Json = {"clientId": f"wish-{wish}", "subscriptions": [session], "_meta": {"ahpkit/missed": wish}}
        answers[wish] = await reader.ask("reconnect", lastSeenServerSeq=first["serverSeq"], **subscribed)
        await reader.aclose()
    assert answers[""]["type"] == answers["states"]["type"] == "snapshot"
    assert answers[""]["snapshots"][0]["state"]["summary"]["title"] == "last"
    assert answers["actions"]["type"] == "replay"
    assert last in answers["actions"]["actions"]
    assert len(json.dumps(answers[""])) < len(json.dumps(answers["actions"]))
    await client.ask("disposeSession", session)
