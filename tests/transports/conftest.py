"""Connected pairs of every transport, server's end first."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, cast

import pytest

from ahpkit.transports.connect import connect_transport
from ahpkit.transports.memory import memory_pair
from ahpkit.transports.stdio import LineTransport
from ahpkit.transports.websocket import CLOSE_TIMEOUT
from ahpkit.wire.transport import Transport
from transports.serving import serving

Pair = tuple[Transport, Transport]
OpenPair = Callable[[], AbstractAsyncContextManager[Pair]]
Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


@contextlib.asynccontextmanager
async def websocket_pair(
    client_ssl: ssl.SSLContext | None = None, close_timeout: float = CLOSE_TIMEOUT, **options: Any
) -> AsyncGenerator[Pair]:
    async with serving(close_timeout=close_timeout, **options) as server:
        client = await connect_transport(server.url, ssl=client_ssl, close_timeout=close_timeout)
        pair = await server.accepted.get(), client
        for end in pair:  # Linux would let a reader that does not read have up to 32 MB.
            sock = cast(Any, end)._connection.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        try:
            yield pair
        finally:
            for end in pair:
                end.abort()


@contextlib.asynccontextmanager
async def open_memory_pair() -> AsyncGenerator[Pair]:
    yield memory_pair()


@contextlib.asynccontextmanager
async def stdio_pair(**options: Any) -> AsyncGenerator[Pair]:
    async with contextlib.AsyncExitStack() as stack:
        (read_a, write_b), (read_b, write_a) = os.pipe(), os.pipe()
        a = LineTransport(*await _streams(stack, read_a, write_a), address="a", **options)
        b = LineTransport(*await _streams(stack, read_b, write_b), address="b", **options)
        yield a, b
        a.abort()
        b.abort()


async def _streams(
    stack: contextlib.AsyncExitStack, read: int, write: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", 0))
    stack.callback(incoming.close)
    outgoing, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(write, "wb", 0)
    )
    return reader, asyncio.StreamWriter(outgoing, protocol, None, loop)


@pytest.fixture(scope="session")
def tls_contexts(tmp_path_factory: pytest.TempPathFactory) -> Contexts:
    """For the server and for a client that trusts it: a certificate for 127.0.0.1, made for this run."""
    certificate = tmp_path_factory.mktemp("tls") / "cert.pem"
    certificate.write_bytes(_self_signed())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    return server, ssl.create_default_context(cafile=certificate)


def _self_signed() -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ahpkit test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(pem)


@pytest.fixture
def close_timeout() -> float:
    """Seconds until whoever does not read is given up on."""
    return CLOSE_TIMEOUT


@pytest.fixture(params=["memory", "websocket", "unix", "tls", "stdio"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def open_pair(kind: str, tmp_path: Path, request: pytest.FixtureRequest, close_timeout: float) -> OpenPair:
    if kind == "tls":
        server, client = request.getfixturevalue("tls_contexts")
        return lambda: websocket_pair(ssl=server, client_ssl=client, close_timeout=close_timeout)
    pairs: dict[str, OpenPair] = {
        "memory": open_memory_pair,
        "websocket": lambda: websocket_pair(close_timeout=close_timeout),
        "unix": lambda: websocket_pair(unix_path=tmp_path / "host.sock", close_timeout=close_timeout),
        "stdio": lambda: stdio_pair(close_timeout=close_timeout),
    }
    return pairs[kind]


@pytest.fixture(params=["server", "client"])
async def ends(request: pytest.FixtureRequest, open_pair: OpenPair) -> AsyncGenerator[Pair]:
    """(near, far): every test of the contract runs from both sides."""
    async with open_pair() as (server, client):
        yield (server, client) if request.param == "server" else (client, server)
