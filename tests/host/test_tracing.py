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
