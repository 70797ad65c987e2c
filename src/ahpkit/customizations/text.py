"""Decodes text that strangers wrote, and makes names and descriptions safe to show."""

from __future__ import annotations

import codecs
import re
import unicodedata

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""UTF-32 before UTF-16: the little-endian mark of the first begins with that of the second."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories of invisible characters: controls, bidi marks and tags, surrogates, private use, unassigned."""

_JOINERS = "\u200c\u200d"
"""Formatting characters that ordinary words and emoji need."""

_SMUGGLING = re.compile("[\U000e0100-\U000e01ef]")
"""Variation selectors of the supplement: invisible, and used to hide text from readers but not from models."""

NAME_LIMIT = 128
"""Characters of a name; the formats allow 64."""

DESCRIPTION_LIMIT = 8_192
"""Characters of a description; the longest of 13,658 real ones has 5,732."""


def decode(data: bytes) -> tuple[str, str | None]:
    """The text of a file, and how it was decoded if it was not plain UTF-8."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            text, problem = _decode_as(data[len(mark) :], encoding)
            return text, problem or (None if encoding == "utf-8" else f"the file is {encoding}, not UTF-8")
    return _decode_as(data, "utf-8")


def _decode_as(data: bytes, encoding: str) -> tuple[str, str | None]:
    try:
        text, problem = data.decode(encoding), None
    except UnicodeDecodeError:
        text, problem = data.decode(encoding, "replace"), f"bytes that are not {encoding} were replaced"
    if "\0" in text:
        return text.replace("\0", ""), "NUL characters were removed"
    return text, problem


def clean_text(text: str, *, limit: int = DESCRIPTION_LIMIT) -> str:
    """Text for people and models: line breaks stay, invisible characters are removed, and the length is limited."""
    if not text.replace("\n", "").isprintable():
        text = "".join(_visible(character) for character in text)
    text = _SMUGGLING.sub("", text).strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _visible(character: str) -> str:
    if character in "\n\t" or character in _JOINERS:
        return character
    category = unicodedata.category(character)
    if category in _HIDDEN:
        return ""
    return " " if category == "Zs" else "\n" if category in ("Zl", "Zp") else character


def clean_label(text: str) -> str:
    """A name as its author wrote it: one line, single spaces, nothing invisible."""
    return " ".join(clean_text(text, limit=NAME_LIMIT).split())


def clean_name(text: str) -> str:
    """A name that can be part of a longer one: without `/` and `:`, which separate parts."""
    return re.sub(r"[/\\:]+", "-", clean_label(text)).strip("- ")


def slug(name: str) -> str:
    """The form of `name` that is typed after `/` or `@`: without spaces, and only with punctuation that distinguishes
    names."""
    words = re.sub(r"[^\w.:+#-]+", "-", name)
    return re.sub(r":?-+:?|:{2,}", _joint, words).strip("-.:")


def _joint(match: re.Match[str]) -> str:
    return "-" if "-" in match[0] else ":"


def first_paragraph(body: str, *, limit: int = 240) -> str:
    """A description for a text without one: its first lines of prose."""
    for block in re.split(r"\n\s*\n", body.replace("\r\n", "\n")):
        lines = [line.strip() for line in block.splitlines()]
        prose = " ".join(line for line in lines if line and not line.startswith(("#", "<!--", "```", "---")))
        if prose:
            return clean_text(prose, limit=limit)
    return ""


__all__ = ["DESCRIPTION_LIMIT", "clean_label", "clean_name", "clean_text", "decode", "first_paragraph", "slug"]
