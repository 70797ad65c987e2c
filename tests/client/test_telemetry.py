"""The client's view of a host's telemetry: which channels it takes, and what it makes of what comes."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ahpkit.client import Client, ClientClosed, ClientError, LogRecord, MetricPoint, Span, connect
from ahpkit.client.telemetry import events_of, expand
from ahpkit.host.agent import Turn
from ahpkit.telemetry.feature import Telemetry
from ahpkit.testing.fake_host import FakeHost
from ahpkit.transports.connect import connect_transport
from ahpkit.wire.transport import Transport
from support import requirement
from support.bench import Bench
from support.clients import QUICKLY, SESSION, eventually, lose_connection
from support.waiting import until

WHEN = "1700000000000000000"


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    telemetry = Telemetry(interval=0.01, gathered=0.0)
    made = Bench(tmp_path, sockets=True)
    made.features = [telemetry]
    await made.start(tracer_provider=telemetry.tracer_provider)
    try:
        yield made
    finally:
        await made.stop()


def records(*texts: tuple[int, str]) -> dict[str, Any]:
    found = [{"timeUnixNano": WHEN, "severityNumber": number, "body": {"stringValue": text}} for number, text in texts]
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": found}]}]}


@requirement("gen:otlp:level")
async def test_a_client_follows_logs_of_a_level_and_goes_on_after_a_reconnect(bench: Bench) -> None:
    logger = logging.getLogger("ahpkit.something")
    lines: list[Transport] = []

    async def dial() -> Transport:
        lines.append(await connect_transport(bench.url))
        return lines[-1]

    async with Client(dial, backoff=QUICKLY) as client, client.telemetry(logs="warn") as telemetry:
        logger.info("a remark")
        logger.warning("a warning of %s", "somebody")
        first = await anext(telemetry)
        assert isinstance(first, LogRecord)
        assert (first.level, first.text, first.attributes["logger"]) == ("warn", "a warning of somebody", logger.name)
        seen: list[str] = []
        client.on_status(seen.append)
        lines[0].abort()
        await until(lambda: seen == ["reconnecting", "connected"])
        await client.ping()
        await until(lambda: bench.host.services.subscribers("ahp-otlp:/logs/warn"))
        logger.error("a problem")
        texts = [first.text]
        while texts[-1] != "a problem":
            event = await anext(telemetry)
            assert isinstance(event, LogRecord)
            texts.append(event.text)
    await until(lambda: not bench.host.services.subscribers("ahp-otlp:/logs/warn"))


async def test_a_client_follows_spans_and_metrics(bench: Bench) -> None:
    async def script(turn: Turn) -> None:
        turn.text("hi")

    bench.agent.script = script
    async with connect(bench.url) as client, client.telemetry(traces=True, metrics=True) as telemetry:
        chat = await (await client.create_session()).chat()
        await chat.ask("hello")
        spans: dict[str, Span] = {}
        points: dict[str, MetricPoint] = {}
        async for event in telemetry:
            if isinstance(event, Span):
                spans[event.name] = event
            elif isinstance(event, MetricPoint):
                points[event.name] = event
            if "ahp turn" in spans and "ahpkit.turn.duration" in points:
                break
        turn, duration = spans["ahp turn"], points["ahpkit.turn.duration"]
        assert (turn.failed, turn.attributes["ahp.provider"]) == (False, "scripted")
        assert turn.seconds >= 0
        assert (duration.count, duration.attributes) == (1, {"outcome": "completed"})
        assert points["ahpkit.sessions"].value == 1


@requirement("gen:otlp:level")
async def test_records_below_the_level_are_left_out_although_the_host_sends_them(host: FakeHost) -> None:
    host.telemetry = {"logs": "ahp-otlp://anywhere/all"}
    async with Client(host.dial, backoff=QUICKLY) as client, client.telemetry(logs="error") as telemetry:
        sent = records((9, "info"), (16, "warn4"), (17, "error"), (24, "fatal4"), (0, "unknown"))
        host.notify("otlp/exportLogs", {"channel": "ahp-otlp://elsewhere", "payload": records((17, "foreign"))})
        host.notify("otlp/exportLogs", {"channel": "ahp-otlp://anywhere/all", "payload": sent})
        got = [await anext(telemetry) for _ in range(3)]
        assert [(one.text, one.level) for one in got if isinstance(one, LogRecord)] == [
            ("error", "error"),
            ("fatal4", "fatal"),
            ("unknown", ""),
        ]
    assert host.sent("subscribe") == [{"channel": "ahp-otlp://anywhere/all"}]
    await eventually(lambda: {"channel": "ahp-otlp://anywhere/all"} in host.sent("unsubscribe"))


async def test_telemetry_does_not_make_a_reconnect_begin_at_the_first_action(host: FakeHost) -> None:
    host.telemetry = {"traces": "ahp-otlp:/traces"}
    async with Client(host.dial, backoff=QUICKLY) as client, client.telemetry(traces=True):
        async with client.subscribe(SESSION) as session:
            host.emit(SESSION, {"type": "session/titleChanged", "title": "new"})
            host.emit("ahp-root://", {"type": "root/activeSessionsChanged", "activeSessions": 1})
            await anext(session)
            await client.ping()
            await lose_connection(host, client)
            await eventually(lambda: len(host.sent("subscribe")) == 3)
    [back] = host.sent("reconnect")
    assert (back["lastSeenServerSeq"], set(back["subscriptions"])) == (1, {"ahp-root://", SESSION})
    assert host.sent("subscribe")[-1] == {"channel": "ahp-otlp:/traces"}


async def test_what_a_host_does_not_report_cannot_be_followed(host: FakeHost) -> None:
    host.telemetry = {"traces": "ahp-otlp:/traces"}
    async with Client(host.dial, backoff=QUICKLY) as client:
        with pytest.raises(ClientError, match="does not report logs and metrics"):
            await client.telemetry(logs="info", traces=True, metrics=True).__aenter__()
        with pytest.raises(ValueError, match="say what to follow"):
            client.telemetry()
        with pytest.raises(ValueError, match="'loud' is not a level"):
            client.telemetry(logs="loud")  # pyright: ignore[reportArgumentType]  # That is the test.


async def test_a_closed_client_ends_it(host: FakeHost) -> None:
    host.telemetry = {"traces": "ahp-otlp:/traces"}
    async with Client(host.dial, backoff=QUICKLY) as client:
        telemetry = await client.telemetry(traces=True).__aenter__()
    with pytest.raises(ClientClosed):
        await anext(telemetry)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("ahp-otlp:/logs", "ahp-otlp:/logs"),
        ("ahp-otlp:/logs/{level}", "ahp-otlp:/logs/warn"),
        ("ahp-otlp:/logs{?level,scope}", "ahp-otlp:/logs?level=warn"),
        ("ahp-otlp:/logs{/level}{&scope}", "ahp-otlp:/logs/warn"),
        ("ahp-otlp:/{scope}/logs{;level}", "ahp-otlp://logs;level=warn"),
    ],
)
def test_a_template_gets_the_level_and_loses_what_nobody_knows(template: str, uri: str) -> None:
    assert expand(template, level="warn") == uri


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {"resourceLogs": {}},
        {
            "resourceLogs": [
                7,
                {"scopeLogs": [{"logRecords": [7, {}, {"timeUnixNano": "x"}, {"timeUnixNano": "9" * 99}]}]},
            ]
        },
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": 10**30}]}]}]},
    ],
)
def test_what_is_no_otlp_is_left_out(payload: Any) -> None:
    for method in ("otlp/exportLogs", "otlp/exportTraces", "otlp/exportMetrics", "otlp/else"):
        assert events_of(method, {"payload": payload}) == []


def test_values_of_all_kinds_are_read() -> None:
    values = {
        "text": {"stringValue": "a"},
        "yes": {"boolValue": True},
        "whole": {"intValue": "7"},
        "part": {"doubleValue": 0.5},
        "list": {"arrayValue": {"values": [{"intValue": 1}, {"stringValue": "b"}]}},
        "map": {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": False}}]}},
        "odd": {"newValue": 1},
    }
    attributes = [{"key": key, "value": value} for key, value in values.items()]
    record = {"timeUnixNano": WHEN, "severityNumber": 13, "body": {"intValue": "3"}, "attributes": attributes}
    [event] = events_of("otlp/exportLogs", {"payload": {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}})
    assert isinstance(event, LogRecord)
    expected = {"text": "a", "yes": True, "whole": 7, "part": 0.5, "list": [1, "b"], "map": {"k": False}, "odd": None}
    assert (event.text, event.attributes) == ("3", expected)
