"""A host with an analytics extension: it announces itself, receives events, answers a summary. No key needed.

    python examples/extension_analytics.py

The same program is the client, over a real connection: it looks at the announcement, sends events, asks for the
summary, and shows what happens with an extension that the host does not have.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import Any

from ahpkit.agents.demo import DemoAgent
from ahpkit.client import Client, ExtensionNotSupported, connect
from ahpkit.host.host import Host
from ahpkit.http.server import serve_http
from ahpkit.log.memory import MemoryStorage
from ahpkit.protocol.errors import InvalidParams
from ahpkit.transports.auth import Authenticator

NAME = "example.com/analytics"
EVENTS = ["user_action", "model_call"]
TOKEN = "only-for-this-example"


def add_analytics(host: Host) -> None:
    """Register the extension. Its public methods are its methods: `_example.com/analytics/event` and `…/summary`."""

    @host.extension(NAME, version="1.0", events=EVENTS)
    class Analytics:
        def __init__(self) -> None:
            self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

        def event(self, client: Any, params: dict[str, Any]) -> None:
            """Count an event, for the session it is about. One that makes no sense is ignored: nobody waits for us."""
            if params.get("event") in EVENTS:
                self._counts[params.get("channel", "")][params["event"]] += 1

        def summary(self, client: Any, params: dict[str, Any]) -> dict[str, Any]:
            """How many events there were: in one session, or with the period `all` in every one."""
            period = params.get("period", "all")
            if period not in ("all", "current_session"):
                raise InvalidParams(f"period: expected 'all' or 'current_session', got {period!r}")
            channel = params.get("channel", "")
            chosen = [counts for one, counts in self._counts.items() if period == "all" or one == channel]
            return {"period": period, "events": dict(sum(chosen, Counter[str]()))}


async def use_analytics(client: Client) -> dict[str, Any]:
    """What a client does with it: look first, then tell and ask."""
    print("announced:", client.announced()[NAME])
    session = await client.create_session()
    accepted = {"action": "accepted_suggestion", "timestamp": "2024-01-15T10:30:00Z"}
    client.extension_notify(f"_{NAME}/event", {"event": "user_action", "data": accepted}, channel=session.uri)
    client.extension_notify(f"_{NAME}/event", {"event": "model_call"})
    asked = {"period": "current_session"}
    summary: dict[str, Any] = await client.extension_request(f"_{NAME}/summary", asked, channel=session.uri)
    print("summary:", summary)
    print("all:", await client.extension_request(f"_{NAME}/summary"))
    try:
        await client.extension_request("_example.com/weather/today")
    except ExtensionNotSupported:
        print("weather: this host does not have it, so it was not asked")
    return summary


async def main() -> None:
    host = Host(MemoryStorage(), agents=[DemoAgent()])
    add_analytics(host)
    async with host, serve_http(host.serve, auth=Authenticator(TOKEN)) as server:
        async with connect(server.url, token=TOKEN) as client:
            await use_analytics(client)


if __name__ == "__main__":
    asyncio.run(main())
