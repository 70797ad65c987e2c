from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from ahpkit.transports.errors import BindError
from ahpkit.transports.unix import unix_listener, unix_path, unix_url


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


def test_a_path_that_is_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120)
    with pytest.raises(BindError, match="too long"), unix_listener(path):
        pass


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(BindError, match=r"nowhere.*No such file"), unix_listener(tmp_path / "nowhere" / "x"):
        pass


def test_a_path_and_its_url_lead_to_each_other(path: Path) -> None:
    url = unix_url(path)
    assert url.startswith("ws+unix:///")
    assert " " not in url
    assert unix_path(url) == path
    assert unix_path("ws://localhost") is None
