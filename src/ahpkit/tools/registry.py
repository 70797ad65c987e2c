"""One flat list of tools for the model: the agent's own, the host's, those of MCP servers and of clients. Pure.

Every name is accepted by models, is unique, and stays with its tool as long as the session lives:

* the agent's own and the host's tools keep their names;
* a server's tool is `<server>_<tool>`;
* a client's tool keeps its name unless another tool has it: then it is `client_<name>`, and so on;
* `find_tool` and `call_tool` belong to the host.

A server may change its tools all the time, so only the last ones that have gone keep their names.

On the wire a client's tool keeps its own name. A tool that several clients offer is shown once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.state import ToolDefinition

OwnerKind = Literal["agent", "host", "mcp", "client"]

MAX_NAME = 50
"""Characters of a name. Models accept 64, and agents put a prefix such as `mcp__ahp__` before it."""

_ORDER: tuple[OwnerKind, ...] = ("agent", "host", "mcp", "client")
"""The order in which owners get a name that several of them want."""
_MAX_PAST = 1_000
"""The number of removed tools that are remembered."""
_MAX_NAMES = 10_000
"""The number of names that are reserved for removed tools."""
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_SUFFIX = 6


@dataclass(frozen=True, slots=True)
class Owner:
    """Who runs a tool. `id` is the provider, the server's customization id or the client's id."""

    kind: OwnerKind
    id: str = ""
    title: str = ""
    """The name of the server or client, for people and for tool names."""
    origin: str = ""
    """A stable and unique name of the server."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.id


class ToolHints(NamedTuple):
    """What a tool says about itself, as in MCP. It is not reliable: a tool that says nothing may do anything."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


def tool_hints(definition: Mapping[str, Any]) -> ToolHints:
    """The annotations of a tool. An absent one has the least harmless value."""
    hints: Mapping[str, Any] = definition.get("annotations") or {}
    return ToolHints(
        read_only=hints.get("readOnlyHint", False),
        destructive=hints.get("destructiveHint", True),
        idempotent=hints.get("idempotentHint", False),
        open_world=hints.get("openWorldHint", True),
    )


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the model sees it."""

    name: str
    owner: Owner
    own_name: str
    """The owner's name for the tool."""
    definition: ToolDefinition
    """The definition, with the name that the model sees."""
    also: tuple[Owner, ...] = ()
    """Further clients that offer the same tool."""

    def by(self, client_id: str | None) -> Owner:
        """The owner that runs a call: the client that began the turn, if it offers this tool."""
        return next((owner for owner in (self.owner, *self.also) if owner.id == client_id), self.owner)


