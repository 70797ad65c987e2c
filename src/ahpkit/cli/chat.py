"""`ahpkit chat` and `ahpkit prompt`: talk to an agent from a terminal or a script."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any

import click

from ahpkit.cli.connecting import connected, find_session, host_command
from ahpkit.cli.console import Console, console
from ahpkit.cli.decide import ask_approval, ask_questions
from ahpkit.cli.show_turn import TurnPrinter, event_line
from ahpkit.client import ActionRejected, Chat, Client, Deny, Session
from ahpkit.client.events import ConfirmationNeeded, InputNeeded, TurnCancelled, TurnCompleted

_EXIT_FAILED, _EXIT_CANCELLED = 1, 130

_HELP = (
    "Type a message. /quit leaves, Ctrl-C cancels a running turn, twice leaves. /help asks the agent for its commands."
)


async def open_session(
    client: Client, name: str | None, *, provider: str | None, model: str | None, directory: Path | None
) -> Session:
    """The session that was named, or a new one."""
    if name is not None:
        return await client.session(await find_session(client, name))
    working_directory = (directory or Path.cwd()).resolve().as_uri()
    return await client.create_session(provider=provider, model=model, working_directory=working_directory)


@click.command()
@click.option("--session", "name", help="Go on with a session: its URI, id, or part of its title.")
@click.option("--agent", "provider", help="Which agent of the host to use for a new session.")
@click.option("--model", help="Which model to use for a new session.")
@click.option(
    "--dir", "directory", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Working directory."
)
@host_command
async def chat(
    url: str | None,
    token: str | None,
    name: str | None,
    provider: str | None,
    model: str | None,
    directory: Path | None,
) -> int:
    """Chat with an agent, streaming, with approvals by a key press.

    \b
    Example:
      ahpkit chat
      ahpkit chat --agent demo --dir ~/project
    """
    async with console() as terminal, connected(url, token) as client:
        session = await open_session(client, name, provider=provider, model=model, directory=directory)
        conversation = await session.chat()
        if terminal.interactive:
            terminal.write(f"{session.state['summary']['provider']} in {session.uri}\n{_HELP}\n")
        return await _converse(terminal, conversation)


async def _converse(terminal: Console, conversation: Chat) -> int:
    while True:
        line = await _line_or_interrupt(terminal)
        if line is None or line.strip() in ("/quit", "/exit"):
            return 0
        if line.strip() and await _turn(terminal, conversation, line) is None:
            return _EXIT_CANCELLED


async def _line_or_interrupt(terminal: Console) -> str | None:
    """The next line; None at the end of input and on Ctrl-C."""
    reading = asyncio.create_task(terminal.line("> "))
    interrupted = asyncio.create_task(terminal.interrupted.wait())
    done, waiting = await asyncio.wait([reading, interrupted], return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    if reading in done:
        return reading.result()
    terminal.write("\n")
    return None


async def _turn(terminal: Console, conversation: Chat, text: str) -> bool | None:
    """Run one turn: whether it completed; None when the person wants to leave."""
    showing = asyncio.create_task(_show(terminal, conversation, text))
    cancelled = False
    while not showing.done():
        interrupted = asyncio.create_task(terminal.interrupted.wait())
        await asyncio.wait([showing, interrupted], return_when=asyncio.FIRST_COMPLETED)
        interrupted.cancel()
        if terminal.interrupted.is_set():
            terminal.interrupted.clear()
            if cancelled:
                showing.cancel()
                return None
            cancelled = True
            _cancel(conversation)
    return await showing


def _cancel(conversation: Chat) -> None:
    with contextlib.suppress(LookupError):  # It ended just now.
        conversation.cancel()


async def _show(terminal: Console, conversation: Chat, text: str) -> bool:
    printer = TurnPrinter()

    async def approve(event: ConfirmationNeeded) -> Any:
        printer.show(event)
        return await ask_approval(terminal, event)

    async def answer(event: InputNeeded) -> Any:
        printer.show(event)
        return await ask_questions(terminal, event)

    completed = False
    try:
        async for event in conversation.send(text, on_confirmation=approve, on_input=answer):
            if not isinstance(event, ConfirmationNeeded | InputNeeded):
                printer.show(event)
            completed = isinstance(event, TurnCompleted)
    except ActionRejected as error:
        terminal.write(f"✗ {error.reason}\n")
    return completed


@click.command()
@click.argument("text")
@click.option("--session", "name", help="Go on with a session: its URI, id, or part of its title.")
@click.option("--agent", "provider", help="Which agent of the host to use for a new session.")
@click.option("--model", help="Which model to use for a new session.")
@click.option(
    "--dir", "directory", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Working directory."
)
@click.option("--approve", type=click.Choice(["none", "all"]), default="none", show_default=True, help="Tool calls.")
@click.option("--keep", is_flag=True, help="Keep a new session afterwards.")
@click.option("--json", "json_lines", is_flag=True, help="Print every event as a line of JSON.")
@host_command
async def prompt(
    url: str | None,
    token: str | None,
    text: str,
    name: str | None,
    provider: str | None,
    model: str | None,
    directory: Path | None,
    approve: str,
    keep: bool,
    json_lines: bool,
) -> int:
    """Send one message and print the answer. "-" reads it from standard input.

    Exits with 0 when the turn completed, 1 when it failed or was refused, 130 when it was cancelled.

    \b
    Example:
      ahpkit prompt "What is in this directory?" --approve all
    """
    text = sys.stdin.read() if text == "-" else text
    async with connected(url, token) as client:
        session = await open_session(client, name, provider=provider, model=model, directory=directory)
        code = await _one_turn(await session.chat(), text, approve_all=approve == "all", json_lines=json_lines)
        if name is None and not keep:
            await session.dispose()
        return code


async def _one_turn(conversation: Chat, text: str, *, approve_all: bool, json_lines: bool) -> int:
    printer = TurnPrinter(quiet=True)

    def decide(event: ConfirmationNeeded) -> Any:
        return True if approve_all else Deny(reason="approvals are off: ahpkit prompt --approve all turns them on")

    last: Any = None
    try:
        async for event in conversation.send(text, on_confirmation=decide, on_input=lambda event: {}):
            last = event
            if json_lines:
                click.echo(event_line(event))
            else:
                printer.show(event)
    except ActionRejected as error:
        click.echo(f"✗ {error.reason}", err=True)
        return _EXIT_FAILED
    if isinstance(last, TurnCancelled):
        return _EXIT_CANCELLED
    return 0 if isinstance(last, TurnCompleted) else _EXIT_FAILED


__all__ = ["chat", "prompt"]
