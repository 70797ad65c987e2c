"""Connections cannot fill the log, the memory or the table of open files of the host."""

from __future__ import annotations

import resource
import socket
import struct
from pathlib import Path

from support.process import host_process
from support.waiting import until

ROOT = "ahp-root://"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def silent(port: int) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port))
    found.setblocking(False)
    return found


async def test_more_silent_sockets_than_files_leave_one_line_and_the_host_serves_again(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client(ROOT)
        resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE, (128, 128))
        sockets = [silent(host.port) for _ in range(300)]
        try:
            await until(lambda: "no more connections can be accepted now" in host.errors)
            assert await client.ask("ping") is None
        finally:
            for one in sockets:
                one.close()
        again = await host.client(client_id="again")
        assert await again.ask("ping") is None
        assert host.errors.count("no more connections") == 1
        assert "Traceback" not in host.errors
        await again.aclose()
        await client.aclose()


async def test_the_host_raises_its_limit_of_open_files(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        soft, hard = resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE)
        assert soft == min(hard, 65_536) or soft > 65_536 or hard == resource.RLIM_INFINITY


def _reset(one: socket.socket) -> None:
    """Leave without a word."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


async def test_clients_that_leave_at_any_moment_leave_no_traceback(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        token = f"Authorization: Bearer {host.token}\r\n\r\n".encode()
        for said in (b"", b"GET", UPGRADE, UPGRADE + token, UPGRADE + token + b"\x81", UPGRADE + b"\r\n"):
            for _ in range(5):
                one = socket.create_connection(("127.0.0.1", host.port))
                one.sendall(said)
                _reset(one)
        client = await host.client(ROOT)
        client.send_bytes(b"x" * (17 * 1024 * 1024))
        closed = await client.wait_closed()
        assert closed.code == 1009
        last = await host.client(ROOT)
        assert await last.ask("ping") is None
        await last.aclose()
        await host.stop()
    assert "Traceback" not in host.errors, host.errors
