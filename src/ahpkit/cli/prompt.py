"""`ahpkit prompt`: one message, one answer, an exit code. For scripts."""

from __future__ import annotations

import asyncio
import itertools
import os
import select
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import click

from ahpkit.cli.asking import Number, read_whole
from ahpkit.cli.connection import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_TIMEOUT,
    connected,
    host_command,
    join_session,
    open_session,
    say_why_it_waits,
    session_options,
    short_id,
)
from ahpkit.cli.output import KINDS, Output, notify
from ahpkit.cli.shell_completion import SESSION
from ahpkit.cli.show_turn import TurnPrinter, event_line
from ahpkit.client import ActionRejected, Approve, Chat, Client, Decline, Deny, Session, TurnStream
from ahpkit.client.ask import subagents
from ahpkit.client.events import ConfirmationNeeded, InputNeeded, TurnCancelled, TurnCompleted, TurnEvent
from ahpkit.platform.signals import handling_signals
from ahpkit.protocol.chat.turns import is_resumable
from ahpkit.wire.codec import encode
from ahpkit.wire.tasks import running

_PATIENCE = 3.0
"""Seconds to wait for the first bytes of standard input, if there is also a text."""

_LARGEST = 8_000_000
"""Bytes of a message. A host takes a little more than that in one action."""

_ADVICE = f", a host takes {_LARGEST / 1e6:.0f}: put it into a file of the working directory and let the agent read it"
"""What to do with a message that is too large."""

Begin = Callable[[Chat], TurnStream]
"""Begins the turn in a chat."""

_NO_APPROVALS = "approvals are off; --approve all turns them on"


_approve_option = click.option(
    "--approve", type=click.Choice(["none", "all"]), default="none", show_default=True, help="Which tool calls may run."
)
_timeout_option = click.option(
    "--timeout", type=Number(min=0, min_open=True), help="Seconds until the turn is cancelled."
)


@click.command()
@click.argument("text", required=False)
@session_options
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Add the content of a file to the message (repeatable).",
)
@_approve_option
@_timeout_option
@click.option("--no-wait", is_flag=True, help="Send the message, print the session and leave; see: ahpkit inbox.")
@click.option("--keep/--no-keep", default=None, help="Whether a new session stays afterwards.  [default: it stays]")
@click.option("--notify", "kind", type=click.Choice(KINDS), default="none", help="How to notify you at the end.")
@click.option("--json", "json_lines", is_flag=True, help="Print every event as a line of JSON, as it comes.")
@host_command
async def prompt(
    url: str | None,
    token: str | None,
    text: str | None,
    name: str | None,
    resume: bool,
    provider: str | None,
    model: str | None,
    directory: Path | None,
    more: tuple[Path, ...],
    worktree: bool,
    files: tuple[Path, ...],
    approve: str,
    timeout: float | None,
    no_wait: bool,
    keep: bool | None,
    kind: str,
    json_lines: bool,
) -> int:
    """Send one message and print the answer.

    Standard input is appended to the text; "-" stands for standard input alone. The session is kept: --continue goes on
    with it, and `ahpkit usage` counts it. --no-keep deletes it. Exits with 0 when the turn completed, 1 when it failed
    or was refused, 124 when it took too long, 130 when it was cancelled.

    \b
    Example:
      ahpkit prompt "What is in this directory?" --approve all
      git diff | ahpkit prompt "Review this."
      ahpkit prompt "And in short?" --continue --timeout 60
      ahpkit prompt "Tidy up." --file NOTES.md --no-wait
    """
    if timeout is not None and not timeout > 0:  # Also true for NaN.
        raise click.UsageError(f"--timeout {timeout} is not a number of seconds")
    if no_wait and (approve == "all" or timeout is not None):
        raise click.UsageError("--no-wait leaves the turn to itself: leave out --approve and --timeout")
    if keep is False and (no_wait or worktree):
        raise click.UsageError("--no-keep deletes the session at the end: leave out --no-wait and --worktree")
    if keep is False and (name is not None or resume):
        raise click.UsageError("--no-keep is for new sessions; leave it out with --session and --continue")
    message = _message(text, files)
    shot = _OneShot(approve_all=approve == "all", json_lines=json_lines)
    callbacks: dict[str, Any] = {} if no_wait else {"on_confirmation": shot.decide, "on_input": shot.decline}
    async with connected(url, token, **callbacks, start=True) as client:
        made = name is None and not resume
        session = await open_session(
            client,
            name,
            resume=resume,
            provider=provider,
            model=model if made else None,
            directory=directory,
            more=more,
            worktree=worktree,
        )

        def send(chat: Chat) -> TurnStream:
            return chat.send(message, model=None if made else model)

        if no_wait:
            return await shot.send(session, send)
        try:
            code = await shot.run(client, session, send, timeout)
            notify(kind, "the turn is over" if code == 0 else "the turn did not complete")
            return code
        finally:
            stays = not made or (keep is not False and shot.begun)
            if not stays:
                await session.dispose()
            # A session with a work tree is always named: its work tree is still to be merged.
            elif made and (keep or worktree) and not json_lines:
                shot.output.say(f"kept as {session.uri}", "dim", error=True)
            if shot.resumable and stays:
                shot.output.say(f"To go on with it:  ahpkit resume {short_id(session.uri)}", "dim", error=True)


