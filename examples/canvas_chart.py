"""A live chart: the demo agent opens one and adds points while you watch.

Run: ahpkit serve, and in another terminal: python examples/canvas_chart.py
Open the address it prints in a browser, or run examples/canvas_renderer.py beside it.
"""

import asyncio
import json
import math

from ahpkit.client import Client, connect


async def main(client: Client, *, points: int = 100, pause: float = 0.2) -> None:
    session = await client.create_session(provider="demo")
    await session.claim(can_render=True).accepted()  # We show its address: the built-in canvases are for those who can.
    chat = await session.chat()
    given = {"title": "A sine and its cosine", "series": [{"name": "sine"}, {"name": "cosine"}]}
    await chat.ask(f"/canvas open chart waves {json.dumps(given)}")
    print(session.confirmed.get("openCanvases", [])[0].get("url"), flush=True)
    for step in range(points):
        for name, value in (("sine", math.sin(step / 8)), ("cosine", math.cos(step / 8))):
            await chat.ask(f"/canvas invoke waves addPoints {json.dumps({'series': name, 'points': [value]})}")
        await asyncio.sleep(pause)
    print(await chat.ask('/canvas invoke waves export {"format": "csv"}'))


async def run() -> None:
    async with connect() as client:
        await main(client)


if __name__ == "__main__":
    asyncio.run(run())
