"""Completes sessions, agents and models of the running host in the shell.

A shell waits while we look, so nothing here may take long or fail: without an answer in time nothing is offered.
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
"""Where a command's context keeps its `--host-name`."""

_PATIENCE = 5.0
"""Seconds after which the shell gets no completions."""


class _Fish(FishComplete):
    """Shows whole descriptions: click's own script cuts them at their first comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')


def prepare_completion() -> None:
    """Tell click how shells complete, where it does not know well enough. Ctrl-C meanwhile just ends the process."""
    add_completion_class(_Fish, "fish")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # It would show a traceback in the line.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


Ask = Callable[[Any, click.Context], Awaitable[Iterable[tuple[str, str]]]]
"""Asks a client for values, each with a description. The context has what was typed before."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(ask: Ask) -> Completer:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: Iterable[tuple[str, str]] = ()
        with suppress(Exception):  # A shell that completes cannot show an error.
            found = asyncio.run(_asked(ask, context))
        return [CompletionItem(value, help=about) for value, about in found if value.startswith(incomplete)]

    return complete


async def _asked(ask: Ask, context: click.Context) -> Iterable[tuple[str, str]]:
    from ahpkit.client import connect  # Late: only a completion needs it.

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
"""Sessions of the running host, by their ids."""

AGENT = _completer(_agents)
"""Agents of the running host."""

MODEL = _completer(_models)
"""Models of these agents, or of the one that `--agent` names."""

__all__ = ["AGENT", "HOST_NAME", "MODEL", "SESSION", "Completer", "prepare_completion"]
