"""An MCP server that wants a sign-in, and the authorization server for it. Prints its address; ends with its input."""

from __future__ import annotations

import asyncio
import sys

from mcp_servers.test_login import guarded


async def main() -> None:
    async with guarded() as (_, _, url):
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
