from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ahpkit.client import Client
from ahpkit.client.core import given
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.errors import NotFound, PermissionDenied
from ahpkit.testing.fake_host import FakeHost
from ahpkit.wire.errors import InternalError, LocalProtocolError, MethodNotFound, RemoteProtocolError
from support import requirement
from support.clients import CHAT, QUICKLY, SESSION, eventually


def test_fields_without_a_value_are_left_out_and_empty_values_are_values() -> None:
    assert given(a=None, b=0, c="", d=False, e=[]) == {"b": 0, "c": "", "d": False, "e": []}


FAMILY = [
    *(f"resource{verb}" for verb in ("Read", "Write", "List", "Copy", "Delete", "Move", "Resolve", "Mkdir", "Request")),
    "createResourceWatch",
]


@requirement("core:wire:host-requests")
@pytest.mark.parametrize("method", FAMILY)
async def test_a_client_can_serve_the_whole_resource_family(host: FakeHost, client: Client, method: str):
    params = {"channel": ROOT_URI, "uri": "editor:///unsaved.txt"}
    client.serve(method, lambda asked: {"served": method, "asked": asked})

    assert await host.request(method, params) == {"served": method, "asked": params}


async def test_handlers_may_be_async_and_refuse(host: FakeHost, client: Client):
    async def refuse(params: Any) -> None:
        raise PermissionDenied("not that file")

    client.serve("resourceRead", refuse)

    with pytest.raises(PermissionDenied, match="not that file"):
        await host.request("resourceRead", {"channel": ROOT_URI, "uri": "x:/y"})


async def test_what_nobody_serves_is_refused_and_the_connection_goes_on(host: FakeHost, client: Client):
    with pytest.raises(NotFound):
        await host.request("resourceRead", {"channel": ROOT_URI, "uri": "virtual://me/nothing"})
    for method in ("createResourceWatch", "somethingNew", "_example.com/unknown"):
        with pytest.raises(MethodNotFound):
            await host.request(method, {"channel": ROOT_URI})
    assert await client.ping() >= 0


async def test_a_handler_that_breaks_answers_without_details(host: FakeHost, client: Client):
    def broken(params: Any) -> None:
        raise RuntimeError("secret detail")

    client.serve("resourceRead", broken)

    with pytest.raises(InternalError) as caught:
        await host.request("resourceRead", {"channel": ROOT_URI, "uri": "x:/y"})
    assert "secret" not in str(caught.value)


@requirement("extensibility:methods:custom-request-name", "extensibility:naming:namespaced")
@pytest.mark.parametrize("method", ["initialize", "action", "myMethod", "_nonamespace", "_/x", "_example.com/", ""])
def test_only_the_protocols_requests_and_namespaced_extensions_can_be_served(method: str):
    client = _unconnected()
    with pytest.raises(LocalProtocolError):
        client.serve(method, lambda params: None)
    with pytest.raises(LocalProtocolError):
        client.on_extension(method, lambda params: None)


def _unconnected() -> Client:
    async def dial() -> Any:
        raise AssertionError

    return Client(dial)


async def test_notifications_reach_every_listener_until_it_stops(host: FakeHost, client: Client):
    heard: list[tuple[str, Any]] = []
    stop = client.on_notification(lambda method, params: heard.append((method, params)))

    host.notify("root/sessionRemoved", {"channel": ROOT_URI, "session": "x"})
    await eventually(lambda: heard)
    stop()
    host.notify("root/sessionRemoved", {"channel": ROOT_URI, "session": "y"})
    await client.ping()

    assert heard == [("root/sessionRemoved", {"channel": ROOT_URI, "session": "x"})]


@requirement("extensibility:methods:unknown-notification-ignored")
async def test_unknown_notifications_are_ignored(host: FakeHost, client: Client):
    host.notify("_example.com/unknown", {"channel": ROOT_URI})
    host.notify("root/somethingNew", {"channel": ROOT_URI, "x": 1})

    assert await client.ping() >= 0


