"""Chooses the version of a connection by the rule of 1.0, and pins a host to one generation. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from ahpkit.dialects.generations import Generation, generation_of
from ahpkit.protocol.errors import InvalidParams, UnsupportedProtocolVersion
from ahpkit.protocol.version import Version

_NUMBER = r"(?:0|[1-9][0-9]*)"
_LONGEST = 256
"""Characters. A longer text is not a version."""

_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}")
_PIN: Final = re.compile(rf"({_NUMBER})(?:\.({_NUMBER})(?:\.({_NUMBER}))?)?")

_SHOWN = 10
"""An error lists at most this many versions of an offer."""

_MAX_OFFERED = 1000
"""Versions in one offer. No client has that many."""

SPOKEN: Final[Sequence[Generation]] = tuple(Generation)
"""The generations that ahpkit supports."""

OFFERED: Final[Sequence[str]] = ("1.0.0", "0.9.0", "0.4.0")
"""The versions that ahpkit's client offers, newest first."""


class AgreedVersion(NamedTuple):
    """The version that both sides use."""

    version: str
    """Exactly as it was offered."""
    generation: Generation


def negotiate(offered: Sequence[object], spoken: Sequence[Generation] = SPOKEN) -> AgreedVersion:
    """The highest supported version of an offer. The order of the offer does not matter.

    Raises `InvalidParams` when any entry is malformed, and `UnsupportedProtocolVersion` when no version is supported.
    """
    if len(offered) > _MAX_OFFERED:
        raise InvalidParams(f"protocolVersions: at most {_MAX_OFFERED} versions can be offered")
    known = [offer for index, text in enumerate(offered) if (offer := _read(index, text)) is not None]
    usable = [offer for offer in _without_drafts(known) if offer.generation in spoken]
    if not usable:
        raise _unsupported(offered, spoken)
    best = max(usable, key=lambda offer: offer.version)
    return AgreedVersion(best.text, best.generation)


class _Offer(NamedTuple):
    version: Version
    text: str
    generation: Generation


def _without_drafts(offer: list[_Offer]) -> list[_Offer]:
    """The offer without a 1.x that stands for an earlier draft.

    VS Code 1.135 and 1.136 offer 1.0.0 together with versions below 0.9, but speak 0.9 or older. Among clients of the
    released 1.0, only ahpkit's offers a version below 0.9: `1.0.0, 0.9.0, 0.4.0`.
    """
    older = {entry.generation for entry in offer if entry.generation < Generation.V1_0}
    if older <= {Generation.V0_9} or older == {Generation.V0_9, Generation.V0_4}:
        return offer
    return [entry for entry in offer if entry.generation < Generation.V1_0]


def _read(index: int, text: object) -> _Offer | None:
    """Parse one entry of an offer; None for a version of no known generation. Raises `InvalidParams` if it is none."""
    if not isinstance(text, str):
        raise InvalidParams(f"protocolVersions[{index}]: expected string")
    if len(text) > _LONGEST or _VERSION.fullmatch(text) is None:
        raise InvalidParams(f"protocolVersions[{index}]: {text[:40]!r} is not a version such as 1.0.0")
    version = Version.parse(text)
    generation = generation_of(version)
    return None if generation is None else _Offer(version, text, generation)


def _unsupported(offered: Sequence[object], spoken: Sequence[Generation]) -> UnsupportedProtocolVersion:
    versions = supported_versions(spoken)
    offer = ", ".join(str(text) for text in offered[:_SHOWN]) or "no version"
    return UnsupportedProtocolVersion(versions, f"{offer} offered; this side speaks {', '.join(versions)}")


def supported_versions(spoken: Sequence[Generation] = SPOKEN) -> Sequence[str]:
    """The versions in the answer to a client whose offer does not fit: one version of each generation, newest first."""
    return [generation.release for generation in sorted(spoken, reverse=True)]


def newest_spoken(named: Sequence[object]) -> str | None:
    """The newest version that is spoken here, of those that a host named; None if there is none."""
    spoken: list[str] = []
    for text in named:
        with suppress(ValueError):
            if isinstance(text, str) and generation_of(Version.parse(text)) is not None:
                spoken.append(text)
    return max(spoken, key=Version.parse, default=None)


def pin(text: str) -> Sequence[Generation]:
    """The generations to which a setting such as "0.9", "0.5.1" or "1" restricts a host.

    Raises `ValueError`, with a message for the user, when it names no supported version.
    """
    match = _PIN.fullmatch(text) if len(text) <= _LONGEST else None
    if match is not None:
        wanted = [int(number) for number in match.groups() if number is not None]
        found = tuple(one for one in Generation if _numbers(one)[: len(wanted)] == wanted)
        if found:
            return found
    raise ValueError(f"{text!r} is not a supported protocol version; supported: {', '.join(supported_versions())}")


def _numbers(generation: Generation) -> list[int]:
    return [int(number) for number in generation.release.split(".")]


__all__ = ["OFFERED", "SPOKEN", "AgreedVersion", "negotiate", "newest_spoken", "pin", "supported_versions"]
