"""`ahpkit inbox`, `approve`, `deny`, `answer`, `cancel`: lists what waits for you in all sessions, and decides it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import click

from ahpkit.cli.ask_person import in_words, once_first, reasons
from ahpkit.cli.choosing import hint, read_answer
from ahpkit.cli.connection import connected, find_session, host_command, short_id, taken
from ahpkit.cli.output import KINDS, Output, notify
from ahpkit.cli.session_search import UNTITLED
from ahpkit.cli.shell_completion import SESSION
from ahpkit.cli.text import plain, printable, shorten
from ahpkit.cli.watching import json_text, show, watch_option
from ahpkit.client import (
    AuthenticationNeeded,
    Chat,
    Client,
    ConfirmationNeeded,
    InputNeeded,
    Session,
)
from ahpkit.client.ask import Waiting, describe, waiting_in
from ahpkit.protocol.errors import AhpError
from ahpkit.protocol.session.state import SessionStatus

_KINDS = {ConfirmationNeeded: "approval", InputNeeded: "question", AuthenticationNeeded: "login"}
"""The kinds of waiting things, as scripts see them."""

_NAME = re.compile(r"[A-Za-z][\w-]*")
"""Text that could be the name of a question."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits for a person, and the chat in which it waits."""

    session: str
    title: str
    chat: Chat
    waiting: Waiting
    server: str
    """The name of the MCP server that wants a login; empty for other things."""

    @property
    def id(self) -> str:
        """The id of the tool call or of the request for input."""
        waiting = self.waiting
        return waiting.request["id"] if isinstance(waiting, InputNeeded) else waiting.call["toolCallId"]

    @property
    def options(self) -> list[Any]:
        call: Any = {} if isinstance(self.waiting, InputNeeded) else self.waiting.call
        return once_first(call.get("options", ()))

    def as_data(self) -> dict[str, Any]:
        waiting = self.waiting
        kind = _KINDS[type(waiting)]
        facts = {"session": self.session, "title": self.title, "chat": self.chat.uri, "id": self.id, "kind": kind}
        what = {"request": waiting.request} if isinstance(waiting, InputNeeded) else {"call": waiting.call}
        server = {"server": self.server} if self.server else {}
        return {**facts, "says": describe(self.waiting), **what, **server}


@click.command()
@watch_option
@click.option(
    "--notify", "kind", type=click.Choice(KINDS), default="none", help="With --watch: how to notify you of more."
)
@click.option("--json", "json_output", is_flag=True, help="Print JSON; with --watch one list on each line.")
@host_command
async def inbox(url: str | None, token: str | None, watching: bool, kind: str, json_output: bool) -> None:
    """List everything that waits for you: approvals, questions and logins of all sessions.

    \b
    Example:
      ahpkit inbox
      ahpkit inbox --watch --notify desktop
    """
    if kind != "none" and not watching:
        raise click.UsageError("--notify works only together with --watch; add --watch")
    known = set[str]()

    async def lines() -> str:
        async with everything(client) as items:
            new = [item for item in items if item.id not in known]
            known.clear()
            known.update(item.id for item in items)
            if watching and new:
                notify(kind, f"{new[0].title}: {describe(new[0].waiting)}")
            if json_output:
                data = [item.as_data() for item in items]
                return json_text(data, watching=watching)
            return "\n".join(line for item in items for line in _lines(item)) or "Nothing waits for you."

    async with connected(url, token) as client:
        await show(lines, watching=watching, client=client, clear=not json_output)


def _lines(item: Item) -> list[str]:
    name = short_id(item.session)
    lines = [f"{name}  {printable(shorten(item.title, 40)):40}  {printable(shorten(describe(item.waiting), 120))}"]
    if isinstance(item.waiting, InputNeeded):
        request: Any = item.waiting.request
        lines += [
            f"          {q['id']}: {printable(shorten(plain(q['message']), 100))}" for q in request.get("questions", ())
        ]
        return [*lines, f"          ahpkit answer {name}"]
    if isinstance(item.waiting, AuthenticationNeeded):
        return [*lines, f"          ahpkit mcp login {printable(item.server)} --session {name}"]
    lines += [f"          {printable(line)}" for line in reasons(item.waiting.call)]
    return [*lines, f"          ahpkit approve {name}   or   ahpkit deny {name}"]


@asynccontextmanager
async def everything(client: Client, session: str | None = None) -> AsyncGenerator[list[Item]]:
    """Everything that waits in all sessions, or in one session. The chats stay open until the block ends."""
    async with AsyncExitStack() as stack:
        items: list[Item] = []
        for summary in await client.sessions():
            uri = summary["resource"]
            if session in (None, uri) and _waits(summary):
                items += await _of_session(stack, client, uri)
        yield items


def _waits(summary: Any) -> bool:
    return summary["status"] & SessionStatus.InputNeeded == SessionStatus.InputNeeded


def _runs(summary: Any) -> bool:
    return bool(summary["status"] & SessionStatus.InProgress)


