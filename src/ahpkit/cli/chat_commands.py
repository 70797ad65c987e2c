"""The commands of `ahpkit chat`: `:model`, `:set`, `:fork` and others.

They begin with a colon, because lines that begin with a slash are commands of the agent.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Coroutine, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from ahpkit.cli.output import Output, tilde
from ahpkit.cli.session_search import UNTITLED
from ahpkit.cli.show_turn import plan_lines, plan_of
from ahpkit.cli.text import shorten
from ahpkit.client import Chat, Client, Dispatch, Rejected, Session, TurnStream, UnknownSetting
from ahpkit.platform.files import local_path
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.wire.errors import LocalProtocolError

_COMMAND = re.compile(r":([a-z]+)(?:\s+(.*))?", re.DOTALL)

_LONGEST = 60


class Refused(Exception):
    """A command cannot be done. The text says why."""


class OtherChat(NamedTuple):
    """The chat that the screen shows from now on."""

    chat: str
    message: str = ""
    """The text to send first in that chat. If it is empty, nothing is sent."""


class Command(NamedTuple):
    """One command: its argument, what it does in words, and the function that does it."""

    argument: str
    help: str
    run: Callable[[Commands, str], Coroutine[Any, Any, OtherChat | None]]


class Commands:
    """The commands of the chat that is on the screen."""

    def __init__(
        self,
        output: Output,
        client: Client,
        session: Session,
        chat: Chat,
        *,
        ask_again: Callable[[], bool],
        show_turn: Callable[[TurnStream], Coroutine[Any, Any, object]],
    ) -> None:
        """`ask_again()` asks again about decisions that were postponed; False if no turn runs. `show_turn(turn)` shows
        a turn that a command began, until the turn is over."""
        self._output = output
        self._client = client
        self._session = session
        self._chat = chat
        self._ask_again = ask_again
        self._show_turn = show_turn
        self.later: list[str] = []
        """Messages typed here that are not turns yet: they are queued, or steer a running turn that may not take them.
        """

    @staticmethod
    def are_meant(line: str) -> bool:
        """Whether a line is a command and not a message."""
        return _COMMAND.fullmatch(line.strip()) is not None

    def completions(self, text: str) -> list[CompletionItem]:
        """The commands whose names begin with `text`."""
        known = {f":{name}": command for name, command in COMMANDS.items()}
        return [
            {
                "insertText": f"{name} " if command.argument else name,
                "rangeStart": 0,
                "rangeEnd": len(text),
                "attachment": {"type": "simple", "label": name, "_meta": {"description": command.help}},
            }
            for name, command in known.items()
            if name.startswith(text)
        ]

    async def run(self, line: str) -> OtherChat | None:
        """Run the command in a line. Returns another chat if the screen shows that one from now on, else None."""
        found = _COMMAND.fullmatch(line.strip())
        assert found is not None
        name, argument = found[1], (found[2] or "").strip()
        try:
            if name not in COMMANDS:
                close = get_close_matches(name, COMMANDS, n=1)
                meant = f"did you mean :{close[0]}?" if close else ":help lists what there is."
                raise Refused(f"there is no :{name}; {meant} A space in front makes it a message")
            return await COMMANDS[name].run(self, argument)
        except (Refused, UnknownSetting, LocalProtocolError) as refusal:
            self._output.say(f"✗ {refusal}", "red")
            return None

    # The functions of the commands.

    async def help(self, argument: str) -> None:
        for name, command in COMMANDS.items():
            self._say(f"  {f':{name} {command.argument}'.strip():21}  {command.help}")
        self._say("  What begins with a slash goes to the agent; Tab completes both.")

    async def model(self, argument: str) -> None:
        models = self._models()
        if argument:
            self._check_model(argument)
            await self._accepted(self._session.set_model(argument))
            self._say(f"  From now on: {argument}")
            return
        current = self._session.selection.get("model", {}).get("id") or _last_model(self._chat.confirmed, models)
        for model in models:
            mark, use = ("*", "  (in use)") if model["id"] == current else (" ", "")
            self._say(f"{mark} {model['id']:24}  {model['name']}{use}")
        if not models:
            self._say("  The agent names no models.")

    def _models(self) -> list[Any]:
        provider = self._session.state["provider"]
        agents = [agent for agent in self._client.root["agents"] if agent["provider"] == provider]
        return [model for agent in agents for model in agent["models"]]

    def _check_model(self, model: str) -> None:
        known = [one["id"] for one in self._models()]
        if model not in known:
            provider = self._session.state["provider"]
            raise Refused(f"{provider} has no model {model!r}; known: {', '.join(known) or 'none'}")

    async def with_model(self, argument: str) -> None:
        model, _, text = argument.partition(" ")
        if not text.strip():
            raise Refused("say which model and what: :with ID TEXT; :model lists the models")
        self._check_model(model)
        self._must_be_idle()
        await self._show_turn(self._chat.send(text.strip(), model=model))

    async def resume(self, argument: str) -> None:
        self._must_be_idle()
        try:
            turn = self._chat.resume()
        except LookupError:
            raise Refused("there is no turn to continue: the last turn did not fail, or cannot be continued") from None
        await self._show_turn(turn)

    async def dirs(self, argument: str) -> None:
        for number, one in enumerate(self._directories(), 1):
            self._say(f"  {number}. {_place(one)}")

    async def add(self, argument: str) -> None:
        await self._accepted(self._session.add_directory(_directory(argument)))
        await self.dirs("")

    async def remove(self, argument: str) -> None:
        await self._accepted(self._session.remove_directory(_chosen(self._directories(), argument)))
        await self.dirs("")

    def _directories(self) -> list[str]:
        return list(self._session.state.get("workingDirectories", ()))

    async def set(self, argument: str) -> None:
        properties = self._session.settings
        key, _, value = argument.partition(" ")
        if value:
            await self._accepted(self._session.set_config({key: _read(properties.get(key, {}), value.strip())}))
        shown = {name: one for name, one in properties.items() if key in ("", name)}
        if not shown:
            raise Refused(f"there is no setting {key!r}" if key else "the agent has no settings")
        values = self._session.state.get("config", {}).get("values", {})
        for name, one in shown.items():
            for line in _setting_lines(name, one, values.get(name)):
                self._say(line)

    async def steer(self, argument: str) -> None:
        if not argument:
            raise Refused("say what: :steer TEXT")
        if "activeTurn" not in self._chat.confirmed:  # Nothing to steer.
            await self._show_turn(self._chat.send(argument))
            return
        await self._accepted(self._chat.steer(argument))
        self.later.append(argument)

    async def queue(self, argument: str) -> None:
        waiting = self._chat.state.get("queuedMessages", ())
        for number, one in enumerate(waiting, 1):
            self._say(f"  {number}. {shorten(one['message']['text'], _LONGEST)}")
        if not waiting:
            self._say("  Nothing is queued.")

    async def drop(self, argument: str) -> None:
        waiting = self._chat.state.get("queuedMessages", ())
        await self._accepted(self._chat.unqueue(_chosen(waiting, argument or str(len(waiting)))["id"]))

    async def pending(self, argument: str) -> None:
        if not self._ask_again():
            self._say("  Nothing waits for you here. In all sessions:  ahpkit inbox")

    async def plan(self, argument: str) -> None:
        for line in plan_lines(plan_of(self._session.state, self._chat.uri)) or ["  There is no plan."]:
            self._say(line)

    async def fork(self, argument: str) -> OtherChat:
        self._must_be_idle()
        async with await self._session.create_chat(fork=(self._chat.uri, self._last_turn())) as forked:
            return OtherChat(forked.uri)

    async def side(self, argument: str) -> OtherChat:
        if not argument:
            raise Refused("say what to ask in the side chat: :side TEXT")
        self._must_be_idle()
        async with await self._session.create_chat(beside=(self._chat.uri, self._last_turn())) as side:
            return OtherChat(side.uri, argument)

    def _last_turn(self) -> str:
        turns = self._chat.confirmed["turns"]
        if not turns:
            raise Refused("there is no turn to go on from yet")
        return turns[-1]["id"]

    async def chats(self, argument: str) -> None:
        for number, one in enumerate(self._session.chats, 1):
            here = "*" if one["resource"] == self._chat.uri else " "
            note = "  (read-only)" if is_read_only(one) else ""
            self._say(f"{here} {number}. {shorten(chat_title(one, number), _LONGEST)}{note}".rstrip())

    async def chat(self, argument: str) -> OtherChat:
        self._must_be_idle()
        return OtherChat(_chosen(self._session.chats, argument)["resource"])

    async def quit(self, argument: str) -> None:
        raise Refused(
            ":quit takes no argument; type it alone to leave"
            # `:quit` without an argument ends the conversation, which this module does not do.
        )

    def _must_be_idle(self) -> None:
        if "activeTurn" in self._chat.confirmed:
            raise Refused("a turn is running here: wait for its end, or cancel it with Ctrl-C")

    async def _accepted(self, dispatch: Dispatch) -> None:
        if isinstance(outcome := await dispatch, Rejected):
            raise Refused(outcome.reason)

    def _say(self, text: str) -> None:
        self._output.say(text, "dim")


def _directory(name: str) -> str:
    """The URI of a directory, given as a person types it."""
    path = Path(os.path.abspath(os.path.expanduser(name)))
    if not name:
        raise Refused("say which directory: :add DIR")
    if not path.is_dir():
        raise Refused(f"there is no directory {name}")
    return path.as_uri()


def _place(uri: str) -> str:
    path = local_path(uri)
    return uri if path is None else tilde(path)


def _chosen(items: Sequence[Any], number: str) -> Any:
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= len(items)):
        if len(items) < 2:
            raise Refused("there is only number 1" if items else "there is nothing to choose from")
        raise Refused(f"give a number from 1 to {len(items)}")
    return items[int(number) - 1]


def _read(schema: Any, value: str) -> Any:
    """The typed value as the type that the setting's schema asks for. The host checks whether the value is allowed."""
    if schema.get("type", "string") == "string":
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _written(value: Any) -> str:
    return value if isinstance(value, str) else "?" if value is None else json.dumps(value)


