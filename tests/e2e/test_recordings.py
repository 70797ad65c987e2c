"""What three releases of VS Code say to `ahpkit serve`: to its demo agent, and to an ACP agent.

Written by hand in `support.vscode_words`; recordings of what they really said are replayed too, when they are beside
the checkout.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ahpkit.transports.connect import connect_transport
from support.process import HostProcess, host_process
from support.raw_client import Json, RawClient
from support.scripted_acp import scripted_command
from support.specification import specification
from support.vscode_words import REMOTE, WORDS

RECORDED = {path.stem: path.read_text() for path in specification("recordings", suffix=".jsonl")}
RECORDINGS = {**WORDS, **RECORDED}
"""Release → what is said. The folder in it is `/workspace`."""

each_release = pytest.mark.parametrize("release", RECORDINGS)
with_a_server = pytest.mark.parametrize("release", [release for release, text in RECORDINGS.items() if REMOTE in text])


@pytest.fixture
async def host(tmp_path: Path) -> AsyncGenerator[HostProcess]:
    async with host_process(tmp_path) as running:
        yield running


def messages(text: str) -> Iterator[Json]:
    """What the client said. A message whose end was not kept is left out."""
    for line in text.splitlines():
        said: dict[str, Any] = json.loads(line)
        if said.get("dir") == "c2s" and "m" in said:
            yield said["m"]


async def replay(host: HostProcess, text: str) -> list[RawClient]:
    """Say everything, wait for each answer and for the end of each turn; the clients that spoke."""
    clients: list[RawClient] = []
    for message in messages(text):
        params: Json = message["params"]
        if message["method"] == "initialize":
            transport = await connect_transport(f"{host.url}/?tkn={host.token}")
            clients.append(RawClient(transport, params["clientId"]))
        if "id" not in message:
            clients[-1].send(message)
        else:
            rest = {key: value for key, value in params.items() if key != "channel"}
            await clients[-1].ask(message["method"], params["channel"], **rest)
        if params.get("action", {}).get("type") == "chat/turnStarted":
            await end_of(clients[-1], params["action"]["turnId"])
    return clients


async def end_of(client: RawClient, turn_id: str) -> Json:
    def over(said: Json) -> bool:
        ended = said["action"]["type"] in ("chat/turnComplete", "chat/error") or "rejectionReason" in said
        return ended and said["action"].get("turnId") == turn_id

    end = await client.action(over)
    assert end["action"]["type"] == "chat/turnComplete", end
    return end


def rejections(clients: list[RawClient]) -> list[Json]:
    return [one for client in clients for one in client.received if "rejectionReason" in str(one)]


@each_release
async def test_everything_that_a_release_said_is_answered(release: str, host: HostProcess) -> None:
    here = host.home.as_uri()
    text = RECORDINGS[release].replace("file:///workspace", here)
    clients = await replay(host, text.replace(f"{REMOTE}/workspace", here.replace("file://", REMOTE)))
    assert rejections(clients) == []
    listed = (await clients[-1].ask("listSessions"))["items"]
    assert {one["provider"] for one in listed} == {"demo"}
    assert {directory for one in listed for directory in one["workingDirectories"]} == {here}


@each_release
async def test_an_acp_agent_answers_what_a_release_said(release: str, tmp_path: Path) -> None:
    """The same words for another agent: its name, and the model that VS Code is shown for agents without models."""
    agent = f"acp={shlex.join(scripted_command(tmp_path / 'script.json'))}"
    async with host_process(tmp_path, "--agent", agent) as host:
        here = host.home.as_uri()
        text = RECORDINGS[release].replace("file:///workspace", here)
        text = text.replace(f"{REMOTE}/workspace", here.replace("file://", REMOTE))
        text = text.replace('"provider":"demo"', '"provider":"acp"')
        clients = await replay(host, text.replace('"model":{"id":"m1"}', '"model":{"id":"ahpkit-any-model"}'))
        assert rejections(clients) == []
        listed = (await clients[-1].ask("listSessions"))["items"]
        assert {one["provider"] for one in listed} == {"acp"}
        for client in clients:
            await client.aclose()


@with_a_server
async def test_a_folder_that_is_only_on_the_machine_of_vs_codes_server_gives_way_to_the_default_one_and_it_is_said(
    release: str, host: HostProcess
) -> None:
    missing = f"{REMOTE}{host.home}/only-there"
    text = RECORDINGS[release].replace(f"{REMOTE}/workspace", missing)
    (client,) = clients = await replay(host, text)
    assert rejections(clients) == []
    (listed,) = (await client.ask("listSessions"))["items"]
    assert listed["workingDirectories"] == [host.home.as_uri()]
    chat = (await client.ask("subscribe", listed["defaultChat"]))["snapshot"]["state"]
    first = chat["turns"][0]["responseParts"][0]
    assert first["kind"] == "systemNotification"
    assert missing in first["content"]
    assert str(host.home) in first["content"].removeprefix(missing)
    assert "is not on this machine" in host.errors
