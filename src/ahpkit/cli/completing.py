"""What the Tab key makes of a line, given what may be completed. Pure; knows no terminal and no host.

Offsets of completion items count UTF-16 code units; Python counts characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from ahpkit.cli.line_editor import LineEditor
from ahpkit.cli.text import shorten
from ahpkit.protocol.chat.commands import CompletionItem

_LONGEST = 70
"""Characters of a description: one line on most screens."""


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def complete(editor: LineEditor, items: Sequence[CompletionItem]) -> Sequence[str]:
    """Put in what is certain. What there is to choose from, to be shown, when that is nothing."""
    if not items:
        return ()
    start, end = _range(editor, items[0])
    common = _common_beginning([item["insertText"] for item in items])
    typed = editor.text[start : len(editor.before)]
    certain = typed.lstrip("/@#").lower() in common.lower() and len(common) > len(typed)
    if len(items) > 1 and not certain:
        return [_describe(item) for item in items]
    editor.before, editor.after = editor.text[:start] + common, editor.text[end:]
    return ()


def _range(editor: LineEditor, item: CompletionItem) -> tuple[int, int]:
    cursor = utf16_length(editor.before)
    start, end = item.get("rangeStart", cursor), item.get("rangeEnd", cursor)
    return _characters(editor.text, start), _characters(editor.text, end)


def _characters(text: str, offset: int) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")[: offset * 2].decode("utf-16-le", "ignore"))


def _common_beginning(texts: Sequence[str]) -> str:
    # In the order of the alphabet, the first and the last differ soonest.
    same = takewhile(lambda pair: pair[0] == pair[1], zip(min(texts), max(texts), strict=False))
    return "".join(char for char, _ in same)


def _describe(item: CompletionItem) -> str:
    about = str(item["attachment"].get("_meta", {}).get("description", ""))
    return f"  {item['insertText'].strip():16}  {shorten(about, _LONGEST)}".rstrip()


__all__ = ["complete", "utf16_length"]
