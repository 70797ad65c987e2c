"""A real host behind a proxy, and SDK clients that work: what is broken and what is checked."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import sys
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ahpkit.client import Backoff, Client, Dispatch, Subscription, connect
from ahpkit.client.errors import ClientError
from ahpkit.protocol.common.reducing import iso_time
from ahpkit.protocol.errors import AhpError
from ahpkit.testing.acp_agent import scripted_command
from soak.proxy import Proxy
from support import board_extension
from support.process import HostProcess, start_host
from support.waiting import BOUND

CLIENTS = 3
SERVER = Path(__file__).parents[1] / "mcp_servers" / "plain_server.py"
QUICKLY = Backoff(first=0.02, longest=0.5)


@dataclass
class Person:
    """One client, what it follows, and everything it dispatched."""

    client: Client
    held: dict[str, Subscription] = field(default_factory=dict[str, Subscription])


@dataclass(frozen=True)
class Said:
    """One action that a client dispatched."""

    person: Person
    channel: str
    dispatch: Dispatch


@dataclass
class Stage:
    """Everything is below `home`. `rng` decides what clients do."""

    home: Path
    rng: random.Random
    proxy: Proxy = field(default_factory=Proxy)
    people: list[Person] = field(default_factory=list[Person])
    chats: list[str] = field(default_factory=list[str])
    sessions: list[str] = field(default_factory=list[str])
    said: list[Said] = field(default_factory=list[Said])
    approved: set[str] = field(default_factory=set[str])
    """Tool calls that somebody allowed."""
    actions: int = 0

    async def __aenter__(self) -> Self:
        self._clock = self.home / "clock"
        self._clock.write_text("0")
        (self.home / "work").mkdir()
        self._settings = self._configuration()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.proxy)
            self.host = await self._start()
            stack.push_async_callback(self.stop)
            for number in range(CLIENTS):
                url = f"ws://127.0.0.1:{self.proxy.port}"
                client = connect(url, token=self.host.token, client_id=f"person-{number}", backoff=QUICKLY)
                self.people.append(Person(await stack.enter_async_context(client)))
            await self._begin()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def _configuration(self) -> Path:
        agent = scripted_command(self.home / "script.json", store=str(self.home / "store"))
        (self.home / "store").mkdir()
        extension = f"{sys.executable} {Path(board_extension.__file__)}"
        file = self.home / "settings.toml"
        file.write_text(
            f"[agents.scripted]\ncommand = {agent[0]!r}\nargs = {agent[1:]!r}\nstart_timeout = 15\n"
            f"[canvas]\nextensions = [{extension!r}]\n"
            f"[[mcp.servers]]\nname = 'test'\ncommand = [{sys.executable!r}, {str(SERVER)!r}]\n"
        )
        return file

    async def _begin(self) -> None:
        """Two sessions, one for each kind of agent; everybody follows them."""
        for provider in ("demo", "scripted"):
            work = (self.home / "work").as_uri()
            session = await self.people[0].client.create_session(provider=provider, working_directory=work)
            chat = await session.chat()
            self.sessions.append(session.uri)
            self.chats.append(chat.uri)
        for person in self.people:
            for uri in (*self.sessions, *self.chats):
                person.held[uri] = await person.client.subscribe(uri).__aenter__()

    # -- the host ------------------------------------------------------------------------------------------------------

    async def _start(self) -> HostProcess:
        options = ("--config", str(self._settings), "--root", str(self.home))
        host = await start_host(self.home, *options, through=("support.jumpy_host", str(self._clock)))
        self.proxy.target = host.port
        return host

    async def restart(self) -> None:
        self.host = await self._start()

    async def kill(self) -> None:
        self.proxy.target = None
        self.host.kill()
        await self.host.ended()

    async def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.signal(signal.SIGCONT)
        await self.host.stop()

    def signal(self, signum: int) -> None:
        self.host.process.send_signal(signum)

    def set_clock(self, seconds: float) -> None:
        self._clock.write_text(str(seconds))
        self.signal(signal.SIGUSR2)

    def fill_disk(self) -> None:
        """No file of the host may become larger than it is: the same as no room, and it needs no rights."""
        resource.prlimit(self.host.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    def free_disk(self) -> None:
        with suppress(ProcessLookupError):
            infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(self.host.process.pid, resource.RLIMIT_FSIZE, infinite)

    def children(self) -> list[tuple[int, str]]:
        """The processes that the host has started: agents, extensions, MCP servers."""
        parents: dict[int, int] = {}
        commands: dict[int, str] = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                pid = int(entry.name)
                parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                commands[pid] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        found = {self.host.process.pid}
        for _ in parents:
            more = {pid for pid, parent in parents.items() if parent in found} - found
            if not more:
                break
            found |= more
        return [(pid, commands[pid]) for pid in found - {self.host.process.pid} if commands[pid]]

    def kill_child(self, words: str) -> bool:
        """Kill one that has these words in its command line; False when there is none."""
        for pid, command in self.children():
            if words in command:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                return True
        return False

    # -- what people do ------------------------------------------------------------------------------------------------

    def act(self) -> None:
        """One thing that one of the clients does, whatever state the host is in."""
        person = self.rng.choice(self.people)
        match self.rng.randrange(6):
            case 0 | 1:
                title = f"title {self.actions}"
                self.say(person, self.rng.choice(self.sessions), {"type": "session/titleChanged", "title": title})
            case 2 | 3:
                self.talk(person)
            case 4:
                self.decide(person)
            case _:
                chat = self.rng.choice(self.chats)
                message = {"text": f"queued {self.actions}", "origin": {"kind": "user"}}
                queued = {"type": "chat/pendingMessageSet", "kind": "queued", "id": f"q{self.actions}"}
                self.say(person, chat, {**queued, "message": message})

    def talk(self, person: Person) -> None:
        demo, scripted = self.chats
        expression = '{"expression": "1 + 1"}'
        chat, text = self.rng.choice(
            [
                (demo, "/stream 20"),
                (demo, f"/tool calculate {expression}"),
                (demo, f"/canvas open board b{self.actions}"),
                (demo, f"/tool test_add {expression}"),
                (scripted, "hello"),
            ]
        )
        self.say(person, chat, turn_started(f"t{self.actions}", text))

    def decide(self, person: Person) -> None:
        """Answer a tool call that waits, if there is one."""
        for chat in self.chats:
            for turn_id, call in waiting_calls(person.held[chat].confirmed):
                approved = self.rng.random() < 0.5
                if approved:
                    self.approved.add(call["toolCallId"])
                answer = {"approved": True, "confirmed": "user-action"} if approved else _DENIED
                confirmed = {"type": "chat/toolCallConfirmed", "turnId": turn_id, "toolCallId": call["toolCallId"]}
                self.say(person, chat, {**confirmed, **answer})

    def say(self, person: Person, channel: str, action: dict[str, Any]) -> None:
        self.actions += 1
        self.said.append(Said(person, channel, person.client.dispatch(channel, action)))

    async def work(self, seconds: float) -> None:
        """Everybody works for a while."""
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            self.act()
            await asyncio.sleep(0.02)

    # -- until nothing is under way ------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until everybody is back, everything is answered, nothing runs, and nobody hears of anything new."""
        async with asyncio.timeout(BOUND):
            for person in self.people:
                await person.client.wait_connected()
            before, now = None, self._seen()
            while before != now or self._unanswered() or self._running() or self.requests():
                await asyncio.sleep(0.05)
                for person in self.people:
                    await self._ping(person)
                before, now = now, self._seen()

    async def _ping(self, person: Person) -> None:
        """What the host has told this person until now has arrived."""
        with suppress(ClientError, AhpError, TimeoutError):
            await person.client.ping()

    def _seen(self) -> list[object]:
        return [held.confirmed for person in self.people for held in person.held.values()]

    def requests(self) -> list[object]:
        """What canvases are asked for: those of an extension that died are opened again by the next one."""
        held = [self.people[0].held[uri].confirmed for uri in self.sessions]
        return [request for session in held for request in session.get("canvasRequests") or ()]

    def _unanswered(self) -> bool:
        return any(said.dispatch.outcome is None for said in self.said)

    def _running(self) -> bool:
        """Whether a turn runs. What waits for somebody is decided, what is queued is taken back."""
        first = self.people[0]
        busy = False
        for uri in self.chats:
            chat: Any = first.held[uri].confirmed
            for queued in chat.get("queuedMessages") or ():
                busy = True
                self._once(first, uri, {"type": "chat/pendingMessageRemoved", "kind": "queued", "id": queued["id"]})
            turn: Any = chat.get("activeTurn")
            if turn is not None:
                busy = True
                if list(waiting_calls(chat)):
                    self._once(first, uri, {"type": "chat/turnCancelled", "turnId": turn["id"], "duration": 0})
        return busy

    def _once(self, person: Person, channel: str, action: dict[str, Any]) -> None:
        if not any(said.dispatch.action == action and said.dispatch.outcome is None for said in self.said[-200:]):
            self.say(person, channel, action)


def turn_started(turn_id: str, text: str) -> dict[str, Any]:
    message = {"text": text, "origin": {"kind": "user"}}
    started = iso_time(time.time_ns() // 1_000_000)
    return {"type": "chat/turnStarted", "turnId": turn_id, "startedAt": started, "message": message}


_DENIED = {"approved": False, "reason": "denied"}


def waiting_calls(chat: Any) -> list[tuple[str, Any]]:
    turn: Any = chat.get("activeTurn") or {"id": "", "responseParts": ()}
    calls: list[Any] = [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]
    return [(turn["id"], call) for call in calls if call["status"] == "pending-confirmation"]


__all__ = ["Person", "Said", "Stage", "turn_started", "waiting_calls"]
