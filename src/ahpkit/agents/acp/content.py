"""Converts what an agent shows to AHP content: text, files, diffs, terminals; and a turn to the blocks of a prompt.

Pure, except for the content store that it gets.

AHP keeps file contents out of the state: a diff becomes two references into the host's content store. An agent resends
a tool call's whole content with each change, so this module remembers what was stored already.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ahpkit.agents.acp.limits import MAX_ATTACHED, MAX_KINDS, MAX_LISTED, MAX_PIECE, MAX_TEXT, cut, short
from ahpkit.agents.acp.meta import annotated
from ahpkit.agents.turn_input import attachments
from ahpkit.agents.untrusted_json import integer, obj, objects, text
from ahpkit.protocol.chat.state import Message, ToolResultContent
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.protocol.common.state import FileEdit, FileEditStats, JsonObject

_MAX_COMPARED = 1024 * 1024
"""Characters of a file, before and after an edit together. In longer files the changed lines are not counted, because
comparing takes too long."""

_MAX_KEPT = 4 * 1024 * 1024
"""Characters of files and pictures that are taken from one update of a tool call, because storing them takes long."""

_TOO_LONG = "[too long to be shown]"

MAX_DISPLAY = 64 * 1024
"""Characters that are kept of a terminal that the agent only shows. The end of the output is kept."""


OUTPUT_KEYS = ("terminal_output", "terminal_output_delta")
"""Keys of a tool call's `_meta` with the next piece of output of a terminal that the agent runs itself. Agents send
them to a client that has announced them in the `_meta` of its capabilities."""


class Store(Protocol):
    """`Turn.store`."""

    def __call__(self, data: bytes, *, content_type: str) -> str: ...


class Contents:
    """Maps the content of one turn. `terminal_uri` returns the URI of a terminal that the host runs for the agent."""

    def __init__(self, store: Store, *, root: Path, terminal_uri: Callable[[str], str | None]) -> None:
        self._store = store
        self._root = root
        self._terminal_uri = terminal_uri
        self._stored: dict[tuple[bytes, str], str] = {}
        self._displayed: dict[str, str] = {}

    def tool_content(self, items: Any) -> list[ToolResultContent]:
        """The content of a tool call. If there are too many items, a last text says how many were left out."""
        listed = objects(items)
        shown = [self._item(item) for item in _shortened(listed[:MAX_LISTED])]
        if more := len(listed) - len(shown):
            shown.append({"type": "text", "text": f"[{more} more, not shown]"})
        return shown

    def edits(self, items: Any) -> tuple[list[FileEdit], int]:
        """The diffs in a tool call's content, which show what the call is about to do, and how many more there are."""
        diffs = [item for item in objects(items) if item.get("type") == "diff"]
        shown = [annotated(self._diff(item), meta=obj(item.get("_meta"))) for item in _shortened(diffs[:MAX_LISTED])]
        return shown, len(diffs) - len(shown)

    def display(self, meta: JsonObject) -> str | None:
        """Take terminal output that an agent sends in `_meta`. Returns the id of the terminal, if there was output."""
        output = next((found for key in OUTPUT_KEYS if (found := obj(meta.get(key)))), obj(None))
        id, data = text(output.get("terminal_id")), text(output.get("data"))
        if id is None or data is None or (id not in self._displayed and len(self._displayed) >= MAX_KINDS):
            return None
        self._displayed[id] = (self._displayed.get(id, "") + data)[-MAX_DISPLAY:]
        return id

    def _item(self, item: JsonObject) -> ToolResultContent:
        block = obj(obj(item.get("content")).get("_meta"))
        return annotated(self._mapped(item), meta=obj(item.get("_meta")), block=block)

    def _mapped(self, item: JsonObject) -> ToolResultContent:
        kind = item.get("type")
        if kind == "diff" and text(item.get("path")):
            return {"type": "fileEdit", **self._diff(item)}
        if kind == "terminal":
            return self._terminal(str(item.get("terminalId")))
        if kind == "content":
            return self._block(obj(item.get("content")))
        return _unknown(item)

    def _terminal(self, id: str) -> ToolResultContent:
        uri = self._terminal_uri(id)
        if uri is not None:
            return {"type": "terminal", "resource": uri, "title": "Terminal"}
        return {"type": "text", "text": self._displayed.get(id, "")}

    def _block(self, block: JsonObject) -> ToolResultContent:
        if block.get("type") == "text":
            return {"type": "text", "text": cut(str(block.get("text", "")), MAX_TEXT)}
        if block.get("type") == "resource_link" and text(block.get("uri")):
            return _link(block)
        data = block_data(block)
        if data is None:
            return _unknown(block)
        content, content_type = data
        uri = self._keep(content, content_type)
        return {"type": "resource", "uri": uri, "contentType": content_type, "sizeHint": len(content)}

    def _diff(self, item: JsonObject) -> FileEdit:
        path = (self._root / str(item.get("path"))).as_uri()
        name = path.rpartition("/")[2]
        old, new = item.get("oldText"), str(item.get("newText") or "")
        edit: FileEdit = {"after": {"uri": path, "content": {"uri": self._keep_text(new, name)}}}
        if isinstance(old, str):
            edit["before"] = {"uri": path, "content": {"uri": self._keep_text(old, name)}}
        before = old if isinstance(old, str) else ""
        if len(before) + len(new) <= _MAX_COMPARED and new != _TOO_LONG:
            edit["diff"] = _changed_lines(before, new)
        return edit

    def _keep_text(self, content: str, name: str) -> str:
        """Store a text under a URI that ends with the file's name, because editors show the name above a difference."""
        return f"{self._keep(content.encode('utf-8', 'replace'), 'text/plain')}/{name}"

    def _keep(self, data: bytes, content_type: str) -> str:
        key = (hashlib.sha256(data).digest(), content_type)
        if key not in self._stored:
            self._stored[key] = self._store(data, content_type=content_type)
        return self._stored[key]


