"""The example renderer in a real browser: canvases work in their frames, and cannot get out of them."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from starlette.requests import Request
from starlette.responses import HTMLResponse

from ahpkit.canvas.url_policy import UrlPolicy, check_url
from ahpkit.http.router import Access, Receive, Router, Scope, Send
from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from ahpkit.wire.transport import Transport
from support import requirement
from support.browser import Browser
from support.hostile_urls import FINE, HOSTILE
from support.show import Show
from support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@requirement("canvas:roles:renderer-displays", "canvas:roles:server-canvas-any-capable-client")
async def test_user_and_agent_share_a_checklist(browser: Browser, show: Show) -> None:
    opened = await show.agent.open("checklist", "list", input={"title": "Trip", "items": ["pack <i>all</i>"]})
    page = await show.open(browser)
    assert await page.wait_for("document.querySelector('h2').textContent") == "Trip"
    board = browser.frame(opened["url"])
    await board.wait_for("document.querySelector('li')")
    assert (await board.evaluate("document.querySelector('li').firstChild.textContent")).strip() == "pack <i>all</i>"
    await board.evaluate("document.querySelector('[aria-label^=\"On: pack\"]').click()")
    await board.wait_for("document.querySelectorAll('section')[1].querySelector('li')")
    await board.evaluate(
        "document.querySelector('input').value = 'pay'; document.querySelector('form').requestSubmit(); 1"
    )
    await board.wait_for("document.querySelectorAll('li').length == 2")
    read = await show.agent.invoke("list", "read")
    assert [(item["text"], item["column"]) for item in read["items"]] == [
        ("pack <i>all</i>", "Doing"),
        ("pay", "To do"),
    ]
    await show.agent.invoke("list", "moveItem", {"id": "2", "column": "Done"})
    await board.wait_for("document.querySelectorAll('section')[2].querySelector('li')")
    await show.agent.close("list")
    await page.wait_for("document.body.innerText.includes('No canvas is open')")


async def test_a_chart_grows_while_the_agent_adds_points(browser: Browser, show: Show) -> None:
    opened = await show.agent.open("chart", "load", input={"title": "Load", "series": [{"name": "cpu"}]})
    page = await show.open(browser)
    chart = browser.frame(opened["url"])
    await chart.wait_for("document.querySelector('#say').textContent == 'No points yet.'")
    await show.agent.invoke("load", "addPoints", {"series": "cpu", "points": [3, 1, 4]})
    await chart.wait_for("document.querySelector('polyline').dataset.points == '3'")
    await show.agent.invoke("load", "addPoints", {"series": "ram", "points": [[0, 5], [2, 9]]})
    await chart.wait_for("document.querySelectorAll('polyline').length == 2")
    labels = "[...document.querySelectorAll('.label')].map((label) => label.textContent)"
    assert await chart.evaluate(labels) == ["2", "4", "6", "8", "0", "2"]
    fill = "getComputedStyle(document.querySelector('polyline')).fill"
    assert await chart.evaluate(fill) == "none"
    await show.agent.invoke("load", "setTitle", {"title": "Load of today"})
    await chart.wait_for("document.querySelector('h1').textContent == 'Load of today'")
    await page.wait_for("document.querySelector('iframe')")


async def test_a_chart_of_strange_numbers_is_drawn(browser: Browser, show: Show) -> None:
    strange = [[0, 1e300], [1, -1e300], [2, 1e16], [3, 1e16 + 2], [4, 5e-324], [5, 0]]
    for number, point in enumerate([strange, strange[2:4], strange[4:], [[0, 7]]]):
        given = {"kind": "bar" if number % 2 else "line", "series": [{"name": "x", "points": point}]}
        opened = await show.agent.open("chart", f"c{number}", input=given)
        page = await browser.open(opened["url"])
        await page.wait_for("document.querySelector('#say').textContent.includes('points')")


class Site:
    """A web site on this machine that writes down the headers of what it is asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append(dict(Request(scope).headers))
        await HTMLResponse("<p>canvas</p>")(scope, receive, send)


async def nobody(transport: Transport) -> None: ...


@pytest_asyncio.fixture(loop_scope="module")
async def site() -> AsyncGenerator[Site]:
    made = Site()
    routes = Router()
    routes.mount("/", made, access=Access.PUBLIC)
    async with serve_http(nobody, auth=Authenticator(None), routes=routes) as server:
        made.url = f"http://127.0.0.1:{server.port}/canvas"
        yield made


TRIES = """(() => {
  const tried = {};
  const attempts = {
    parent: () => parent.document.title,
    top: () => top.document.cookie,
    storage: () => localStorage.getItem("app"),
    cookie: () => document.cookie,
    navigate: () => { top.location = "https://evil.example/"; return "went"; },
    popup: () => (window.open("about:blank") ? "opened" : null),
    dialog: () => (alert("hello"), null),
  };
  for (const [name, attempt] of Object.entries(attempts)) {
    try { tried[name] = attempt() ?? "nothing"; } catch (error) { tried[name] = error.name; }
  }
  return { ...tried, origin: self.origin };
})()"""