async def _of_session(stack: AsyncExitStack, client: Client, uri: str) -> list[Item]:
    try:
        session = await stack.enter_async_context(await client.session(uri))
        chats = [await _chat(stack, session, one["resource"]) for one in session.chats]
        title = _title(session, chats)
    except AhpError:  # The session was deleted while it was read.
        return []
    return [
        Item(uri, title, chat, waiting, _server(session, waiting))
        for chat in chats
        for waiting in waiting_in(chat.confirmed)
    ]


def _server(session: Session, waiting: Waiting) -> str:
    if not isinstance(waiting, AuthenticationNeeded):
        return ""
    try:
        return session.mcp_server(waiting.server_id).name
    except LookupError:  # The request was removed meanwhile.
        return waiting.server_id


def _title(session: Session, chats: Sequence[Chat]) -> str:
    """The title of a session. A session without one is named by what was said in it last."""
    title = session.state["title"]
    if title.strip() not in ("", UNTITLED):
        return title
    running = (chat.confirmed.get("activeTurn") for chat in chats)
    return next((turn["message"]["text"] for turn in running if turn is not None), title)


async def _chat(stack: AsyncExitStack, session: Session, uri: str) -> Chat:
    return await stack.enter_async_context(await session.chat(uri))


def _choose(items: Sequence[Item], name: str, number: int | None) -> Item:
    """The item that a person means. Raises if several items wait and the person named none of them."""
    if number is not None:
        if not 1 <= number <= len(items):
            raise click.UsageError(f"--number is {number}; there are {len(items)}")
        return items[number - 1]
    if len(items) > 1:
        listed = [f"  {place}. {shorten(describe(item.waiting), 100)}" for place, item in enumerate(items, 1)]
        raise click.ClickException("\n".join([f"several wait in {name!r}; say which with --number:", *listed]))
    return items[0]


@asynccontextmanager
async def _found(client: Client, name: str, kind: type[Waiting], what: str) -> AsyncGenerator[list[Item]]:
    uri = await find_session(client, name, fits=_waits)
    async with everything(client, uri) as items:
        found = [item for item in items if isinstance(item.waiting, kind)]
        if not found:
            raise click.ClickException(f"no {what} waits in {name!r}; see: ahpkit inbox")
        yield found


def _say_done(what: str, item: Item, name: str) -> None:
    Output().say(f"{what}: {describe(item.waiting)}{_where(item.session, item.title, name)}")


def _where(uri: str, title: str, name: str) -> str:
    """The id and title of the session, for a person who named it by its title, because a title may fit several
    sessions."""
    is_id = uri == name or uri.rpartition("/")[2].startswith(name)
    return "" if is_id else f" in {short_id(uri)} ({shorten(title, 60)})"


_NUMBER = click.option("--number", type=int, help="Which one, when several wait; they are counted from 1.")


@click.command()
@click.argument("session", shell_complete=SESSION)
@_NUMBER
@click.option("--all", "everyone", is_flag=True, help="All calls that wait in this session, each for this time only.")
@click.option("--option", help="An option by its number or its words, as the chat shows it.  [default: this time only]")
@host_command
async def approve(
    url: str | None, token: str | None, session: str, number: int | None, everyone: bool, option: str | None
) -> None:
    """Approve a tool call that waits in SESSION. Prints what was approved.

    \b
    Example:
      ahpkit approve 3f2a
      ahpkit approve 3f2a --option "Always allow calculate in this session"
    """
    if everyone and (number is not None or option is not None):
        raise click.UsageError("--all approves each call, this time only: leave out --number and --option")
    async with connected(url, token) as client, _found(client, session, ConfirmationNeeded, "approval") as items:
        for item in items if everyone else [_choose(items, session, number)]:
            await _decide(item, option, approved=True)
            _say_done("approved", item, session)


@click.command()
@click.argument("session", shell_complete=SESSION)
@_NUMBER
@click.option("--all", "everyone", is_flag=True, help="All calls that wait in this session.")
@click.option("--reason", help="The reason, which the agent reads.")
@host_command
async def deny(
    url: str | None, token: str | None, session: str, number: int | None, everyone: bool, reason: str | None
) -> None:
    """Deny a tool call that waits in SESSION. Prints what was denied.

    \b
    Example:
      ahpkit deny 3f2a --reason "Use the test database."
    """
    if everyone and number is not None:
        raise click.UsageError("--all denies each call: leave out --number")
    async with connected(url, token) as client, _found(client, session, ConfirmationNeeded, "approval") as items:
        for item in items if everyone else [_choose(items, session, number)]:
            await _decide(item, None, approved=False, reason=reason)
            _say_done("denied", item, session)


async def _decide(item: Item, option: str | None, *, approved: bool, reason: str | None = None) -> None:
    assert isinstance(item.waiting, ConfirmationNeeded)
    if item.waiting.of == "result":
        await taken(item.chat.confirm_result(item.id, approved=approved))
        return
    chosen = _option(item.options, option, approved=approved)
    if approved:
        await taken(item.chat.approve(item.id, option_id=chosen))
    else:
        await taken(item.chat.deny(item.id, option_id=chosen, reason=reason))


