"""One MCP server, as a real process: its life, its lists, its calls, and what goes wrong."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from ahpkit.mcp.calls import Limits
from ahpkit.mcp.connect import ServerConfig, server_config
from ahpkit.mcp.errors import McpConfigError, McpRefused, McpUnavailable
from ahpkit.mcp.server import McpServer
from ahpkit.protocol.common.state import JsonObject
from mcp_servers.running import PROGRAM, QUICK, Answers, Port, of_era, program, running, text_of
from support.waiting import until

ERAS = pytest.mark.parametrize("era", ["legacy", "modern", "plain"])


@ERAS
async def test_it_starts_lists_serves_and_stops(era: str) -> None:
    port, caller = Port(), Answers()
    async with running(of_era(era), port) as server:
        assert {"add", "ask"} <= {tool["name"] for tool in server.lists.tools}
        assert [prompt["name"] for prompt in server.lists.prompts] == ["poem"]
        assert [resource["uri"] for resource in server.lists.resources] == ["test://notes"]
        assert text_of(await server.call_tool("add", {"a": 2, "b": 3}, caller)) == "5"
        assert (await server.call_tool("structured", {}, caller))["structuredContent"] == {"n": 1}
        assert (await server.call_tool("fail", {}, caller))["isError"]
        read = await server.read_resource("test://notes", caller)
        assert read["contents"][0]["text"] == "remember the milk"
        prompt = await server.get_prompt("poem", {"topic": "rain"}, caller)
        assert "rain" in prompt["messages"][0]["content"]["text"]
    assert port.kinds == ["starting", "ready", "stopped"]
    assert not server.lists.tools


@ERAS
async def test_progress_questions_samples_and_roots_reach_the_caller(era: str) -> None:
    port, caller = Port(), Answers()
    async with running(of_era(era), port) as server:
        await server.call_tool("slow", {}, caller)
        assert caller.heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        assert "Ann" in text_of(await server.call_tool("ask", {"question": "Who?"}, caller))
        assert caller.asked[0]["message"] == "Who?"
        assert text_of(await server.call_tool("sample", {}, caller)) == "hi"
        assert text_of(await server.call_tool("roots", {}, caller)) == "file:///work"


@ERAS
async def test_a_server_that_asks_in_a_loop_is_refused_and_goes_on(era: str) -> None:
    port, caller = Port(), Answers()
    async with running(of_era(era), port, limits=Limits(asks=3, delays=())) as server:
        try:
            said = text_of(await server.call_tool("ask", {"times": 50}, caller))
        except McpRefused as error:
            said = str(error)
        assert len(caller.asked) == 3
        assert "3" in said
        assert text_of(await server.call_tool("add", {"a": 1, "b": 1}, caller)) == "2"


PAGE = "https://login.example/start"


async def test_a_call_that_is_refused_until_a_page_was_opened_is_made_again() -> None:
    caller, refuses = Answers(), {"url": PAGE, "how": "refuses"}
    async with running(program("pages"), Port(), limits=Limits(asks=3, delays=())) as server:
        said = text_of(await server.call_tool("open_page", {**refuses, "times": 2}, caller))
        assert (said, [asked["url"] for asked in caller.asked]) == ("you were there", [PAGE, PAGE])
        for answer in ("decline", "accept"):  # A person who declines, and a server that is never content.
            with pytest.raises(McpRefused, match="open it first"):
                await server.call_tool("open_page", {**refuses, "times": 50}, Answers({"action": answer}))


async def test_a_page_is_done_with_when_the_server_says_so() -> None:
    class Hesitant(Answers):
        async def elicit(self, params: JsonObject) -> JsonObject:
            await asyncio.Event().wait()
            raise AssertionError

    async with running(program("pages"), Port()) as server:
        assert text_of(await server.call_tool("open_page", {"url": PAGE, "how": "says so"}, Hesitant())) == "accept"


async def test_nobody_is_asked_to_open_what_is_no_web_page() -> None:
    caller = Answers()
    async with running(program("pages"), Port()) as server:
        for url in ("javascript:alert(1)", "file:///etc/passwd", "", "http://", "http://[", "https://x/" + "a" * 9000):
            assert "refused: " in text_of(await server.call_tool("open_page", {"url": url, "how": "asks"}, caller))
            with pytest.raises(McpRefused):
                await server.call_tool("open_page", {"url": url, "how": "refuses", "times": 50}, caller)
        assert not caller.asked


async def test_sampling_is_not_offered_where_nobody_answers() -> None:
    async with running(program(), Port(samples=False)) as server:
        with pytest.raises(McpRefused):
            await server.call_tool("sample", {}, Answers())


@ERAS
async def test_lists_follow_changes(era: str) -> None:
    port = Port()
    async with running(of_era(era), port) as server:
        await server.call_tool("grow", {"name": "brand_new"}, Answers())
        await port.until(lambda: "brand_new" in {tool["name"] for tool in server.lists.tools})


@ERAS
async def test_cancelling_a_call_reaches_the_server(era: str, tmp_path: Path) -> None:
    file = tmp_path / "state"
    async with running(of_era(era), Port()) as server:
        call = asyncio.create_task(server.call_tool("hang", {"file": str(file)}, Answers()))
        await _content(file, "started")
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await _content(file, "cancelled")
        assert text_of(await server.call_tool("add", {"a": 1, "b": 1}, Answers())) == "2"


async def _content(file: Path, wanted: str) -> None:
    async with asyncio.timeout(20):
        while _read(file) != wanted:  # noqa: ASYNC110  # A file does not wake us.
            await asyncio.sleep(0.01)


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def test_a_tool_that_never_answers_is_given_up(tmp_path: Path) -> None:
    limits = Limits(call=0.3, delays=())
    async with running(program(), Port(), limits=limits) as server:
        with pytest.raises(McpUnavailable, match=r"0\.3 seconds"):
            await server.call_tool("hang", {"file": str(tmp_path / "x")}, Answers())
        assert server.ready


async def test_a_crash_restarts_it_and_the_call_says_what_happened() -> None:
    port = Port()
    async with running(program(), port) as server:
        with pytest.raises(McpUnavailable, match="the disk is on fire"):
            await server.call_tool("crash", {}, Answers())
        await port.until(lambda: port.kinds == ["starting", "ready", "starting", "ready"])
        assert text_of(await server.call_tool("add", {"a": 1, "b": 1}, Answers())) == "2"


async def test_a_server_that_cannot_start_ends_in_error_with_its_last_lines(tmp_path: Path) -> None:
    port, started = Port(), tmp_path / "started"
    async with running(program("dead", TEST_STARTED=str(started)), port, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "error")
        assert "cannot start: no configuration" in server.state["error"]["message"]
        assert len(started.read_text().splitlines()) == 1 + len(QUICK.delays)
        server.start_again()
        await port.until(lambda: port.kinds.count("starting") == 2)
    assert port.kinds[-1] == "stopped"


@pytest.mark.parametrize("directory", [False, True])
async def test_a_program_or_directory_that_is_not_there_is_an_error_at_once(tmp_path: Path, directory: bool) -> None:
    port, gone = Port(), tmp_path / "gone"
    command = sys.executable if directory else str(gone)
    config = ServerConfig(name="gone", command=(command,), cwd=gone if directory else None)
    async with running(config, port, limits=Limits(delays=(3600.0,)), wait=False) as server:
        await port.until(lambda: server.state["kind"] == "error")
        part = "working directory" if directory else "program"
        message = f"gone: it cannot be started: no such file or directory. Look at the {part} in its declaration"
        assert server.state["error"]["message"] == message
        server.start_again()
        await port.until(lambda: port.kinds.count("error") == 2)


async def test_a_server_that_never_answers_is_an_error() -> None:
    port = Port()
    async with running(program("silent"), port, limits=Limits(start=0.5, delays=()), wait=False) as server:
        await port.until(lambda: server.state["kind"] == "error")
        assert "0.5 seconds" in server.state["error"]["message"]


async def test_a_server_that_never_answers_is_started_twice_however_long_it_may_take(tmp_path: Path) -> None:
    """The time that it took to be given up counted as a time in which it was well, so it was started without end."""
    port, starts = Port(), tmp_path / "starts"
    config = ServerConfig(name="silent", command=("sh", "-c", 'echo x >> "$0"; cat > /dev/null', str(starts)))
    limits = Limits(start=1.0, steady=0.1, delays=(0.01,) * 5)
    async with running(config, port, limits=limits, wait=False) as server:
        await port.until(lambda: server.state["kind"] == "error")
        assert starts.read_text().split() == ["x", "x"]


async def test_garbage_on_stdout_is_skipped() -> None:
    async with running(program("garbage"), Port()) as server:
        assert text_of(await server.call_tool("add", {"a": 1, "b": 1}, Answers())) == "2"


async def test_an_answer_that_is_too_long_ends_the_connection_not_the_host() -> None:
    port = Port()
    async with running(program(), port, limits=Limits(message=100_000, delays=(0.01,) * 5)) as server:
        with pytest.raises(McpUnavailable, match="longer than this host takes"):
            await server.call_tool("big", {"size": 5_000_000}, Answers())
        assert port.kinds[:3] == ["starting", "ready", "starting"], "while its program ends, nothing is sent to it"
        await port.until(lambda: port.kinds.count("ready") == 2)


async def test_five_thousand_tools_are_listed_once_each() -> None:
    async with running(program("many"), Port(), limits=Limits(listed=4000)) as server:
        assert len({tool["name"] for tool in server.lists.tools}) == len(server.lists.tools) == 4000
        assert server.lists.left_out == {"every further tool": "the first 4000 are used"}
        assert text_of(await server.call_tool("tool_4999", {}, Answers())) == "called tool_4999"
        shown = await server.request("tools/list", {}, Answers())
        assert [tool["name"] for tool in shown["tools"]] == [f"tool_{number}" for number in range(5000)]


async def test_the_same_name_twice_is_listed_once() -> None:
    async with running(program("twice"), Port()) as server:
        assert [tool["name"] for tool in server.lists.tools].count("add") == 1
        assert server.lists.left_out == {"add": "it is listed twice; the first one is used"}


async def test_the_hosts_secrets_are_not_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_SECRET", "hush")
    async with running(program(OWN="yes"), Port()) as server:
        assert text_of(await server.call_tool("env", {"name": "HOST_SECRET"}, Answers())) == "(unset)"
        assert text_of(await server.call_tool("env", {"name": "OWN"}, Answers())) == "yes"


async def test_stopping_ends_the_process(tmp_path: Path) -> None:
    started = tmp_path / "started"
    async with running(program(TEST_STARTED=str(started)), Port()):
        pid = int(started.read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_server_that_does_not_run_says_so() -> None:
    async with running(program(), Port()) as server:
        pass
    with pytest.raises(McpUnavailable, match="not running"):
        await server.call_tool("add", {}, Answers())


def test_declarations_become_configurations() -> None:
    config = server_config("time", {"command": "uvx", "args": ["time", 1], "env": {"A": 1}, "cwd": "/x"})
    assert config.command == ("uvx", "time", "1")
    assert config.env == {"A": "1"}
    assert config.cwd == Path("/x")
    assert server_config("web", {"type": "sse", "url": "https://h/sse"}).sse
    for bad in ({}, {"url": "file:///etc/passwd"}, {"url": "http://"}, {"command": " "}):
        with pytest.raises(McpConfigError):
            server_config("bad", bad)


async def test_a_server_hears_that_its_roots_are_others(tmp_path: Path) -> None:
    async with running(program(TEST_ROOTS=str(tmp_path / "roots")), Port()) as server:
        await server.tell_roots()
        await until(lambda: (tmp_path / "roots").exists())


@pytest.mark.parametrize(("era", "other", "asked"), [("plain", "two", 0), ("plain", "one", 1), ("modern", "two", 1)])
async def test_a_question_goes_to_nobody_when_it_may_belong_to_another_session(
    tmp_path: Path, era: str, other: str, asked: int
) -> None:
    """A shared server of the older era does not say to which of its running calls a question belongs."""
    file = tmp_path / "hang"
    one, another = Answers(session="one"), Answers(session=other)
    async with running(of_era(era), Port()) as server:
        hanging = asyncio.create_task(server.call_tool("hang", {"file": str(file)}, another))
        await until(file.exists)
        told = text_of(await server.call_tool("ask", {}, one))
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
    assert (len(one.asked), len(another.asked)) == (asked, 0)
    assert ("several sessions call its tools" in told) == (not asked)


class LosesCancellations(McpServer):
    """A connection that takes the cancellation for its own, and fails while it is left."""

    begun = 0

    async def _serve(self) -> str:
        self.begun += 1
        self._set({"kind": "ready"})
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
        return "it failed while it was left"


async def test_a_server_stops_also_when_its_connection_loses_the_cancellation() -> None:
    port = Port()
    server = LosesCancellations("id", program(), port, cwd=Path.cwd(), limits=QUICK)
    task = asyncio.create_task(server.run())
    await port.until(lambda: server.ready)
    task.cancel()
    async with asyncio.timeout(30):
        await asyncio.wait({task})
    assert task.cancelled()
    assert (server.begun, server.state["kind"]) == (1, "stopped")


async def test_a_program_that_is_told_to_end_has_a_moment_for_it(tmp_path: Path) -> None:
    """It is cancelled once: a second time would take the moment away, and nobody would wait for its end."""
    last = tmp_path / "last"
    line = f'"{sys.executable}" "{PROGRAM}"; sleep 0.8; echo bye > "{last}"'
    async with running(ServerConfig(name="test", command=("sh", "-c", line), cwd=tmp_path), Port()) as server:
        assert server.ready
    assert last.read_text() == "bye\n"


async def test_a_call_says_that_its_server_was_stopped(tmp_path: Path) -> None:
    """Not that it ended by itself: somebody switched it off."""
    file = tmp_path / "hang"
    async with running(program(), Port()) as server:
        call = asyncio.create_task(server.call_tool("hang", {"file": str(file)}, Answers()))
        await until(file.exists)
        server.halt()
    with pytest.raises(McpUnavailable, match="was stopped during the call"):
        await call
