"""Connecting by URL and by discovery, over real sockets."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.client import Endpoint, HostNotFound, connect, find_endpoint, publish_endpoint
from ahpkit.http.server import serve_http
from ahpkit.testing.fake_host import FakeHost
from ahpkit.transports.auth import Authenticator
from ahpkit.transports.errors import ConnectError
from support.clients import QUICKLY, eventually


@pytest.fixture(autouse=True)
def private_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("AHPKIT_URL", raising=False)
    monkeypatch.delenv("AHPKIT_TOKEN", raising=False)


@asynccontextmanager
async def serving(host: FakeHost, data_dir: Path, *, started_at: int, token: str = "secret") -> AsyncGenerator[str]:
    """The fake host on a real port, published like `ahpkit serve` does."""
    async with serve_http(host.serve, auth=Authenticator(token)) as server:
        with publish_endpoint(url=server.url, token=token, data_dir=data_dir, started_at=started_at):
            yield server.url


async def test_without_a_url_and_without_a_host_it_says_what_to_do(bounded: None):
    with pytest.raises(HostNotFound, match="ahpkit up"):
        async with connect():
            pass


async def test_a_host_is_found_with_its_token(host: FakeHost, tmp_path: Path):
    async with serving(host, tmp_path, started_at=1):
        async with connect() as client:
            assert await client.ping() >= 0


async def test_a_url_and_a_token_can_be_given(host: FakeHost, tmp_path: Path):
    async with serving(host, tmp_path, started_at=1) as url:
        async with connect(url, token="secret") as client:
            assert await client.ping() >= 0
        with pytest.raises(ConnectError):
            async with connect(url):
                pass


async def test_the_environment_names_a_host(host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with serving(host, tmp_path, started_at=1) as url:
        monkeypatch.setenv("AHPKIT_URL", url)
        monkeypatch.setenv("AHPKIT_TOKEN", "secret")
        async with connect() as client:
            assert await client.ping() >= 0


async def test_a_restarted_host_is_found_again_and_another_is_not_taken_for_it(
    host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    attempts: list[Endpoint | None] = []

    def find(**options: Any) -> Endpoint | None:
        attempts.append(find_endpoint(**options))
        return attempts[-1]

    monkeypatch.setattr(sys.modules["ahpkit.client.connect"], "find_endpoint", find)  # Not the function of that name.
    async with FakeHost() as other, serving(other, tmp_path / "other", started_at=1):
        async with serving(host, tmp_path / "ours", started_at=2):
            client = connect(backoff=QUICKLY)
            await client.__aenter__()
        await eventually(lambda: client.status == "reconnecting")
        await eventually(lambda: attempts[-3:] == [None] * 3)  # Only the other one is running.
        async with serving(host, tmp_path / "ours", started_at=3, token="another"):
            await client.wait_connected()
            assert host.sent("reconnect")
            assert other.received == []
            await client.__aexit__()