def _setting_lines(name: str, schema: Any, value: Any) -> list[str]:
    """The lines that show a setting: its value, what it is for, and the allowed values with a mark at the present
    one."""
    title = schema.get("title")
    about = ": ".join(filter(None, [title if title and title != name else "", schema.get("description", "")]))
    present = value if value is not None else schema.get("default")
    lines = [f"  {name} = {_written(present) if present is not None else '(not set)'}"]
    lines += [f"      {shorten(about, 100)}"] if about else []
    names: Any = schema.get("enumLabels") or schema.get("enumDescriptions") or []
    for number, allowed in enumerate(schema.get("enum", ())):
        label = f"  {shorten(str(names[number]), _LONGEST)}" if number < len(names) else ""
        lines.append(f"    {'*' if allowed == present else ' '} {_written(allowed)}{label}")
    return lines


def _last_model(chat: Any, models: Sequence[Any]) -> str | None:
    """The model of the last answer. Before the first answer it is the agent's first model, which the agent uses by
    default."""
    for turn in reversed(chat["turns"]):
        used = turn.get("usage", {}).get("model") or turn["message"].get("model", {}).get("id")
        if used:
            return used
    return models[0]["id"] if models else None


def chat_title(summary: Any, number: int, *, first: str = "") -> str:
    """The name of a chat: its title, else the beginning of its first message, else its number."""
    title = summary["title"].strip()
    return shorten(first, _LONGEST) or f"Chat {number}" if title in ("", UNTITLED) else title