def block_data(block: JsonObject) -> tuple[bytes, str] | None:
    """Bytes and type of an image, audio or embedded resource block; None for anything else."""
    if block.get("type") in ("image", "audio"):
        return _decoded(block.get("data"), text(block.get("mimeType")) or "application/octet-stream")
    resource = obj(block.get("resource"))
    if isinstance(resource.get("text"), str):
        return resource["text"].encode("utf-8", "replace"), text(resource.get("mimeType")) or "text/plain"
    return _decoded(resource.get("blob"), text(resource.get("mimeType")) or "application/octet-stream")


def is_too_long(block: JsonObject) -> bool:
    """Whether a block of a message is too long to be attached."""
    resource = obj(block.get("resource"))
    kept = (block.get("data"), resource.get("blob"), resource.get("text"))
    return any(isinstance(one, str) and len(one) > MAX_ATTACHED for one in kept)


def shown_as_text(block: JsonObject) -> str | None:
    """A block of a message as text, if it is a text or a link. None for blocks that have to be attached."""
    if block.get("type") == "text":
        return str(block.get("text", ""))
    if block.get("type") == "resource_link" and text(block.get("uri")):
        return f"[{text(block.get('title')) or text(block.get('name')) or block['uri']}]({block['uri']})"
    return None


def text_in_pieces(params: JsonObject) -> list[JsonObject]:
    """The params of a `session/update`. If the update has a long text, it is split into several."""
    update = obj(params.get("update"))
    content = obj(update.get("content"))
    words = text(content.get("text")) or ""
    if len(words) <= MAX_PIECE or not str(update.get("sessionUpdate")).endswith("_chunk"):
        return [params]
    pieces = (words[at : at + MAX_PIECE] for at in range(0, len(words), MAX_PIECE))
    return [{**params, "update": {**update, "content": {**content, "text": piece}}} for piece in pieces]


