"""An agent with a tool that asks before it runs. Run: python examples/agent_tools.py"""

import asyncio
from typing import Annotated

from ahpkit.agents import Toolbox, ToolError, Turn, agent, text_of
from ahpkit.client import Approve
from ahpkit.testing.memory_host import memory_host

tools = Toolbox(editable=True)


@tools.tool(title="Look up")
def population(city: Annotated[str, "name of a city"]) -> int:
    """How many people live in a city."""
    known = {"Oslo": 717_710, "Porto": 248_769}
    if city not in known:
        raise ToolError(f"I know nothing about {city}")
    return known[city]


@agent(name="atlas", tools=tools)
async def atlas(turn: Turn) -> str:
    """Knows two cities."""
    # A model would choose the tool from tools.definitions(turn); this agent always takes the same.
    outcome = await tools.call(turn, "population", {"city": turn.prompt})
    return f"{turn.prompt}: {text_of(outcome)}"


async def main() -> None:
    async with memory_host(atlas) as host, host.client(on_confirmation=lambda call: Approve()) as client:
        chat = await (await client.create_session()).chat()
        print(await chat.ask("Oslo"))


if __name__ == "__main__":
    asyncio.run(main())
