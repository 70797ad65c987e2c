from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.transports.stdio import LineSplitter, LineTransport
from ahpkit.wire.errors import TransportClosed
from support.waiting import BOUND

ECHO = """
import asyncio, os
from ahpkit.wire.errors import TransportClosed
from ahpkit.transports.stdio import open_stdio

async def main():
    async with open_stdio() as transport:
        print("stray output")
        while True:
            transport.write(transport.frame(await transport.receive()))

try:
    asyncio.run(main())
except TransportClosed as closed:
    print("closed:", closed.reason, os.get_blocking(0), os.get_blocking(1))
"""

HEAR = b'import sys; sys.stdin.buffer.readline(); sys.stdout.buffer.write(b"1\\r\\n\\n \\n2\\n3"); sys.stdout.flush()'


@contextlib.asynccontextmanager
async def child(program: str) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(BOUND):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def over(process: Process, *, max_bytes: int = 1_000_000) -> LineTransport:
    assert process.stdout is not None
    assert process.stdin is not None
    return LineTransport(process.stdout, process.stdin, address=f"pid {process.pid}", max_bytes=max_bytes)


class TestSplitter:
    @given(st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"").replace(b"\r", b""))), st.data())
    def test_lines_come_out_whole_however_the_bytes_were_cut(self, lines: list[bytes], data: st.DataObject) -> None:
        stream = b"".join(line + data.draw(st.sampled_from([b"\n", b"\r\n"])) for line in lines)
        splitter, out = LineSplitter(), list[bytes]()
        while stream:
            cut = data.draw(st.integers(1, len(stream)))
            out += splitter.feed(stream[:cut])
            stream = stream[cut:]
        assert out == [line for line in lines if line.strip()]

    def test_a_line_over_the_limit_stops_it_after_the_lines_before(self) -> None:
        splitter = LineSplitter(max_bytes=5)
        assert splitter.feed(b"12345\n123") == [b"12345"]
        assert not splitter.overflow
        assert splitter.feed(b"456\n1\n") == []
        assert splitter.overflow
        assert splitter.feed(b"2\n") == []

    def test_what_is_left_of_a_line_is_no_message(self) -> None:
        assert LineSplitter().feed(b'{"half":') == []


class TestChild:
    async def test_lines_end_with_lf_or_crlf_and_blank_or_unended_ones_are_skipped(self) -> None:
        async with child(HEAR.decode()) as process:
            transport = over(process)
            transport.write(transport.frame(b"go"))
            assert [await transport.receive(), await transport.receive()] == [b"1", b"2"]
            with pytest.raises(TransportClosed, match="end of input"):
                await transport.receive()

    async def test_a_message_with_line_breaks_stays_one_line(self) -> None:
        async with child("import sys; sys.stdout.write(sys.stdin.readline())") as process:
            transport = over(process)
            message = json.dumps({"a": ["x", "multi\nline"]}, indent=2).encode()
            transport.write(transport.frame(message))
            assert json.loads(await transport.receive()) == json.loads(message)

    async def test_a_line_over_the_limit_ends_the_connection_with_a_clear_error(self) -> None:
        async with child("print('1'); print('x' * 200_000, end='', flush=True); input()") as process:
            transport = over(process, max_bytes=100_000)
            assert await transport.receive() == b"1"
            with pytest.raises(TransportClosed, match="longer than 100000 bytes") as info:
                await transport.receive()
            assert info.value.code == 1009
            assert await process.wait() == 1  # Its input ended.

    async def test_a_child_that_dies_ends_the_connection_and_writes_are_dropped(self) -> None:
        async with child("import os; os._exit(3)") as process:
            transport = over(process)
            with pytest.raises(TransportClosed):
                await transport.receive()
            await process.wait()
            for _ in range(20):
                transport.write(transport.frame(b"1" * 10_000))
                await asyncio.sleep(0)
            await transport.drain()
            transport.abort()
            await transport.aclose()

    async def test_output_after_an_abort_does_no_harm(self) -> None:
        async with child("print('1', flush=True)\nfor _ in range(1000): print('x' * 1000)") as process:
            transport = over(process)
            await transport.receive()
            transport.abort()
            with pytest.raises(TransportClosed, match="aborted"):
                await transport.receive()


class TestOwn:
    async def test_a_process_serves_on_its_own_stdio_and_stray_output_does_not_disturb(self) -> None:
        async with child(ECHO) as process:
            transport = over(process)
            for message in (b'{"n":1}', b'"' + b"x" * 300_000 + b'"'):
                transport.write(transport.frame(message))
                assert await transport.receive() == message
            assert process.stdin is not None
            process.stdin.close()
            assert process.stdout is not None
            assert process.stderr is not None
            # After the transport is closed, stdout is the process's own again.
            assert await process.stdout.read() == b"closed: end of input True True\n"
            assert await process.stderr.read() == b"stray output\n"
            assert await process.wait() == 0

    async def test_a_file_is_refused_in_words(self, tmp_path: os.PathLike[str]) -> None:
        with open(os.path.join(tmp_path, "out"), "wb") as file:  # noqa: ASYNC230  # A small local file.
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", ECHO, stdin=PIPE, stdout=file, stderr=PIPE
            )
            async with asyncio.timeout(BOUND):
                _, stderr = await process.communicate(b"")
        assert b"stdin and stdout must be pipes" in stderr
