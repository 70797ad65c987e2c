"""Pages of canvases on the host's own port: secret addresses, strict headers, news that wait, changes with a key."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.requests import Request

from ahpkit.canvas import CanvasError, check_url
from ahpkit.canvas.pages import FRAMED_BY, MAX_WAITING, Page, Pages
from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from ahpkit.wire.transport import Transport
from support.http import Answer, get, post
from support.pages import routes_of
from support.waiting import BOUND, until

HTML = '<script nonce="__NONCE__">const key = "__KEY__"</script>'


class Served:
    """Pages behind a real server."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.done: list[Any] = []
        self.fail: CanvasError | None = None

    async def open(self) -> Page:
        return await self.pages.open(HTML, on_change=self._change)

    async def _change(self, done: dict[str, Any]) -> Any:
        if self.fail is not None:
            raise self.fail
        self.done.append(done)
        return len(self.done)

    async def key(self, page: Page) -> str:
        found = re.search(r'key = "([\w-]+)"', (await get(page.url)).text)
        assert found is not None
        return found[1]

    async def change(self, page: Page, do: Any, key: str | None = None, **headers: str) -> Answer:
        keyed = {"key": await self.key(page) if key is None else key, **do}
        return await post(f"{page.url}change", keyed, **headers)


async def nobody(transport: Transport) -> None: ...


@contextlib.asynccontextmanager
async def serving(pages: Pages) -> AsyncGenerator[Served]:
    async with (
        serve_http(nobody, auth=Authenticator("secret-token"), routes=routes_of(pages)) as server,
        pages.serving(server.url),
    ):
        yield Served(pages)


@pytest.fixture
async def served() -> AsyncGenerator[Served]:
    async with serving(Pages(origins=["https://app.example", "my-app://*"])) as made:
        yield made


async def test_each_page_has_an_address_that_nobody_guesses_and_renderers_load(served: Served) -> None:
    one, two = await served.open(), await served.open()
    assert one.url != two.url
    assert len(one.secret) >= 43
    assert check_url(one.url).allowed
    assert (await get(one.url)).status == 200


async def test_no_token_is_needed_and_none_is_given_away(served: Served) -> None:
    page = await served.open()
    answer = await get(page.url)
    assert "secret-token" not in answer.text


