"""Chooses the version of a connection by the rule of 1.0, and pins a host to one generation. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ahpkit.dialects.generations import Generation, generation_of
from ahpkit.protocol.errors import InvalidParams, UnsupportedProtocolVersion
from ahpkit.protocol.version import Version

_NUMBER = r"(?:0|[1-9][0-9]*)"
_LONGEST = 256
"""Characters of a version. A longer text is not a version."""

_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}")
_PIN: Final = re.compile(rf"({_NUMBER})(?:\.({_NUMBER})(?:\.({_NUMBER}))?)?")

_SHOWN = 10
"""Versions of an offer that an error repeats."""

_MAX_OFFERED = 1000
"""Versions in one offer; nobody has that many."""

SPOKEN: Final[Sequence[Generation]] = tuple(Generation)
"""Everything we can speak."""

OFFERED: Final[Sequence[str]] = ("1.0.0", "0.9.0", "0.4.0")
"""What our client offers, newest first."""


class Agreed(NamedTuple):
    """What both sides use from now on."""

    version: str
    """Exactly as it was offered."""
    generation: Generation


def negotiate(offered: Sequence[object], spoken: Sequence[Generation] = SPOKEN) -> Agreed:
    """The highest version of an offer that is spoken; the order does not matter.

    Raises `InvalidParams` when an entry is malformed, even beside good ones, and `UnsupportedProtocolVersion` when none
    fits.
    """
    if len(offered) > _MAX_OFFERED:
        raise InvalidParams(f"protocolVersions: at most {_MAX_OFFERED} versions can be offered")
    known = [offer for index, text in enumerate(offered) if (offer := _read(index, text)) is not None]
    usable = [offer for offer in _without_drafts(known) if offer.generation in spoken]
    if not usable:
        raise _unsupported(offered, spoken)
    best = max(usable, key=lambda offer: offer.version)
    return Agreed(best.text, best.generation)


class _Offer(NamedTuple):
    version: Version
    text: str
    generation: Generation


def _without_drafts(offer: list[_Offer]) -> list[_Offer]:
    """The offer without the 1.x that means an earlier draft.

    VS Code 1.135 and 1.136 offer 1.0.0 together with versions below 0.9, but speak 0.9 or older. Of the clients of the
    released 1.0 only ours offers something older than 0.9: `1.0.0, 0.9.0, 0.4.0`.
    """
    older = {entry.generation for entry in offer if entry.generation < Generation.V1_0}
    if older <= {Generation.V0_9} or older == {Generation.V0_9, Generation.V0_4}:
        return offer
    return [entry for entry in offer if entry.generation < Generation.V1_0]


def _read(index: int, text: object) -> _Offer | None:
    """One entry of an offer; None when it is a version that we do not know. Raises `InvalidParams` for other texts."""
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


def pin(text: str) -> Sequence[Generation]:
    """The generations that a setting such as "0.9", "0.5.1" or "1" restricts a side to.

    Raises `ValueError`, with a message for a person, when it names none that is supported.
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


__all__ = ["OFFERED", "SPOKEN", "Agreed", "negotiate", "pin", "supported_versions"]
