"""Completes sessions, agents and models of the running host in the shell.

The shell waits for the answer, so nothing here may take long or fail. If there is no answer in time, nothing is
offered.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import click
from click.shell_completion import CompletionItem, FishComplete, add_completion_class

HOST_NAME = "ahpkit.host_name"
"""The key under which the context of a command stores `--host-name`."""

_PATIENCE = 5.0
"""Seconds after which the shell gets no completions."""


class _Fish(FishComplete):
    """Completion for fish that shows whole descriptions. The script of click cuts them at the first comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')


def prepare_completion() -> None:
    """Replace click's own completion for shells where it is not good enough. Ctrl-C ends the process without a
    message."""
    add_completion_class(_Fish, "fish")
    # Otherwise Python would show a traceback in the command line.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


Ask = Callable[[Any, click.Context], Awaitable[Iterable[tuple[str, str]]]]
"""Asks a client for values, each with a description. The context has the words that were typed before."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(ask: Ask) -> Completer:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: Iterable[tuple[str, str]] = ()
        with suppress(Exception):  # A shell that completes cannot show an error.
            found = asyncio.run(_asked(ask, context))
        return [CompletionItem(value, help=about) for value, about in found if value.startswith(incomplete)]

    return complete


async def _asked(ask: Ask, context: click.Context) -> Iterable[tuple[str, str]]:
    from ahpkit.client import connect  # Imported late, because only a completion needs it.

    url, name = context.params.get("url") or os.environ.get("AHPKIT_URL"), context.meta.get(HOST_NAME)
    host = connect(url, token=context.params.get("token"), host_name=name)
    async with asyncio.timeout(_PATIENCE), host as client:
        return await ask(client, context)


async def _sessions(client: Any, context: click.Context) -> list[tuple[str, str]]:
    from ahpkit.cli.session_search import session_title
    from ahpkit.cli.text import shorten

    return [
        (one["resource"].rpartition("/")[2][:8], shorten(session_title(one), 60)) for one in await client.sessions()
    ]


async def _agents(client: Any, context: click.Context) -> list[tuple[str, str]]:
    return [(agent["provider"], agent["displayName"]) for agent in client.root["agents"]]


async def _models(client: Any, context: click.Context) -> list[tuple[str, str]]:
    wanted = context.params.get("provider")
    agents = [agent for agent in client.root["agents"] if wanted in (None, agent["provider"])]
    return [(model["id"], model["name"]) for agent in agents for model in agent["models"]]


SESSION = _completer(_sessions)
"""Completes sessions of the running host by their ids."""

AGENT = _completer(_agents)
"""Completes agents of the running host."""

MODEL = _completer(_models)
"""Completes models: those of the agent that `--agent` names, or of all agents."""

__all__ = ["AGENT", "HOST_NAME", "MODEL", "SESSION", "Completer", "prepare_completion"]