@requirement("canvas:url:sandbox")
async def test_a_canvas_cannot_reach_the_application(browser: Browser, show: Show, site: Site) -> None:
    await show.agent.open("anything", "a", input={"url": site.url})
    page = await show.open(browser)
    await page.wait_for("document.querySelector('iframe')")
    await page.evaluate("localStorage.setItem('app', 'secret'); document.cookie = 'app=secret'; 1")
    canvas = browser.frame(site.url)
    await canvas.wait_for("document.querySelector('p')")
    assert await canvas.evaluate(TRIES) == {
        "parent": "SecurityError",
        "top": "SecurityError",
        "storage": "SecurityError",
        "cookie": "SecurityError",
        "navigate": "SecurityError",
        "popup": "nothing",
        "dialog": "nothing",
        "origin": "null",
    }
    assert await page.evaluate("location.href") == show.address
    assert await page.evaluate("localStorage.getItem('app')") == "secret"


@requirement("canvas:url:sandbox")
async def test_the_hosts_own_pages_are_apart_also_without_a_renderer(browser: Browser, show: Show) -> None:
    opened = await show.agent.open("checklist", "list")
    page = await browser.open(opened["url"])
    await page.wait_for("document.querySelector('h1').textContent == 'Checklist'")
    tried = await page.evaluate(TRIES)
    assert tried["origin"] == "null"
    assert tried["storage"] == tried["cookie"] == "SecurityError"


@requirement("canvas:url:credentials-stripped")
async def test_a_canvas_gets_no_credentials(browser: Browser, show: Show, site: Site) -> None:
    page = await show.open(browser)
    await page.evaluate("document.cookie = 'session=secret; path=/'; 1")  # Of this machine, whatever the port.
    await show.agent.open("anything", "a", input={"url": site.url})
    await until(lambda: site.requests)
    for request in site.requests:
        assert not {"cookie", "authorization", "referer"} & set(request)
    check = await browser.open(site.url + "/check")  # The cookie is there: whoever navigates by himself sends it.
    await check.wait_for("document.querySelector('p')")
    assert any(request.get("cookie") == "session=secret" for request in site.requests)


@requirement("canvas:url:scheme-allow-list")
async def test_hostile_urls_are_named_and_never_loaded(browser: Browser, show: Show) -> None:
    hostile = [url for url in HOSTILE if len(url) < 1_000]
    for number, url in enumerate(hostile):
        await show.agent.open("anything", f"h{number}", input={"url": url})
    await show.agent.open("anything", "fine", input={"url": "data:text/html,fine"})
    page = await show.open(browser)
    await page.wait_for(f"document.querySelectorAll('.refused').length == {len(hostile)}")
    assert await page.evaluate("document.querySelectorAll('iframe').length") == 1
    await browser.frame("data:text/html,fine").wait_for("document.body.textContent == 'fine'")
    known = {show.address, "data:text/html,fine", "about:blank"}
    assert set(browser.urls()) <= known


PIECES = [
    *("https", "http", "HTTP", "data", "file", "vscode-webview", "javascript", "ws"),
    *(":", "/", "//", "///", "\\", "@", "?", "#", ".", "%", "%00", "%2e", "%40", "[", "]", ",", ";"),
    *("localhost", "127.0.0.1", "127.1", "0x7f.1", "[::1]", "evil.example", "EXAMPLE.com", "xn--bcher-kva", "a_b"),
    *("user", "80", ":80", ":0", ":99999", "\t", "\n", " ", "ü", "．", "а"),
]
OPEN = UrlPolicy(extension_schemes={"vscode-webview"}, local_files=True)


def candidates(count: int) -> list[str]:
    """Random URLs, most of them nearly right."""
    chance = random.Random(7110)
    made = [*FINE, *HOSTILE]
    while len(made) < count:
        start = chance.choice(["https://", "http://", "http://localhost", "data:", "file:///", "vscode-webview://", ""])
        made.append(start + "".join(chance.choices(PIECES, k=chance.randint(1, 6))))
    return made


@requirement("canvas:url:http-loopback-only")
async def test_what_the_policy_allows_means_the_same_to_the_browser(browser: Browser) -> None:
    verdicts = [check_url(url, OPEN) for url in candidates(10_000)]
    allowed = [verdict.url for verdict in verdicts if verdict.allowed]
    assert 0.02 < len(allowed) / len(verdicts) < 0.9, "there is nothing to tell apart"
    assert len(allowed) > 1_000
    page = await browser.open("about:blank")
    parse = "(u) => { const p = URL.parse(u); return p && [p.protocol, p.hostname, p.port, p.username, p.password]; }"
    parsed: list[list[str] | None] = await page.evaluate(f"{json.dumps(allowed)}.map({parse})")
    for url, seen in zip(allowed, parsed, strict=True):
        scheme, _, rest = url.partition(":")
        if seen is None:  # The browser loads nothing, then.
            assert scheme in ("data", "vscode-webview"), url
            continue
        protocol, host, port, user, password = seen
        assert (protocol, user, password) == (f"{scheme}:", "", ""), url
        if scheme == "http":
            assert host in ("localhost", "127.0.0.1"), url
        if scheme in ("http", "https"):
            authority = rest.removeprefix("//").partition("/")[0].partition("?")[0].partition("#")[0]
            assert authority in (host, f"{host}:{port}", f"{host}:80", f"{host}:443"), url
        if scheme == "file":
            assert host == "", url
