"""`ahpkit prompt`: one message, one answer, an exit code. For scripts."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import click

from ahpkit.cli.connecting import EXIT_FAILED, EXIT_INTERRUPTED, connected, host_command, open_session, session_options
from ahpkit.cli.output import Output
from ahpkit.cli.show_turn import TurnPrinter, event_line
from ahpkit.client import ActionRejected, Chat, Decline, Deny, Session
from ahpkit.client.ask import subagents
from ahpkit.client.events import ConfirmationNeeded, InputNeeded, TurnCancelled, TurnCompleted, TurnEvent
from ahpkit.platform.signals import handling_signals
from ahpkit.wire.codec import encode

_NO_APPROVALS = "approvals are off; --approve all turns them on"


@click.command()
@click.argument("text")
@session_options
@click.option(
    "--approve", type=click.Choice(["none", "all"]), default="none", show_default=True, help="Which tool calls may run."
)
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
      git diff | ahpkit prompt - --json
    """
    text = _read_standard_input() if text == "-" else text
    if not text.strip():
        raise click.UsageError("there is nothing to send: the message is empty")
    shot = _OneShot(approve_all=approve == "all", json_lines=json_lines)
    async with connected(url, token, on_confirmation=shot.decide, on_input=shot.decline, start=True) as client:
        session = await open_session(client, name, provider=provider, model=model, directory=directory)
        try:
            return await shot.run(session, text)
        finally:
            if name is None and not keep:
                await session.dispose()
            elif name is None and not json_lines:
                shot.output.say(f"kept as {session.uri}", "dim", error=True)


def _read_standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise click.ClickException(f"standard input is not UTF-8 text: {error}") from error


class _OneShot:
    """One turn, printed. What it and its sub-agents ask for is decided without a person."""

    def __init__(self, *, approve_all: bool, json_lines: bool) -> None:
        self.output = Output()
        self._approve_all = approve_all
        self._json_lines = json_lines
        self._printer = TurnPrinter(self.output, quiet=True)
        self._helpers: set[str] = set()

    async def run(self, session: Session, text: str) -> int:
        """The exit code."""
        chat = await session.chat()
        if self._json_lines:
            self.output.say(encode({"event": "Session", "session": session.uri, "chat": chat.uri}).decode())
        async with _cancelled_by_interrupt(chat):
            try:
                return await self._take(session, chat, text)
            except ActionRejected as error:
                self.output.say(f"✗ {error.reason}", "red", error=True)
                return EXIT_FAILED

    async def _take(self, session: Session, chat: Chat, text: str) -> int:
        last: Any = None
        async for last in chat.send(text):
            self._show(last)
            for uri in subagents(last):
                if uri not in self._helpers:
                    self._helpers.add(uri)
                    await session.chat(uri)  # From now on the callbacks are asked for it, too.
        if isinstance(last, TurnCancelled):
            return EXIT_INTERRUPTED
        return 0 if isinstance(last, TurnCompleted) else EXIT_FAILED

    def _show(self, event: TurnEvent) -> None:
        if self._json_lines:
            self.output.say(event_line(event))
        else:
            self._printer.show(event)

    def decide(self, event: ConfirmationNeeded) -> bool | Deny:
        if self._approve_all:
            return True
        self.output.say(f"✗ {event.call['displayName']}: not run ({_NO_APPROVALS})", "yellow", error=True)
        return Deny(reason=_NO_APPROVALS)

    def decline(self, event: InputNeeded) -> Decline:
        self.output.say("✗ the agent asked a question; nobody is there to answer: ahpkit chat", "yellow", error=True)
        return Decline()


@asynccontextmanager
async def _cancelled_by_interrupt(chat: Chat) -> AsyncGenerator[None]:
    """Ctrl-C cancels the turn, so that it ends as one that was cancelled; the second one does not wait for that."""
    running = asyncio.current_task()
    assert running is not None
    presses = itertools.count()

    def interrupted() -> None:
        if next(presses):
            running.cancel()
        else:
            with suppress(LookupError):  # The turn is over.
                chat.cancel()

    with handling_signals({"SIGINT": interrupted}):
        yield


__all__ = ["prompt"]