class ToolRegistry:
    """The tools of one session. Offers replace what the same owner offered before."""

    def __init__(self, *, max_past: int = _MAX_PAST, max_names: int = _MAX_NAMES) -> None:
        self._max_past = max_past
        self._max_names = max_names
        self._offers: dict[tuple[str, str], tuple[Owner, Sequence[ToolDefinition]]] = {}
        self._names: dict[tuple[str, str, str], str] = {}
        self._holders: dict[str, tuple[str, str, str]] = {}
        """Name → the owner to which it belongs permanently."""
        self._tools: dict[str, Tool] | None = None
        self._shown: dict[str, Tool] = {}
        """The tools and names of the last naming."""
        self._past: dict[str, Tool] = {}
        """Removed tools, without the data that only calls need."""

    def offer(self, owner: Owner, definitions: Sequence[ToolDefinition]) -> bool:
        """Replace the tools of an owner. Returns whether they changed."""
        before = self._offers.get(owner.key)
        if before is not None and before[0] == owner and list(before[1]) == list(definitions):
            return False
        if not definitions and before is None:
            return False
        self._offers[owner.key] = (owner, list(definitions))
        self._tools = None
        return True

    def withdraw(self, owner: Owner) -> bool:
        """An owner is gone. Returns whether it offered anything. Its names stay reserved for it."""
        self._tools = None
        return self._offers.pop(owner.key, None) is not None

    def owners(self, kind: OwnerKind) -> list[Owner]:
        return [owner for owner, _ in self._offers.values() if owner.kind == kind]

    def find(self, name: str) -> Tool | None:
        return self._all().get(name)

    def gone(self) -> list[Tool]:
        """Tools that are no longer offered. An agent may still call them."""
        self._all()
        return list(self._past.values())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._all().values())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Tool]:
        if self._tools is None:
            self._tools = self._named()
            self._remember(self._tools)
        return self._tools

    def _remember(self, now: Mapping[str, Tool]) -> None:
        gone = {name: _without_details(tool) for name, tool in self._shown.items() if name not in now}
        past = [(name, tool) for name, tool in (self._past | gone).items() if name not in now]
        self._past, self._shown = dict(past[-self._max_past :]), dict(now)
        if len(self._names) <= self._max_names:
            return
        unused = [key for key, name in self._names.items() if name not in now]
        for key in unused[: max(0, len(unused) - self._max_names)]:
            del self._holders[self._names.pop(key)]

    def _named(self) -> dict[str, Tool]:
        tools: dict[str, Tool] = {}
        clients: dict[str, str] = {}
        offers = sorted(self._offers.values(), key=lambda offer: _ORDER.index(offer[0].kind))
        for owner, definitions in offers:
            for definition in definitions:
                own = definition["name"]
                if owner.kind == "client" and own in clients:
                    shown = tools[clients[own]]
                    tools[shown.name] = Tool(shown.name, shown.owner, own, shown.definition, (*shown.also, owner))
                    continue
                name = self._name(owner, own, tools)
                if name in tools:  # If an owner has a name twice, the first tool counts.
                    continue
                tools[name] = Tool(name, owner, own, cast("ToolDefinition", {**definition, "name": name}))
                if owner.kind == "client":
                    clients[own] = name
        return tools

    def _name(self, owner: Owner, own: str, taken: dict[str, Tool]) -> str:
        if owner.kind in ("agent", "host"):
            return own
        key = (owner.kind, "" if owner.kind == "client" else owner.id, own)  # All clients share a tool's name.
        known = self._names.get(key)
        if known is not None and (known not in taken or _same(taken[known], owner, own)):
            return known

        def held(name: str) -> bool:
            return name in _FINDER_NAMES or name in taken or self._holders.get(name, key) != key

        name = _free(_wanted(owner, own), held, own if owner.kind == "client" else None, key)
        if known is not None:
            del self._holders[known]
        self._names[key], self._holders[name] = name, key
        return name


def _without_details(tool: Tool) -> Tool:
    title = tool.definition.get("title")
    definition = {"name": tool.name, "inputSchema": {"type": "object"}} | ({} if title is None else {"title": title})
    return replace(tool, definition=cast("ToolDefinition", definition))


def _same(tool: Tool, owner: Owner, own: str) -> bool:
    return tool.owner.key == owner.key and tool.own_name == own


def _wanted(owner: Owner, own: str) -> str:
    return f"{owner.title}_{own}" if owner.kind == "mcp" else own


def _free(wanted: str, held: Callable[[str], bool], client_name: str | None, key: tuple[str, str, str]) -> str:
    """The wanted name if it is free, else a name that is derived from it, always in the same way."""
    name = model_name(wanted, key)
    if not held(name):
        return name
    if client_name is not None:
        wanted = f"client_{client_name}"
        while held(name := model_name(wanted, key)) and len(wanted) < 2 * MAX_NAME:
            wanted = f"client_{wanted}"
    return _marked(name, key) if held(name) else name


def model_name(wanted: str, key: tuple[str, ...]) -> str:
    """A name that models accept. If the name had to be changed, a hash is added, so that two names do not become the
    same."""
    name = _ODD.sub("_", wanted).strip("_") or "tool"
    lost = len(name) > MAX_NAME or not wanted.isascii()
    return _marked(name, key) if lost else name


