"""Selects the rules, skills, agents and servers that a turn gets from the enabled customizations.

Pure. Disabled customizations are not offered, and the model does not see those that it may not invoke. Completes `/`,
`@` and `#` with the customizations that a user may invoke.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ahpkit.customizations.details import Detail, ServerDetail, TextDetail
from ahpkit.customizations.expand import expand
from ahpkit.customizations.globs import Paths, is_universal
from ahpkit.customizations.mcp_files import Surroundings, filled_in, launch_config
from ahpkit.host.agent import McpServerOffer, SkillOffer, TurnContext
from ahpkit.host.trust import Standing
from ahpkit.host.turns.completions import TypedWord, word_at
from ahpkit.platform.files import local_path
from ahpkit.protocol.chat.commands import CompletionItem
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.enablement import Customizations, PlacedCustomization, walk

META_KEY = "ahpkit/customization"
"""In an attachment's `_meta`: the customization a completion stands for."""

_WORD = re.compile(r"[\w.@~+/-]+")
_MARK = 8
_ENDING = re.compile(r"\w\.[A-Za-z]\w{0,9}$")

_PATH_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Text:
    """An agent, skill, prompt or rule with its container and its text."""

    placed: PlacedCustomization
    detail: TextDetail

    @property
    def entry(self) -> JsonObject:
        return self.placed.entry


@dataclass(frozen=True, slots=True)
class InForce:
    """The customizations of one session, and their places."""

    customizations: Customizations
    details: Mapping[str, Detail]
    roots: Mapping[str, str]
    """Container id → its folder on this machine."""
    workspace: str | None = None
    standings: Mapping[str, Standing] | None = None
    """The ids of the hooks and servers that may run (found by `judged`); None: all may."""

    def enabled(self, type: str) -> Iterator[tuple[PlacedCustomization, Detail]]:
        """The enabled customizations of one type, in order of precedence."""
        for placed in walk(self.customizations):
            detail = self.details.get(placed.entry["id"])
            if placed.entry["type"] == type and detail is not None and placed.effective.enabled:
                yield placed, detail

    def texts(self, *types: str) -> Iterator[Text]:
        for type in types:
            for placed, detail in self.enabled(type):
                if isinstance(detail, TextDetail):
                    yield Text(placed, detail)

    def called(self, token: str, *types: str) -> Text | None:
        """The customization that a user names with `token`: the first with this name that the user may invoke. Full
        names are compared before short ones."""
        texts = [text for text in self.texts(*types) if text.placed.effective.user_invocable]
        full = (text for text in texts if text.detail.tokens[:1] == (token,))
        short = (text for text in texts if token in text.detail.tokens)
        return next(full, None) or next(short, None)

    def why_not(self, token: str, *types: str) -> str | None:
        """Why a user cannot call the customization with this name; None if there is none, or it can be called."""
        of_type = [placed for placed in walk(self.customizations) if placed.entry["type"] in types]
        if any(placed.effective.user_invocable and placed.entry.get("name") == token for placed in of_type):
            return None
        for placed in of_type:
            detail = self.details.get(placed.entry["id"])
            if isinstance(detail, TextDetail) and token in detail.tokens and not placed.effective.user_invocable:
                return placed.refusal(f"`{detail.name}`")
        return None

    def root_of(self, placed: PlacedCustomization) -> str | None:
        """Where the container of a customization is on this machine."""
        return None if placed.container is None else self.roots.get(placed.container["id"])

    def may_run(self, placed: PlacedCustomization) -> bool:
        """Whether a hook or a server may run: the host's owner trusts exactly this content, or consented to it."""
        return self.standings is None or self.standings.get(placed.entry["id"]) == "trusted"

    def variables(self, text: Text) -> dict[str, str]:
        """The values of `${…}` in a text: folders, and nothing from the environment."""
        values = {"CLAUDE_SKILL_DIR": _path(text.detail.folder)}
        root = self.root_of(text.placed)
        if root is not None:
            values |= {"CLAUDE_PLUGIN_ROOT": root, "PLUGIN_ROOT": root}
        if self.workspace is not None:
            values |= {"CLAUDE_PROJECT_DIR": self.workspace, "workspaceFolder": self.workspace}
        return values

    def plain(self, text: Text) -> str:
        """The body of a text that takes no arguments."""
        return expand(text.detail, "", self.variables(text))


