"""An agent that thinks, asks a question, listens to steering and can fail. Run: python examples/agent_questions.py"""

import asyncio

from ahpkit.agents import AgentError, Turn, agent
from ahpkit.client import Answer
from ahpkit.testing.memory_host import memory_host


@agent(name="tailor", title="Tailor", models=["quick", "careful"])
async def tailor(turn: Turn) -> None:
    """Makes a coat of the colour you like."""
    turn.think("I need to know the colour first.")
    given = await turn.ask([{"id": "colour", "kind": "text", "message": "Which colour?", "required": True}])
    if given.response != "accept":
        raise AgentError("I cannot sew without a colour.", error_type="tailor/no-colour")
    answer = given.answers["colour"]
    colour = answer["value"]["value"] if answer["state"] != "skipped" else "grey"
    turn.activity("Sewing")
    for stitch in ("Cutting", "sewing", "ironing"):
        turn.text(f"{stitch} … ")
        if wish := turn.steering():
            turn.text(f"(you said: {wish['text']}) ")
    turn.activity(None)
    turn.usage({"outputTokens": 3})
    turn.text(f"here is your {colour} coat.")


async def main() -> None:
    async with memory_host(tailor) as host, host.client(on_input=lambda request: Answer({"colour": "green"})) as client:
        chat = await (await client.create_session()).chat()
        print(await chat.ask("A coat, please"))


if __name__ == "__main__":
    asyncio.run(main())
