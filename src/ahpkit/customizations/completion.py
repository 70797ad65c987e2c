"""Completes `/`, `@` and `#` with the customizations that a user may invoke. Pure."""

from __future__ import annotations

import re

from ahpkit.customizations.in_force import META_KEY, InForce, Text
from ahpkit.host.turns.completions import Word, word_at
from ahpkit.protocol.chat.commands import CompletionItem

TRIGGERS = {"/": ("skill", "prompt"), "@": ("agent",), "#": ("rule",)}
"""Which types each character stands for."""


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


def _item(text: Text, mark: str, word: Word, typed: str) -> CompletionItem:
    """What stands for `text`: of the names it can be called by, the first that keeps what is typed."""
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


__all__ = ["TRIGGERS", "complete"]
