"""Opens a connection to a host by URL, and says in plain words why it failed.

    ws://HOST:PORT      wss://HOST:PORT      ws+unix:///PATH/TO/SOCKET

The token goes in a header, where no proxy and no history keeps it. A host that reads it from the address only, such as
the one inside VS Code, is named with an empty `tkn`, as in `ws://HOST:PORT/?tkn=`: then the token is put there.
"""

from __future__ import annotations

import re
from ssl import SSLCertVerificationError, SSLContext, SSLError
from typing import Any
from urllib.parse import quote, urlsplit

from websockets.asyncio.client import connect, unix_connect
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from ahpkit.transports.auth import SUBPROTOCOL, is_loopback
from ahpkit.transports.errors import ConnectError
from ahpkit.transports.unix import reachable, unix_path
from ahpkit.transports.websocket import (
    CLOSE_TIMEOUT,
    PING_INTERVAL,
    ClientSide,
    WebSocketTransport,
    address,
    connection_options,
    log,
)
from ahpkit.wire.transport import PeerInfo

MAX_SIZE = 256 * 1024 * 1024
"""Bytes of one incoming message. It is more than a client may send, because a snapshot of a long session is one
message."""

_BEARER = re.compile(r"[!-~]+")

_IN_ADDRESS = re.compile(r"(?<=[?&])tkn=(?=&|$)")
"""An address that asks for the token in it."""

_NO_REASON = ("", "forbidden", "forbidden.")
_HINT = ", without a reason. A host that reads the token from the address only, as VS Code's does, is named with /?tkn="

_MAX_BODY = 300
"""Characters of a refusal's text that are worth showing."""


async def connect_transport(
    url: str,
    *,
    token: str | None = None,
    ssl: SSLContext | None = None,
    open_timeout: float = 10.0,
    ping_interval: float = PING_INTERVAL,
    close_timeout: float = CLOSE_TIMEOUT,
    max_size: int = MAX_SIZE,
) -> WebSocketTransport:
    """Connect; `ssl` replaces the system's certificates for `wss://`. Raises `ConnectError`.

    `token` is sent in a header, or in the address where that has an empty `tkn`; never in both.
    """
    in_address = unix_path(url) is None and _IN_ADDRESS.search(url) is not None
    options: dict[str, Any] = connection_options(ping_interval=ping_interval, close_timeout=close_timeout) | {
        "compression": None,
        "max_size": max_size,
        "logger": log,
        "additional_headers": {"Authorization": f"Bearer {token}"} if token is not None and not in_address else None,
        "subprotocols": [Subprotocol(SUBPROTOCOL)],
        "create_connection": ClientSide,
        "open_timeout": open_timeout,
    }
    shown = url.partition("?")[0]
    if token is not None and not _BEARER.fullmatch(token):  # Checked here: the library would quote it in its error.
        raise ConnectError(shown, "the token is malformed: it may not contain spaces or control characters")
    try:
        dialled = _IN_ADDRESS.sub(f"tkn={quote(token or '', safe='')}", url) if in_address else url
        connection = await _opening(dialled, ssl, options)
    except (OSError, InvalidHandshake, InvalidURI, ValueError) as exc:
        raise _explain(shown, exc) from exc
    assert isinstance(connection, ClientSide)
    kind = "websocket" if unix_path(url) is None else "unix"
    return WebSocketTransport(connection, PeerInfo(kind, address(connection.remote_address)))


def _opening(url: str, ssl: SSLContext | None, options: dict[str, Any]) -> connect:
    path = unix_path(url)
    if path is not None:
        return unix_connect(reachable(path), "ws://localhost/", **options)
    parts = urlsplit(url)
    if parts.scheme == "wss" and ssl is not None:
        options["ssl"] = ssl
    if is_loopback(parts.hostname or ""):
        options["proxy"] = None  # A proxy would reach its own loopback, not ours.
    return connect(url, **options)


def _explain(url: str, exc: Exception) -> ConnectError:
    match exc:
        case InvalidStatus(response=response):
            return _explain_status(url, response.status_code, bytes(response.body or b""))
        case InvalidURI():
            return ConnectError(url, "not an address of a host: expected ws://, wss:// or ws+unix://")
        case InvalidMessage() if isinstance(exc.__cause__, EOFError | ConnectionError):  # The host ends just now.
            return ConnectError(url, "the connection ended before it was answered", transient=True)
        case InvalidMessage() | InvalidHandshake():
            return ConnectError(url, "what listens there does not speak WebSocket")
        case SSLCertVerificationError():
            return ConnectError(url, f"its certificate is not trusted: {exc.verify_message}")
        case TimeoutError():
            return ConnectError(url, "no answer in time", transient=True)
        case ConnectionRefusedError():
            return ConnectError(url, "nobody listens there", transient=True)
        case FileNotFoundError():
            return ConnectError(url, "there is no such socket", transient=True)
        case SSLError() | ConnectionError() if url.startswith("wss:"):
            return ConnectError(url, "TLS failed; is it ws:// instead of wss://?")
        case OSError():
            return ConnectError(url, exc.strerror or str(exc) or "the connection was cut", transient=True)
        case _:
            return ConnectError(url, "the URL is malformed")


def _explain_status(url: str, status: int, body: bytes) -> ConnectError:
    words = body.decode(errors="replace").strip()[:_MAX_BODY]
    match status:
        case 401:
            reason = f"not let in: {words or 'a token is required'}"
        case 403:
            reason = f"refused: {words}" if words.lower() not in _NO_REASON else f"refused{_HINT}"
        case _:
            reason = f"answered HTTP {status} instead of opening a WebSocket"
    return ConnectError(url, reason, status=status, transient=status >= 500)


__all__ = ["MAX_SIZE", "connect_transport"]
