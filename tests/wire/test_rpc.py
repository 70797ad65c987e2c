from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import tracemalloc
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.errors import ERRORS, NotFound
from ahpkit.transports.memory import MemoryTransport, memory_pair
from ahpkit.wire.errors import LocalProtocolError, MethodNotFound, RequestId, RpcError, TransportClosed
from ahpkit.wire.peer import Peer
from ahpkit.wire.rpc import (
    MAX_BUFFERED,
    REQUEST_CANCELLED,
    UNREAD,
    NotificationHandler,
    RequestHandler,
    RpcConnection,
    RpcLoop,
    Tap,
    Work,
)
from ahpkit.wire.transport import Transport
from support import requirement
from support.waiting import BOUND, until


async def no_requests(method: str, params: JsonObject) -> Any:
    raise MethodNotFound(method)


def ignore(method: str, params: JsonObject) -> None:
    pass


class Wire:
    """The other side, by hand: sees and says raw messages."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport

    async def receive(self) -> Any:
        async with asyncio.timeout(BOUND):
            return json.loads(await self.transport.receive())

    def send(self, **message: Any) -> None:
        self.transport.write(self.transport.frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))


@contextlib.asynccontextmanager
async def connected(
    *,
    on_request: RequestHandler = no_requests,
    on_notification: NotificationHandler = ignore,
    peer: Peer | None = None,
    max_buffered: int = MAX_BUFFERED,
    tap: Tap | None = None,
    **options: Any,
) -> AsyncGenerator[tuple[RpcConnection, Wire]]:
    far, near = memory_pair()
    rpc = RpcConnection(
        near,
        on_request=on_request,
        on_notification=on_notification,
        peer=peer,
        max_buffered=max_buffered,
        tap=tap,
        **options,
    )
    async with asyncio.timeout(BOUND), rpc:
        yield rpc, Wire(far)


class TestAsking:
    async def test_a_request_returns_its_result(self) -> None:
        async with connected() as (rpc, wire):
            asking = asyncio.create_task(rpc.request("ping", {"a": 1}))
            request = await wire.receive()
            assert (request["method"], request["params"]) == ("ping", {"a": 1})
            wire.send(id=request["id"], result={"b": 2})
            assert await asking == {"b": 2}

    async def test_answers_may_come_in_any_order(self) -> None:
        async with connected() as (rpc, wire):
            asking = [asyncio.create_task(rpc.request("m", {"n": n})) for n in range(5)]
            requests = [await wire.receive() for _ in asking]
            for request in reversed(requests):
                wire.send(id=request["id"], result=request["params"]["n"])
            assert await asyncio.gather(*asking) == [0, 1, 2, 3, 4]

    async def test_an_error_of_the_other_side_is_raised(self) -> None:
        async with connected(peer=Peer(errors=ERRORS)) as (rpc, wire):
            asking = asyncio.create_task(rpc.request("m", {}))
            wire.send(id=(await wire.receive())["id"], error={"code": -32008, "message": "gone"})
            with pytest.raises(NotFound, match="gone"):
                await asking

    async def test_an_error_code_of_another_protocol_means_nothing_here(self) -> None:
        """An ACP agent says -32002 for a file that is not there; in AHP it would be an unknown provider."""
        async with connected() as (rpc, wire):
            asking = asyncio.create_task(rpc.request("m", {}))
            wire.send(id=(await wire.receive())["id"], error={"code": -32002, "message": "no such file"})
            with pytest.raises(RpcError, match="no such file") as caught:
                await asking
            assert type(caught.value) is RpcError

    async def test_no_answer_in_time_raises_and_a_late_one_is_ignored(self, caplog: pytest.LogCaptureFixture) -> None:
        async with connected() as (rpc, wire):
            with pytest.raises(TimeoutError):
                await rpc.request("m", {}, timeout=0.01)
            wire.send(id=(await wire.receive())["id"], result="late")
            asking = asyncio.create_task(rpc.request("m", {}))
            wire.send(id=(await wire.receive())["id"], result="in time")
            assert await asking == "in time"
        assert caplog.records == []

    async def test_a_cancelled_request_leaves_nothing_behind(self) -> None:
        async with connected(peer=Peer(max_pending=1)) as (rpc, wire):
            asking = asyncio.create_task(rpc.request("m", {}))
            await wire.receive()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            asking = asyncio.create_task(rpc.request("m", {}))
            wire.send(id=(await wire.receive())["id"], result=1)
            assert await asking == 1

    async def test_an_answer_in_the_moment_of_the_cancellation_does_no_harm(self) -> None:
        async with connected() as (rpc, wire):
            asking = asyncio.create_task(rpc.request("m", {}))
            wire.send(id=(await wire.receive())["id"], result=1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await _answered_ping(rpc, wire)

    async def test_a_request_over_the_limit_is_refused_here(self) -> None:
        async with connected(peer=Peer(max_pending=0)) as (rpc, _):
            with pytest.raises(LocalProtocolError):
                await rpc.request("m", {})

    async def test_requests_that_wait_fail_with_the_reason_of_the_close(self) -> None:
        async with connected() as (rpc, wire):
            asking = [asyncio.create_task(rpc.request("m", {})) for _ in range(3)]
            for _ in asking:
                await wire.receive()
            await wire.transport.aclose(code=4001, reason="too slow")
            for result in await asyncio.gather(*asking, return_exceptions=True):
                assert isinstance(result, TransportClosed)
                assert (result.code, result.reason) == (4001, "too slow")
            with pytest.raises(TransportClosed, match="too slow"):
                await rpc.request("m", {})

    async def test_notify_after_the_close_is_dropped(self) -> None:
        async with connected() as (rpc, wire):
            await wire.transport.aclose()
            await rpc.wait_closed()
            rpc.notify("n", {})


class TestOrder:
    async def test_an_answer_never_overtakes_an_earlier_notification(self) -> None:
        seen: list[Any] = []
        async with connected(on_notification=lambda method, params: seen.append(params["n"])) as (rpc, wire):
            asking = asyncio.create_task(rpc.request("prompt", {}))
            id = (await wire.receive())["id"]
            for n in range(50):
                wire.send(method="update", params={"n": n})
            wire.send(id=id, result="end")
            await asking
            assert seen == list(range(50))

    async def test_who_asked_goes_on_before_the_next_message_is_handled(self) -> None:
        seen: list[str] = []

        async def subscribe(rpc: RpcConnection) -> None:
            await rpc.request("subscribe", {})
            seen.append("subscribed")

        async with connected(on_notification=lambda method, params: seen.append(method)) as (rpc, wire):
            asking = asyncio.create_task(subscribe(rpc))
            id = (await wire.receive())["id"]
            wire.send(method="before")
            wire.send(id=id, result={})
            wire.send(method="after")
            await asking
            await _answered_ping(rpc, wire)
            assert seen == ["before", "subscribed", "after"]

    async def test_a_slow_request_does_not_hold_up_what_comes_after_it(self) -> None:
        release = asyncio.Event()

        async def serve(method: str, params: JsonObject) -> Any:
            if method == "slow":
                await release.wait()
            return method

        async with connected(on_request=serve) as (_, wire):
            wire.send(id=1, method="slow")
            wire.send(id=2, method="fast")
            assert (await wire.receive())["id"] == 2
            release.set()
            assert (await wire.receive())["id"] == 1

    async def test_a_request_reaches_its_first_wait_before_the_next_message_is_handled(self) -> None:
        seen: list[str] = []

        async def serve(method: str, params: JsonObject) -> Any:
            seen.append(method)

        async with connected(on_request=serve, on_notification=lambda method, params: seen.append(method)) as (_, wire):
            wire.send(id=1, method="asked")
            wire.send(method="told")
            wire.send(id=2, method="asked again")
            await wire.receive()
            await wire.receive()
            assert seen == ["asked", "told", "asked again"]


async def _answered_ping(rpc: RpcConnection, wire: Wire) -> None:
    asking = asyncio.create_task(rpc.request("ping", {}))
    wire.send(id=(await wire.receive())["id"], result={})
    await asking


class TestServing:
    async def test_a_request_is_answered_with_the_result(self) -> None:
        async def serve(method: str, params: JsonObject) -> Any:
            return [method, params]

        async with connected(on_request=serve) as (_, wire):
            wire.send(id="a", method="m", params={"x": 1})
            assert await wire.receive() == {"jsonrpc": "2.0", "id": "a", "result": ["m", {"x": 1}]}

    @requirement("core:wire:jsonrpc-error-codes")
    async def test_an_rpc_error_passes(self) -> None:
        async with connected() as (_, wire):
            wire.send(id=1, method="nope")
            assert (await wire.receive())["error"] == {"code": -32601, "message": "nope"}

    @requirement("core:wire:jsonrpc-error-codes")
    @pytest.mark.parametrize("failure", [RuntimeError("secret"), object()])
    async def test_every_other_failure_is_answered_without_details(
        self, failure: object, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def serve(method: str, params: JsonObject) -> Any:
            if isinstance(failure, Exception):
                raise failure
            return failure

        async with connected(on_request=serve) as (_, wire):
            wire.send(id=1, method="m")
            reply = await wire.receive()
            assert (reply["id"], reply["error"]["code"]) == (1, -32603)
            assert "secret" not in json.dumps(reply)

    async def test_a_handler_that_is_cancelled_from_within_is_answered(self) -> None:
        async def serve(method: str, params: JsonObject) -> Any:
            raise asyncio.CancelledError

        async with connected(on_request=serve) as (_, wire):
            wire.send(id=1, method="m")
            assert (await wire.receive())["error"]["code"] == REQUEST_CANCELLED

    async def test_a_failing_notification_handler_is_logged_and_the_next_message_handled(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        seen: list[str] = []

        def hear(method: str, params: JsonObject) -> None:
            seen.append(method)
            if method == "bad":
                raise RuntimeError("boom")

        async with connected(on_notification=hear) as (rpc, wire):
            wire.send(method="bad")
            wire.send(method="good")
            await _answered_ping(rpc, wire)
        assert seen == ["bad", "good"]
        assert "notification bad failed" in caplog.text

    async def test_a_malformed_message_is_answered_and_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        async with connected() as (_, wire):
            wire.transport.write(wire.transport.frame(b"[]"))
            assert (await wire.receive())["error"]["code"] == -32600
        assert caplog.records[0].levelno == logging.WARNING

    async def test_more_requests_than_the_limit_are_refused_not_queued(self) -> None:
        release = asyncio.Event()

        async def serve(method: str, params: JsonObject) -> Any:
            await release.wait()

        async with connected(on_request=serve, peer=Peer(max_pending=2)) as (_, wire):
            for id in (1, 2, 3):
                wire.send(id=id, method="m")
            assert (await wire.receive())["id"] == 3
            release.set()
            assert {(await wire.receive())["id"], (await wire.receive())["id"]} == {1, 2}

    async def test_handlers_are_cancelled_when_the_connection_ends(self) -> None:
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def serve(method: str, params: JsonObject) -> Any:
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        said: list[str] = []
        async with connected(on_request=serve, tap=lambda direction, data: said.append(direction)) as (rpc, wire):
            wire.send(id=1, method="m")
            await started.wait()
            wire.transport.abort()
            closed = await rpc.wait_closed()
            assert cancelled.is_set()
            assert said == ["received"]  # Nobody is there to be answered.
            assert closed.code == 1006
            assert rpc.closed is closed

    async def test_a_request_that_was_given_up_is_stopped_and_answered_once(self) -> None:
        async def serve(method: str, params: JsonObject) -> Any:
            await asyncio.Event().wait()

        async with connected(on_request=serve) as (rpc, wire):
            wire.send(id="a", method="slow")
            await _answered_ping(rpc, wire)
            rpc.cancel("a")
            rpc.cancel("unknown")
            assert await wire.receive() == {
                "jsonrpc": "2.0",
                "id": "a",
                "error": {"code": REQUEST_CANCELLED, "message": "slow was cancelled"},
            }
            await _answered_ping(rpc, wire)

    async def test_a_handler_that_ends_in_spite_of_the_close_does_no_harm(self) -> None:
        started = asyncio.Event()

        async def serve(method: str, params: JsonObject) -> Any:
            started.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return "too late"

        async with connected(on_request=serve) as (rpc, wire):
            wire.send(id=1, method="m")
            await started.wait()
            wire.transport.abort()
            await rpc.wait_closed()

    async def test_a_handler_may_ask_back_on_the_same_connection(self) -> None:
        async def serve(method: str, params: JsonObject) -> Any:
            return await rpc.request("back", {})

        async with connected(on_request=serve) as (rpc, wire):
            wire.send(id=1, method="m")
            question = await wire.receive()
            wire.send(id=question["id"], result="answer")
            assert await wire.receive() == {"jsonrpc": "2.0", "id": 1, "result": "answer"}


class TestLifetime:
    async def test_leaving_closes_the_transport(self) -> None:
        async with connected() as (_, wire):
            pass
        with pytest.raises(TransportClosed) as info:
            await wire.transport.receive()
        assert info.value.code == 1000

    async def test_an_error_in_the_block_passes_and_the_transport_is_closed(self) -> None:
        far, near = memory_pair()
        with pytest.raises(KeyError):
            async with RpcConnection(near, on_request=no_requests, on_notification=ignore):
                raise KeyError
        with pytest.raises(TransportClosed):
            await far.receive()

    async def test_a_reader_that_never_reads_loses_its_connection(self) -> None:
        async with connected(max_buffered=1000) as (rpc, _):
            for _ in range(20):
                rpc.notify("n", {"text": "x" * 100})
            closed = await rpc.wait_closed()
            assert closed.code == UNREAD
            assert rpc.transport.buffered == 0

    async def test_the_tap_sees_every_message(self) -> None:
        seen: list[tuple[str, Any]] = []
        async with connected(tap=lambda direction, data: seen.append((direction, json.loads(data)))) as (rpc, wire):
            wire.send(id=1, method="m")
            await wire.receive()
            rpc.notify("n", {})
        assert [(direction, message.get("method")) for direction, message in seen] == [
            ("received", "m"),
            ("sent", None),
            ("sent", "n"),
        ]


class Serving(RpcLoop):
    """A loop of its own, as the host has one."""

    def __init__(self, transport: Transport, serve: RequestHandler, *, max_serving: int | None = None) -> None:
        super().__init__(transport, Peer(), max_serving=max_serving)
        self._serve = serve
        self.heard: list[str] = []

    def send(self, message: bytes) -> None:
        self.transport.write(self.transport.frame(message))

    def begin(self, id: RequestId, method: str, params: JsonObject) -> Work | None:
        if method == "refused":
            self.send(self._peer.fail(id, MethodNotFound(method)))
            return None

        async def run() -> None:
            self.send(self._peer.respond(id, await self._serve(method, params)))

        return Work(method, run, ordered=method == "ordered")

    async def hear(self, method: str, params: JsonObject) -> None:
        await asyncio.sleep(0)
        self.heard.append(method)
        if method == "fails":
            raise RuntimeError("boom")


@contextlib.asynccontextmanager
async def looping(serve: RequestHandler, *, max_serving: int | None = None) -> AsyncGenerator[tuple[Serving, Wire]]:
    far, near = memory_pair()
    loop = Serving(near, serve, max_serving=max_serving)
    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        group.create_task(loop.run())
        yield loop, Wire(far)
        await far.aclose()


class TestLoop:
    async def test_ordered_work_is_done_before_the_next_message_is_looked_at(self) -> None:
        go, seen = asyncio.Event(), list[str]()

        async def serve(method: str, params: JsonObject) -> Any:
            seen.append(method)
            if method == "ordered":
                await go.wait()
            return method

        async with looping(serve) as (_, wire):
            wire.send(id=1, method="ordered", params={})
            wire.send(id=2, method="second", params={})
            await until(lambda: seen)
            await asyncio.sleep(0)
            assert seen == ["ordered"]
            go.set()
            assert [(await wire.receive())["result"] for _ in range(2)] == ["ordered", "second"]

    async def test_while_enough_requests_run_none_is_read(self) -> None:
        go, seen = asyncio.Event(), list[Any]()

        async def serve(method: str, params: JsonObject) -> Any:
            seen.append(params["n"])
            await go.wait()

        async with looping(serve, max_serving=2) as (_, wire):
            for n in range(5):
                wire.send(id=n, method="m", params={"n": n})
            await until(lambda: len(seen) == 2)
            await asyncio.sleep(0)
            assert seen == [0, 1]
            go.set()
            assert {(await wire.receive())["id"] for _ in range(5)} == set(range(5))

    async def test_a_refused_request_and_a_failing_notification_end_nothing(self) -> None:
        async with looping(no_requests) as (loop, wire):
            wire.send(id=1, method="refused", params={})
            wire.send(method="fails", params={})
            wire.send(method="after", params={})
            assert (await wire.receive())["error"]["code"] == MethodNotFound.CODE
            await until(lambda: loop.heard == ["fails", "after"])

    async def test_run_ends_with_the_connection_and_with_all_that_was_served(self) -> None:
        ended = asyncio.Event()

        async def serve(method: str, params: JsonObject) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with looping(serve) as (loop, wire):
            wire.send(id=1, method="m", params={})
        assert ended.is_set()
        assert loop.closed is not None


async def test_a_connection_that_rests_does_not_hold_its_last_message() -> None:
    heard = asyncio.Event()
    async with connected(on_notification=lambda method, params: heard.set()) as (_, wire):
        tracemalloc.start()
        try:
            wire.send(method="note", params={"text": "x" * (4 << 20)})
            await heard.wait()
            await until(lambda: tracemalloc.get_traced_memory()[0] < 1 << 20)
        finally:
            tracemalloc.stop()
