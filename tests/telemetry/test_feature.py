"""Telemetry channels of a running host: who gets what, when, in which form; and the page for a scraper."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.host.agent import AgentError, Turn
from ahpkit.telemetry.feature import Telemetry
from ahpkit.telemetry.metrics import Metrics
from ahpkit.web.devices import refusal
from support import requirement
from support.bench import Bench, say
from support.http import get
from support.process import host_process
from support.raw_client import Json, RawClient
from support.waiting import until


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry(interval=0.01, gathered=0.0)


@pytest_asyncio.fixture
async def bench(tmp_path: Path, telemetry: Telemetry) -> AsyncGenerator[Bench]:
    made = Bench(tmp_path)
    made.features = [telemetry]
    await made.start(tracer_provider=telemetry.tracer_provider)
    try:
        yield made
    finally:
        await made.stop()


async def calls_and_fails(turn: Turn) -> None:
    call = turn.tool_call("look")
    call.running(tool_input="{}")
    call.complete()
    raise AgentError("enough")


async def one_turn(bench: Bench, client: RawClient, text: str = "hi", turn_id: str = "t1") -> None:
    _, chat = await bench.session(client)
    await client.accepted(chat, say(text, turn_id))
    await client.action(lambda e: e["action"]["type"] in ("chat/turnComplete", "chat/error"))


def value_of(metric: Json, **attributes: str) -> int:
    """The value of a metric at the point that has these attributes."""
    wanted = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    points = (metric.get("sum") or metric["gauge"])["dataPoints"]
    return sum(int(point["asInt"]) for point in points if point["attributes"] == wanted or not wanted)


def metrics_in(message: Json) -> dict[str, Json]:
    [by_resource] = message["params"]["payload"]["resourceMetrics"]
    [by_scope] = by_resource["scopeMetrics"]
    return {metric["name"]: metric for metric in by_scope["metrics"]}


@requirement("telemetry:advertised", "core:connection:initialize-result")
@pytest.mark.parametrize("version", ["0.4.0", "1.0.0"])
async def test_the_channels_are_advertised_and_answer_a_subscription_with_nothing(bench: Bench, version: str) -> None:
    client = await bench.connect()
    answer = await client.initialize(protocolVersions=[version])
    channels: Json = answer["telemetry"]
    assert set(channels) == {"traces", "metrics", "logs"}
    assert await client.ask("subscribe", channels["traces"]) == {}
    assert await client.ask("subscribe", channels["logs"].replace("{level}", "warn")) == {}
    assert (await client.refused("subscribe", channels["logs"].replace("{level}", "loud")))["code"] == -32008
    assert (await client.refused("subscribe", "ahp-otlp:/nothing"))["code"] == -32008


@requirement("telemetry:traces")
async def test_a_turn_is_a_span_of_the_clients_trace_with_its_tool_calls_below(bench: Bench) -> None:
    bench.agent.script = calls_and_fails
    client = await bench.client()
    await client.ask("subscribe", "ahp-otlp:/traces")
    _, chat = await bench.session(client)
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    action = say("hi")
    action["message"]["_meta"] = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    await client.accepted(chat, action)

    def spans() -> dict[str, Json]:
        sent = [m["params"]["payload"] for m in client.received if m.get("method") == "otlp/exportTraces"]
        found = [span for one in sent for span in one["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        return {span["name"]: span for span in found}

    await until(lambda: {"ahp turn", "ahp tool call"} <= spans().keys())
    turn, call = spans()["ahp turn"], spans()["ahp tool call"]
    assert (turn["traceId"], turn["parentSpanId"]) == (trace, "00f067aa0ba902b7")
    assert (call["traceId"], call["parentSpanId"]) == (trace, turn["spanId"])
    assert int(turn["endTimeUnixNano"]) >= int(turn["startTimeUnixNano"]) > 0
    assert {"key": "ahp.provider", "value": {"stringValue": "scripted"}} in turn["attributes"]


@requirement("telemetry:metrics")
async def test_metrics_tell_what_was_done_and_what_waits(bench: Bench) -> None:
    bench.agent.script = calls_and_fails
    client = await bench.client()
    await one_turn(bench, client)
    await client.ask("subscribe", "ahp-otlp:/metrics")
    message = await client.wait(lambda message: message.get("method") == "otlp/exportMetrics")
    assert message["params"]["channel"] == "ahp-otlp:/metrics"
    found = metrics_in(message)
    assert value_of(found["ahpkit.turns"], outcome="failed") == 1
    assert value_of(found["ahpkit.tool_calls"], outcome="succeeded") == 1
    assert value_of(found["ahpkit.actions"], channel="chat") > 3
    assert value_of(found["ahpkit.commits"]) > 0
    assert value_of(found["ahpkit.deliveries"]) > 0
    assert value_of(found["ahpkit.connections"]) == 1
    assert value_of(found["ahpkit.sessions"]) == 1
    assert value_of(found["process.memory.usage"]) > 1_000_000
    assert {"ahpkit.log.queue", "ahpkit.readers.queue"} <= found.keys()
    [point] = found["ahpkit.turn.duration"]["histogram"]["dataPoints"]
    assert point["count"] == "1"


@requirement("telemetry:logs", "gen:otlp:level")
async def test_a_logs_channel_has_its_level_and_above(bench: Bench) -> None:
    quiet, loud = await bench.client(), await bench.client()
    await quiet.ask("subscribe", "ahp-otlp:/logs/error")
    await loud.ask("subscribe", "ahp-otlp:/logs/info")
    logger = logging.getLogger("ahpkit.something")
    logger.setLevel(logging.INFO)
    logger.info("a remark")
    logger.error("a problem of %s", "somebody")

    def texts(client: RawClient) -> list[str]:
        sent = [m["params"]["payload"] for m in client.received if m.get("method") == "otlp/exportLogs"]
        records = [record for one in sent for record in one["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]
        return [record["body"]["stringValue"] for record in records]

    await until(lambda: "a problem of somebody" in texts(loud) and texts(quiet))
    assert "a remark" in texts(loud)
    assert texts(quiet) == ["a problem of somebody"]


@requirement("telemetry:logs")
async def test_a_level_may_be_written_in_any_case(bench: Bench) -> None:
    client = await bench.client()
    await client.ask("subscribe", "ahp-otlp:/logs/WARN")
    logging.getLogger("ahpkit.something").warning("a warning")
    message = await client.wait(lambda message: message.get("method") == "otlp/exportLogs")
    assert message["params"]["channel"] == "ahp-otlp:/logs/WARN"
    assert (await client.refused("subscribe", "ahp-otlp:/logs/loud"))["code"] == -32008


@requirement("telemetry:metrics")
@pytest.mark.parametrize("version", ["0.4.0", "0.7.0", "1.0.0"])
async def test_a_channel_without_state_can_be_named_in_the_greeting_and_is_not_missing_afterwards(
    bench: Bench, version: str
) -> None:
    wanted = ["ahp-root://", "ahp-otlp:/metrics"]
    client = await bench.client(*wanted, client_id="same", offer=[version])
    await client.wait(lambda message: message.get("method") == "otlp/exportMetrics")
    await client.aclose()
    back = await bench.connect("same")
    answer = await back.ask("reconnect", clientId="same", lastSeenServerSeq=0, subscriptions=wanted)
    assert answer.get("missing", []) == []
    assert [one["resource"] for one in answer.get("snapshots", [])] in ([], ["ahp-root://"])
    await back.wait(lambda message: message.get("method") == "otlp/exportMetrics")


@requirement("telemetry:only-while-watched")
async def test_nothing_is_recorded_for_nobody(bench: Bench, telemetry: Telemetry) -> None:
    client = await bench.client()
    assert not telemetry.tracer_provider.observed
    await client.ask("subscribe", "ahp-otlp:/traces")
    await client.ask("subscribe", "ahp-otlp:/logs/debug")
    assert telemetry.tracer_provider.observed
    handlers = len(logging.getLogger("ahpkit").handlers)
    for uri in ("ahp-otlp:/traces", "ahp-otlp:/logs/debug"):
        client.send({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}})
    await client.ask("ping")
    assert not telemetry.tracer_provider.observed
    assert len(logging.getLogger("ahpkit").handlers) == handlers - 1
    await until(lambda: not telemetry.flushing)

    def sent() -> int:
        return len([message for message in client.received if message.get("method", "").startswith("otlp/")])

    before = sent()
    await one_turn(bench, client)
    assert not telemetry.flushing
    assert sent() == before


@requirement("telemetry:allowed")
@pytest.mark.parametrize("right", ["watch", "answer"])
def test_a_device_without_all_rights_sees_no_telemetry(right: Any) -> None:
    assert "telemetry" in (refusal(right, "subscribe", {"channel": "ahp-otlp:/logs/info"}) or "")
    assert "telemetry" in (refusal(right, "initialize", {"initialSubscriptions": ["ahp-otlp:/metrics"]}) or "")
    assert "telemetry" in (refusal(right, "reconnect", {"subscriptions": ["ahp-otlp:/traces"]}) or "")
    assert refusal(right, "subscribe", {"channel": "ahp-root://"}) is None
    assert refusal("everything", "subscribe", {"channel": "ahp-otlp:/logs/info"}) is None


def test_every_metric_is_documented() -> None:
    source = Path(inspect.getfile(Metrics)).read_text(encoding="utf-8")
    page = (Path(__file__).resolve().parents[2] / "docs" / "topics" / "telemetry.md").read_text(encoding="utf-8")
    names = set(re.findall(r'"((?:ahpkit|process)\.[a-z._]+)"', source))
    assert {name for name in names if f"`{name}`" not in page} == set()
    assert "ahpkit.actions" in names


@requirement("telemetry:scraped", "telemetry:allowed")
async def test_a_scraper_with_the_token_gets_the_metrics_and_nobody_else_does(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        url = host.url.replace("ws://", "http://").split("?", maxsplit=1)[0].rstrip("/") + "/metrics"
        assert host.token is not None
        answer = await get(url, Authorization=f"Bearer {host.token}")
        kind = answer.headers["content-type"]
        assert (answer.status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        lines = answer.text.splitlines()
        assert "# TYPE ahpkit_commits_total counter" in lines
        assert any(line.startswith("ahpkit_log_queue ") for line in lines)
        assert any(line.startswith("process_memory_usage_bytes ") for line in lines)
        assert (await get(url, Authorization="Bearer wrong")).status in (401, 403)
        assert (await get(url)).status in (401, 403)
