"""`ahpkit tail`: follow any channel, for people or as JSON lines. For people, each action is one line of words.

The most frequent actions are described in specific words. For all others, also those of extensions and of later
versions, the line lists their members: things by their names or titles, and by their ids only when they have neither.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from typing import Any, cast

import click

from ahpkit.cli.connection import connected, find_session, host_command, tell_connection
from ahpkit.cli.output import Output
from ahpkit.cli.session_search import picker, status_word
from ahpkit.cli.shell_completion import SESSION
from ahpkit.cli.show_turn import describe_usage
from ahpkit.cli.side_work import TERMINAL, as_shown, has_pty, printed
from ahpkit.cli.text import plain, shorten
from ahpkit.cli.watching import unread
from ahpkit.client import Client, LaggedError, LogRecord, MetricPoint, Span, Subscription, TelemetryEvent
from ahpkit.client.telemetry import events_of
from ahpkit.protocol.channels import channel_of
from ahpkit.protocol.errors import AhpError
from ahpkit.wire.codec import encode
from ahpkit.wire.tasks import Tasks, wait_first

_LONGEST = 160
"""Characters of an action, and of each text in it, that people are shown."""

_SHOWN = 3
"""The number of things in a list that are named."""

_MOST = 6
"""The number of members of a thing that are shown."""

_DEEPEST = 4
"""Levels of nested things that are shown."""

_NAMES = (
    *("title", "displayName", "label", "name", "message", "text", "markdown", "content"),
    *("request", "toolCall", "resource", "uri"),
)
"""Members that stand for the whole thing. The first one that has a text is shown."""

_ASIDE = frozenset(
    {"id", "turnId", "partId", "toolCallId", "requestId", "questionId", "instanceId", "queuedMessageId", "nonce"}
    | {"createdAt", "modifiedAt", "startedAt", "timestamp"}
)
"""Members that are shown only if there is nothing else: ids and times."""


def in_words(action: Any) -> str:
    """The content of an action in words; empty if the type of the action says everything."""
    match action:
        case {"type": "chat/turnStarted", "message": {"text": str(text)}}:
            return f"> {shorten(text, _LONGEST)}"
        case {"type": "chat/delta" | "chat/reasoning" | "chat/toolCallDelta", "content": str(text)}:
            return shorten(text, _LONGEST) or "(an empty line)"
        case {"type": "chat/responsePart", "part": {"kind": "markdown" | "reasoning" as kind, "content": str(text)}}:
            return shorten(text, _LONGEST) or {"markdown": "(text)", "reasoning": "(thoughts)"}[kind]
        case {"type": "chat/toolCallStart", "displayName": str(name)}:
            return name
        case {"type": "chat/toolCallReady"}:
            given: Any = action.get("toolInput")
            return _in_words(given if given else plain(action.get("invocationMessage")), 0)
        case {"type": "chat/toolCallConfirmed" | "chat/toolCallResultConfirmed", "approved": bool(approved)}:
            return "approved" if approved else action.get("reason", "denied")
        case {"type": "chat/toolCallComplete", "result": {"success": bool(success)}}:
            return "done" if success else "failed"
        case {"type": "chat/usage", "usage": {**usage}}:
            return describe_usage(usage)
        case {"type": "chat/error", "part": {"error": {"message": str(text)}}}:
            return shorten(text, _LONGEST)
        case {"type": "chat/turnComplete" | "chat/turnCancelled", "duration": int() | float() as milliseconds}:
            return f"after {milliseconds / 1000:.1f} s"
        case _:
            return _members({key: value for key, value in action.items() if key not in ("type", "_meta")}, 0)


def _members(thing: Mapping[str, Any], depth: int) -> str:
    """The members of a thing in words. If the action has only one member, the name of that member is left out."""
    kept = {key: value for key, value in thing.items() if key not in _ASIDE and key != "_meta"} or thing
    members = [(_spaced(key), _member(key, value, depth + 1)) for key, value in islice(kept.items(), _MOST)]
    if len(members) == 1 and depth == 0:
        return members[0][1]
    return ", ".join(f"{key}{' ' if depth else ': '}{value}" for key, value in members)


def _member(key: str, value: Any, depth: int) -> str:
    match key, value:
        case "status", int():
            return status_word({"status": value})
        case "changes", {**changes} if changes:  # A new name is one change of several.
            return _members(changes, depth)
        case _:
            return _in_words(value, depth)


def _in_words(value: Any, depth: int) -> str:
    if depth > _DEEPEST:
        return "…"
    match value:
        case None:
            return "nothing"
        case bool():
            return "yes" if value else "no"
        case str():
            return shorten(value, _LONGEST) or "nothing"
        case [*things]:
            return _listed(things, depth)
        case {}:
            return next(_names(value, depth), None) or _members(value, depth) or "nothing"
        case _:
            return str(value)


def _names(thing: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The texts that may name a thing, the best one first."""
    for key in _NAMES:
        found: Any = thing.get(key)
        if found and isinstance(found, str | dict):
            yield _in_words(cast("Any", found), depth + 1)


