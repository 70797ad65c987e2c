"""Decide about tool calls and answer questions by callback.

Run: ahpkit serve, and in another terminal: python examples/client_approvals.py
"""

import asyncio
from typing import Any

from ahpkit.client import Approve, Client, ConfirmationNeeded, Deny, InputNeeded, connect


def decide(needed: ConfirmationNeeded) -> Approve | Deny:
    print(f"The agent wants to run {needed.call['toolName']}")
    if needed.call["toolName"] == "calculate":
        return Approve()
    return Deny(reason="only arithmetic today")


async def answer(needed: InputNeeded) -> dict[str, Any]:
    """Takes the first option, the default, or something that fits."""
    return {question["id"]: first_answer(question) for question in needed.request.get("questions", ())}


def first_answer(question: Any) -> Any:
    match question["kind"]:
        case "single-select":
            return question["options"][0]["id"]
        case "multi-select":
            return [option["id"] for option in question["options"][: question.get("min", 1)]]
        case "boolean":
            return True
        case "text":
            return "ada@example.com" if question.get("format") == "email" else question.get("defaultValue", "Ada")
        case _:
            return question.get("defaultValue", question.get("min", 1))


async def main(client: Client) -> None:
    session = await client.create_session()
    chat = await session.chat()
    for prompt in ('/tool calculate {"expression": "6 * 7"}', '/tool read_file {"path": "README.md"}', "/ask"):
        print(await chat.ask(prompt, on_confirmation=decide, on_input=answer))


async def run() -> None:
    async with connect() as client:
        await main(client)


if __name__ == "__main__":
    asyncio.run(run())
