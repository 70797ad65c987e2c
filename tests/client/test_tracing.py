"""Trace context: one span per request and per turn, carried in `_meta`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ahpkit.client import Client
from ahpkit.testing.fake_host import FakeHost
from support import requirement
from support.clients import CHAT, QUICKLY, SESSION


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
