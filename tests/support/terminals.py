"""Terminals in tests: a host that has them, and waiting for what they show."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ahpkit.host.resources.feature import Resources
from ahpkit.host.terminals.feature import Terminals
from ahpkit.log.storage import Storage
from support.bench import Bench
from support.raw_client import Json, RawClient


def environ(home: Path, *, shell: str = "/bin/sh") -> dict[str, str]:
    """The environment of a host, with something in it that nobody else may see."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "SHELL": shell, "SECRET_API_KEY": "hunter2"}


def features(
    directory: Path, *, enabled: bool = True, shell: str = "/bin/sh", **limits: int
) -> tuple[Resources, Terminals]:
    resources = Resources()
    home = environ(directory, shell=shell)
    return resources, Terminals(resources.reading, directory=directory, enabled=enabled, environ=home, **limits)


class TerminalBench(Bench):
    """A host with terminals."""

    terminals: Terminals

    def renew(self, *, enabled: bool = True, shell: str = "/bin/sh", **limits: int) -> None:
        """Fresh features for the next start."""
        resources, self.terminals = features(self.config.default_directory, enabled=enabled, shell=shell, **limits)
        self.features = [resources, self.terminals]


@asynccontextmanager
async def terminal_bench(
    directory: Path,
    *,
    reader_patience: float | None = None,
    sockets: bool = False,
    storage: Storage | None = None,
    **options: Any,
) -> AsyncGenerator[TerminalBench]:
    bench = TerminalBench(directory, sockets=sockets)
    bench.storage = storage or bench.storage
    if reader_patience is not None:
        bench.config = replace(bench.config, reader_patience=reader_patience)
    bench.renew(**options)
    await bench.start()
    try:
        yield bench
    finally:
        await bench.stop()


class Shell:
    """A terminal that a client opened and watches."""

    def __init__(self, client: RawClient, uri: str) -> None:
        self.client = client
        self.uri = uri

    @classmethod
    async def open(cls, client: RawClient, id: str = "t", /, **params: Any) -> Shell:
        shell = cls(client, f"ahp-terminal:/{id}")
        claim = {"kind": "client", "clientId": client.client_id}
        assert await client.ask("createTerminal", shell.uri, **{"claim": claim, **params}) is None
        await shell.subscribe()
        return shell

    async def subscribe(self) -> Json:
        return (await self.client.ask("subscribe", self.uri))["snapshot"]["state"]

    async def type(self, text: str) -> None:
        await self.client.accepted(self.uri, {"type": "terminal/input", "data": text})

    def shown(self) -> str:
        """Everything that came since the client subscribed."""
        actions = (envelope["action"] for envelope in self.client.actions(self.uri))
        return "".join(action["data"] for action in actions if action["type"] == "terminal/data")

    async def shows(self, text: str) -> None:
        """Wait until `text` has been printed."""
        await self.client.wait(lambda message: text in self.shown())

    def has_exited(self) -> bool:
        """Whether the newest messages say so."""
        types = (message.get("params", {}).get("action", {}).get("type") for message in self.client.received[-5:])
        return "terminal/exited" in types

    async def exited(self) -> Json:
        found = await self.client.action(
            lambda envelope: envelope["channel"] == self.uri and envelope["action"]["type"] == "terminal/exited"
        )
        return found["action"]


async def root_terminals(client: RawClient, count: int) -> list[Json]:
    """The root channel's list once it has `count` terminals."""

    def matches(envelope: Json) -> bool:
        action = envelope["action"]
        return action["type"] == "root/terminalsChanged" and len(action["terminals"]) == count

    return (await client.action(matches))["action"]["terminals"]


__all__ = ["Shell", "TerminalBench", "environ", "features", "root_terminals", "terminal_bench"]
