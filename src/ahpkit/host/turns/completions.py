"""Computes completions for the text in an editor, and keeps the slash commands of agents in completions and in state.

Offsets on the wire count UTF-16 code units; Python counts characters. All conversions are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ahpkit.host.agent import AgentError, Chat, Command, TurnContext
from ahpkit.host.feature import Feature, Services
from ahpkit.host.registration import Registration
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.session.actions import session_customization_updated
from ahpkit.protocol.session.customizations import ChildCustomization, PluginCustomization
from ahpkit.protocol.session.enablement import PlacedCustomization, find, walk
from ahpkit.protocol.session.state import SessionState

_UNIT = 2
"""Bytes of one UTF-16 code unit."""


@dataclass(frozen=True, slots=True)
class TypedWord:
    """The word that is being typed, without white space; `start` and `end` are UTF-16 offsets into the text."""

    before: str
    """The text in front of the word."""
    typed: str
    """The word up to the cursor."""
    start: int
    end: int


def utf16_length(text: str) -> int:
    """Length of `text` in UTF-16 code units."""
    return len(_encoded(text)) // _UNIT


def word_at(text: str, offset: int) -> TypedWord:
    """The word around the cursor; it may be empty."""
    data = _encoded(text)
    left, right = _decoded(data[: offset * _UNIT]), _decoded(data[offset * _UNIT :])
    typed = left.rsplit(maxsplit=1)[-1] if left and not left[-1].isspace() else ""
    rest = right.split(maxsplit=1)[0] if right and not right[0].isspace() else ""
    return TypedWord(left.removesuffix(typed), typed, offset - utf16_length(typed), offset + utf16_length(rest))


def slash_items(commands: Iterable[tuple[str, str]], text: str, offset: int) -> list[CompletionItem]:
    """Completions for a slash command at the beginning of a message.

    `commands` are pairs of name and description. Commands that contain the typed text are offered; those that begin
    with it come first, otherwise the order is kept.
    """
    word = word_at(text, offset)
    if word.before.strip() or not word.typed.startswith("/"):
        return []
    wanted = word.typed[1:].casefold()
    found = [(name, about) for name, about in commands if wanted in name.casefold()]
    found.sort(key=lambda command: not command[0].casefold().startswith(wanted))
    return [_item(word, f"/{name}", about) for name, about in found]


def best_first(items: Iterable[CompletionItem], text: str, offset: int) -> list[CompletionItem]:
    """Sort the items of several sources: those that begin with the typed text come first, otherwise the order is
    kept."""
    typed = word_at(text, offset).typed.casefold()
    return sorted(items, key=lambda item: not item["insertText"].casefold().startswith(typed))


def _item(word: TypedWord, label: str, description: str) -> CompletionItem:
    return {
        "insertText": f"{label} ",
        "rangeStart": word.start,
        "rangeEnd": word.end,
        "attachment": {"type": "simple", "label": label, "_meta": {"description": description}},
    }


def _encoded(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-16-le", "surrogatepass")


PLUGIN = "agent-commands"
"""Id of the plugin that stands for an agent's own commands."""

REPORTED = "ahpkit/reported"
"""Key in `_meta` of a child: whether the agent's last report says that it is on."""


_Shown = Mapping[str, Any]
"""A customization in a session's state, or None."""


class AgentCommands(Feature):
    """The commands that the agent of a session announced. They and their plugin can be switched off like any
    customization."""

    name = "agent-commands"

    def register(self, host: Registration, services: Services) -> None:
        self._services = services
        host.completions.add(self._complete)
        host.turns.prepare.add(self._prepare_turn)

    def set_commands(self, session_uri: str, commands: Sequence[Command]) -> None:
        """Replace the commands of a session. The state shows them as the children of one plugin."""
        shown = find(self._services.session(session_uri), PLUGIN)
        plugin = _plugin(session_uri, commands, {} if shown is None else shown.entry)
        self._services.dispatch(session_uri, session_customization_updated(customization=plugin))

    async def _complete(self, chat_uri: str, text: str, offset: int) -> Sequence[CompletionItem]:
        session = self._services.session(self._services.session_of(chat_uri))
        usable = [placed.entry for placed in _commands(session) if placed.effective.user_invocable]
        return slash_items([(entry["name"], entry.get("description", "")) for entry in usable], text, offset)

    async def _prepare_turn(self, chat: Chat, message: Message, prompt: str, context: TurnContext) -> str:
        """Refuse a message with a command that users may not invoke (it is switched off, for example), because the
        agent itself would still run it."""
        words = prompt.split(maxsplit=1)
        called = words[0][1:] if words and words[0].startswith("/") else ""
        session = self._services.session(chat.session_uri)
        off = {placed.entry["name"]: placed for placed in _commands(session) if not placed.effective.user_invocable}
        others = {placed.entry.get("name") for placed in walk(session) if placed.effective.user_invocable}
        if called in off and called not in others:
            raise AgentError(off[called].refusal(f"`/{called}`"), error_type="host/off")
        return prompt


def _commands(session: SessionState | None) -> Iterator[PlacedCustomization]:
    return (placed for placed in walk(session) if (placed.container or {}).get("id") == PLUGIN)


def _plugin(session_uri: str, commands: Sequence[Command], shown: _Shown) -> PluginCustomization:
    """The plugin with its children. Switches that people have set are kept."""
    known: dict[str, _Shown] = {child["id"]: child for child in shown.get("children", ())}
    uri = f"{session_uri}/agent-commands"
    plugin: PluginCustomization = {
        "type": "plugin",
        "id": PLUGIN,
        "uri": uri,
        "name": "Agent commands",
        "load": {"kind": "loaded"},
        "children": [_child(uri, command, known.get(_id(command), {})) for command in commands],
    }
    return cast("PluginCustomization", {**plugin, **_switches(shown)})


def _id(command: Command) -> str:
    return f"agent-command:{command.name}"


def _child(uri: str, command: Command, known: _Shown) -> ChildCustomization:
    """The child for one command, as the agent reports it. If a person has switched it, this holds until the agent
    reports a change."""
    child: dict[str, object] = {
        "type": _type(command),
        "id": _id(command),
        "uri": f"{uri}/{command.name}",
        "name": command.name,
        "description": command.description,
        **_switches(known),
    }
    if command.enabled is not None:
        if command.enabled != known.get("_meta", {}).get(REPORTED):
            child["enabled"] = command.enabled
        child["_meta"] = {REPORTED: command.enabled}
    if command.user_invocable is False:
        child["disableUserInvocation"] = True
    return cast("ChildCustomization", child)


def _type(command: Command) -> str:
    """The type of the entry, chosen so that it has the flags for who may invoke it."""
    return "skill" if command.kind == "prompt" and command.user_invocable is not None else command.kind


def _switches(entry: _Shown) -> _Shown:
    return {key: entry[key] for key in ("enabled", "enablement") if key in entry}


__all__ = ["PLUGIN", "AgentCommands", "TypedWord", "best_first", "slash_items", "utf16_length", "word_at"]
