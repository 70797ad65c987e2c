"""The server over real sockets, with clients as bad as they come."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator, fingerprint
from ahpkit.transports.connect import connect_transport
from ahpkit.transports.errors import BindError
from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import Transport
from support import requirement
from support.waiting import BOUND
from transports.raw import UPGRADE, raw
from transports.serving import Serving, serving

TOKEN = "the-right-token"


async def echo(transport: Transport) -> None:
    with contextlib.suppress(TransportClosed):
        while True:
            transport.write(transport.frame(await transport.receive()))


async def works(server: Serving) -> None:
    client = await connect_transport(server.url, token=TOKEN)
    accepted = await server.accepted.get()
    client.write(client.frame(b"1"))
    assert await accepted.receive() == b"1"
    await client.aclose()


class TestMessages:
    @requirement("core:wire:one-message-per-frame")
    async def test_each_message_is_one_whole_text_frame_also_when_written_together(self) -> None:
        async with serving() as server, raw(server.port) as client:
            await client.upgrade()
            transport = await server.accepted.get()
            messages = [b'{"n":%d}' % n for n in range(5)] + [b'"' + b"x" * 70_000 + b'"']
            transport.write(b"".join(transport.frame(message) for message in messages))
            assert [await client.frame() for _ in messages] == [(0x81, message) for message in messages]

    async def test_two_hundred_connections_at_once(self) -> None:
        async with asyncio.timeout(BOUND), serve_http(echo, auth=Authenticator(None)) as server:
            clients = await asyncio.gather(*(connect_transport(server.url) for _ in range(200)))
            for n, client in enumerate(clients):
                client.write(client.frame(b"%d" % n))
            assert [await client.receive() for client in clients] == [b"%d" % n for n in range(200)]
            await asyncio.gather(*(client.aclose() for client in clients))

    async def test_one_buffer_goes_to_every_connection(self) -> None:
        async with serving() as server:
            clients = [await connect_transport(server.url) for _ in range(3)]
            transports = [await server.accepted.get() for _ in clients]
            assert {transport.framing for transport in transports} == {"ws"}
            buffer = transports[0].frame(b"1") + transports[0].frame(b"2")
            for transport in transports:
                transport.write(buffer)
            for client in clients:
                assert [await client.receive(), await client.receive()] == [b"1", b"2"]
                client.abort()


class TestStalledReader:
    async def test_it_is_seen_in_buffered_dropped_at_once_and_hurts_nobody_else(self) -> None:
        async with serving() as server, raw(server.port, receive_buffer=4096) as stalled:
            await stalled.upgrade()
            slow = await server.accepted.get()
            client = await connect_transport(server.url)
            live = await server.accepted.get()
            frame = slow.frame(b'"' + b"x" * 50_000 + b'"')
            written = 0
            while slow.buffered < 500_000:
                slow.write(frame)
                live.write(frame)
                written += 1
                await client.receive()
            slow.abort()
            assert slow.buffered == 0
            live.write(frame)
            assert len(await client.receive()) == 50_002
            # The kernel holds little of it, because its buffer is bounded.
            assert written * len(frame) < 500_000 + 1_500_000
            client.abort()

    async def test_it_is_noticed_by_a_missing_pong_even_with_output_waiting(self) -> None:
        async with (
            serving(ping_interval=0.2, close_timeout=0.1) as server,
            raw(server.port, receive_buffer=4096) as stalled,
        ):
            await stalled.upgrade()
            transport = await server.accepted.get()
            while transport.buffered < 200_000:
                transport.write(transport.frame(b"1" * 10_000))
            with pytest.raises(TransportClosed, match="keepalive ping timeout"):
                await transport.receive()
            assert transport.buffered == 0

    async def test_a_half_open_connection_is_noticed(self) -> None:
        async with serving(ping_interval=0.2, close_timeout=0.1) as server, raw(server.port) as silent:
            await silent.upgrade()
            transport = await server.accepted.get()
            with pytest.raises(TransportClosed, match="keepalive ping timeout"):
                await transport.receive()

    async def test_who_pings_and_never_reads_is_cut_off(self) -> None:
        async with serving(max_unread=100_000) as server, raw(server.port, receive_buffer=4096) as client:
            await client.upgrade()
            transport = await server.accepted.get()
            ping = bytes((0x89, 0x80 | 125)) + bytes(4) + b"p" * 125
            with contextlib.suppress(ConnectionError):
                while not client.writer.is_closing():
                    client.send(ping * 100)
                    await client.writer.drain()
            with pytest.raises(TransportClosed):
                await transport.receive()


class TestHandshake:
    @pytest.mark.parametrize(
        "garbage",
        [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20, b"hello\r\n\r\n", b"GET / HTTP/1.1\r\n: \r\n\r\n"],
    )
    async def test_garbage_is_dropped_and_the_next_client_served(
        self, garbage: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with serving() as server:
            async with raw(server.port) as client:
                client.send(garbage)
                client.writer.write_eof()
                await client.reader.read()
            await works(server)
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

    async def test_a_request_without_end_is_bounded(self) -> None:
        async with serving() as server:
            async with raw(server.port) as client:
                client.send(b"GET /" + b"x" * 100_000)
                assert b" 400 " in await client.reader.read()
            await works(server)

    async def test_a_connection_that_says_nothing_does_not_hold_up_the_shutdown(self) -> None:
        async with asyncio.timeout(BOUND):
            async with serving() as server:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                await works(server)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()


class TestToken:
    @pytest.mark.parametrize(
        ("target", "headers"),
        [
            ("/", {"Authorization": f"Bearer {TOKEN}"}),
            ("/", {"Sec_WebSocket_Protocol": f"ahp, ahp.token.{TOKEN}"}),
            (f"/?token={TOKEN}", {}),
            (f"/?tkn={TOKEN}", {}),
        ],
    )
    async def test_right_by_each_way_is_let_in_and_wrong_is_not(
        self, target: str, headers: dict[str, str], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        async with serving(auth=Authenticator(TOKEN)) as server:
            async with raw(server.port) as client:
                answer = await client.upgrade(target, **headers)
                assert answer.startswith("HTTP/1.1 101")
                assert TOKEN not in answer
                assert ("Sec-WebSocket-Protocol: ahp\r\n" in answer) == ("Sec_WebSocket_Protocol" in headers)
                assert (await server.accepted.get()).peer.credential == fingerprint(TOKEN)
            async with raw(server.port) as client:
                wrong = {name: value.replace("right", "wrong") for name, value in headers.items()}
                status, answered, body = await client.http(target.replace("right", "wrong"), **UPGRADE, **wrong)
                assert (status, answered["www-authenticate"]) == (401, "Bearer")
                assert b"/" not in body  # No path of a file: strangers read it, too.
                assert b"right-token" not in body
        assert TOKEN not in caplog.text

    async def test_none_is_refused(self) -> None:
        async with serving(auth=Authenticator(TOKEN)) as server, raw(server.port) as client:
            status, _, body = await client.http("/", **UPGRADE)
            assert status == 401
            assert b"a token is required" in body

    async def test_it_is_forgotten_once_it_was_checked(self) -> None:
        async with serving(auth=Authenticator(TOKEN)) as server, raw(server.port) as client:
            await client.upgrade(f"/?token={TOKEN}", Authorization=f"Bearer {TOKEN}")
            connection: object = cast(Any, await server.accepted.get())._connection
            assert TOKEN not in repr(vars(connection))

    async def test_off_loopback_with_a_token_but_without_tls_it_warns(self, caplog: pytest.LogCaptureFixture) -> None:
        async with serving(host="0.0.0.0", auth=Authenticator(TOKEN)):
            assert "without TLS" in caplog.text

    async def test_off_loopback_without_a_token_it_does_not_listen(self) -> None:
        with pytest.raises(BindError, match="token is required"):
            async with serving(host="0.0.0.0"):
                pass


class TestForeignPages:
    @pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
    async def test_a_foreign_host_or_origin_is_refused_with_a_reason(self, headers: dict[str, str]) -> None:
        async with serving() as server, raw(server.port) as client:
            status, _, body = await client.http("/", **UPGRADE, **headers)
            assert status == 403
            assert b"evil.example" in body

    async def test_our_own_page_may_connect(self) -> None:
        async with serving() as server, raw(server.port) as client:
            answer = await client.upgrade(Origin=f"http://localhost:{server.port}")
            assert answer.startswith("HTTP/1.1 101")


class TestListening:
    async def test_a_port_in_use_is_named(self) -> None:
        async with serving() as server:
            with pytest.raises(BindError, match=rf"port {server.port}: the port is in use"):
                async with serving(port=server.port):
                    pass
            await works(server)

    async def test_an_address_that_is_not_ours_is_named(self) -> None:
        with pytest.raises(BindError, match=r"192\.0\.2\.1"):
            async with serving(host="192.0.2.1", auth=Authenticator(TOKEN)):
                pass

    async def test_a_name_that_does_not_exist_is_named(self) -> None:
        with pytest.raises(BindError, match="no such address"):
            async with serving(host="host.invalid", auth=Authenticator(TOKEN)):
                pass

    async def test_the_url_can_be_dialled(self) -> None:
        for host in ("127.0.0.1", "localhost", "0.0.0.0"):
            async with serving(host=host, auth=Authenticator(TOKEN)) as server:
                assert str(server.port) in server.url
                await works(server)

    async def test_the_unix_socket_is_private_and_gone_at_the_end(self, tmp_path: Path) -> None:
        path = tmp_path / "host.sock"
        async with serve_http(echo, auth=Authenticator(None), unix_path=path) as server:
            assert server.url == f"ws+unix://{path}"
            assert server.port is None
            assert path.stat().st_mode & 0o777 == 0o600
            with pytest.raises(BindError, match="another process listens"):
                async with serve_http(echo, auth=Authenticator(None), unix_path=path):
                    pass
        assert not path.exists()

    async def test_leaving_closes_the_connections_and_says_why(self) -> None:
        async with serve_http(echo, auth=Authenticator(None)) as server:
            client = await connect_transport(server.url)
        with pytest.raises(TransportClosed, match="shutting down") as info:
            await client.receive()
        assert info.value.code == 1001

    async def test_a_handler_that_fails_closes_its_connection_only(self, caplog: pytest.LogCaptureFixture) -> None:
        async def handler(transport: Transport) -> None:
            if await transport.receive() == b"boom":
                raise RuntimeError("boom")
            await echo(transport)

        async with serve_http(handler, auth=Authenticator(None)) as server:
            good, bad = await connect_transport(server.url), await connect_transport(server.url)
            bad.write(bad.frame(b"boom"))
            with pytest.raises(TransportClosed) as info:
                await bad.receive()
            assert info.value.code == 1011
            good.write(good.frame(b"1") + good.frame(b"2"))
            assert await good.receive() == b"2"
            await good.aclose()
        assert "connection handler failed" in caplog.text

    async def test_the_kernel_buffer_of_a_connection_is_bounded(self) -> None:
        async with serving() as server, raw(server.port) as client:
            await client.upgrade()
            transport: Any = await server.accepted.get()
            sock: socket.socket = transport._connection.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 512 * 1024
