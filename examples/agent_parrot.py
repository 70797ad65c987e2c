"""A whole agent in five lines, asked once. Run: python examples/agent_parrot.py"""

import asyncio
from collections.abc import AsyncIterator

from ahpkit.agents import Turn, agent
from ahpkit.testing.memory_host import memory_host


@agent(name="parrot")
async def parrot(turn: Turn) -> AsyncIterator[str]:
    """Says what you say."""
    for word in turn.prompt.split():
        yield f"{word} "


async def main() -> None:
    async with memory_host(parrot) as host, host.client() as client:
        chat = await (await client.create_session()).chat()
        print(await chat.ask("Polly wants a cracker"))


if __name__ == "__main__":
    asyncio.run(main())
