"""Extensions: announced both ways, checked before a call, given up with a typed error."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.client import Client, ExtensionNotSupported
from ahpkit.client.handshake import check_announced
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.testing.fake_host import FakeHost
from ahpkit.wire.errors import MethodNotFound
from support import requirement
from support.clients import QUICKLY, SESSION, eventually

ANALYTICS = {"version": "1.0", "events": ["tool_execution"]}


@requirement("extensibility:naming:method-prefix")
@pytest.mark.parametrize("announced", ["example.com", "example.com/analytics", "example.com/analytics/summary"])
def test_a_method_belongs_to_the_namespace_in_its_name(announced: str):
    check_announced("_example.com/analytics/summary", {"other": 1, announced: True})


@pytest.mark.parametrize("announced", ["example.co", "example.com/analytic", "analytics", "_example.com"])
def test_other_namespaces_do_not_count(announced: str):
    with pytest.raises(ExtensionNotSupported, match=announced):
        check_announced("_example.com/analytics/summary", {announced: True})


@requirement(
    "extensibility:capabilities:advertised",
    "extensibility:capabilities:in-capability-meta",
    "extensibility:capabilities:any-announcement-value",
    "extensibility:practice:versioned",
)
async def test_our_extensions_are_announced_in_the_capabilities_meta(host: FakeHost):
    announced = {"example.com/analytics": ANALYTICS, "example.com/flag": True, "example.com/list": [1, None]}
    async with Client(host.dial, extensions=announced):
        assert host.sent("initialize")[0]["capabilities"] == {"_meta": {"ahpkit/canvases": True, **announced}}


@requirement("extensibility:capabilities:core-unaffected")
async def test_without_extensions_only_our_canvases_are_asked_for(host: FakeHost):
    async with Client(host.dial) as client:
        assert host.sent("initialize")[0]["capabilities"] == {"_meta": {"ahpkit/canvases": True}}
        assert await client.sessions()


@requirement("extensibility:capabilities:checked-before-call", "extensibility:practice:fails-gracefully")
async def test_an_extension_that_was_not_announced_is_not_called(host: FakeHost, client: Client):
    with pytest.raises(ExtensionNotSupported) as caught:
        await client.extension_request("_example.com/analytics/summary")
    with pytest.raises(ExtensionNotSupported):
        client.extension_notify("_example.com/analytics/event")

    assert caught.value.method == "_example.com/analytics/summary"
    assert await client.ping() >= 0
    assert all(not method.startswith("_") for method, _ in host.received)


@pytest.mark.parametrize("where", ["initialize", "root state"])
async def test_an_announced_extension_is_called_with_a_channel(host: FakeHost, where: str):
    if where == "initialize":
        host.meta = {"example.com/analytics": ANALYTICS}
    else:
        host.states[ROOT_URI]["_meta"] = {"example.com/analytics": ANALYTICS}
    host.handlers["_example.com/analytics/summary"] = lambda params: {"turns": 3}

    async with Client(host.dial, backoff=QUICKLY) as client:
        assert client.announced()["example.com/analytics"] == ANALYTICS
        summary = await client.extension_request("_example.com/analytics/summary", {"period": "day"}, channel=SESSION)
        client.extension_notify("_example.com/analytics/event", {"event": "x"})
        await eventually(lambda: host.sent("_example.com/analytics/event"))

    assert summary == {"turns": 3}
    assert host.sent("_example.com/analytics/summary") == [{"channel": SESSION, "period": "day"}]
    assert host.sent("_example.com/analytics/event") == [{"channel": ROOT_URI, "event": "x"}]


@requirement("extensibility:practice:fails-gracefully", "extensibility:methods:unknown-request-error")
async def test_a_host_that_announces_what_it_does_not_have_answers_method_not_found(host: FakeHost):
    host.meta = {"example.com": True}
    async with Client(host.dial) as client:
        with pytest.raises(MethodNotFound):
            await client.extension_request("_example.com/nothing")
        assert await client.ping() >= 0


@requirement("extensibility:methods:notification-without-id")
async def test_the_hosts_extension_notifications_reach_their_handler(host: FakeHost, client: Client):
    heard: list[Any] = []
    client.on_extension("_example.com/opened", heard.append)

    host.notify("_example.com/opened", {"channel": SESSION, "path": "x"})

    await eventually(lambda: heard == [{"channel": SESSION, "path": "x"}])


@requirement("extensibility:meta:attach-own-data", "extensibility:meta:correlation-fields")
async def test_own_entries_in_meta_are_sent_and_received_unchanged(host: FakeHost, client: Client):
    own = {"requestId": "r-1", "example.com/debug": {"deep": [1, None, "x"]}}
    session = await client.session(SESSION)
    chat = await session.chat()
    turn = chat.send("hi", meta=own)
    assert turn.dispatch is not None
    await turn.dispatch.accepted()
    await client.request("ping", {"_meta": own})

    assert host.states[chat.uri]["activeTurn"]["message"]["_meta"] == own
    assert chat.confirmed.get("activeTurn", {}).get("message", {}).get("_meta") == own
    assert host.sent("ping")[-1]["_meta"] == own
