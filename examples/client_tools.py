"""Give the agent a tool that runs here, in this process.

Run: ahpkit serve, and in another terminal: python examples/client_tools.py
"""

import asyncio
from typing import Annotated

from ahpkit.client import Client, ToolContext, connect


async def main(client: Client) -> None:
    @client.tool
    async def count_words(text: Annotated[str, "the text to count in"], context: ToolContext) -> int:
        """Count the words of a text."""
        context.show("counting …")
        return len(text.split())

    session = await client.create_session(active_client=True)
    chat = await session.chat()
    print(await chat.ask('/tool count_words {"text": "one two three"}'))


async def run() -> None:
    async with connect() as client:
        await main(client)


if __name__ == "__main__":
    asyncio.run(run())
