"""A client that asks and does not read the answers: the worst reader there is."""

from __future__ import annotations

import json
import os
import socket
from types import TracebackType
from typing import Any, Self

from support.process import HostProcess

_UPGRADE = (
    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {token}\r\n\r\n"
)
_RECEIVED = 4096
"""How many bytes the system may buffer for a client that does not read."""


class Unread:
    """A WebSocket by hand. Blocks only for the handshake, and when the host does not read either."""

    def __init__(self, host: HostProcess) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(60)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)
        self.socket.connect(("127.0.0.1", host.port))
        self.socket.sendall(_UPGRADE.format(token=host.token).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        assert head.startswith(b"HTTP/1.1 101"), head

    def ask(self, id: int, method: str, **params: Any) -> None:
        call = {"jsonrpc": "2.0", "id": id, "method": method, "params": {"channel": "ahp-root://", **params}}
        data = json.dumps(call).encode()
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        assert 125 < len(data) < 1 << 16 or len(data) <= 125
        length = bytes([0x80 | len(data)]) if len(data) <= 125 else b"\xfe" + len(data).to_bytes(2, "big")
        self.socket.sendall(b"\x81" + length + mask + masked)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()


__all__ = ["Unread"]
