"""Reads and compares protocol versions. `ahpkit.dialects.negotiation` chooses one for a connection.

Versions are SemVer. Before 1.0.0 peers understand each other within one `0.MINOR`, from then on within one MAJOR.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

_NUMBER = r"(0|[1-9][0-9]*)"
_IDENTIFIER = r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LONGEST = 256
"""A version is a short text; longer ones are not looked at."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A SemVer version. Build metadata is accepted and ignored."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Version:
        """Raises `ValueError` when `text` is not SemVer."""
        match = _SEMVER.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise ValueError(f"{text[:_LONGEST]!r} is not a version such as 0.4.0")
        major, minor, patch, prerelease = match.groups()
        return cls(int(major), int(minor), int(patch), tuple(prerelease.split(".")) if prerelease else ())

    def __str__(self) -> str:
        core = f"{self.major}.{self.minor}.{self.patch}"
        return f"{core}-{'.'.join(self.prerelease)}" if self.prerelease else core

    def __lt__(self, other: Version) -> bool:
        return self._precedence() < other._precedence()

    def _precedence(self) -> tuple[object, ...]:
        # semver.org §11: a pre-release is lower than its release; numbers are lower than words and compare as numbers.
        identifiers = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.prerelease)
        return (self.major, self.minor, self.patch, not self.prerelease, identifiers)


__all__ = ["Version"]