def is_read_only(summary: Any) -> bool:
    """Whether the person cannot write in a chat, because it belongs to a sub-agent."""
    return summary.get("interactivity") in ("read-only", "hidden")


COMMANDS: dict[str, Command] = {
    "help": Command("", "what can be typed here", Commands.help),
    "model": Command("[ID]", "list the models, or use another from now on", Commands.model),
    "with": Command("ID TEXT", "send one message to another model", Commands.with_model),
    "set": Command("[NAME [VALUE]]", "show the agent's settings, or change one", Commands.set),
    "steer": Command("TEXT", "tell the running turn something now", Commands.steer),
    "queue": Command("", "what waits for the end of the turn", Commands.queue),
    "drop": Command("[N]", "take a queued message back: number N, or the last", Commands.drop),
    "resume": Command("", "go on with a turn that failed", Commands.resume),
    "pending": Command("", "ask again about what was postponed", Commands.pending),
    "plan": Command("", "the agent's plan", Commands.plan),
    "fork": Command("", "go on from here in another chat; this one stays", Commands.fork),
    "side": Command("TEXT", "ask in a side chat that knows this one", Commands.side),
    "chats": Command("", "the session's chats", Commands.chats),
    "chat": Command("N", "go on in another chat", Commands.chat),
    "dirs": Command("", "the directories in which the agent works", Commands.dirs),
    "add": Command("DIR", "let the agent work in one more directory", Commands.add),
    "remove": Command("N", "take a directory away again", Commands.remove),
    "quit": Command("", "leave, as Ctrl-D does; the session stays", Commands.quit),
}

__all__ = ["COMMANDS", "Command", "Commands", "OtherChat", "Refused", "chat_title", "is_read_only"]
