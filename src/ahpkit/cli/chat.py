"""`ahpkit chat`: talk to an agent from a terminal, together with everyone else who has the session open."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ahpkit.cli.chat_commands import chat_title, is_read_only
from ahpkit.cli.connection import (
    EXIT_INTERRUPTED,
    check_session_options,
    connected,
    find_session,
    host_command,
    last_session,
    open_session,
    session_options,
    short_id,
    tell_connection,
)
from ahpkit.cli.console import Console, console, is_shown
from ahpkit.cli.conversation import Conversation, ConversationLeft
from ahpkit.cli.output import KINDS, notify
from ahpkit.cli.session_search import picker
from ahpkit.cli.show_turn import show_plans
from ahpkit.client import Chat, Client, Session
from ahpkit.protocol.errors import AhpError
from ahpkit.wire.tasks import wait_first


@click.command()
@session_options
@click.option(
    "--notify", "kind", type=click.Choice(KINDS), default="bell", show_default=True, help="How to notify you."
)
@host_command
async def chat(
    url: str | None,
    token: str | None,
    name: str | None,
    resume: bool,
    provider: str | None,
    model: str | None,
    directory: Path | None,
    more: tuple[Path, ...],
    worktree: bool,
    kind: str,
) -> int:
    """Chat with an agent, streaming, with approvals by a key press.

    Ctrl-C cancels a running turn, a second one leaves. Ctrl-D, or Ctrl-C on an empty line, leaves. What other clients
    do in the session is shown as well.

    \b
    Example:
      ahpkit chat
      ahpkit chat --continue
      ahpkit chat --agent demo --dir ~/project --add-dir ~/library
      ahpkit chat --session hello
    """
    check_session_options(
        name, resume=resume, provider=provider, model=model, directory=directory, more=more, worktree=worktree
    )
    choose = picker()
    async with connected(url, token, start=True, lasting=True) as client:
        if resume:
            name, directory = await last_session(client, directory or Path.cwd(), choose), None
        elif name is not None:
            name = await find_session(client, name, choose)
        async with (
            console() as terminal
            # The terminal is opened now, so that what is typed while the agent starts becomes the first line.
        ):
            opening = open_session(
                client, name, provider=provider, model=model, directory=directory, more=more, worktree=worktree
            )
            how, session = await wait_first(session=opening, interrupt=terminal.interrupted())
            if how == "interrupt":
                return EXIT_INTERRUPTED
            first = await session.chat()
            tell_connection(client, terminal)
            if is_shown():
                terminal.say(_greeting(session), "dim")
            try:
                await _talk(terminal, client, session, first, kind)
            except ConversationLeft:
                return EXIT_INTERRUPTED
            finally:
                await _leave(terminal, client, session, first, made=name is None)
    return 0


async def _talk(terminal: Console, client: Client, session: Session, chat: Chat, kind: str) -> None:
    """Run one chat after the other, until the person leaves."""
    first = ""
    while True:
        async with client.subscribe(chat.uri) as channel, client.subscribe(session.uri) as events:
            talk = Conversation(
                terminal, client, session, chat, channel, first=first, call=lambda text: notify(kind, text)
            )
            _, other = await wait_first(talk=talk.run(), plans=show_plans(terminal, events, chat.uri))
        if other is None:
            return
        chat, first = await session.chat(other.chat), other.message
        terminal.say(_entering(session, chat), "dim")


def _entering(session: Session, chat: Chat) -> str:
    """The line that is shown when a chat is opened: which chat it is, and how to get back if nobody can write in it."""
    numbered = list(enumerate(session.chats, 1))
    number, summary = next((pair for pair in numbered if pair[1]["resource"] == chat.uri), (0, None))
    if summary is None:
        return f"Chat {short_id(chat.uri)}. :chats lists them."
    turns = chat.confirmed["turns"]
    title = chat_title(summary, number, first=turns[0]["message"]["text"] if turns else "")
    if is_read_only(summary):
        back = next((number for number, one in numbered if not is_read_only(one)), 1)
        return f"{title}: a sub-agent's chat, to read only. :chat {back} goes back, :chats lists them."
    origin: Any = summary.get("origin") or {}
    source = next((number for number, one in numbered if one["resource"] == origin.get("chat")), None)
    if origin.get("kind") == "sideChat" and source is not None:
        named = "This is" if title == "Side chat" else f"{title}:"
        return f"{named} a side chat. :chat {source} goes back, :chats lists them."
    if origin.get("kind") == "fork" and source is not None:
        return f"{title}: a fork of chat {source}, which stays as it is. :chat {source} goes back, :chats lists them."
    return f"{title}. :chats lists them."


def _greeting(session: Session) -> str:
    provider = session.state["provider"]
    return f"Session {short_id(session.uri)} with {provider}. Ctrl-C cancels a turn, Ctrl-D leaves."


async def _leave(terminal: Console, client: Client, session: Session, conversation: Chat, *, made: bool) -> None:
    """Dispose of a session in which nobody said anything. Otherwise say how to come back to the session."""
    state: Any = conversation.state
    if made and client.status == "connected" and not state["turns"] and "activeTurn" not in state:
        with suppress(AhpError, TimeoutError):
            await session.dispose()
    elif is_shown():
        terminal.say(f"Go on with:  ahpkit chat --session {short_id(session.uri)}", "dim")


__all__ = ["chat"]
