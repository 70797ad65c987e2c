"""Follow everything that happens in a session, through lags and lost connections.

Run: ahpkit serve, and in another terminal: python examples/client_watch.py
"""

import asyncio

from ahpkit.client import Client, LaggedError, connect


async def watch(client: Client, uri: str) -> None:
    async with client.subscribe(uri) as subscription:
        print(f"{uri}: {subscription.state['title'] or 'untitled'}")
        while True:
            try:
                async for envelope in subscription:
                    print(f"{envelope['serverSeq']:6} {envelope['action']['type']}")
                return
            except LaggedError as lagged:
                print(f"missed {lagged.last_seq + 1} to {lagged.next_seq}; the state is up to date")


async def main(client: Client) -> None:
    async with client.session_list() as sessions:
        if not sessions.items:
            await client.create_session()
        await watch(client, (await client.sessions())[0]["resource"])


async def run() -> None:
    async with connect() as client:
        client.on_status(lambda status: print(f"[{status}]"))
        await main(client)


if __name__ == "__main__":
    asyncio.run(run())