async def test_the_page_is_kept_apart_from_everything(served: Served) -> None:
    page = await served.open()
    first, second = await get(page.url), await get(page.url)
    policy = dict(part.split(" ", 1) for part in first.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["sandbox"] == "allow-scripts allow-forms"
    assert policy["frame-ancestors"].split() == [*FRAMED_BY, "https://app.example", "my-app:"]
    assert policy["connect-src"] == page.url
    assert policy["base-uri"] == policy["form-action"] == "'none'"
    assert re.fullmatch(r"'nonce-[\w-]{20,}'", policy["script-src"])
    assert policy["script-src"].strip("'").removeprefix("nonce-") in first.text
    assert first.headers["content-security-policy"] != second.headers["content-security-policy"]
    assert first.headers["cache-control"] == "no-store"
    assert first.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in first.headers  # Other pages cannot read the key.


async def test_news_come_when_there_are_some(served: Served) -> None:
    page = await served.open()
    page.publish({"points": [1]})
    first = await get(f"{page.url}news")
    assert first.json() == {"version": 1, "data": {"points": [1]}}
    waiting = asyncio.create_task(get(f"{page.url}news?after=1"))
    await until_waiting(page, 1)
    page.publish({"points": [1, 2]})
    assert (await waiting).json() == {"version": 2, "data": {"points": [1, 2]}}


async def test_news_that_do_not_come_are_answered_with_what_there_is() -> None:
    async with serving(Pages(poll_seconds=0.01)) as served:
        page = await served.open()
        page.publish(1)
        assert (await get(f"{page.url}news?after=1")).json() == {"version": 1, "data": 1}


async def test_too_many_windows_are_told_so() -> None:
    async with serving(Pages(max_waiting=2)) as served:
        page = await served.open()
        waiting = [asyncio.create_task(get(f"{page.url}news?after=0")) for _ in range(2)]
        await until_waiting(page, 2)
        assert (await get(f"{page.url}news?after=0")).status == 429
        page.publish(1)
        assert {(await answer).status for answer in waiting} == {200}
    assert MAX_WAITING >= 8


async def test_a_released_page_is_gone_and_nobody_waits_for_it(served: Served) -> None:
    page = await served.open()
    waiting = asyncio.create_task(get(f"{page.url}news?after=0"))
    await until_waiting(page, 1)
    served.pages.release(page)
    assert (await waiting).status == 200
    for path in ("", "news"):
        assert (await get(page.url + path)).status == 410
    assert (await post(page.url + "change", {})).status == 410


async def test_what_the_user_does_reaches_the_canvas(served: Served) -> None:
    page = await served.open()
    answer = await served.change(page, {"action": "add", "input": {"text": "ä & ü"}})
    assert (answer.status, answer.json()) == (200, {"value": 1})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert served.done == [{"action": "add", "input": {"text": "ä & ü"}}]


async def test_without_the_key_nothing_is_done(served: Served) -> None:
    page, other = await served.open(), await served.open()
    for key in ("", "wrong", "ä", await served.key(other)):
        assert (await served.change(page, {"action": "add"}, key=key)).status == 403
    assert served.done == []


@pytest.mark.parametrize("destination", ["document", "image", "iframe", "script"])
async def test_a_link_or_an_image_does_nothing_even_with_the_key(served: Served, destination: str) -> None:
    page = await served.open()
    answer = await served.change(page, {"action": "add"}, **{"Sec-Fetch-Dest": destination})
    assert answer.status == 403
    assert served.done == []


@pytest.mark.parametrize("do", [{"input": {}}, {"action": 7}, {"action": "x", "input": 7}])
async def test_what_makes_no_sense_is_refused(served: Served, do: Any) -> None:
    page = await served.open()
    answer = await served.change(page, do)
    assert answer.status == 400
    assert answer.json()["error"]["code"] == "canvas_invalid_input"
    assert served.done == []


@pytest.mark.parametrize("body", [b"", b"7", b"null", b"[]", b"{" * 1000, b'{"action": "add"}', b'{"key": 7}', b"\xff"])
async def test_a_body_that_makes_no_sense_is_refused(served: Served, body: bytes) -> None:
    page = await served.open()
    assert (await post(f"{page.url}change", body)).status == 400
    assert served.done == []


async def test_a_link_changes_nothing(served: Served) -> None:
    page = await served.open()
    assert (await get(f"{page.url}change?key={await served.key(page)}&action=add")).status == 405


async def test_errors_of_the_canvas_have_a_code(served: Served) -> None:
    page = await served.open()
    served.fail = CanvasError("full", code="canvas_limit")
    answer = await served.change(page, {"action": "add"})
    assert (answer.status, answer.json()) == (400, {"error": {"code": "canvas_limit", "message": "full"}})


@pytest.mark.parametrize("path", ["/canvas/", "/canvas/unknown/", "/canvas/../healthz/", "/canvas"])
async def test_unknown_addresses_tell_nothing(served: Served, path: str) -> None:
    page = await served.open()
    base = page.url.partition("/canvas/")[0]
    assert (await get(base + path)).status in (404, 410)
    assert (await get(page.url + "other")).status == 404


async def test_a_foreign_name_for_this_machine_is_refused(served: Served) -> None:
    page = await served.open()
    assert (await get(page.url, Host="evil.example")).status == 403


async def test_a_server_that_stops_does_not_wait_for_those_who_wait() -> None:
    pages = Pages()
    async with asyncio.timeout(BOUND):
        async with (
            serve_http(nobody, auth=Authenticator(None), routes=routes_of(pages)) as server,
            pages.serving(server.url),
        ):
            page = await pages.open(HTML, on_change=Served(pages).open)  # type: ignore[arg-type]  # Less than the real callback.
            waiting = asyncio.create_task(get(f"{page.url}news?after=0"))
            await until_waiting(page, 1)
        await asyncio.wait([waiting])


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("ws://127.0.0.1:7110", "http://127.0.0.1:7110"),
        ("ws://[::1]:7110", "http://localhost:7110"),
        ("wss://host.example:7110", "https://host.example:7110"),
        ("wss://[2001:db8::1]:7110", "https://[2001:db8::1]:7110"),
    ],
)
async def test_a_page_that_is_opened_early_waits_for_its_address(url: str, base: str) -> None:
    pages = Pages()
    opening = asyncio.create_task(pages.open(HTML, on_change=Served(pages).open))  # type: ignore[arg-type]  # Less than the real callback.
    await asyncio.sleep(0)
    assert not opening.done()
    async with pages.serving(url):
        page = await opening
        assert page.url == f"{base}/canvas/{page.secret}/"
        assert check_url(page.url).allowed


async def until_waiting(page: Page, count: int) -> None:
    await until(lambda: page._waiting >= count)  # pyright: ignore[reportPrivateUsage]  # Who waits is not public.


@pytest.mark.parametrize("page_url", ["https://host.example", "https://host.example/", "https://host.example/ahp"])
async def test_behind_a_proxy_pages_have_the_address_that_browsers_reach(page_url: str) -> None:
    pages = Pages()
    async with pages.serving("ws://127.0.0.1:7110", page_url=page_url):
        page = await pages.open(HTML, on_change=Served(pages).open)  # type: ignore[arg-type]  # Less than the real callback.

        assert page.url == f"{page_url.rstrip('/')}/canvas/{page.secret}/"
        assert check_url(page.url).allowed
        shown = await page.show(Request({"type": "http", "headers": [], "path_params": {"secret": page.secret}}))
        assert f"connect-src {page.url}" in shown.headers["Content-Security-Policy"]