@click.command()
@click.argument("session", shell_complete=SESSION)
@_approve_option
@_timeout_option
@click.option("--json", "json_lines", is_flag=True, help="Print every event as a line of JSON, as it comes.")
@host_command
async def resume(
    url: str | None, token: str | None, session: str, approve: str, timeout: float | None, json_lines: bool
) -> int:
    """Go on with the last turn of a session that failed, and print the rest of the answer.

    The error of a turn says whether the turn can continue, for example after a lost connection, a limit or a restart of
    the host. Exits like `prompt`.

    \b
    Example:
      ahpkit resume hello
      ahpkit resume 3f2a9c11 --approve all
    """
    shot = _OneShot(approve_all=approve == "all", json_lines=json_lines)
    async with connected(url, token, on_confirmation=shot.decide, on_input=shot.decline) as client:
        opened = await join_session(client, session)
        try:
            return await shot.run(client, opened, Chat.resume, timeout)
        except LookupError:
            raise click.ClickException(
                f"there is no turn to continue in {session!r}: its last turn did not fail, or cannot be continued"
            ) from None


def _message(text: str | None, files: Sequence[Path]) -> str:
    """The message: the text, then what was piped in, then the files."""
    piped = _read_standard_input() if text == "-" or (_is_piped() and _has_come(text)) else ""
    parts = [part for part in ("" if text == "-" else text or "", piped) if part.strip()]
    read = [(path, _read_file(path)) for path in files]
    if not any(part.strip() for part in (*parts, *(content for _, content in read))):
        raise click.UsageError("the message is empty: there is nothing to send")
    parts += [f"{path}:\n\n{content}" for path, content in read]
    message = "\n\n".join(parts)
    if (size := len(message.encode(errors="replace"))) > _LARGEST:
        raise click.ClickException(f"the message has {size / 1e6:.0f} MB{_ADVICE}")
    return message


