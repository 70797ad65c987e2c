"""The page over real HTTP: files and their headers, the way in, devices, and connections that a cookie lets in."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ahpkit.http.router import Router
from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from ahpkit.web.devices import Devices
from ahpkit.web.page import PageServer, page_name
from ahpkit.wire.transport import Transport

TOKEN = "secret"


async def echo(transport: Transport) -> None:
    """Stands for the host: says back what it is told."""
    from ahpkit.protocol.errors import TransportClosed

    try:
        while True:
            transport.write(transport.frame(await transport.receive()))
    except TransportClosed:
        return


class Running:
    def __init__(self, page: PageServer, devices: Devices, port: int) -> None:
        self.page = page
        self.devices = devices
        self.port = port
        self.name = urlsplit(page.url).netloc

    async def ask(
        self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: Any = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One HTTP request as a browser writes it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = b"" if body is None else json.dumps(body).encode()
        lines = {"Host": self.name, "Connection": "close", "Content-Length": str(len(data)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
        raw = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        await writer.wait_closed()
        top, _, content = raw.partition(b"\r\n\r\n")
        status, *rest = top.decode().split("\r\n")
        found = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        return int(status.split()[1]), found, content

    def dial(self, headers: Mapping[str, str]) -> connect:
        return connect(f"ws://{self.name}/", host="127.0.0.1", port=self.port, additional_headers=headers)

    async def come_in(self) -> dict[str, str]:
        """Follow the printed link; returns the headers of a browser that has the cookie."""
        parts = urlsplit(self.page.link())
        _, headers, _ = await self.ask(f"{parts.path}?{parts.query}")
        return {"Cookie": headers["set-cookie"].partition(";")[0], "Origin": f"http://{self.name}"}


@asynccontextmanager
async def running(tmp_path: Path, *, page_url: str | None = None) -> AsyncGenerator[Running]:
    files = tmp_path / "page"
    (files / "assets").mkdir(parents=True)
    (files / "index.html").write_text("<!doctype html><title>ahpkit</title>")
    (files / "assets" / "index-1.js").write_text("1")
    (tmp_path / "token").write_text(TOKEN)
    devices = Devices(tmp_path / "devices.json", clock=lambda: 1_800_000_000.0)
    page = PageServer(devices, name=page_name(TOKEN), files=files)
    routes = Router()
    page.mount(routes)
    async with serve_http(page.guard(echo), auth=Authenticator(TOKEN, checks=[page.check]), routes=routes) as server:
        page.listening(server.url, page_url=page_url)
        assert server.port is not None
        yield Running(page, devices, server.port)


async def test_the_page_is_served_with_a_strict_policy_and_asked_for_anew_each_time(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for name in (here.name, f"127.0.0.1:{here.port}"):
            status, headers, body = await here.ask("/", headers={"Host": name})
            assert status == 200
            assert b"ahpkit" in body
            assert headers["cache-control"] == "no-cache"
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"


async def test_files_with_a_hash_in_their_name_are_kept_by_browsers(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        _, headers, _ = await here.ask("/assets/index-1.js")
        assert "immutable" in headers["cache-control"]


async def test_a_file_is_sent_packed_to_who_can_unpack_it(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        (tmp_path / "page" / "assets" / "index-1.js.gz").write_bytes(gzip.compress(b"1"))
        _, headers, body = await here.ask("/assets/index-1.js", headers={"Accept-Encoding": "gzip, br"})
        assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
        assert headers["content-type"].startswith("text/javascript")
        assert gzip.decompress(body) == b"1"
        _, headers, body = await here.ask("/assets/index-1.js")
        assert "content-encoding" not in headers
        assert headers["vary"] == "Accept-Encoding"
        assert body == b"1"


@pytest.mark.parametrize(
    "path", ["/../token", "/%2e%2e/token", "/assets/../../token", "/nothing", "/assets", "/assets/"]
)
async def test_nothing_else_is_served(tmp_path: Path, path: str) -> None:
    async with running(tmp_path) as here:
        status, _, body = await here.ask(path)
        assert status == 404
        assert TOKEN.encode() not in body


async def test_a_host_without_its_page_says_how_to_build_it(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        (tmp_path / "page" / "index.html").unlink()
        status, _, body = await here.ask("/")
        assert status == 200
        assert b"make page" in body


async def test_the_link_becomes_a_cookie_that_scripts_cannot_read_and_works_once(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        parts = urlsplit(here.page.link())
        assert parts.hostname is not None
        assert parts.hostname.endswith(".localhost")
        target = f"{parts.path}?{parts.query}"
        status, headers, _ = await here.ask(target)
        assert (status, headers["location"]) == (303, "/")
        assert "HttpOnly" in headers["set-cookie"]
        assert "SameSite=Strict" in headers["set-cookie"]
        assert TOKEN not in headers["set-cookie"]
        again, headers, _ = await here.ask(target)
        assert again == 403
        assert "set-cookie" not in headers


async def test_looking_at_a_link_without_opening_it_does_not_spend_it(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        parts = urlsplit(here.page.link())
        await here.ask(f"{parts.path}?{parts.query}", method="HEAD")
        assert (await here.ask(f"{parts.path}?{parts.query}"))[0] == 303


async def test_without_a_cookie_nothing_is_told(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for path in ("/page/me", "/page/devices"):
            assert (await here.ask(path))[0] == 401


async def test_a_cookie_opens_a_connection_from_the_page_itself_only(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        known = await here.come_in()

        async def dial(**headers: str) -> None:
            async with here.dial(headers) as socket:
                await socket.send('{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}')
                assert "ping" in str(await socket.recv())

        await dial(**known)
        for origin in (
            f"http://127.0.0.1:{here.port}",
            f"http://localhost:{here.port}",
            f"http://{here.name.partition(':')[0]}:1",
            "https://evil.example",
            "null",
        ):
            with pytest.raises(InvalidStatus, match="403"):
                await dial(Cookie=known["Cookie"], Origin=origin)
        with pytest.raises(InvalidStatus, match="403"):
            await dial(Cookie=known["Cookie"])
        with pytest.raises(InvalidStatus, match="401"):
            await dial(Origin=known["Origin"])


async def test_a_revoked_device_is_cut_off_and_its_cookie_is_worth_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        known = await here.come_in()
        async with here.dial(known) as socket:
            here.devices.revoke(here.devices.all()[0].id)
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(socket.recv(), 5)
        with pytest.raises(InvalidStatus, match="401"):
            await here.dial(known)
        assert (await here.ask("/page/me", headers=known))[0] == 401


async def test_a_watching_device_sees_and_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, page_url="https://host.example") as here:
        code = here.devices.new_code(right="watch", name="Tablet")
        _, answer, _ = await here.ask(f"/in?code={code}")
        headers = {"Cookie": answer["set-cookie"].partition(";")[0], "Origin": f"http://{here.name}"}
        async with here.dial(headers) as socket:
            await socket.send('{"jsonrpc":"2.0","id":1,"method":"createSession","params":{"channel":"ahp-session:/1"}}')
            assert json.loads(await socket.recv())["error"]["code"] == -32009
        for path in ("/page/pair", "/page/devices/revoke"):
            assert (await here.ask(path, method="POST", headers=headers, body={"id": "x"}))[0] == 403
        assert (await here.ask("/page/devices", headers=headers))[0] == 403


async def test_another_page_cannot_use_the_cookie_to_change_anything(tmp_path: Path) -> None:
    async with running(tmp_path, page_url="https://host.example") as here:
        known = await here.come_in()
        for origin in ("https://evil.example", "null"):
            foreign = {**known, "Origin": origin}
            assert (await here.ask("/page/pair", method="POST", headers=foreign, body={}))[0] == 403


async def test_a_code_for_a_phone_has_a_right_and_an_address_that_the_phone_can_reach(tmp_path: Path) -> None:
    async with running(tmp_path, page_url="https://host.example/") as here:
        known = await here.come_in()
        _, _, body = await here.ask("/page/pair", method="POST", headers=known, body={"right": "answer", "name": "P"})
        made = json.loads(body)
        assert made["url"].startswith("https://host.example/in?code=")
        status, headers, _ = await here.ask(
            "/in", method="POST", headers={"Origin": known["Origin"]}, body={"code": made["code"].lower()}
        )
        assert status == 200
        assert "set-cookie" in headers
        assert {device.right for device in here.devices.all()} == {"everything", "answer"}
        assert (await here.ask("/page/pair", method="POST", headers=known, body={"right": "all"}))[0] == 400


async def test_a_host_that_only_listens_here_pairs_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        known = await here.come_in()
        status, _, body = await here.ask("/page/pair", method="POST", headers=known, body={})
        assert status == 409
        assert b"listens on this machine only" in body
        assert b"tls_authority" in body


async def test_links_are_made_for_programs_with_the_token_and_not_for_pages(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        known = await here.come_in()
        assert (await here.ask("/page/link", method="POST", headers=known, body={}))[0] == 403
        token = {"Authorization": f"Bearer {TOKEN}"}
        status, _, body = await here.ask("/page/link", method="POST", headers=token, body={})
        assert status == 200
        assert "/in?code=" in json.loads(body)["url"]


async def test_signing_out_forgets_the_browser(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        known = await here.come_in()
        assert (await here.ask("/page/out", method="POST", headers=known, body={}))[0] == 200
        assert (await here.ask("/page/me", headers=known))[0] == 401


@pytest.mark.parametrize("cookie", ["ahpkit_x=1", "=;;;", 'a="\\', "ahpkit_" + "z" * 5000])
async def test_odd_cookies_let_nobody_in(tmp_path: Path, cookie: str) -> None:
    async with running(tmp_path) as here:
        assert (await here.ask("/page/me", headers={"Cookie": cookie}))[0] == 401