def _listed(things: list[Any], depth: int) -> str:
    more = f" and {len(things) - _SHOWN} more" if len(things) > _SHOWN else ""
    return ", ".join(_in_words(one, depth + 1) for one in things[:_SHOWN]) + more or "nothing"


def _spaced(key: str) -> str:
    """A key of JSON with spaces between its words: `canvasId` becomes `canvas id`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()


_MOMENT = 0.02
"""Seconds to wait for other channels, so that what happened at the same time is written in order."""


@click.command()
@click.argument("uri", shell_complete=SESSION)
@click.option("--json", "json_lines", is_flag=True, help="Print the snapshot and every envelope as a line of JSON.")
@host_command
async def tail(url: str | None, token: str | None, uri: str, json_lines: bool) -> None:
    """Print what happens on a channel until Ctrl-C.

    URI is any channel. The id or title of a session stands for the session and all its chats. For a terminal its output
    is printed, for a telemetry channel the host's log, spans or metrics.

    \b
    Example:
      ahpkit tail ahp-root://
      ahpkit tail hello
      ahpkit tail 3f2a --json | jq .action.type
      ahpkit tail ahp-otlp:/logs/warn
    """
    async with connected(url, token, lasting=True) as client:
        output = _Output()
        tell_connection(client, output)
        following = _Following(client, output, json_lines=json_lines)
        named = channel_of(uri) is not None
        channels = [uri] if named else await _channels_of(client, await find_session(client, uri, picker()))
        await wait_first(unwritten=output.unwritten(), following=following.run(*channels), unread=unread())


async def _channels_of(client: Client, session: str) -> list[str]:
    async with await client.session(session) as opened:
        return [session, *(chat["resource"] for chat in opened.chats)]


class _Output(Output):
    """The output of several tasks and of the client's callbacks. The first error while writing is kept for the
    command."""

    def __init__(self) -> None:
        super().__init__()
        self._failed = asyncio.get_running_loop().create_future()

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        with self._keeping():
            super().say(text, style, error=error)

    def stream(self, text: str, style: str = "") -> None:
        with self._keeping():
            super().stream(text, style)

    @contextmanager
    def _keeping(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            if not self._failed.done():
                self._failed.set_exception(error)

    async def unwritten(self) -> None:
        """Raises if something could not be written, because the reader is gone or the disk is full."""
        await self._failed


class _Following:
    """Some channels that are followed, and the chats that are added to them."""

    def __init__(self, client: Client, output: Output, *, json_lines: bool) -> None:
        self._client = client
        self._output = output
        self._json_lines = json_lines
        self._tasks = Tasks()
        self._with_chats = False
        self._collected: list[tuple[int, Any]] = []
        """Lines that wait to be written, with their numbers. Each channel is read by itself, so they may come out of
        order."""
        self._plain: set[str] = set()
        """The URIs of terminals without a pty."""
        self._new = asyncio.Event()

    async def run(self, channel: str, *chats: str) -> None:
        """Follow a channel until it is gone. With chats, also follow those that are added to the session."""
        self._with_chats = bool(chats)
        async with self._tasks:
            self._tasks.spawn(self._write(), name="write what happened")
            for chat in chats:
                self._tasks.spawn(self._follow_chat(chat), name=f"follow {chat}")
            try:
                await self._follow(channel)
            finally:
                self._flush()

    async def _follow_chat(self, chat: str) -> None:
        try:
            await self._follow(chat)
        except AhpError as error:
            self._output.say(f"! {error}", "yellow", error=True)

    async def _follow(self, channel: str) -> None:
        async with self._client.subscribe(channel) as subscription, self._reports(channel):
            self._show_state(subscription)
            while True:
                try:
                    envelope = await anext(subscription)
                except LaggedError as lagged:
                    self._output.say(f"! {lagged}", "yellow", error=True)
                    self._show_state(subscription)
                    continue
                action: Any = envelope["action"]
                self._collected.append((envelope["serverSeq"], envelope))
                self._new.set()
                if self._with_chats and action["type"] == "session/chatAdded":
                    chat: str = action["summary"]["resource"]
                    self._tasks.spawn(self._follow_chat(chat), name=f"follow {chat}")

    @asynccontextmanager
    async def _reports(self, channel: str) -> AsyncGenerator[None]:
        """Show the reports of a telemetry channel, which has no actions."""

        def show(method: str, params: Any) -> None:
            if params.get("channel") == channel and self._json_lines:
                self._output.say(encode(params).decode())
            elif params.get("channel") == channel:
                for event in events_of(method, params):
                    self._output.say(_reported(event))

        stop = self._client.on_notification(show)
        try:
            yield
        finally:
            stop()

    async def _write(self) -> None:
        """Write what happened, in order. A moment after the first action all earlier actions have arrived."""
        while True:
            await self._new.wait()
            await asyncio.sleep(_MOMENT)
            self._new.clear()
            self._flush()

    def _flush(self) -> None:
        for _, envelope in sorted(self._collected, key=lambda entry: entry[0]):
            action: Any = envelope["action"]
            if self._json_lines:
                self._output.say(encode(envelope).decode())
            elif action["type"] == "terminal/data":
                is_pty = envelope["channel"] not in self._plain
                self._output.stream(as_shown(action["data"], is_pty=is_pty))
            else:
                self._output.say(describe(envelope))
        self._collected.clear()

    def _show_state(self, subscription: Subscription) -> None:
        self._flush()  # Earlier actions are written first.
        if self._json_lines:
            self._output.say(encode({"resource": subscription.uri, "state": subscription.confirmed}).decode())
        else:
            self._output.say(f"following {subscription.uri}", "dim", error=True)
            if subscription.uri.startswith(TERMINAL):
                if not has_pty(subscription.confirmed):
                    self._plain.add(subscription.uri)
                self._output.stream(printed(subscription.confirmed))


def _reported(event: TelemetryEvent) -> str:
    """One line for a log record, a span or a value of a metric."""
    about = "".join(f"  {key}={json.dumps(value, ensure_ascii=False)}" for key, value in event.attributes.items())
    match event:
        case LogRecord():
            return (
                f"{event.time.astimezone():%H:%M:%S}  {event.level or 'log':<5}  {shorten(event.text, _LONGEST)}{about}"
            )
        case Span():
            failed = "  failed" if event.failed else ""
            return f"{event.start.astimezone():%H:%M:%S}  {event.name}  {event.seconds * 1000:.0f} ms{failed}{about}"
        case MetricPoint():
            of = "" if event.count is None else f" in {event.count}"
            return f"{event.time.astimezone():%H:%M:%S}  {event.name}  {event.value} {event.unit}{of}{about}"


def describe(envelope: Any) -> str:
    """One line for an action: its number, its type, its content and its sender."""
    carried = shorten(in_words(envelope["action"]), _LONGEST)
    sender = f"  by {envelope['origin']['clientId']}" if "origin" in envelope else ""
    refused = f"  refused: {envelope['rejectionReason']}" if "rejectionReason" in envelope else ""
    return f"{envelope['serverSeq']:>8}  {envelope['action']['type']}  {carried}{sender}{refused}".rstrip()


__all__ = ["describe", "in_words", "tail"]