@requirement("extensibility:methods:answered-under-same-id", "extensibility:methods:request-carries-id")
async def test_extension_requests_that_overlap_get_their_own_answers(host: FakeHost, client: Client):
    slow = asyncio.Event()

    async def serve(params: Any) -> Any:
        if params["n"] == 1:
            await slow.wait()
        return params["n"]

    client.on_extension("_example.com/number", serve)
    first = asyncio.create_task(host.request("_example.com/number", {"n": 1}))
    second = await host.request("_example.com/number", {"n": 2})
    slow.set()

    assert (await first, second) == (1, 2)


@pytest.fixture
def provider() -> Iterator[TracerProvider]:
    provider = TracerProvider()
    yield provider
    provider.shutdown()


@pytest.fixture
def spans(provider: TracerProvider) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
async def traced(host: FakeHost, provider: TracerProvider) -> AsyncGenerator[Client]:
    async with Client(host.dial, client_id="me", backoff=QUICKLY, tracer_provider=provider) as client:
        yield client


def ids(span: ReadableSpan) -> tuple[str, str]:
    assert span.context is not None
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


def names(exporter: InMemorySpanExporter) -> list[str]:
    return [span.name for span in exporter.get_finished_spans()]


async def test_without_an_sdk_nothing_is_added(host: FakeHost, client: Client):
    await client.ping()

    assert host.sent("ping") == [{"channel": "ahp-root://"}]


@requirement("extensibility:meta:trace-context-keys")
async def test_a_request_has_a_span_that_the_host_can_join(host: FakeHost, traced: Client, spans: InMemorySpanExporter):
    await traced.request("ping", {"_meta": {"example.com/x": 1}})

    (span,) = spans.get_finished_spans()
    assert span.name == "ahp ping"
    meta = host.sent("ping")[0]["_meta"]
    assert meta["example.com/x"] == 1
    assert meta["traceparent"].startswith("-".join(["00", *ids(span)]))
    assert set(meta) <= {"traceparent", "tracestate", "baggage", "example.com/x"}


async def test_a_turn_has_one_span_from_send_to_end_however_much_is_streamed(
    host: FakeHost, traced: Client, spans: InMemorySpanExporter
):
    chat = await (await traced.session(SESSION)).chat()
    spans.clear()
    turn = chat.send("hi")
    assert turn.dispatch is not None
    await turn.dispatch.accepted()
    assert names(spans) == []

    def say(kind: str, **fields: Any) -> None:
        host.emit(CHAT, {"type": f"chat/{kind}", "turnId": turn.turn_id, **fields})

    say("responsePart", part={"kind": "markdown", "id": "p", "content": ""})
    for _ in range(20):
        say("delta", partId="p", content="x")
    say("turnComplete")
    await turn.text()

    (span,) = spans.get_finished_spans()
    assert span.name == "ahp turn"
    meta = host.states[CHAT]["turns"][0]["message"]["_meta"]
    assert ids(span)[0] in meta["traceparent"]


async def test_our_spans_join_the_callers_trace(provider: TracerProvider, traced: Client, spans: InMemorySpanExporter):
    tracer = provider.get_tracer("caller")
    with tracer.start_as_current_span("caller") as caller:
        await traced.ping()

    traces = {ids(span)[0] for span in spans.get_finished_spans()}
    assert traces == {f"{caller.get_span_context().trace_id:032x}"}
    assert not trace.get_current_span().get_span_context().is_valid


async def test_trace_context_that_the_user_gives_is_not_overwritten(
    host: FakeHost, traced: Client, spans: InMemorySpanExporter
):
    await traced.request("ping", {"_meta": {"traceparent": "theirs"}})

    assert host.sent("ping")[0]["_meta"]["traceparent"] == "theirs"


@pytest.mark.parametrize("answer", [5, [], {}, None], ids=str)
async def test_an_answer_without_what_it_must_have_is_an_error_of_the_host(host: FakeHost, client: Client, answer: Any):
    host.handlers["listSessions"] = lambda params: answer

    with pytest.raises(RemoteProtocolError, match="listSessions: the host's answer cannot be read"):
        await client.sessions()