def _marked(name: str, key: tuple[str, ...]) -> str:
    mark = hashlib.sha256("\0".join(key).encode()).hexdigest()[:_SUFFIX]
    return f"{name[: MAX_NAME - _SUFFIX - 1]}_{mark}"


# -- very many tools -----------------------------------------------------------------------------------------------

MAX_LISTED = 100
"""The number of tools that are listed for a model. If there are more, it searches with `find_tool`."""

FIND_TOOL = "find_tool"
CALL_TOOL = "call_tool"
_FINDER_NAMES = frozenset({FIND_TOOL, CALL_TOOL})
_FOUND = 20

FINDERS: tuple[ToolDefinition, ...] = (
    {
        "name": FIND_TOOL,
        "description": "Look for a tool by words. Shows what there is now, also what is not listed here.",
        "inputSchema": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Words of its name or of what it does."}},
            "required": ["query"],
        },
    },
    {
        "name": CALL_TOOL,
        "description": "Call a tool that find_tool showed.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The tool's name, as find_tool shows it."},
                "arguments": {"type": "object", "description": "What the tool takes; find_tool has the schema."},
            },
            "required": ["name"],
        },
    },
)
"""For agents that do not read a list again, and for lists that are too long for a model."""


def listed(tools: Sequence[Tool]) -> list[ToolDefinition]:
    """The definitions that an agent gets of these tools: all, or only the host's own if there are too many."""
    few = len(tools) <= MAX_LISTED
    return [tool.definition for tool in tools if few or tool.owner.kind == "host"]


def search(tools: Sequence[ToolDefinition], query: str, limit: int = _FOUND) -> list[ToolDefinition]:
    """The tools that contain these words. Tools with more of the words come first, and names count more than
    descriptions."""
    words = [word for word in re.split(r"[^\w]+", query.lower()) if word][:20]

    def score(tool: ToolDefinition) -> int:
        name = tool["name"].lower()
        text = f"{tool.get('title', '')} {tool.get('description', '')}".lower()
        return sum(3 * (word in name) + (word in text) for word in words)

    rated = [(score(tool), tool) for tool in tools]
    found = sorted((pair for pair in rated if pair[0] or not words), key=lambda pair: -pair[0])
    return [tool for _, tool in found[:limit]]


def found_text(tools: Sequence[ToolDefinition], arguments: Mapping[str, Any]) -> str:
    """The answer of `find_tool`: names, descriptions and schemas, as JSON."""
    shown = [
        {
            "name": tool["name"],
            "description": tool.get("description", ""),
            "inputSchema": tool.get("inputSchema") or {"type": "object"},
        }
        for tool in search(tools, str(arguments.get("query", "")))
    ]
    return json.dumps({"tools": shown})


def input_object(tool_input: str) -> JsonObject:
    """The input of a call as an object. An empty text stands for an empty object. Raises `ValueError` with a text for
    the model."""
    try:
        given: Any = json.loads(tool_input or "{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the input is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError("the input is not a JSON object")
    return cast("JsonObject", given)


def asked_for(arguments: Mapping[str, Any]) -> tuple[str, JsonObject]:
    """The tool and the arguments in a call of `call_tool`. Raises `ValueError` if the arguments are not an object."""
    name = str(arguments.get("name", ""))
    given: Any = arguments.get("arguments")
    problem = f"the arguments of {name!r} are not an object; nothing was called"
    if isinstance(given, str):  # Some models write the object as text.
        try:
            given = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            raise ValueError(problem) from None
    if not isinstance(given, dict | None):
        raise ValueError(problem)
    return name, cast("JsonObject", given or {})


__all__ = [
    "CALL_TOOL",
    "FINDERS",
    "FIND_TOOL",
    "MAX_LISTED",
    "MAX_NAME",
    "Owner",
    "OwnerKind",
    "Tool",
    "ToolHints",
    "ToolRegistry",
    "asked_for",
    "found_text",
    "input_object",
    "listed",
    "search",
    "tool_hints",
]
