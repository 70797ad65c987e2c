"""A checklist that you and the agent both change: move or add items in the browser, and the agent sees it.

Run: ahpkit serve, and in another terminal: python examples/canvas_checklist.py
Open the address it prints in a browser. It ends when everything is done.
"""

import asyncio
import json
from typing import Any

from ahpkit.client import Client, Session, connect


def board(session: Session) -> Any:
    return session.confirmed.get("openCanvases", [])[0]


async def main(client: Client) -> None:
    session = await client.create_session(provider="demo")
    await session.claim(can_render=True).accepted()  # We show its address: the built-in canvases are for those who can.
    chat = await session.chat()
    given = {"title": "Moving house", "items": ["Pack the books", "Label the boxes", "Return the keys"]}
    await chat.ask(f"/canvas open checklist moving {json.dumps(given)}")
    print(board(session)["url"], flush=True)
    await chat.ask('/canvas invoke moving moveItem {"id": "1", "column": "Doing"}')
    shown = None
    async with client.subscribe(session.uri) as changes:
        while (status := board(session)["status"]) != "3 of 3 done":
            if status != shown:
                print(status, flush=True)
            shown = status
            await anext(changes)
    print(await chat.ask("/canvas invoke moving read"))


async def run() -> None:
    async with connect() as client:
        await main(client)


if __name__ == "__main__":
    asyncio.run(run())