def fill_context(
    context: TurnContext,
    in_force: InForce,
    message: Message,
    *,
    agent_uri: str | None,
    environment: Mapping[str, str],
) -> None:
    """Add the enabled customizations to a turn."""
    context.system_prompt = system_prompt(in_force, agent_uri) or context.system_prompt
    applying, others = rules_for(in_force, message)
    context.rules += applying
    context.other_rules += others
    context.skills += _for_model(in_force, "skill")
    context.agents += _for_model(in_force, "agent")
    context.mcp_servers += servers(in_force, environment)


def system_prompt(in_force: InForce, agent_uri: str | None) -> str | None:
    """The body of the selected custom agent."""
    for text in in_force.texts("agent"):
        if agent_uri is not None and text.entry["uri"] == agent_uri and text.placed.effective.user_invocable:
            return in_force.plain(text)
    return None


def rules_for(in_force: InForce, message: Message) -> tuple[list[str], list[str]]:
    """Bodies of the rules for this message, and of all other rules.

    A rule is for this message if it is always on, matches a file that the message mentions, or is named with `#name`.
    """
    paths = Paths(mentioned_paths(message, in_force.workspace))
    asked = _mentioned(message, "#")
    applying: list[str] = []
    others: list[str] = []
    for text in in_force.texts("rule"):
        named = text.entry["uri"] in asked or not asked.isdisjoint(text.detail.tokens)
        (applying if named or _applies(text.entry, paths) else others).append(in_force.plain(text))
    return applying, others


def _applies(rule: JsonObject, paths: Paths) -> bool:
    """Whether a rule applies: by `alwaysApply` without globs, or by a glob that matches. If it has both, the globs
    decide."""
    globs: list[str] = rule.get("globs") or []
    if not globs:
        return rule.get("alwaysApply") is True
    return any(map(is_universal, globs)) or paths.match(globs)


def mentioned_paths(message: Message, workspace: str | None) -> list[str]:
    """The files that a message names or attaches. Files in the workspace are relative to it."""
    named = [word for match in _WORD.finditer(message["text"]) if _is_path(word := match[0].rstrip("."))]
    attached = [str(item["uri"]) for item in _attachments(message) if item.get("uri")]
    paths = [_path(uri) for uri in attached if uri.startswith("file:")] + named
    prefix = f"{workspace.rstrip('/')}/" if workspace else ""
    return [path.removeprefix(prefix).removeprefix("./").lstrip("/") for path in paths[:_PATH_LIMIT]]


def _is_path(word: str) -> bool:
    """Whether a word is a path: it has a slash or a file ending. Reads each character once, because people paste
    megabytes without a space."""
    return "/" in word.rstrip("/") or _ENDING.search(word[-12:]) is not None


def _mentioned(message: Message, mark: str) -> set[str]:
    """Names behind a mark in the text, and URIs of customizations that completions attached."""
    found = {match[1].rstrip(".,;:!?") for match in re.finditer(rf"(?:^|\s){mark}([\w.:-]+)", message["text"])}
    for item in _attachments(message):
        meta = cast("JsonObject", item.get("_meta") or {}).get(META_KEY)
        if isinstance(meta, dict):
            found.add(str(cast("JsonObject", meta).get("uri")))
    return found


def servers(in_force: InForce, environment: Mapping[str, str]) -> list[McpServerOffer]:
    """Enabled servers that can and may be started.

    Servers of clients get no variables of the environment, because the owner consented to the server, not to the
    client. Names are unique: the server of a plugin gets the plugin's name if its own name is in use.
    """
    offers: dict[str, McpServerOffer] = {}
    for placed, detail in in_force.enabled("mcpServer"):
        if not isinstance(detail, ServerDetail) or detail.problem or not in_force.may_run(placed):
            continue
        name = placed.entry["name"]
        plugin = placed.container if placed.container is not None and placed.container["type"] == "plugin" else None
        if name in offers and plugin is not None:
            name = f"{plugin['name']}-{name}"
        own = placed.container is None
        shared = own and detail.config.get("shared") is True
        around = Surroundings(
            plugin_root=None if plugin is None else in_force.root_of(placed),
            workspace=None if shared else in_force.workspace,
            environment={} if "clientId" in (placed.container or {}) else environment,
            start=environment.get("HOME") if own else None,
        )
        offer = McpServerOffer(
            placed.entry["id"],
            name,
            launch_config(detail, around),
            origin=_origin(placed, detail),
            shared=shared,
            direct=own and detail.config.get("direct") is True,
            filled=filled_in(detail, around),
        )
        offers.setdefault(name, offer)
    return list(offers.values())


