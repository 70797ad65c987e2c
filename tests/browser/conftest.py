"""A real browser, a real host with canvases on a real port, and the example renderer between them."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.canvas import Canvases, PythonProvider, canvas
from ahpkit.canvas.builtin import builtin_provider
from ahpkit.canvas.pages import Pages
from ahpkit.client import connect
from ahpkit.http.server import serve_http
from ahpkit.transports.auth import Authenticator
from support.bench import Bench
from support.browser import CHROMIUM, Browser, running_browser
from support.canvases import runtime
from support.examples import load_example
from support.pages import routes_of
from support.show import Show
from support.waiting import until

ROOT = Path(__file__).parents[2]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Browser]:
    """One for the file: it takes two seconds of CPU to start."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: install chromium, or set AHPKIT_CHROMIUM to one")
    async with running_browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def browser(started: Browser) -> AsyncGenerator[Browser]:
    """Without anything of the test before."""
    await started.begin()
    yield started


def open_anything(request: Any) -> Any:
    return {"url": request["input"]["url"], "title": "<b>Anything</b>"}


@pytest_asyncio.fixture(loop_scope="module")
async def show(tmp_path: Path) -> AsyncGenerator[Show]:
    pages, bench = Pages(), Bench(tmp_path)
    anything = canvas("anything", display_name="Anything", description="Any URL")(open_anything)
    providers = [builtin_provider(pages), PythonProvider("example.anything", [anything])]
    bench.features = [Canvases(providers, max_instances=1_000)]
    await bench.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(bench.stop)
        serving = serve_http(bench.host.serve, auth=Authenticator(None), routes=routes_of(pages))
        server = await stack.enter_async_context(serving)
        await stack.enter_async_context(pages.serving(server.url))
        raw = await bench.client()
        session, chat = await bench.session(raw)
        agent = await runtime(bench, raw, chat)
        client = await stack.enter_async_context(connect(server.url, client_id="renderer"))
        printed = io.StringIO()
        with redirect_stdout(printed):
            rendering = asyncio.create_task(load_example("canvas_renderer").main(client, session))
            await until(printed.getvalue)
        try:
            yield Show(agent, printed.getvalue().strip())
        finally:
            rendering.cancel()
            await asyncio.wait([rendering])
