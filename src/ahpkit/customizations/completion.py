"""What `/`, `@` and `#` offer while a user types: what they may invoke, and nothing else. Pure."""

from __future__ import annotations

import re

from ahpkit.customizations.offers import META_KEY, Offering, Text
from ahpkit.protocol.chat.commands import CompletionItem

TRIGGERS = {"/": ("skill", "prompt"), "@": ("agent",), "#": ("rule",)}
"""Which types each character stands for."""

_LIMIT = 50
"""Items of one answer; a longer list is narrowed by typing on."""

_WORD = re.compile(r"(?:^|(?<=\s))([/@#])([\w.:-]*)$")


def complete(offering: Offering, typed: str, offset: int) -> list[CompletionItem]:
    """Items for the word before `offset` (UTF-16 units). A command stands at the beginning of a message."""
    before = typed.encode("utf-16-le", "surrogatepass")[: offset * 2].decode("utf-16-le", "replace")
    match = _WORD.search(before)
    if match is None or (match[1] == "/" and before[: match.start()].strip()):
        return []
    start = offset - len(match[0].encode("utf-16-le")) // 2
    items: dict[str, CompletionItem] = {}
    for text in offering.texts(*TRIGGERS[match[1]]):
        if text.placed.effective.user_invocable and _fits(text.detail.tokens, match[2]):
            item = _item(text, match[1], start, offset)
            items.setdefault(item["insertText"], item)
        if len(items) >= _LIMIT:
            break
    return list(items.values())


def _item(text: Text, mark: str, start: int, end: int) -> CompletionItem:
    detail = text.detail
    meta = {"type": detail.type, "uri": text.entry["uri"], "description": detail.description}
    return {
        "insertText": f"{mark}{detail.tokens[0]} ",
        "rangeStart": start,
        "rangeEnd": end,
        "attachment": {
            "type": "simple",
            "label": detail.name,
            "displayKind": detail.type,
            "_meta": {META_KEY: meta},
        },
    }


def _fits(tokens: tuple[str, ...], typed: str) -> bool:
    """The typed part begins one of its names, or a word in one."""
    typed = typed.lower()
    return any(
        token.lower().startswith(typed) or any(part.startswith(typed) for part in re.split(r"[:._-]", token.lower()))
        for token in tokens
    )


__all__ = ["TRIGGERS", "complete"]
