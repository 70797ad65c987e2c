"""What the host asks and says: everything is answered, nothing breaks the connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ahpkit.client import Client
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.errors import NotFound, PermissionDenied
from ahpkit.testing.fake_host import FakeHost
from ahpkit.wire.errors import InternalError, LocalProtocolError, MethodNotFound
from support import requirement
from support.clients import eventually

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
