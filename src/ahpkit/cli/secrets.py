"""Takes what looks like a secret out of a document before it is handed on. Pure.

Nobody can know every secret. What is found are keys with a known shape, values that are named as secrets, and the
values of this environment's variables that are named so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

HIDDEN = "[removed]"

_SHAPES = re.compile(
    r"""
    -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}                 # model providers
    | \bsk_(?:live|test)_[A-Za-z0-9]{16,}               # payment
    | \bgh[opsur]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,} | \bglpat-[A-Za-z0-9_-]{16,}
    | \bAKIA[0-9A-Z]{16}\b | \bASIA[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{30,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,}
    | \bhf_[A-Za-z0-9]{20,} | \bnpm_[A-Za-z0-9]{20,} | \bpypi-[A-Za-z0-9_-]{20,}
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*   # JSON web tokens
    | (?<=://)[^\s/:@]+:[^\s/@]+(?=@)                    # name:password in a URL
    """,
    re.VERBOSE | re.DOTALL,
)

_NAMED = re.compile(
    r"""(?P<name>["']?\b[\w.-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w.-]*["']?
        \s*[:=]\s*|\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+|\bbearer\s+)
        (?P<value>"[^"\n]{4,}"|'[^'\n]{4,}'|[^\s"',;]{6,})""",
    re.VERBOSE | re.IGNORECASE,
)

_SECRET_NAME = re.compile(r"(PASSWORD|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL)", re.IGNORECASE)


class Redactor:
    """Removes secrets, and counts them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        known = {value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= 8}
        self._known = sorted(known, key=len, reverse=True)
        self.removed = 0

    def clean(self, value: Any) -> Any:
        """The same value with every text in it cleaned."""
        match value:
            case str():
                return self._text(value)
            case dict():
                return {key: self.clean(one) for key, one in cast("dict[str, Any]", value).items()}
            case list():
                return [self.clean(one) for one in cast("list[Any]", value)]
            case _:
                return value

    def _text(self, text: str) -> str:
        for known in self._known:
            self.removed += text.count(known)
            text = text.replace(known, HIDDEN)
        text, shapes = _SHAPES.subn(HIDDEN, text)
        text = _NAMED.sub(self._named, text)
        self.removed += shapes
        return text

    def _named(self, found: re.Match[str]) -> str:
        quote = found["value"][0] if found["value"][0] in "\"'" else ""
        if found["value"].strip(quote) == HIDDEN:
            return found.group()
        self.removed += 1
        return f"{found['name']}{quote}{HIDDEN}{quote}"


__all__ = ["HIDDEN", "Redactor"]
