from collections.abc import Generator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ahpkit.testing.memory_host import memory_host
from ahpkit.testing.recording import RecordingTurn, user_message
from support import requirement
from support.scripted_acp import Scripted

TRACE = "80e1afed08e019fc1110464cfa66635c"
PARENT = "7a085853722dc6d2"


@pytest.fixture
def provider() -> Generator[TracerProvider]:
    provider = TracerProvider()
    yield provider
    provider.shutdown()


@pytest.fixture
def spans(provider: TracerProvider) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


def message(meta: dict[str, Any]) -> Any:
    return {**user_message("hello"), "_meta": meta}


@requirement("extensibility:meta:trace-context-keys")
async def test_a_prompt_is_one_span_of_the_clients_trace_and_the_agent_gets_its_child(
    scripted: Scripted, provider: TracerProvider, spans: InMemorySpanExporter
) -> None:
    meta = {"traceparent": f"00-{TRACE}-{PARENT}-01", "baggage": "user=ada", "x/y": 1}
    turn = RecordingTurn("hello", message=message(meta))

    await scripted.run({"repeat": 50, "steps": [{"text": "x"}]}, turn=turn, given={"tracer_provider": provider})

    [span] = spans.get_finished_spans()
    assert span.parent is not None
    assert trace.format_span_id(span.parent.span_id) == PARENT
    assert span.context is not None
    sent = scripted.received("session/prompt")[0]["_meta"]
    assert sent["traceparent"] == f"00-{TRACE}-{trace.format_span_id(span.context.span_id)}-01"
    assert sent["baggage"] == "user=ada"
    assert sent["x/y"] == 1


@requirement("extensibility:meta:trace-context-keys")
async def test_without_an_sdk_the_clients_context_travels_on_unchanged(scripted: Scripted) -> None:
    meta = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}

    await scripted.run(turn=RecordingTurn("hello", message=message(meta)))

    assert scripted.received("session/prompt")[0]["_meta"] == meta


async def test_client_host_and_agent_share_one_connected_trace(
    scripted: Scripted, provider: TracerProvider, spans: InMemorySpanExporter
) -> None:
    agent = scripted.agent(given={"tracer_provider": provider}, turns=[[{"text": "hello"}]])
    traced = memory_host(agent, directory=scripted.directory, tracer_provider=provider)
    async with traced as host, host.client(tracer_provider=provider) as client:
        session = await client.create_session(working_directory=scripted.directory.as_uri())
        chat = await session.chat()
        spans.clear()
        assert await chat.ask("go") == "hello"

    by_id = {span.context.span_id: span for span in spans.get_finished_spans() if span.context is not None}
    [prompt] = [span for span in by_id.values() if span.name == "acp session/prompt"]
    assert prompt.parent is not None
    turn = by_id[prompt.parent.span_id]
    assert turn.name == "ahp turn"
    assert turn.parent is not None
    ours = by_id[turn.parent.span_id]
    assert ours.instrumentation_scope is not None
    assert ours.instrumentation_scope.name == "ahpkit.client"
    sent = scripted.received("session/prompt")[0]["_meta"]["traceparent"]
    assert ours.context is not None
    assert sent.split("-")[1] == trace.format_trace_id(ours.context.trace_id)


async def test_tool_calls_of_each_turn_are_children_of_that_turn(
    scripted: Scripted, provider: TracerProvider, spans: InMemorySpanExporter
) -> None:
    called = {"sessionUpdate": "tool_call", "toolCallId": "call-{session}", "title": "T", "status": "completed"}
    steps = [{"update": called}, {"repeat": 50, "steps": [{"text": "x"}]}]
    agent = scripted.agent(given={"tracer_provider": provider}, turns=[steps, steps])
    traced = memory_host(agent, directory=scripted.directory, tracer_provider=provider)
    async with traced as host, host.client() as client:
        session = await client.create_session(working_directory=scripted.directory.as_uri())
        chat = await session.chat()
        spans.clear()
        for _ in range(2):
            await chat.ask("go")

    finished = spans.get_finished_spans()
    turns = [span for span in finished if span.name == "ahp turn"]
    assert [span.parent for span in turns] == [None, None]  # The client made no span: each is a trace of its own.
    for name in ("ahp tool call", "acp session/prompt"):
        parents = [span.parent.span_id for span in finished if span.name == name and span.parent is not None]
        assert parents == [turn.context.span_id for turn in turns if turn.context is not None]
    assert len(finished) == 6
