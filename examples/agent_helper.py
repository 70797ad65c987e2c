"""An agent that gives work to two sub-agents. Run: python examples/agent_helper.py"""

import asyncio

from ahpkit.agents import Turn, agent
from ahpkit.testing.memory_host import memory_host


async def look_up(turn: Turn, city: str) -> str:
    """One sub-agent, in a read-only chat of its own that everybody can follow."""
    call = turn.tool_call("look_up", display_name="Look up")
    call.running(tool_input=city, message=f"Asking about {city}")
    async with await turn.subchat(f"About {city}", f"What is {city} like?", tool_call=call) as helper:
        helper.text(f"{city} is lovely.")
    call.complete(message=f"Asked about {city}")
    return f"{city} is lovely."


@agent(name="traveller")
async def traveller(turn: Turn) -> str:
    """Asks about two cities at the same time."""
    found = await asyncio.gather(*(look_up(turn, city) for city in ("Oslo", "Porto")))
    return " ".join(found)


async def main() -> None:
    async with memory_host(traveller) as host, host.client() as client:
        session = await client.create_session()
        print(await (await session.chat()).ask("Where to?"))
        print(", ".join(chat["title"] for chat in session.chats[1:]))


if __name__ == "__main__":
    asyncio.run(main())
