"""A host with an analytics extension: advertises itself, receives events, answers a summary. Run it, no key needed.

    python examples/extension_analytics.py

The same program is the client: it checks the announcement, sends two events, and asks for the summary.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from ahpkit.agents.demo import DemoAgent
from ahpkit.client import Client
from ahpkit.host.extensions import Extension
from ahpkit.host.host import Host
from ahpkit.log.memory import MemoryStorage
from ahpkit.transports.memory import memory_pair

NAME = "example.com/analytics"


def analytics(host: Host) -> Extension:
    """Register the extension: it counts events by name."""
    counts: Counter[str] = Counter()
    extension = host.extension(NAME, version="1.0", events=["user_action", "model_call"])

    @extension.notification("event")
    def event(client: Any, params: dict[str, Any]) -> None:
        counts[params["event"]] += 1

    @extension.request("summary")
    async def summary(client: Any, params: dict[str, Any]) -> dict[str, Any]:
        return {"period": params.get("period", "all"), "events": dict(counts)}

    return extension


async def main() -> dict[str, Any]:
    host = Host(MemoryStorage(), agents=[DemoAgent()])
    analytics(host)
    ours, theirs = memory_pair()

    async def dial() -> Any:
        return ours

    async with host:
        serving = asyncio.create_task(host.serve(theirs))
        async with Client(dial) as client:
            print("announced:", client.announced()[NAME])
            client.extension_notify(f"_{NAME}/event", {"event": "user_action", "data": {"action": "accepted"}})
            client.extension_notify(f"_{NAME}/event", {"event": "model_call"})
            summary: dict[str, Any] = await client.extension_request(f"_{NAME}/summary", {"period": "session"})
            print("summary:", summary)
        await serving
    return summary


if __name__ == "__main__":
    asyncio.run(main())
