"""Nobody can fill the host's log, or write records of their own into it."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mcp_servers.http_server import serving
from support.flow import open_session
from support.process import host_process
from support.waiting import until

ROOT = "ahp-root://"


async def test_messages_that_are_wrong_again_and_again_leave_a_few_short_lines(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.connect()
        await client.initialize(ROOT, protocolVersions=["1.0.0"])
        session, chat = await open_session(client)
        for number in range(300):
            client.send({"jsonrpc": "2.0", "method": "dispatchAction", "params": {"channel": 7}})
            client.send_bytes(b"{")
            client.post(chat, {"type": "chat/turnStarted", "turnId": number})
            client.post(session, {"type": "session/configChanged", "config": {f"k{number}": "v" * 1000}})
            client.post(ROOT, {"type": "root/configChanged", "config": {f"{number}{'k' * 5_000}": 1}})
            await client.ask("ping")
        await client.aclose()
        await host.stop()
    lines = host.errors.splitlines()
    assert len(lines) < 100, lines[:100]
    assert max(map(len, lines), default=0) < 5_000


async def test_no_text_looks_like_a_record_of_its_own(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.connect("me\nERROR all is lost")
        await client.initialize(ROOT, protocolVersions=["1.0.0"])
        settings = {"a\nERROR all is lost": 1, "b\r\nERROR all is lost": 1}
        await client.dispatch(ROOT, {"type": "root/configChanged", "config": settings})
        await client.aclose()
        await host.stop()
    assert "all is lost" in host.errors
    assert not any(line.startswith("ERROR") for line in host.errors.splitlines())


async def test_no_text_controls_the_terminal_in_which_the_host_runs(tmp_path: Path) -> None:
    """Escape sequences could hide lines that came before; marks of direction could make a line read otherwise."""
    async with host_process(tmp_path) as host:
        client = await host.connect("me\x1b[2J\x00")
        await client.initialize(ROOT, protocolVersions=["1.0.0"])
        await client.dispatch(ROOT, {"type": "root/configChanged", "config": {"\x1b[1Ared\x07\x9b2J\u202eb\x7f": 1}})
        await client.aclose()
        await host.stop()
    assert "[1Ared" in host.errors
    assert not {char for char in host.errors if char < " " or "\x7f" <= char < "\xa0"} - {"\n"}
    assert "\u202e" not in host.errors


async def test_a_client_that_leaves_before_it_is_refused_leaves_no_line(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with host_process(tmp_path) as host:
        watcher = await host.client()
        for number in range(40):
            client = await host.client(client_id=f"leaves-{number}")
            for request in range(60):
                method = ("resourceRead", "resourceList", "resourceWrite", "resourceDelete")[request % 4]
                params = {"channel": ROOT, "uri": "file:///etc/passwd", "data": "x", "encoding": "utf-8"}
                client.send({"jsonrpc": "2.0", "id": f"q{request}", "method": method, "params": params})
            if number % 2:
                await watcher.ask("ping")
            client.transport.abort()
        await watcher.ask("ping")
        await watcher.aclose()
        await host.stop()
    # To stop may take two seconds: the host says goodbye also to a client whose end it has not read yet.
    assert [line for line in host.errors.splitlines() if not line.startswith("stopping;")] == []


def odd_server(_origin: str) -> Starlette:
    """Answers every request with the status that its path names."""

    async def answer(request: Request) -> Response:
        return Response(
            status_code=request.path_params["status"], headers={"location": "http://127.0.0.1:9/?key=moved"}
        )

    return Starlette(routes=[Route("/{status:int}", answer, methods=["GET", "POST"])])


async def test_the_address_of_a_server_that_fails_is_in_no_log(tmp_path: Path) -> None:
    """Keys stand in queries, and a library logs the address of each request. For states: `mcp_servers/test_http.py`."""
    names = [f"{form}{status}" for status in (200, 307, 403, 500) for form in ("http", "sse")]
    async with serving(odd_server) as origin:
        servers = [
            f'[[mcp.servers]]\nname = "{name}"\nurl = "{origin}/{name[-3:]}?key=hunter2"\ntype = "{name[:-3]}"\n'
            for name in names
        ]
        (tmp_path / "host.toml").write_text("".join(servers))
        async with host_process(tmp_path, "--verbose", "--config", str(tmp_path / "host.toml")) as host:
            client = await host.connect()
            await client.initialize(protocolVersions=["1.0.0"])
            await open_session(client)
            await until(lambda: all(f"MCP server {name}: " in host.errors for name in names))
            await client.aclose()
            await host.stop()
    assert "hunter2" not in host.errors
    assert "Traceback" not in host.errors
