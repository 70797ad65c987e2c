"""Which session a person means."""

import asyncio
from pathlib import Path
from typing import Any

import click
import pytest

from ahpkit.agents.demo import DemoAgent
from ahpkit.cli.connection import connected, meant, open_session, short_id
from ahpkit.host.agent import AgentChat, Chat
from ahpkit.host.clients.clients import register_client_list
from ahpkit.host.config import HostConfig
from ahpkit.host.host import Host
from ahpkit.http.server import serve_http
from ahpkit.log.memory import MemoryStorage
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.testing.fake_host import FakeHost
from ahpkit.testing.memory_host import MemoryHost
from ahpkit.transports.auth import Authenticator
from ahpkit.wire.tasks import running
from support.process import finish_cli, host_process
from support.waiting import until

SESSIONS = [
    {"resource": "ahp-session:/3f2a9c11-aaaa", "title": "Release notes"},
    {"resource": "ahp-session:/3f2b0000-bbbb", "title": "Release"},
    {"resource": "ahp-session:/77770000-cccc", "title": "3f2a9c11 in the title"},
    {"resource": "ahp-session:/dddd", "title": ""},
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ahp-session:/dddd", ["dddd"]),
        ("dddd", ["dddd"]),
        ("3f2a9c11-aaaa", ["3f2a9c11-aaaa"]),
        ("3f2a", ["3f2a9c11-aaaa"]),
        ("3f2", ["77770000-cccc"]),
        ("release", ["3f2b0000-bbbb"]),
        ("NOTES", ["3f2a9c11-aaaa"]),
        ("e", ["3f2a9c11-aaaa", "3f2b0000-bbbb", "77770000-cccc"]),
        ("nothing", []),
    ],
)
def test_the_closest_kind_of_match_counts(name: str, expected: list[str]) -> None:
    assert [one["resource"].rpartition("/")[2] for one in meant(SESSIONS, name)] == expected


def test_the_short_form_of_an_id_is_what_people_type() -> None:
    assert short_id("ahp-session:/3f2a9c11-aaaa") == "3f2a9c11"
    assert meant(SESSIONS, short_id("ahp-session:/3f2a9c11-aaaa")) == SESSIONS[:1]


async def test_a_command_says_that_its_host_is_gone_and_does_not_wait_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with host_process(tmp_path) as host:
        with pytest.raises(click.ClickException, match=r"the connection to the host did not come back within 0.2 s"):
            async with connected(host.url, host.token, patience=0.2):
                host.process.kill()
                await asyncio.Event().wait()
    assert "connection lost; trying to get it back" in capsys.readouterr().err


class Slow(DemoAgent):
    """An agent that never starts."""

    async def open(self, chat: Chat) -> AgentChat:
        return await asyncio.Future()


async def test_a_start_that_waits_for_room_on_the_disk_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Host(MemoryStorage(), agents=[Slow()], config=HostConfig(default_directory=tmp_path))
    register_client_list(host.extension, host.clients, failing=lambda: "the disk is full")
    async with host, MemoryHost(host).client() as client:
        opening = open_session(client, None, provider=None, model=None, directory=tmp_path)
        said: list[str] = []

        def is_said() -> bool:
            said.append(capsys.readouterr().err)
            return "The host cannot store anything: the disk is full. Ctrl-C gives up." in "".join(said)

        async with running(opening):
            await until(is_said)


class Nonsense(FakeHost):
    """Its sessions lack what sessions have, and most of its messages are no actions."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["listSessions"] = self._list

    def _list(self, params: object) -> dict[str, Any]:
        for _ in range(30):
            self.notify("action", {"channel": ROOT_URI, "action": "\x1b]52;c;QUFB\a"})
        return {"items": [{"resource": "ahp-session:/s"}]}


async def test_a_host_that_sends_nonsense_is_told_in_a_few_lines_and_without_a_traceback(tmp_path: Path) -> None:
    async with Nonsense() as host, serve_http(host.serve, auth=Authenticator(None)) as server:
        code, _, errors = await finish_cli(["sessions", "list", "--url", server.url], tmp_path)

    assert code == 1
    *logged, last = errors.splitlines()
    assert len(logged) == 5
    assert all(line.startswith("a message of the host cannot be read (action: ") for line in logged)
    assert logged[-1].endswith(" (more of this is not shown)")
    assert last.startswith("Error: the host sent something that this command did not expect (KeyError: ")