def as_json(value: Any) -> str:
    """A raw input or output as the text that is shown."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _decoded(data: Any, content_type: str) -> tuple[bytes, str] | None:
    try:
        return base64.b64decode(data, validate=True), content_type
    except (TypeError, ValueError, binascii.Error):
        return None


def _link(block: JsonObject) -> ToolResultContent:
    link: ToolResultContent = {"type": "resource", "uri": block["uri"]}
    if content_type := text(block.get("mimeType")):
        link["contentType"] = content_type
    if (size := integer(block.get("size"))) is not None:
        link["sizeHint"] = size
    return link


def _shortened(items: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """The items. Texts and pictures that would be too much to store are left out."""
    left = _MAX_KEPT
    for item in items:
        content = obj(item.get("content"))
        resource = obj(content.get("resource"))
        kept = (
            item.get("oldText"),
            item.get("newText"),
            content.get("data"),
            resource.get("blob"),
            resource.get("text"),
        )
        size = sum(len(one) for one in kept if isinstance(one, str))
        if size > left:
            yield _without_text(item)
        else:
            left -= size
            yield item


def _without_text(item: JsonObject) -> JsonObject:
    """An item that is too long. A change still names its file."""
    meta = {"_meta": item["_meta"]} if "_meta" in item else {}
    if item.get("type") == "diff":
        before = "" if isinstance(item.get("oldText"), str) else None
        return {"type": "diff", "path": item.get("path"), "oldText": before, "newText": _TOO_LONG, **meta}
    return {"type": "content", "content": {"type": "text", "text": _TOO_LONG}, **meta}


def _unknown(item: JsonObject) -> ToolResultContent:
    return {"type": "text", "text": f"[content of a kind this host does not know: {short(repr(item.get('type')))}]"}


def _changed_lines(old: str, new: str) -> FileEditStats:
    """How many lines were added and how many removed. A line that moved counts as neither."""
    before, after = Counter(old.splitlines()), Counter(new.splitlines())
    return {"added": (after - before).total(), "removed": (before - after).total()}


MAX_TRANSCRIPT = 64 * 1024
"""Characters of an earlier conversation that are sent to an agent that cannot restore it. The end is sent."""


def blocks(prompt: str, message: Message, capabilities: JsonObject) -> list[JsonObject]:
    """The user's message; `capabilities` are the agent's `promptCapabilities`."""
    attached = [_attachment(item, capabilities) for item in attachments(message)]
    return [{"type": "text", "text": prompt}, *attached]


def transcript(turns: Sequence[TurnRecord]) -> str:
    """An earlier conversation as text, for an agent that cannot restore it."""
    conversation = "\n\n".join(f"User: {turn['message']['text']}\n\nAssistant: {_answer_text(turn)}" for turn in turns)
    return (
        f"This conversation began earlier. What was said so far:\n\n{conversation[-MAX_TRANSCRIPT:]}"
        if conversation
        else ""
    )


def _answer_text(turn: TurnRecord) -> str:
    parts = objects(list(turn["responseParts"]))
    return "".join(str(part.get("content", "")) for part in parts if part.get("kind") == "markdown")


def _attachment(item: JsonObject, capabilities: JsonObject) -> JsonObject:
    block = _embedded(item, capabilities) if item.get("type") == "embeddedResource" else _reference(item)
    meta = dict(obj(item.get("_meta")))
    if "selection" in item:
        meta["ahpkit/selection"] = item["selection"]
    return block | ({"_meta": meta} if meta else {})


def _reference(item: JsonObject) -> JsonObject:
    """A simple attachment as text; an attachment with a URI as a link, which every agent takes."""
    label = str(item.get("label", ""))
    uri = text(item.get("uri")) or text(item.get("resource"))
    if uri is None:
        return {"type": "text", "text": text(item.get("modelRepresentation")) or label}
    link: JsonObject = {"type": "resource_link", "uri": uri, "name": label or uri}
    link |= {"mimeType": item["contentType"]} if text(item.get("contentType")) else {}
    return link | ({"size": item["sizeHint"]} if isinstance(item.get("sizeHint"), int) else {})


def _embedded(item: JsonObject, capabilities: JsonObject) -> JsonObject:
    label, data = str(item.get("label", "")), str(item.get("data", ""))
    content_type = text(item.get("contentType")) or "application/octet-stream"
    family = content_type.partition("/")[0]
    if family in ("image", "audio") and capabilities.get(family):
        return {"type": family, "data": data, "mimeType": content_type}
    plain = _plain_text(data, content_type)
    if capabilities.get("embeddedContext"):
        resource: JsonObject = {"uri": f"attachment:///{label}", "mimeType": content_type}
        return {"type": "resource", "resource": resource | ({"blob": data} if plain is None else {"text": plain})}
    if plain is not None:
        return {"type": "text", "text": f"{label}:\n{plain}"}
    return {"type": "text", "text": f"[{label}: this agent takes no attachments of type {content_type}]"}


def _plain_text(data: str, content_type: str) -> str | None:
    if not content_type.startswith("text/") and not content_type.endswith(("json", "xml", "yaml")):
        return None
    try:
        return base64.b64decode(data, validate=True).decode()
    except (UnicodeDecodeError, ValueError, binascii.Error):
        return None


__all__ = [
    "MAX_DISPLAY",
    "MAX_TRANSCRIPT",
    "OUTPUT_KEYS",
    "Contents",
    "Store",
    "as_json",
    "block_data",
    "blocks",
    "is_too_long",
    "shown_as_text",
    "transcript",
]
