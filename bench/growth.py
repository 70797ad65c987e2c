"""What one more costs when there are many already: sessions, chats, turns, customizations, clients, subscriptions.

    python bench/growth.py [--quick] [--json FILE]

For each kind the host is filled to 10, 100, 1,000 and 10,000 (with --quick to 1,000), and one more is made a few times.
Shown is the CPU time of the host's process for one more, in milliseconds, and the ratio of the last to the first: flat
costs have a ratio near 1. The host runs in this process over memory, with SQLite on disk and all features of
`ahpkit serve`; the clients are as cheap as they can be, and their share is the same at every size.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from ahpkit.customizations.feature import Customizations, CustomizationSettings
from ahpkit.host.agent import AgentChat, Chat
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.log.sqlite import SqliteStorage
from ahpkit.protocol.common.state import JsonObject
from ahpkit.transports.memory import memory_pair
from support.bench import ScriptedAgent, ScriptedChat
from support.raw_client import RawClient

TARGET = 1.5
REPEAT = 15
_numbers = itertools.count(1)

Json = dict[str, Any]
Grow = Callable[["Bed"], Awaitable[None]]
"""Makes one more."""


class Idle(ScriptedAgent):
    """Loses nothing when a session rests."""

    async def open(self, chat: Chat) -> AgentChat:
        return IdleChat(self, chat)


class IdleChat(ScriptedChat):
    @property
    def can_rest(self) -> bool:
        return True


class Bed:
    """A host with one client that makes things."""

    def __init__(self, host: Host, directory: Path, client: RawClient) -> None:
        self.host = host
        self.directory = directory
        self.client = client
        self.session = ""
        self.chat = ""
        self.others: list[RawClient] = []

    async def connect(self, name: str) -> RawClient:
        ours, theirs = memory_pair()
        self._serving = asyncio.create_task(self.host.serve(theirs))
        client = RawClient(ours, name)
        await client.initialize()
        return client

    async def new_session(self, *, ready: bool = True) -> tuple[str, str]:
        uri = f"ahp-session:/g{next(_numbers)}"
        client = self.client
        client.received.clear()
        await client.ask("createSession", uri, workingDirectory=self.directory.as_uri())
        state = (await client.ask("subscribe", uri))["snapshot"]["state"]
        if ready and state["lifecycle"] == "creating":
            await client.action(lambda said: said["channel"] == uri and said["action"]["type"] == "session/ready")
        client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}})
        return uri, state["defaultChat"]


@asynccontextmanager
async def bed(home: Path, *, rules: int = 5) -> AsyncGenerator[Bed]:
    directory = home / "work"
    instructions = directory / ".github" / "instructions"
    instructions.mkdir(parents=True)
    for number in range(rules):
        (instructions / f"r{number}.instructions.md").write_text(f'---\napplyTo: "**/*.{number}"\n---\nRule {number}\n')
    features = [Customizations(CustomizationSettings(default_directory=directory, home=None))]
    storage = SqliteStorage(home / "log.db", durability="normal")
    config = HostConfig(default_directory=directory)
    async with Host(storage, agents=[Idle()], features=features, config=config) as host:
        ours, theirs = memory_pair()
        serving = asyncio.create_task(host.serve(theirs))
        client = RawClient(ours, "grower")
        await client.initialize("ahp-root://")
        made = Bed(host, directory, client)
        made.session, made.chat = await made.new_session()
        await client.ask("subscribe", made.session)
        await client.ask("subscribe", made.chat)
        yield made
        await client.aclose()
        await asyncio.wait([serving], timeout=5)


async def one_session(bed: Bed) -> None:
    await bed.new_session()


async def disposed_session(bed: Bed) -> None:
    uri, _ = await bed.new_session()
    await bed.client.ask("disposeSession", uri)


async def toggled(bed: Bed) -> None:
    """Switches one customization of one session, among all that share the folder."""
    state: JsonObject = bed.host.services.state(bed.session) or {}
    child: JsonObject = next(one for entry in state["customizations"] for one in entry.get("children") or ())
    bed.client.received.clear()
    action = {"type": "session/customizationToggled", "id": child["id"], "enabled": next(_numbers) % 2 == 0}
    await bed.client.accepted(bed.session, action)
    await bed.new_session()


async def one_rule(bed: Bed) -> None:
    """One more file that a session shows: its folder is read again."""
    number = next(_numbers)
    folder = bed.directory / ".github" / "instructions"
    (folder / f"n{number}.instructions.md").write_text(f'---\napplyTo: "**/*.n{number}"\n---\nRule {number}\n')
    while f"n{number}" not in str(bed.host.services.state(bed.session)):
        await asyncio.sleep(0.001)


async def one_channel(bed: Bed) -> None:
    """One more channel with a state, and one action in it."""
    uri = f"ahp-terminal:/g{next(_numbers)}"
    state: JsonObject = {"title": "", "content": [], "claim": {"kind": "client", "clientId": "grower"}}
    bed.host.services.open_channel(uri, state)
    await bed.host.services.durable()


async def one_chat(bed: Bed) -> None:
    bed.client.received.clear()
    await bed.client.ask("createChat", bed.session, chat=f"ahp-chat:/g{next(_numbers)}")


async def one_turn(bed: Bed) -> None:
    bed.client.received.clear()
    turn = f"t{next(_numbers)}"
    message = {"text": "hello", "origin": {"kind": "user"}}
    await bed.client.accepted(bed.chat, {"type": "chat/turnStarted", "turnId": turn, "message": message})
    await bed.client.action(lambda said: said["action"]["type"] == "chat/turnComplete")


async def one_client(bed: Bed) -> None:
    client = await bed.connect(f"c{next(_numbers)}")
    bed.others.append(client)


async def one_subscription(bed: Bed) -> None:
    """Spread over connections: each takes a thousand channels that nobody else has."""
    if not bed.others or len(bed.others[-1].received) >= 1_000:
        await one_client(bed)
    uri, _ = await bed.new_session(ready=False)
    await bed.others[-1].ask("subscribe", uri)


KINDS: dict[str, tuple[Grow, int]] = {
    "sessions": (one_session, 10_000),
    "disposing a session": (disposed_session, 10_000),
    "toggling and a session": (toggled, 10_000),
    "chats of a session": (one_chat, 950),
    "channels": (one_channel, 10_000),
    "turns of a chat": (one_turn, 10_000),
    "clients": (one_client, 10_000),
    "subscriptions": (one_subscription, 10_000),
}
"""What grows, and how far: some things have a limit."""


async def measure(grow: Grow, sizes: list[int], fill: Grow) -> dict[int, float]:
    """CPU milliseconds for one more at each size."""
    costs: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with bed(Path(folder)) as made:
            have = 1
            for size in sizes:
                while have < size:
                    await fill(made)
                    have += 1
                await made.host.services.durable()
                gc.collect()
                gc.freeze()
                taken: list[float] = []
                for _ in range(REPEAT):
                    began = time.process_time()
                    await grow(made)
                    taken.append(time.process_time() - began)
                    have += 1
                costs[size] = statistics.median(taken) * 1000
            for client in made.others:
                await client.aclose()
    return costs


def sizes_of(most: int, quick: bool) -> list[int]:
    """The sizes up to what there may be; a limit just below one of them stands for it."""
    return sorted({min(size, most) for size in (10, 100, 1_000, 10_000) if not (quick and size > 1_000)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 1,000 only")
    parser.add_argument("--only", help="one kind")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    options = parser.parse_args()
    results: dict[str, Json] = {}
    print(f"{'one more of':26}" + "".join(f"{size:>10,}" for size in (10, 100, 1_000, 10_000)) + "     ratio")
    for name, (grow, most) in KINDS.items():
        if options.only not in (None, name):
            continue
        fill = one_session if grow in (disposed_session, toggled) else grow
        costs = asyncio.run(measure(grow, sizes_of(most, options.quick), fill))
        ratio = list(costs.values())[-1] / costs[10]
        shown = "".join(f"{cost:>10.2f}" for cost in costs.values()).ljust(40)
        print(f"{name:26}{shown}{ratio:>10.2f}  {'ok' if ratio <= TARGET else f'over {TARGET}'}", flush=True)
        results[name] = {"cpu_ms": costs, "ratio": ratio}
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
