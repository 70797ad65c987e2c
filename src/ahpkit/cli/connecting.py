"""What every command that talks to a host shares: the options, the connection, errors as one line. Knows no command."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ParamSpec

import click

from ahpkit.client import Client, connect
from ahpkit.protocol.errors import AhpError

P = ParamSpec("P")


def host_command(function: Callable[P, Coroutine[Any, Any, int | None]]) -> Callable[P, None]:
    """Make an async function a command's body: adds `--url` and `--token`; what it returns is the exit code."""

    @click.option("--url", envvar="AHPKIT_URL", help="The host's address; without it, the one that is running.")
    @click.option("--token", envvar="AHPKIT_TOKEN", help="The host's token, where it cannot be found.")
    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = asyncio.run(function(*args, **kwargs))
        except (AhpError, ConnectionError) as error:
            raise click.ClickException(str(error)) from error
        except TimeoutError as error:
            raise click.ClickException("the host did not answer in time") from error
        except KeyboardInterrupt:
            code = 130
        raise SystemExit(code or 0)

    return run


@asynccontextmanager
async def connected(url: str | None, token: str | None, **options: Any) -> AsyncGenerator[Client]:
    """A client of that host, or of the running one."""
    async with connect(url, token=token, **options) as client:
        yield client


async def find_session(client: Client, name: str) -> str:
    """The URI of the session a person means: a URI, the end of one, or part of a title."""
    sessions = await client.sessions()
    exact = [one["resource"] for one in sessions if one["resource"] == name]
    close = [one["resource"] for one in sessions if _means(name, one["resource"], one["title"])]
    found = exact or close
    if not found:
        raise click.ClickException(f"there is no session {name!r}; see: ahpkit sessions list")
    if len(found) > 1:
        raise click.ClickException(f"{name!r} could be any of: {', '.join(found)}")
    return found[0]


def _means(name: str, uri: str, title: str) -> bool:
    identity = uri.rpartition("/")[2]
    return identity == name or (len(name) >= 4 and identity.startswith(name)) or name.casefold() in title.casefold()


__all__ = ["connected", "find_session", "host_command"]
