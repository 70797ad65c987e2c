"""Give a session a plugin that exists only in this program's memory.

Run: ahpkit serve, and in another terminal: python examples/client_plugin.py
"""

import asyncio

from ahpkit.client import Client, InMemoryPlugin, connect

SKILL = """---
name: haiku
description: Answer in the form of a haiku.
---
Answer in three lines of five, seven and five syllables.
"""


async def main(client: Client) -> None:
    session = await client.create_session()
    await session.publish_plugin(InMemoryPlugin("poetry", {"skills/haiku/SKILL.md": SKILL})).accepted()
    published = session.state["activeClients"][0].get("customizations", [])
    print(f"published: {', '.join(plugin['name'] for plugin in published)}")


async def run() -> None:
    async with connect() as client:
        await main(client)


if __name__ == "__main__":
    asyncio.run(run())
