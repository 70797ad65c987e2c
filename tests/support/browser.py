"""A real Chromium for tests, driven over the DevTools protocol. Knows pages and their frames, nothing of canvases."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from support.waiting import BOUND

Json = dict[str, Any]

CHROMIUM = Path(os.environ.get("AHPKIT_CHROMIUM", "/usr/bin/chromium"))

FLAGS = [
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
]


class Frame:
    """A document, found by the beginning of its URL: a page or the content of a frame, in any process, however new."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        session, context = await self._browser.find(self._url)
        params = {"expression": expression, "contextId": context, "awaitPromise": True, "returnByValue": True}
        answer = await self._browser.call("Runtime.evaluate", session, **params)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def wait_for(self, expression: str) -> Any:
        """Wait until an expression is true, and return its value. It counts as false while the document is replaced."""
        value: Any = None
        async with asyncio.timeout(BOUND):
            while value in (None, False, 0, ""):  # An element comes as {}, which is true.
                with suppress(AssertionError):
                    value = await self.evaluate(expression)
                await asyncio.sleep(0.02)
        return value


class Browser:
    """A running browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._urls: dict[str, str] = {}
        self._contexts: dict[tuple[str, int], str] = {}
        self._news = asyncio.Condition()
        self._starting: set[asyncio.Task[Any]] = set()
        self._profile = ""

    async def read(self) -> None:
        async for data in self._socket:
            message: Json = json.loads(data)
            if "id" in message:
                answer = self._answers.pop(message["id"])
                if "error" in message:
                    answer.set_exception(AssertionError(message["error"]))
                else:
                    answer.set_result(message["result"])
            else:
                await self._heard(message["method"], message["params"], message.get("sessionId", ""))

    async def call(self, method: str, session: str | None = None, **params: Any) -> Json:
        message: Json = {"id": next(self._ids), "method": method, "params": params}
        if session:
            message["sessionId"] = session
        answer = self._answers[message["id"]] = asyncio.get_running_loop().create_future()
        await self._socket.send(json.dumps(message))
        async with asyncio.timeout(BOUND):
            return await answer

    async def begin(self) -> None:
        """Close all tabs of the profile so far, and go on with an empty one: it shares no cookie and no storage."""
        if self._profile:
            await self.call("Target.disposeBrowserContext", browserContextId=self._profile)
        self._urls.clear()
        self._contexts.clear()
        self._profile = (await self.call("Target.createBrowserContext"))["browserContextId"]

    async def open(self, url: str) -> Frame:
        """Open a page in a new tab."""
        await self.call("Target.createTarget", url=url, browserContextId=self._profile)
        return self.frame(url)

    def frame(self, url: str) -> Frame:
        return Frame(self, url)

    async def find(self, url: str) -> tuple[str, int]:
        """Session and context of the newest document whose URL begins like this."""

        def found() -> list[tuple[str, int]]:
            return [where for where, id in self._contexts.items() if self._urls.get(id, "").startswith(url)]

        async with asyncio.timeout(BOUND), self._news:
            await self._news.wait_for(found)
        return found()[-1]

    def urls(self) -> list[str]:
        """The URL of every frame."""
        return list(self._urls.values())

    async def _heard(self, method: str, params: Json, session: str) -> None:
        async with self._news:
            match method:
                case "Target.attachedToTarget":
                    self._attached(params)
                case "Page.frameNavigated":
                    self._urls[params["frame"]["id"]] = params["frame"]["url"]
                case "Page.frameDetached":
                    if params.get("reason") == "remove":
                        self._urls.pop(params["frameId"], None)
                case "Runtime.executionContextCreated":
                    self._created(session, params["context"])
                case "Runtime.executionContextDestroyed":
                    self._contexts.pop((session, params["executionContextId"]), None)
                case "Runtime.executionContextsCleared":
                    self._contexts = {where: id for where, id in self._contexts.items() if where[0] != session}
                case "Target.detachedFromTarget":
                    self._contexts = {w: id for w, id in self._contexts.items() if w[0] != params["sessionId"]}
                case _:
                    pass
            self._news.notify_all()

    def _created(self, session: str, context: Json) -> None:
        if context["auxData"]["isDefault"]:
            self._contexts[session, context["id"]] = context["auxData"]["frameId"]

    def _attached(self, params: Json) -> None:
        """Prepare a new tab, or a frame in another process, before it runs on."""
        target: Json = params["targetInfo"]
        if target["type"] in ("page", "iframe"):
            self._urls[target["targetId"]] = target["url"]
        task = asyncio.create_task(self._enter(params["sessionId"], inspect=target["type"] in ("page", "iframe")))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def attach(self, session: str | None = None) -> None:
        """Get an event for every tab, or for every frame in another process."""
        await self.call("Target.setAutoAttach", session, autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    async def _enter(self, session: str, *, inspect: bool) -> None:
        with suppress(AssertionError):  # It may be gone by now.
            if inspect:
                await self.call("Page.enable", session)
                await self.call("Runtime.enable", session)
                await self.attach(session)
            await self.call("Runtime.runIfWaitingForDebugger", session)


@asynccontextmanager
async def running_browser(directory: Path) -> AsyncGenerator[Browser]:
    """Start Chromium with an empty profile below `directory`, and end it with all its processes."""
    profile = directory / "profile"
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    process = await asyncio.create_subprocess_exec(
        *[str(CHROMIUM), *FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        port, path = await _written(profile / "DevToolsActivePort")
        async with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as socket:
            browser = Browser(socket)
            reading = asyncio.create_task(browser.read())
            await browser.attach()
            try:
                yield browser
            finally:
                reading.cancel()
                await asyncio.wait([reading])
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _written(path: Path) -> tuple[str, str]:
    lines: list[str] = []
    async with asyncio.timeout(BOUND):
        while len(lines) < 2:
            await asyncio.sleep(0.02)
            lines = _lines(path)
    return lines[0], lines[1]


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


__all__ = ["CHROMIUM", "Browser", "Frame", "running_browser"]
