"""Ask the running host something and print the answer as it streams.

Run: ahpkit serve, and in another terminal: python examples/client_chat.py "What can you do?"
"""

import asyncio
import sys

from ahpkit.client import Client, TextDelta, connect


async def main(client: Client, prompt: str) -> None:
    session = await client.create_session()
    chat = await session.chat()
    async for event in chat.send(prompt):
        if isinstance(event, TextDelta):
            print(event.text, end="", flush=True)
    print()


async def run() -> None:
    async with connect() as client:
        await main(client, " ".join(sys.argv[1:]) or "Hello!")


if __name__ == "__main__":
    asyncio.run(run())