def _option(options: Sequence[Any], wanted: str | None, *, approved: bool) -> str | None:
    """The id of the option that is wanted; without a wish, of the option that holds for this call only."""
    kind = "approve" if approved else "deny"
    fitting = [option for option in options if option["kind"] == kind]
    if wanted is None:
        return fitting[0]["id"] if fitting else None
    words = wanted.strip().casefold()
    for number, option in enumerate(options, 1):
        if option["kind"] == kind and words in (str(number), in_words(option).casefold()):
            return option["id"]
    known = "; ".join(f"{n}. {in_words(one)}" for n, one in enumerate(options, 1) if one["kind"] == kind) or "none"
    raise click.UsageError(f"{wanted!r} is not an option of this call; possible: {known}")


@click.command()
@click.argument("session", shell_complete=SESSION)
@click.argument("answers", nargs=-1)
@_NUMBER
@click.option("--decline", is_flag=True, help="Do not answer.")
@host_command
async def answer(
    url: str | None, token: str | None, session: str, answers: tuple[str, ...], number: int | None, decline: bool
) -> None:
    """Answer the questions that wait in SESSION. Prints what was answered or declined.

    Give one answer for each question, in order, or NAME=ANSWER for the question of that name. An empty answer skips its
    question. Without ANSWERS the questions are listed.

    \b
    Example:
      ahpkit answer 3f2a
      ahpkit answer 3f2a Ada ada@example.org 36
      ahpkit answer 3f2a colour=blue
      ahpkit answer 3f2a --decline
    """
    if decline and answers:
        raise click.UsageError("--decline answers nothing: leave out the answers")
    async with connected(url, token) as client, _found(client, session, InputNeeded, "question") as items:
        item = _choose(items, session, number)
        assert isinstance(item.waiting, InputNeeded)
        questions: Sequence[Any] = item.waiting.request.get("questions", ())
        if decline:
            await taken(item.chat.decline(item.id))
            _say_done("declined", item, session)
        elif not answers and questions:
            for line in questions_in_words(questions):
                Output().say(line)
        else:
            await taken(item.chat.answer(item.id, read_answers(questions, answers)))
            _say_done("answered", item, session)


def questions_in_words(questions: Sequence[Any]) -> list[str]:
    lines: list[str] = []
    for question in questions:
        needed = ", required" if question.get("required") else ""
        lines.append(f"{question['id']}: {plain(question['message'])} ({hint(question)}{needed})")
        lines += [f"    {number}. {one['label']}" for number, one in enumerate(question.get("options", ()), 1)]
    return lines


def read_answers(questions: Sequence[Any], given: Sequence[str]) -> dict[str, Any]:
    """The answers by the ids of their questions. Raises `UsageError` for an answer that fits no question."""
    by_id: Mapping[str, Any] = {question["id"]: question for question in questions}
    left = [question for question in questions if not any(one.startswith(f"{question['id']}=") for one in given)]
    values: dict[str, Any] = {}
    for text in given:
        name, named, value = text.partition("=")
        if named and name in by_id:
            question = by_id[name]
        # A name that no question has is a typing error. Its text must not become the answer to another question.
        elif named and by_id and _NAME.fullmatch(name):
            whole = f"if the text itself is the answer, write {next(iter(by_id))}={text}"
            raise click.UsageError(f"there is no question {name!r}, there are: {', '.join(by_id)}; {whole}")
        elif left:
            question, value = left.pop(0), text
        else:
            raise click.UsageError(f"there is no question for {text!r}: {len(questions)} asked, {len(given)} answered")
        try:
            values[question["id"]] = read_answer(question, value) if value.strip() else question.get("defaultValue")
        except ValueError as error:
            raise click.UsageError(f"{question['id']}: {error}") from error
    return values


@click.command()
@click.argument("session", shell_complete=SESSION)
@host_command
async def cancel(url: str | None, token: str | None, session: str) -> None:
    """Cancel the turns that run in SESSION. Prints the message of each.

    \b
    Example:
      ahpkit cancel 3f2a
    """
    async with connected(url, token) as client, AsyncExitStack() as stack:
        opened = await stack.enter_async_context(await client.session(await find_session(client, session, fits=_runs)))
        running = [await _chat(stack, opened, one["resource"]) for one in opened.chats]
        running = [chat for chat in running if "activeTurn" in chat.confirmed]
        if not running:
            raise click.ClickException(f"no turn runs in {session!r}")
        where = _where(opened.uri, _title(opened, running), session)
        for chat in running:
            asked = chat.confirmed.get("activeTurn", {}).get("message", {}).get("text", "")
            await taken(chat.cancel())
            Output().say(f"cancelled: {shorten(asked, 100)}{where}")


__all__ = ["Item", "answer", "approve", "cancel", "deny", "everything", "inbox", "read_answers"]
