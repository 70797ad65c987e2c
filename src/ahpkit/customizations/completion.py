"""What `/`, `@` and `#` offer while a user types: what they may invoke, and nothing else. Pure."""

from __future__ import annotations

import re

from ahpkit.customizations.offers import META_KEY, Offering, Text
from ahpkit.host.completions import Word, word_at
from ahpkit.protocol.chat.commands import CompletionItem

TRIGGERS = {"/": ("skill", "prompt"), "@": ("agent",), "#": ("rule",)}
"""Which types each character stands for."""

_LIMIT = 50
"""Items of one answer; a longer list is narrowed by typing on."""


def complete(offering: Offering, text: str, offset: int) -> list[CompletionItem]:
    """Items for the word at `offset` (UTF-16 units). A command stands at the beginning of a message."""
    word = word_at(text, offset)
    mark, typed = word.typed[:1], word.typed[1:]
    if mark not in TRIGGERS or (mark == "/" and word.before.strip()):
        return []
    items: dict[str, CompletionItem] = {}
    for found in offering.texts(*TRIGGERS[mark]):
        if found.placed.effective.user_invocable and _fits(found.detail.tokens, typed):
            item = _item(found, mark, word)
            items.setdefault(item["insertText"], item)
        if len(items) >= _LIMIT:
            break
    return list(items.values())


def _item(text: Text, mark: str, word: Word) -> CompletionItem:
    detail = text.detail
    meta = {"type": detail.type, "uri": text.entry["uri"]}
    return {
        "insertText": f"{mark}{detail.tokens[0]} ",
        "rangeStart": word.start,
        "rangeEnd": word.end,
        "attachment": {
            "type": "simple",
            "label": detail.name,
            "displayKind": detail.type,
            "_meta": {"description": detail.description, META_KEY: meta},
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
