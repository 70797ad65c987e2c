"""Spans: one per request, turn and tool call, joined to the caller's trace, never per delta."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ahpkit.host.agent import Turn
from ahpkit.wire.trace_context import injected
from support import requirement
from support.bench import Bench, say

TRACE = "80e1afed08e019fc1110464cfa66635c"
PARENT = f"00-{TRACE}-7a085853722dc6d2-01"


@pytest.fixture
async def exporter(bench: Bench) -> InMemorySpanExporter:
    """What the host's spans end up in; the bench's host is started anew with it."""
    made = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(made))
    await bench.stop()
    await bench.start(tracer_provider=provider)
    return made


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


@requirement("extensibility:meta:trace-context-keys")
async def test_a_turn_joins_the_trace_of_its_message_and_passes_it_on(
    exporter: InMemorySpanExporter, bench: Bench
) -> None:
    carried: list[dict[str, str]] = []

    async def script(turn: Turn) -> None:
        carried.append(injected())
        call = turn.tool_call("x")
        call.complete()
        for _ in range(50):
            turn.text("delta")

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    message = {**say("go")["message"], "_meta": {"traceparent": PARENT, "example.com/mode": True}}
    await client.accepted(chat, {**say("go"), "message": message})
    await client.action("chat/turnComplete")
    await client.ask("ping")
    [turn] = named(exporter, "ahp turn")
    [tool] = named(exporter, "ahp tool call")
    assert turn.context is not None
    assert tool.parent is not None
    assert f"{turn.context.trace_id:032x}" == TRACE
    assert tool.parent.span_id == turn.context.span_id
    assert carried[0]["traceparent"].split("-")[1] == TRACE
    assert carried[0]["traceparent"].split("-")[2] == f"{turn.context.span_id:016x}"
    assert len(exporter.get_finished_spans()) < 20
    stored = (await bench.state(client, chat))["turns"][0]["message"]
    assert stored["_meta"]["example.com/mode"] is True


async def test_a_request_joins_the_trace_in_its_meta(exporter: InMemorySpanExporter, bench: Bench) -> None:
    client = await bench.client()
    await client.ask("listSessions", _meta={"traceparent": PARENT})
    [span] = named(exporter, "ahp listSessions")
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE


async def test_baggage_and_tracestate_travel_with_the_turn(exporter: InMemorySpanExporter, bench: Bench) -> None:
    seen: list[dict[str, str]] = []

    async def script(turn: Turn) -> None:
        seen.append(injected())

    bench.agent.script = script
    client = await bench.client()
    _, chat = await bench.session(client)
    meta = {"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "user=ada"}
    await client.accepted(chat, {**say("go"), "message": {**say("go")["message"], "_meta": meta}})
    await client.action("chat/turnComplete")
    assert seen[0]["tracestate"] == "vendor=1"
    assert seen[0]["baggage"] == "user=ada"


async def test_a_queued_message_without_a_trace_begins_one_of_its_own(
    exporter: InMemorySpanExporter, bench: Bench
) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    await client.accepted(chat, {**say("go"), "message": {**say("go")["message"], "_meta": {"traceparent": PARENT}}})
    queued = {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": say("next")["message"]}
    await client.accepted(chat, queued)
    await client.action(lambda e: e["action"].get("queuedMessageId") == "q")
    await client.wait(lambda m: sum(e["action"]["type"] == "chat/turnComplete" for e in client.actions(chat)) == 2)
    await client.ask("ping")
    first, second = named(exporter, "ahp turn")
    assert first.parent is not None
    assert second.parent is None


GARBAGE = ["", "x" * 1_000_000, "00-" + "0" * 32 + "-" + "0" * 16 + "-01", 5, None, {"a": 1}, "\x00\r\nInjected: 1"]


@requirement("extensibility:meta:any-json-values")
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_garbage_in_the_trace_keys_does_nothing(
    exporter: InMemorySpanExporter, bench: Bench, garbage: object, caplog: pytest.LogCaptureFixture
) -> None:
    client = await bench.client()
    _, chat = await bench.session(client)
    for key in ("traceparent", "tracestate", "baggage"):
        assert await client.ask("ping", _meta={key: garbage}) is None
    meta = dict.fromkeys(("traceparent", "tracestate", "baggage"), garbage)
    await client.accepted(chat, {**say("go"), "message": {**say("go")["message"], "_meta": meta}})
    await client.action("chat/turnComplete")
    await client.ask("ping")
    assert [span.parent for span in named(exporter, "ahp turn")] == [None]
    assert len(caplog.text) < 10_000
    assert (await bench.state(client, chat))["turns"][0]["message"]["_meta"] == meta
