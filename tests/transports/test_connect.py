from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator
from http import HTTPStatus
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from ahpkit.transports.connect import connect_transport
from ahpkit.transports.errors import ConnectError
from ahpkit.wire.errors import TransportClosed
from ahpkit.wire.transport import Transport
from support.waiting import BOUND

TOKEN = "the-right-token"


async def stay(transport: Transport) -> None:
    with contextlib.suppress(TransportClosed):
        while True:
            transport.write(transport.frame(await transport.receive()))


@contextlib.asynccontextmanager
async def listening(answer: bytes | None) -> AsyncGenerator[int]:
    """A server of another kind: sends `answer` (None: nothing) to whoever connects."""
    hold = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is None:
            await hold.wait()
        else:
            await reader.read(100)
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with asyncio.timeout(BOUND), server:
        yield server.sockets[0].getsockname()[1]
        hold.set()


async def failure(url: str, token: str | None = None, *, open_timeout: float = 5) -> ConnectError:
    with pytest.raises(ConnectError) as info:
        await connect_transport(url, token=token, open_timeout=open_timeout)
    assert str(info.value) == f"{info.value.url}: {info.value.reason}"
    return info.value


async def test_the_token_goes_along_and_messages_do() -> None:
    async with serve_http(stay, auth=Authenticator(TOKEN)) as server:
        for url, token in ((server.url, TOKEN), (f"{server.url}/?token={TOKEN}", None)):
            transport = await connect_transport(url, token=token)
            transport.write(transport.frame(b"1"))
            assert await transport.receive() == b"1"
            assert transport.framing == "ws-masked"
            await transport.aclose()


async def test_a_unix_socket_is_reached_by_its_url(tmp_path: Path) -> None:
    async with serve_http(stay, auth=Authenticator(TOKEN), unix_path=tmp_path / "a b") as server:
        transport = await connect_transport(server.url, token=TOKEN)
        assert transport.peer.address == str(tmp_path / "a b")
        await transport.aclose()


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
async def test_a_proxy_is_not_asked_for_this_machine(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    async with serve_http(stay, auth=Authenticator(None)) as server:
        await (await connect_transport(server.url)).aclose()


class TestRefusals:
    async def test_nobody_listens_there(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # And does not listen; nobody else can.
            error = await failure(f"ws://127.0.0.1:{taken.getsockname()[1]}")
        assert (error.reason, error.transient) == ("nobody listens there", True)

    async def test_there_is_no_such_socket(self, tmp_path: Path) -> None:
        error = await failure(f"ws+unix://{tmp_path}/none")
        assert (error.reason, error.transient) == ("there is no such socket", True)

    async def test_there_is_no_such_host(self) -> None:
        assert (await failure("ws://host.invalid:80")).transient

    @pytest.mark.parametrize("token", [None, "guess"])
    async def test_the_token_is_missing_or_wrong(self, token: str | None) -> None:
        async with serve_http(stay, auth=Authenticator(TOKEN)) as server:
            error = await failure(server.url + "/?token=wrong", token)
        assert (error.status, error.transient) == (401, False)
        assert "`ahpkit serve` says where it is" in error.reason
        assert "wrong" not in error.url

    async def test_a_token_that_cannot_be_sent_is_not_repeated(self) -> None:
        error = await failure("ws://127.0.0.1:1", "se cret\n")
        assert "token is malformed" in error.reason
        assert "cret" not in f"{error!r}{error.__cause__!r}"

    async def test_the_server_says_why_not(self) -> None:
        async with listening(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\n\r\nnot you\n") as port:
            error = await failure(f"ws://127.0.0.1:{port}")
        assert (error.status, error.reason, error.transient) == (403, "refused: not you", False)

    @pytest.mark.parametrize(("status", "transient"), [(404, False), (200, False), (503, True)])
    async def test_it_is_another_web_server(self, status: int, transient: bool) -> None:
        async with listening(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status) as port:
            error = await failure(f"ws://127.0.0.1:{port}")
        assert (error.status, error.transient) == (status, transient)
        assert f"HTTP {status}" in error.reason

    @pytest.mark.parametrize("answer", [b"220 mail.example ESMTP\r\n", b"\x00\xff\r\n" * 50])
    async def test_it_is_no_web_server(self, answer: bytes) -> None:
        async with listening(answer) as port:
            error = await failure(f"ws://127.0.0.1:{port}")
        assert "does not speak WebSocket" in error.reason

    async def test_it_ends_at_this_moment(self) -> None:
        async with listening(b"") as port:
            error = await failure(f"ws://127.0.0.1:{port}")
        assert (error.reason, error.transient) == ("the connection ended before it was answered", True)

    async def test_it_does_not_answer(self) -> None:
        async with listening(None) as port:
            error = await failure(f"ws://127.0.0.1:{port}", open_timeout=0.05)
        assert (error.reason, error.transient) == ("no answer in time", True)

    @pytest.mark.parametrize("url", ["http://localhost", "localhost:80", "", "ws://", "ws://localhost:x", "ws://a#b"])
    async def test_the_address_is_none(self, url: str) -> None:
        assert not (await failure(url)).transient

    async def test_the_certificate_is_not_trusted(self, tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
        async with serve_http(stay, auth=Authenticator(None), ssl=tls_contexts[0]) as server:
            error = await failure(server.url)
        assert error.reason.startswith("its certificate is not trusted")
        assert not error.transient

    async def test_it_speaks_no_tls(self) -> None:
        async with serve_http(stay, auth=Authenticator(None)) as server:
            error = await failure(server.url.replace("ws:", "wss:"))
        assert "is it ws:// instead of wss://?" in error.reason


@contextlib.asynccontextmanager
async def reads_addresses() -> AsyncGenerator[tuple[str, list[tuple[str, bool]]]]:
    """A host that reads the token from the address only; what it was asked, and whether a header had a token."""
    asked: list[tuple[str, bool]] = []

    def check(connection: ServerConnection, request: Request) -> Response | None:
        asked.append((request.path, "Authorization" in request.headers))
        return None if request.path == "/?tkn=a%2Fb" else connection.respond(HTTPStatus.FORBIDDEN, "Forbidden.")

    async def wait(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async with serve(wait, "127.0.0.1", 0, process_request=check) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}", asked


async def test_a_token_is_put_into_the_address_where_the_address_asks_for_it() -> None:
    async with reads_addresses() as (url, asked):
        await (await connect_transport(f"{url}/?tkn=", token="a/b")).aclose()
        await (await connect_transport(f"{url}/?tkn=a%2Fb")).aclose()
        assert asked == [("/?tkn=a%2Fb", False)] * 2


async def test_a_token_is_never_put_into_the_address_unasked() -> None:
    async with reads_addresses() as (url, asked):
        refused = await failure(url, "a/b")
        assert asked == [("/", True)]
        assert refused.status == HTTPStatus.FORBIDDEN
        assert refused.reason.endswith("is named with /?tkn=")


@pytest.mark.parametrize("end", ["/?tkn=", "/?tkn=secret", "/?a=b&tkn="])
async def test_an_error_does_not_repeat_what_is_behind_the_address(end: str) -> None:
    async with reads_addresses() as (url, _):
        assert "secret" not in str(await failure(url + end, "secret"))
