"""Paired devices from outside: codes are spent once and cannot be guessed, cookies end, and a right is not more."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ahpkit.protocol.registry import ACTIONS, COMMANDS
from ahpkit.web.devices import ANSWERS, WATCHING
from support import requirement
from support.flow import begun, open_session, say, state_of
from support.http import Answer, request
from support.process import HostProcess, host_process
from support.raw_client import Json
from support.scripted_acp import scripted_command
from support.waiting import until

PLACE = "https://host.example"


class Page:
    """The page of a running host, as a browser or a program asks for it."""

    def __init__(self, host: HostProcess) -> None:
        self.host = host
        self.origin = f"http://127.0.0.1:{host.port}"

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return await request(method, self.origin + path, data, **{"Content-Length": str(len(data)), **headers})

    async def with_token(self, path: str, body: Any = None) -> Any:
        answer = await self.ask("POST", path, body or {}, Authorization=f"Bearer {self.host.token}")
        assert answer.status == 200, answer.text
        return answer.json()

    async def link(self) -> str:
        """A fresh link, as `ahpkit open` gets it; its code."""
        url: str = (await self.with_token("/page/link"))["url"]
        return parse_qs(urlsplit(url).query)["code"][0]

    async def code(self, right: str) -> str:
        """A code to type on another device."""
        return (await self.with_token("/page/pair", {"right": right}))["code"]

    async def paired(self, right: str) -> dict[str, str]:
        """The headers of a browser that was let in with this right."""
        code = await self.link() if right == "everything" else await self.code(right)
        entered = await self.ask("POST", "/in", {"code": code}) if right != "everything" else None
        entered = entered or await self.ask("GET", f"/in?code={code}")
        return {"Cookie": entered.headers["set-cookie"].partition(";")[0], "Origin": self.origin}

    def dial(self, headers: dict[str, str]) -> connect:
        return connect(self.origin.replace("http", "ws", 1), additional_headers=headers, max_size=None)


@asynccontextmanager
async def page_of(home: Path, *options: str) -> AsyncGenerator[Page]:
    config = home / "config.toml"
    config.write_text(f'[canvas]\npage_url = "{PLACE}"\n')
    async with host_process(home, "--config", str(config), *options) as host:
        yield Page(host)
        await host.stop()
        assert "Traceback" not in host.errors, host.errors


async def ask(socket: ClientConnection, method: str, **params: Any) -> Json:
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
    while True:
        message = json.loads(await socket.recv())
        if message.get("id") == method and "method" not in message:
            return message


HELLO: Json = {
    "channel": "ahp-root://",
    "protocolVersions": ["1.0.0"],
    "clientId": "phone",
    "initialSubscriptions": ["ahp-root://"],
}


async def begin(socket: ClientConnection) -> Json:
    return await ask(socket, "initialize", **HELLO)


async def test_a_code_is_spent_once_and_guesses_are_bounded_without_shutting_out_the_owner(tmp_path: Path) -> None:
    async with page_of(tmp_path) as page:
        code = await page.code("watch")
        assert (await page.ask("POST", "/in", {"code": code})).status == 200
        assert (await page.ask("POST", "/in", {"code": code})).status == 403
        waiting = await page.code("everything")
        guesses = [(await page.ask("POST", "/in", {"code": f"AAAAA-AAAA{n % 10}"})).text for n in range(30)]
        assert "Too many wrong codes" in guesses[-1]
        assert "Too many" in (await page.ask("POST", "/in", {"code": waiting})).text
        assert (await page.ask("GET", f"/in?code={await page.link()}")).status == 303, "nobody guesses a link"


ODD_CODES: tuple[Any, ...] = ("\ud800", "", "A" * 500_000, 7, None, ["A"], {"a": 1}, "\0")


async def test_odd_codes_let_nobody_in(tmp_path: Path) -> None:
    async with page_of(tmp_path) as page:
        for code in ODD_CODES:
            answer = await page.ask("POST", "/in", {"code": code})
            assert (answer.status, "used already" in answer.text) == (403, True), answer.text
        assert (await page.ask("GET", "/in?code=%ed%a0%80%00%ff")).status == 403
        assert (await page.ask("POST", "/in", b"[" * 100_000)).status == 400


async def test_a_revoked_device_is_out_at_once_everywhere(tmp_path: Path) -> None:
    async with page_of(tmp_path) as page:
        owner, phone = await page.paired("everything"), await page.paired("everything")
        async with page.dial(phone) as socket:
            assert "result" in await begin(socket)
            listed = (await page.ask("GET", "/page/devices", **phone)).json()["devices"]
            [here] = [device["id"] for device in listed if device["current"]]
            assert (await page.ask("POST", "/page/devices/revoke", {"id": here}, **owner)).status == 200
            with pytest.raises(ConnectionClosed):
                while True:
                    await socket.recv()
        with pytest.raises(InvalidStatus):
            await page.dial(phone)
        for method, path in (
            ("GET", "/page/me"),
            ("GET", "/page/devices"),
            ("POST", "/page/pair"),
            ("GET", "/metrics"),
        ):
            assert (await page.ask(method, path, {}, **phone)).status == 401, path


PRIVATE: list[tuple[str, str, Any]] = [
    ("GET", "/page/devices", None),
    ("POST", "/page/devices/revoke", {"id": "x"}),
    ("POST", "/page/pair", {"right": "everything"}),
    ("POST", "/page/link", {}),
    ("POST", "/page/sign-in", {"session": "s", "server": "x"}),
    ("POST", "/environment/", {"session": "s", "variables": {"PATH": "/tmp/evil"}}),
    ("GET", "/metrics", None),
]


@requirement("telemetry:allowed")
@pytest.mark.parametrize("right", ["watch", "answer"])
async def test_a_right_is_not_more_than_it_says(tmp_path: Path, right: str) -> None:
    async with page_of(tmp_path) as page:
        phone = await page.paired(right)
        for method, path, body in PRIVATE:
            assert (await page.ask(method, path, body, **phone)).status in (401, 403), path
        async with page.dial(phone) as socket:
            assert "result" in await begin(socket)
            for spec in COMMANDS.values():
                if spec.method in WATCHING or spec.kind != "request" or spec.direction == "host-to-client":
                    continue
                answer = await ask(socket, spec.method, channel="ahp-root://")
                assert "the right to everything" in answer["error"]["message"], spec.method
            for seq, kind in enumerate(sorted(ACTIONS), 1):
                await refused(socket, seq, {"type": kind}, allowed=right == "answer" and kind in ANSWERS)
            for channel in ("ahp-otlp://traces", "ahp-otlp:/logs/debug", "AHP-OTLP://traces", "ahp-otlp://metrics"):
                assert "error" in await ask(socket, "subscribe", channel=channel), channel
            edited = {"type": "chat/toolCallConfirmed", "approved": True, "editedToolInput": "{}"}
            await refused(socket, 9_000, edited, allowed=False)
        root = await page.host.client("ahp-root://")
        assert (await root.ask("listSessions"))["items"] == []


@pytest.mark.parametrize("right", ["watch", "answer"])
async def test_who_may_only_look_changes_nothing_on_the_page_of_a_canvas(tmp_path: Path, right: str) -> None:
    """The page contains a key for its changes, and its address is in the state that everybody sees."""
    async with page_of(tmp_path) as page:
        owner = await page.host.client()
        session, chat = await open_session(owner)
        phone = await page.paired(right)
        async with page.dial(phone) as socket:
            await ask(socket, "initialize", **HELLO, capabilities={"_meta": {"ahpkit/canvases": True}})
            await ask(socket, "subscribe", channel=session)  # It hears of the canvas as an action, too.
            renderer: Json = {"clientId": owner.client_id, "tools": [], "canRenderCanvases": True}
            await owner.accepted(session, {"type": "session/activeClientChanged", "activeClient": renderer})
            await owner.accepted(chat, say('/canvas open checklist l {"items": ["pack"]}'))
            await owner.action("chat/turnComplete")
            [canvas] = (await state_of(owner, session))["openCanvases"]
            told = json.dumps(await ask(socket, "subscribe", channel=session))
            seen = "".join([told, *(json.dumps(one) for one in await heard(socket))])
        full, look = urlsplit(str(canvas["url"])).path, str(re.findall(r"/canvas/[\w-]+/", told)[0])
        assert full not in seen
        assert (await page.ask("GET", look)).status == 200
        assert 'key: ""' in (await page.ask("GET", look)).text
        key = (await page.ask("GET", full)).text.partition('key: "')[2].partition('"')[0]
        done = {"key": key, "action": "addItem", "input": {"text": "pay"}}
        refused = await page.ask("POST", f"{look}change", done)
        assert (refused.status, "only look" in refused.text) == (403, True)
        assert "only look" not in (await page.ask("POST", f"{full}change", done)).text
        await owner.aclose()


async def heard(socket: ClientConnection) -> list[Json]:
    """Everything that was sent to a device before the answer to a further request."""
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": "last", "method": "ping", "params": {}}))
    messages: list[Json] = []
    while not messages or messages[-1].get("id") != "last":
        messages.append(json.loads(await socket.recv()))
    return messages


async def test_who_may_only_look_answers_no_agent(tmp_path: Path) -> None:
    """An agent asks a client that announces an extension, and does what it says."""
    step: Json = {"request": "_acme.example/decide", "params": {}}
    command = scripted_command(tmp_path / "agent.json", turns=[[step]], record=str(tmp_path / "record"))
    async with page_of(tmp_path, "--agent", f"scripted={shlex.join(command)}") as page:
        owner = await page.host.client()
        async with page.dial(await page.paired("watch")) as socket:
            capabilities: Json = {"_meta": {"acme.example/decide": {}}}
            await ask(socket, "initialize", **HELLO, capabilities=capabilities)
            await owner.ask("createSession", "ahp-session:/s", provider="scripted")
            state = await begun(owner, "ahp-session:/s")
            await owner.ask("subscribe", state["defaultChat"])
            await ask(socket, "subscribe", channel=state["defaultChat"])
            await owner.accepted(state["defaultChat"], say("go"))
            await owner.action("chat/turnComplete")
            assert "acme.example/decide" not in json.dumps(await heard(socket))
        assert "no connected client offers it" in (tmp_path / "record").read_text()
        await owner.aclose()


async def test_a_long_message_of_who_may_only_look_ends_its_connection(tmp_path: Path) -> None:
    """It would be read before the host measures it."""
    async with page_of(tmp_path) as page, page.dial(await page.paired("watch")) as socket:
        await begin(socket)
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": [0] * 100_000}}))
        with pytest.raises(ConnectionClosed, match="this device may send"):
            while True:
                await socket.recv()


async def refused(socket: ClientConnection, seq: int, action: Json, *, allowed: bool) -> None:
    """The page's door refuses an action, or the host does, which knows no such channel."""
    params = {"channel": "ahp-session:/none", "clientSeq": seq, "action": action}
    await socket.send(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
    while True:
        message = json.loads(await socket.recv())
        params = message.get("params", {})
        if message.get("method") == "action" and params.get("origin", {}).get("clientSeq") == seq:
            assert ("this device may" in params["rejectionReason"]) is not allowed, action
            return


async def test_too_many_devices_put_out_the_oldest_and_what_it_has_open(tmp_path: Path) -> None:
    async with page_of(tmp_path) as page:
        first = await page.paired("everything")
        async with page.dial(first) as socket:
            await begin(socket)
            for _ in range(101):
                await page.paired("everything")
            assert (await page.ask("GET", "/page/me", **first)).status == 401
            await until(lambda: socket.close_code is not None)
