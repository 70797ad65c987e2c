from __future__ import annotations

import asyncio
import socket
import stat
from pathlib import Path

import pytest

from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from ahpkit.transports.connect import connect_transport
from ahpkit.transports.errors import BindError
from ahpkit.transports.unix import reachable, unix_listener, unix_path, unix_url
from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import Transport


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a b.sock"


def test_the_file_is_private_and_gone_at_the_end(path: Path) -> None:
    with unix_listener(path):
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_a_stale_file_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    assert path.exists()
    with unix_listener(path) as listener:
        listener.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_a_live_server_keeps_its_file(path: Path) -> None:
    with unix_listener(path) as listener:
        listener.listen()
        with pytest.raises(BindError, match="another process listens"), unix_listener(path):
            pass
        assert path.exists()


def test_a_file_that_is_no_socket_is_left_alone(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(BindError, match="not a socket"), unix_listener(path):
        pass
    assert path.read_text() == "precious"


def test_a_successors_file_is_left_alone(path: Path) -> None:
    with unix_listener(path):
        path.unlink()
        path.write_text("not ours")
    assert path.read_text() == "not ours"


class TestTooLongForASocket:
    """A link stands in its place, so that the name everyone knows stays the name."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / ("x" * 120)

    def test_the_link_leads_to_a_private_socket_and_both_are_gone_at_the_end(self, path: Path) -> None:
        with unix_listener(path) as listener:
            listener.listen()
            place = reachable(path)
            assert place != path
            assert stat.S_IMODE(place.stat().st_mode) == 0o600
            assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(place))
        assert not path.is_symlink()
        assert not place.parent.exists()

    @pytest.mark.parametrize("rest", ["a socket nobody listens on", "nothing"])
    def test_what_a_killed_server_left_is_replaced(self, path: Path, tmp_path: Path, rest: str) -> None:
        place = tmp_path / "old"
        path.symlink_to(place)
        if rest != "nothing":
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(place))
        with unix_listener(path):
            assert reachable(path) != place

    def test_a_live_server_keeps_its_link(self, path: Path) -> None:
        with unix_listener(path) as listener:
            listener.listen()
            with pytest.raises(BindError, match="another process listens"), unix_listener(path):
                pass
            assert path.is_symlink()

    async def test_a_url_leads_there(self, path: Path) -> None:
        async def close(transport: Transport) -> None:
            await transport.aclose()

        async with asyncio.timeout(5), serve_http(close, auth=Authenticator(None), unix_path=path) as server:
            with pytest.raises(TransportClosed):
                await (await connect_transport(server.url)).receive()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(BindError, match=r"nowhere.*No such file"), unix_listener(tmp_path / "nowhere" / "x"):
        pass


def test_a_path_and_its_url_lead_to_each_other(path: Path) -> None:
    url = unix_url(path)
    assert url.startswith("ws+unix:///")
    assert " " not in url
    assert unix_path(url) == path
    assert unix_path("ws://localhost") is None