def _origin(placed: PlacedCustomization, detail: ServerDetail) -> str:
    """A stable and unique name of a server: its name as people see it, where it is declared, and a mark if the
    declaration writes the name in another way (with invisible characters, for example)."""
    if detail.consented:
        return detail.name
    container, shown = placed.container, placed.entry["name"]
    where = container["uri"] if container is not None and container["type"] == "plugin" else placed.entry["uri"]
    mark = "" if shown == detail.name else f"#{hashlib.sha256(detail.name.encode()).hexdigest()[:_MARK]}"
    return f"{shown}@{where}{mark}"


def _for_model(in_force: InForce, type: str) -> list[SkillOffer]:
    """The customizations that the model may invoke; of several with one name only the first."""
    offers: dict[str, SkillOffer] = {}
    for text in in_force.texts(type):
        if text.placed.effective.model_invocable:
            detail = text.detail
            offer = SkillOffer(detail.name, detail.description, text.entry["uri"], detail.body)
            offers.setdefault(detail.name, offer)
    return list(offers.values())


def _attachments(message: Message) -> Sequence[Mapping[str, Any]]:
    return message.get("attachments") or ()


def _path(uri: str) -> str:
    path = local_path(uri)
    return uri if path is None else str(path)


TRIGGERS = {"/": ("skill", "prompt"), "@": ("agent",), "#": ("rule",)}
"""The types of customizations that each character completes."""


def complete(in_force: InForce, text: str, offset: int) -> list[CompletionItem]:
    """Items for the word at `offset` (UTF-16 units). Commands are offered only at the beginning of a message."""
    word = word_at(text, offset)
    mark, typed = word.typed[:1], word.typed[1:]
    if mark not in TRIGGERS or (mark == "/" and word.before.strip()):
        return []
    usable = [text for text in in_force.texts(*TRIGGERS[mark]) if text.placed.effective.user_invocable]
    fits = [(fit, text) for text in usable if (fit := _fit(text.detail.tokens, typed.lower())) is not None]
    items: dict[str, CompletionItem] = {}
    for _, found in sorted(fits, key=lambda pair: pair[0]):
        item = _item(found, mark, word, typed.lower())
        items.setdefault(item["insertText"], item)
    return list(items.values())


def _item(text: Text, mark: str, word: TypedWord, typed: str) -> CompletionItem:
    """The completion item for a customization: the first of its names that continues the typed text."""
    detail = text.detail
    token = next((token for token in detail.tokens if typed in token.lower()), detail.tokens[0])
    meta = {"type": detail.type, "uri": text.entry["uri"]}
    return {
        "insertText": f"{mark}{token} ",
        "rangeStart": word.start,
        "rangeEnd": word.end,
        "attachment": {
            "type": "simple",
            "label": detail.name,
            "displayKind": detail.type,
            "_meta": {"description": detail.description, META_KEY: meta},
        },
    }


def _fit(tokens: tuple[str, ...], typed: str) -> int | None:
    """How well the typed part fits: 0: a name begins with it; 1: a word in a name does; 2: a name contains it; None: no
    fit."""
    fits = [2 for token in tokens if typed in token.lower()]
    fits += [1 for token in tokens for part in re.split(r"[:._-]", token.lower()) if part.startswith(typed)]
    fits += [0 for token in tokens if token.lower().startswith(typed)]
    return min(fits, default=None)


__all__ = [
    "META_KEY",
    "InForce",
    "Text",
    "complete",
    "fill_context",
    "mentioned_paths",
    "rules_for",
    "servers",
    "system_prompt",
]