def _is_piped() -> bool:
    """Whether standard input is a program or a file. A terminal is not read."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _has_come(text: str | None) -> bool:
    """Whether the pipe delivers something, or ends, in time. A pipe that nobody writes to must not block the command
    for ever."""
    if not text or select.select([sys.stdin.fileno()], [], [], _PATIENCE)[0]:
        return True
    click.echo(f"! nothing came on standard input within {_PATIENCE:g} s; sent without it (- waits for it)", err=True)
    return False


def _read_standard_input() -> str:
    try:
        return read_whole(sys.stdin.buffer, "standard input", _LARGEST, _ADVICE).decode()
    except UnicodeDecodeError:
        raise click.ClickException("standard input is not UTF-8 text") from None


def _read_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return read_whole(file, str(path), _LARGEST, _ADVICE).decode()
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None


class _OneShot:
    """Runs one turn and prints it. What the turn and its sub-agents ask for is decided without a person."""

    def __init__(self, *, approve_all: bool, json_lines: bool) -> None:
        self.output = Output()
        self._approve_all = approve_all
        self._json_lines = json_lines
        self._printer = TurnPrinter(self.output, quiet=True)
        self._helpers: set[str] = set()
        self.resumable = False
        """Whether the turn failed and can be continued."""
        self._events = 0
        self._opened: asyncio.Future[Callable[[], bool]] = asyncio.Future()
        """Becomes ready when the chat is open. Its function says whether a turn that ran before ours still runs."""

    @property
    def begun(self) -> bool:
        """Whether the host accepted the message."""
        return self._events > 0

    async def send(self, session: Session, begin: Begin) -> int:
        """Begin the turn and do not wait for it; returns the exit code."""
        chat = await session.chat()
        try:
            await anext(begin(chat))
        except ActionRejected as error:
            self.output.say(f"✗ {error.reason}", "red", error=True)
            return EXIT_FAILED
        facts = {"event": "Session", "session": session.uri, "chat": chat.uri}
        self.output.say(encode(facts).decode() if self._json_lines else short_id(session.uri))
        return 0

    async def run(self, client: Client, session: Session, begin: Begin, timeout: float | None = None) -> int:
        """Run the turn to its end; returns the exit code."""
        async with running(say_why_it_waits(client, self.output, lambda: self._events)):
            return await self._run(session, begin, timeout)

    async def _run(self, session: Session, begin: Begin, timeout: float | None) -> int:
        chat = await session.chat()
        self._opened.set_result(_turn_stays(chat))
        if self._json_lines:
            self.output.say(encode({"event": "Session", "session": session.uri, "chat": chat.uri}).decode())
        async with _cancelled_by_interrupt(chat, self._printer):
            try:
                async with asyncio.timeout(timeout):
                    return await self._take(session, chat, begin)
            except TimeoutError:
                with suppress(LookupError):  # The turn ended at this moment.
                    await chat.cancel()
                self.output.say(f"✗ no answer within {timeout:g} s; the turn was cancelled", "red", error=True)
                return EXIT_TIMEOUT
            except ActionRejected as error:
                self.output.say(f"✗ {error.reason}", "red", error=True)
                return EXIT_FAILED

    async def _take(self, session: Session, chat: Chat, begin: Begin) -> int:
        last: Any = None
        async for last in begin(chat):
            self._events += 1
            self._show(last)
            for uri in subagents(last):
                if uri not in self._helpers:
                    self._helpers.add(uri)
                    await session.chat(uri)  # This opens the chat, so that the callbacks get its requests, too.
        if isinstance(last, TurnCancelled) or self._printer.left_out:
            return EXIT_INTERRUPTED
        turns = chat.confirmed["turns"]
        self.resumable = bool(turns) and is_resumable(turns[-1])
        return 0 if isinstance(last, TurnCompleted) else EXIT_FAILED

    def _show(self, event: TurnEvent) -> None:
        if self._json_lines:
            self.output.say(event_line(event))
        else:
            self._printer.show(event)

    async def decide(self, event: ConfirmationNeeded) -> Approve | Deny | None:
        if (await self._opened)():
            # The client that began the earlier turn answers its questions. The host will refuse our message.
            return None
        if self._approve_all:
            return Approve(automatic=True)
        self.output.say(f"✗ {event.call['displayName']}: not run ({_NO_APPROVALS})", "yellow", error=True)
        return Deny(reason=_NO_APPROVALS, automatic=True)

    async def decline(self, event: InputNeeded) -> Decline | None:
        if (await self._opened)():
            return None
        self.output.say("✗ the agent asked a question; nobody is there to answer: ahpkit chat", "yellow", error=True)
        return Decline()


def _turn_stays(chat: Chat) -> Callable[[], bool]:
    """Returns a function that says whether the turn that runs in a chat at this moment still runs."""

    def running() -> str | None:
        return (chat.confirmed.get("activeTurn") or {}).get("id")

    now = running()
    return lambda: now is not None and running() == now


@asynccontextmanager
async def _cancelled_by_interrupt(chat: Chat, printer: TurnPrinter) -> AsyncGenerator[None]:
    """Let the first Ctrl-C cancel the turn, so that it ends properly. The second one ends the command without
    waiting."""
    running = asyncio.current_task()
    assert running is not None
    presses = itertools.count()

    def interrupted() -> None:
        if next(presses):
            running.cancel()
        else:
            printer.stop()
            with suppress(LookupError):  # The turn is over.
                chat.cancel()

    with handling_signals({"SIGINT": interrupted}):
        yield


__all__ = ["prompt", "resume"]
